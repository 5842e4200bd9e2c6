"""What is known before a training: rows, limits, and what the user fixed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.checks import thread_count
from tinykernel.base.errors import BudgetError, OptionError, ShapeError, TinykernelError
from tinykernel.base.text import count
from tinykernel.learn.choice import Candidate, Choice, Fold, choose, final_fold, trial_folds
from tinykernel.learn.loop import seed_of
from tinykernel.learn.options import Effort, TrainerOptions
from tinykernel.learn.signals.clips import Clips
from tinykernel.learn.trainset import TrainSet
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.frame.spec import Frame
from tinykernel.run.limits import Limits
from tinykernel.run.report import Report, decisive_report, some_rows

_Result = TypeVar("_Result")
# With fewer rows or groups all four quarters are held out in turn, not one alone.
_FEW_ROWS, _FEW_GROUPS = 1000, 40
_MANY_ROWS = 2
_QUICK_SHARE = 0.3  # of the epochs of images and spectra, with effort="quick"


@dataclass(frozen=True, eq=False)
class Problem:
    """What is known before a training."""

    data: TrainSet
    options: TrainerOptions  # what the user fixed.
    #: (samples, channels), or (height, width, channels); None of rows of a table.
    shape: tuple[int, ...] | None = None
    limits: Limits | None = None  # without them specs have usual sizes.
    target: str = "cortex-m4"  # processor that the limits are for.
    clips: Clips | None = None  # whole recordings, of which windows are learned.
    #: Ends the trainings that run.
    cancelled: threading.Event = field(default_factory=threading.Event)
    #: Results of `once`; a problem of the same rows shares them.
    memory: dict[Any, Any] = field(default_factory=dict)

    def once(self, function: Callable[..., _Result], *arguments: Any) -> _Result:
        """Return ``function(problem, *arguments)``, which is computed once.

        It depends on nothing else, so that who asks first makes no difference.
        """
        key = function, *arguments
        if key not in self.memory:
            self.memory[key] = function(self, *arguments)
        return self.memory[key]  # type: ignore[no-any-return]

    @property
    def effort(self) -> Effort:
        """How much of the search and of the training is done where no time limits it."""
        options = self.options
        effort = Effort.of(options.effort)
        if options.effort == "quick" and options.epochs is None and self.shape is not None:
            return replace(effort, final=_QUICK_SHARE)  # convolutions take minutes
        return effort

    def alone(self) -> Problem:
        """Return the problem for trainings with one thread each."""
        return replace(self, options=replace(self.options, n_jobs=1))

    @property
    def n_threads(self) -> int:
        """Number of threads."""
        return thread_count(self.options.n_jobs)

    @property
    def of_values(self) -> bool:
        """Whether values are predicted, not labels."""
        return self.data.quantity is not None

    @property
    def is_quick(self) -> bool:
        """Whether settings are not searched, and kinds compared by short trainings."""
        return Effort.of(self.options.effort).is_quick

    @property
    def is_few(self) -> bool:
        """Whether a quarter of the rows, or of the groups, is too few for a comparison."""
        groups = self.data.groups
        n_groups = 0 if groups is None else np.unique(groups).size
        return len(self.data.codes) <= _FEW_ROWS or 0 < n_groups <= _FEW_GROUPS

    @property
    def folds(self) -> list[Fold]:
        """Rows held out in short trainings; none where a class or a group has too few."""
        return self.once(_trial_folds)

    @property
    def sees_a_part(self) -> bool:
        """Whether short trainings have a small part of the rows."""
        return len(self.data.X) >= _MANY_ROWS * self.folds[0].inside.size

    @property
    def final(self) -> Fold:
        """Rows that chose nothing, held out to compare finalists."""
        return self.once(_final_fold)

    def choose(
        self, candidates: Sequence[Candidate], folds: Sequence[Fold], margin: float = 1.0
    ) -> Choice:
        """Choose by the losses outside all folds; see `tinykernel.learn.choice.choose`."""
        data, out = self.data, np.concatenate([fold.outside for fold in folds])
        groups = None if data.groups is None else data.groups[out]
        return choose(candidates, data.weight[out], groups, margin=margin, of_values=self.of_values)

    def few(self, n_more: int = 0) -> Problem:
        """Return the problem of rows of every class and all extremes, and so many rows more.

        That is enough to know the size of a model. None of them can be held out.
        """
        data, shape = self.data, self.shape
        n = data.X.shape[1]
        # A channel has one scale, whatever the pixel or sample; frames of a camera are bytes.
        whole = shape is not None and n == np.prod(shape)
        n_channels = shape[-1] if shape and whole else 1 if shape and len(shape) == 3 else None
        rows = some_rows(data.X, data.codes, n_channels=n_channels)
        more = np.random.default_rng(0).permutation(len(data.X))[:n_more]
        few = replace(data.of(np.union1d(rows, more)), groups=None)
        options = replace(self.options, validation_fraction=None)
        return replace(self, data=few, options=options, clips=None, memory={})

    def report(self, model: IntegerModel) -> Report:
        """Return the sizes of a model on the target, by which trainings decide."""
        return decisive_report(model, self.target)


def _trial_folds(problem: Problem) -> list[Fold]:
    return trial_folds(*_held_out_by(problem))


def _final_fold(problem: Problem) -> Fold:
    return final_fold(*_held_out_by(problem)) or problem.folds[-1]


def _held_out_by(problem: Problem) -> tuple[NDArray[np.int64], NDArray[np.int64] | None, int, int]:
    """Return classes, groups, seed, and how many classes a training needs: of normal rows one."""
    data = problem.data
    fewest = 1 if data.classes and not data.codes.any() else 2
    return data.codes, data.groups, seed_of(problem.options), fewest


def too_small(problem: Problem, needed: int) -> TinykernelError:
    """Return the error about a budget of flash that is too small for every model."""
    assert problem.limits is not None
    flash = problem.limits.flash or 0
    if needed <= flash:
        return BudgetError(
            f"no model for this data is within {problem.limits} on {problem.target}; give a larger "
            "budget"
        )
    shape = "" if problem.shape else ", or the shape if rows are signals or images"
    return BudgetError(
        f"no model for this data fits into {count(flash, 'byte')} on {problem.target}: the "
        f"smallest one needs about {needed} bytes; give a larger budget{shape}"
    )


def check_rows(data: TrainSet, options: TrainerOptions) -> None:
    """Refuse options that do not fit the rows."""
    _check_width(options, data.X.shape[1])
    if data.validation is not None and options.validation_fraction is not None:
        raise OptionError("validation_fraction: validation rows are given, too; leave one out")


def _check_width(options: TrainerOptions, n_inputs: int) -> None:
    """Refuse a shape of images or windows that rows of `n_inputs` cannot have."""
    if options.frame is not None and options.image_shape is not None:
        frame = Frame.of(options.frame, (*options.image_shape, 1)[:3])
        if frame.taken.size != n_inputs:
            raise ShapeError(
                f"frame: {options.frame} makes {frame.taken.size} bytes, but rows have {n_inputs}"
            )
        return
    for name in ("image_shape", "window_shape"):
        shape = getattr(options, name)
        if shape is not None and np.prod(shape) + options.beside != n_inputs:
            beside = f" and {options.beside} beside" if options.beside else ""
            raise ShapeError(
                f"{name}: {' x '.join(map(str, shape))} makes {np.prod(shape)} values{beside}, but "
                f"rows have {n_inputs} inputs"
            )
