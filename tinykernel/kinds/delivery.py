"""Training as for delivery: the chosen spec, and smaller ones while the model is over a limit."""

from collections.abc import Callable

from tinykernel.errors import BudgetError, TinykernelError
from tinykernel.kinds.problem import Problem
from tinykernel.kinds.selection import Selected
from tinykernel.kinds.sizing import Usage, usage
from tinykernel.model import IntegerModel
from tinykernel.training.result import TrainingResult

#: What a model uses; sizes that are not known are within the limits.
Measure = Callable[[IntegerModel], Usage]


def estimated(problem: Problem) -> Measure:
    """Return the measure by which trainings decide."""

    def measured(model: IntegerModel) -> Usage:
        try:
            return usage(model, problem.limits, problem.target)
        except TinykernelError:
            return Usage(0.0, "")

    return measured


def deliver(
    selection: Selected, problem: Problem, *measures: Measure
) -> tuple[TrainingResult, int]:
    """Train until the model is within the limits by each of the measures, in their order.

    Returns the result, and the number of trainings. If Ctrl-C ended a training whose model is over
    a limit, it is not repeated.
    """
    spec, kind, trainings = selection.spec, selection.kind, 0
    problem.pace.last(kind, spec, problem)
    while True:
        trainings += 1
        result = kind.fit(spec, problem)
        problem.pace.is_settled = True
        uses = (measure(result.machine) for measure in measures)
        over = next((used for used in uses if used.share > 1), None)
        if over is None:
            return result, trainings
        if result.history.interrupted:
            raise BudgetError(
                "training was interrupted and is not repeated with fewer components; the model "
                f"needs {over.text}; give a larger budget"
            )
        smaller, advice = None, "use fewer n_components"
        if not problem.options.is_sized:
            smaller = kind.smaller(spec, over.excess(result.machine), result.machine, problem)
            advice = "give a larger budget"
        if smaller is None:
            raise BudgetError(f"the trained model needs {over.text}; {advice}")
        spec = smaller
