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
from tinykernel.training.loop import Replan
from tinykernel.training.readouts.linear import TrainingRows
from tinykernel.training.signals.planes import PlaneLearner, varied

# Copies of each window, fewer of very many windows, which are kept in memory; and passes through
# them, unless each has one copy.
_COPIES, _MOST_WINDOWS, _FEWEST_PASSES = 16, 1 << 16, 8
#: Windows that are varied at once, which takes 48 times their bytes.
AT_ONCE = 4096
# How much longer the model learns than each teacher, in windows.
LONGER = 3.0
_WHOLE = 256  # of a window that is not mixed.


def lesson(
    rows: TrainingRows,
    teachers: Sequence[PlaneLearner],
    augmentation: Augmentation,
    epochs: int,
    seed: int,
) -> TrainingRows:
    """Return varied copies of spectra, with the mean answers of teachers in place of labels."""
    rng, planes = np.random.default_rng([seed, 6]), rows.inputs[:, 0]
    copies = copies_for(epochs, len(planes))
    inputs = varied_copies(planes, augmentation, copies, rng)[:, np.newaxis]
    decisions = [teacher.decide(teacher.features(inputs)) for teacher in teachers]
    answers = _answers(np.mean(decisions, axis=0, dtype=np.float64), teachers[0].plan)
    weight = np.tile(rows.weight, copies)
    return replace(rows, inputs=inputs, targets=answers, weight=weight, groups=None)


def varied_copies(
    planes: NDArray[np.uint8], augmentation: Augmentation, n: int, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Return n varied copies of all spectra, one after the other, each mixed with another."""
    parts = np.split(planes, range(AT_ONCE, len(planes), AT_ONCE)) * n
    return np.concatenate(
        [
            mixed(varied(part, augmentation, rng), varied(part, augmentation, rng), rng)
            for part in parts
        ]
    )


def copies_for(epochs: int, n_windows: int) -> int:
    """Return the copies of each window, so few that whole passes are about as long as epochs."""
    return max(1, min(_COPIES, _MOST_WINDOWS // n_windows, math.ceil(epochs / _FEWEST_PASSES)))


def taught_plan(plan: SeparablePlan, epochs: int, n_windows: int) -> SeparablePlan:
    """Return the plan of the model: labels are soft by themselves, and an epoch has all copies.

    >>> taught_plan(SeparablePlan((8,), (2,)), 90, 1000).linear.epochs
    8
    """
    passes = math.ceil(epochs / copies_for(epochs, n_windows))
    return replace(plan, linear=replace(plan.linear, epochs=passes), smoothing=0.0)


class Succession:
    """Trainings one after the other: where the time is short, all that is left gets shorter.

    >>> trainings = Succession([10, 10, 20], lambda done, total, seconds: total // 2)
    >>> trainings.begin(), trainings.replan(4, 10, 0.1), trainings.following
    (10, 6, [4, 8])
    """

    def __init__(self, epochs: Sequence[int], replan: Replan) -> None:
        self.following, self._replan = list(epochs), replan
        self.done, self._planned = 0, 0

    def begin(self) -> int:
        """Return the epochs of the next training."""
        self.done += self._planned
        self._planned = self.following.pop(0)
        return self._planned

    def replan(self, done: int, total: int, seconds: float) -> int:
        """Return the epochs of this training in all; see `Replan`."""
        left, done_of_all = total - done + sum(self.following), self.done + done
        fewer = self._replan(done_of_all, done_of_all + left, seconds) - done_of_all
        self.following = [max(1, epochs * fewer // left) for epochs in self.following]
        self._planned = done + max(1, (total - done) * fewer // left)
        return self._planned


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
