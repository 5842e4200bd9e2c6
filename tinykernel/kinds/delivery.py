"""Training for delivery: until the model is within the limits, as measured.

`select` has chosen the kind and the spec; a model over a limit is trained again, smaller.
"""

from collections.abc import Callable

from tinykernel.base.errors import BudgetError, TinykernelError
from tinykernel.kinds.planning import plan_final
from tinykernel.kinds.problem import Problem
from tinykernel.kinds.selection import Selected
from tinykernel.kinds.sizing import Usage, usage
from tinykernel.learn.loop import TrainingResult
from tinykernel.model.integer import IntegerModel

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
    kind, pace, trainings = selection.kind, selection.pace, 0
    plan_final(pace, kind, selection.spec, problem)
    spec = kind.settle(selection.spec, problem, pace)
    while True:
        trainings += 1
        result = kind.fit(spec, problem, pace)
        pace.is_settled = True
        uses = (measure(result.machine) for measure in measures)
        over = next((used for used in uses if used.share > 1), None)
        if over is None:
            return result, trainings
        if result.history.interrupted:
            raise BudgetError(
                "training was interrupted and is not repeated with a smaller model; this one "
                f"needs {over.text}; give a larger budget"
            )
        needs = f"the trained model needs {over.text}"
        if size := problem.options.size:
            raise BudgetError(f"{needs}; use fewer {{{size}}}", **{size: None})
        smaller = kind.smaller(spec, over.excess(result.machine), result.machine, problem)
        if smaller is None:
            raise BudgetError(f"{needs}; give a larger budget")
        spec = smaller
