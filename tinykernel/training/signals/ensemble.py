"""An ensemble that teaches one model: varied spectra, and what several trainings say of them.

A training on few windows depends on its seed, and the mean of several ones is surer of what belongs
to no class. One model learns that mean (Hinton, Vinyals & Dean 2015, section 2, with temperature 1)
on many varied copies, half of which are mixed of two windows: function matching (Beyer et al., CVPR
2022, arXiv 2106.05237).
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tinykernel.elementary import exps
from tinykernel.model.answers.decision import softmax
from tinykernel.training.augment import Augmentation
from tinykernel.training.images.separable import SeparablePlan
from tinykernel.training.readouts.linear import TrainingRows
from tinykernel.training.signals.planes import PlaneLearner, varied

# Copies of each window, fewer of very many windows, which are kept in memory; and passes through
# them, unless each has one copy.
_COPIES, _MOST_WINDOWS, _FEWEST_PASSES = 16, 1 << 16, 8
# How much longer the model learns than each teacher, in windows.
LONGER = 3.0
_WHOLE = 256  # of a window that is not mixed.


def lesson(
    rows: TrainingRows, teachers: Sequence[PlaneLearner], augmentation: Augmentation, seed: int
) -> TrainingRows:
    """Return varied copies of spectra, with the mean answers of teachers in place of labels."""
    rng, planes = np.random.default_rng([seed, 6]), rows.inputs[:, 0]
    copies = copies_for(teachers[0].plan, len(planes))
    inputs = np.concatenate(
        [
            mixed(varied(planes, augmentation, rng), varied(planes, augmentation, rng), rng)
            for _ in range(copies)
        ]
    )[:, np.newaxis]
    decisions = [teacher.decide(teacher.features(inputs)) for teacher in teachers]
    answers = _answers(np.mean(decisions, axis=0, dtype=np.float64), teachers[0].plan)
    weight = np.tile(rows.weight, copies)
    return replace(rows, inputs=inputs, targets=answers, weight=weight, groups=None)


def copies_for(plan: SeparablePlan, n_windows: int) -> int:
    """Return the copies of each window, so few that whole passes are about as long as planned."""
    enough = math.ceil(plan.linear.epochs * LONGER / _FEWEST_PASSES)
    return max(1, min(_COPIES, _MOST_WINDOWS // n_windows, enough))


def taught_plan(plan: SeparablePlan, n_windows: int) -> SeparablePlan:
    """Return the plan of the model: labels are soft by themselves, and an epoch has all copies.

    >>> taught_plan(SeparablePlan((8,), (2,)), 1000).linear.epochs
    8
    """
    epochs = math.ceil(plan.linear.epochs * LONGER / copies_for(plan, n_windows))
    return replace(plan, linear=replace(plan.linear, epochs=epochs), smoothing=0.0)


def mixed(
    planes: NDArray[np.uint8], others: NDArray[np.uint8], rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Return spectra of which about half have up to a half of one of the others.

    Each is ``(w a + (256 - w) b + 128) >> 8``, w from 128 to 256.
    """
    n = len(planes)
    part = rng.integers(_WHOLE // 2, _WHOLE + 1, (n, 1, 1))
    part = np.where(rng.integers(0, 2, (n, 1, 1)) == 1, part, _WHOLE)
    whole = part * planes + (_WHOLE - part) * others[rng.permutation(n)].astype(np.int64)
    return ((whole + _WHOLE // 2) // _WHOLE).astype(np.uint8)


def _answers(decisions: NDArray[np.float64], plan: SeparablePlan) -> NDArray[np.float32]:
    """Return values as they are, and decisions of classes as probabilities."""
    if plan.linear.losses:
        answers = decisions
    elif decisions.shape[1] == 1:
        answers = 1 / (1 + exps(-decisions))
    else:
        answers = softmax(decisions)
    return answers.astype(np.float32)
