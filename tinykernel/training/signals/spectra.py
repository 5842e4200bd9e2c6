"""Training of convolutions on spectra, and the choice between these and kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from tinykernel import progress
from tinykernel.errors import TinykernelError
from tinykernel.model.grid import Grid
from tinykernel.model.integer import IntegerModel
from tinykernel.training.choice import Candidate, Choice, choose, joined
from tinykernel.training.folds import trial_folds
from tinykernel.training.loop import History
from tinykernel.training.loss import WIDE_TEMPERATURES
from tinykernel.training.options import TrainerOptions
from tinykernel.training.options.ranges import FORMS
from tinykernel.training.readouts.linear_training import (
    bits_of,
    chained_model,
    run_training,
    split_rows,
)
from tinykernel.training.result import TrainingResult
from tinykernel.training.signals.planes import (
    PlaneLearner,
    Variation,
    as_planes,
    no_planes,
    plane_plan,
)
from tinykernel.training.signals.spectrum import spectrum_of
from tinykernel.training.trainset import TrainSet

#: A training without the choice, of rows, options and the shape of a window.
Training = Callable[[TrainSet, TrainerOptions, tuple[int, ...]], TrainingResult]
# Folds, of a quarter of the windows, and epochs of convolutions over those of their short training.
_FOLDS, _TRIAL_SHARE = 1, 2
_NAMES = {"kernels": "kernels", "mixed": "convolutions"}


def fit_planes(
    data: TrainSet, options: TrainerOptions, shape: tuple[int, ...], untrained: bool = False
) -> TrainingResult:
    """Learn separable convolutions on the spectra of windows of (samples, channels)."""
    grid = Grid.raw(data.raw_dtype, shape[0], 1, shape[1])
    first, _ = spectrum_of(options, shape, data.raw_dtype)
    refused = "" if not options.beside else "numbers beside a window go with kernels only"
    refused = refused or no_planes(grid, first, options.augment)
    if refused:
        raise TinykernelError(f"convolutions: {refused}")
    assert first is not None
    progress.report("spectra", 0, None)
    seed = int(check_random_state(options.random_state).randint(2**31 - 1))
    made = first.gives(grid)
    rows = as_planes(split_rows(data.seen(lambda raw: first.run(raw, grid)), options, seed), made)
    plan = plane_plan(options, len(rows.rows), bits_of(options, shape), data.losses)
    learner = PlaneLearner(rows, plan, Variation.of(options, first, made.rows))
    history = History([{"loss": float("nan")}], False)
    if not untrained:
        history = run_training(learner, learner.seen, rows)
    stages = first, *learner.stages_of_planes()
    model = chained_model(stages, grid, data.meaning, learner.stored())
    return TrainingResult(replace(model, hop=options.hop), learner.plan, history)


def better(
    data: TrainSet, options: TrainerOptions, shape: tuple[int, ...], each: Training
) -> tuple[TrainerOptions, Choice | None]:
    """Choose between kernels and convolutions on rows left out.

    Convolutions are trained for half as long: where these are ahead, the whole training is, too.
    They take far more instructions, so that they must be ahead by more than one standard error.
    """
    assert isinstance(options.n_kernels, Mapping)
    if data.quantity is not None:
        raise TinykernelError("n_kernels: of windows a mapping is for classes; give one number")
    forms = {
        form: replace(options, convolutions=FORMS[form], n_kernels=n)
        for form, n in options.n_kernels.items()
    }
    seed = int(check_random_state(options.random_state).randint(2**31 - 1))
    folds = trial_folds(data.codes, data.groups, seed)[:_FOLDS] if len(forms) > 1 else []
    if not folds:
        return next(iter(forms.values())), None
    judged: dict[str, list[Candidate]] = {form: [] for form in forms}
    for number, fold in enumerate(folds):
        progress.report("choosing kernels or convolutions", number, len(folds))
        for form, asked in forms.items():
            with progress.observing(None):
                inside = _part(data, fold.inside)
                model = each(inside, _shortly(asked, len(fold.inside)), shape).machine
            assert isinstance(model, IntegerModel)
            held = data.truth[fold.outside], data.weight[fold.outside]
            totals = model.readout.totals(model.run(model.quantize_inputs(data.X[fold.outside])))
            decisions = (totals * model.decision_scale).astype(np.float32)
            candidate = Candidate.of(_NAMES[form], decisions, *held, temperatures=WIDE_TEMPERATURES)
            judged[form].append(replace(candidate, cost=int(form == "mixed")))
    progress.report("choosing kernels or convolutions", len(folds), len(folds))
    outside = np.concatenate([fold.outside for fold in folds])
    groups = None if data.groups is None else data.groups[outside]
    choice = choose(
        [joined(parts) for parts in judged.values()],
        data.weight[outside],
        groups,
    )
    return list(forms.values())[choice.chosen], choice


def _shortly(options: TrainerOptions, n_rows: int) -> TrainerOptions:
    """Let convolutions have fewer epochs; kernels have none."""
    if options.convolutions == "off":
        return options
    epochs = plane_plan(options, n_rows, 4).linear.epochs
    return replace(options, epochs=-(-epochs // _TRIAL_SHARE))


def _part(data: TrainSet, rows: NDArray[np.int64]) -> TrainSet:
    """Return some of the rows, without those of validation."""
    return replace(
        data,
        X=data.X[rows],
        codes=data.codes[rows],
        sample_weight=data.sample_weight[rows],
        groups=None if data.groups is None else data.groups[rows],
        validation=None,
    )
