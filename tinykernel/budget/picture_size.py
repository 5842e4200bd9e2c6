"""The size to which pictures are resized, chosen on held-out pictures."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel import progress
from tinykernel.budget.fitting import train
from tinykernel.errors import TinykernelError
from tinykernel.resizing import area_sums
from tinykernel.training.choice import Candidate, choose
from tinykernel.training.folds import hold_out
from tinykernel.training.loss import WIDE_TEMPERATURES

# Pictures of the short trainings: with fewer, chance decides; with more it takes minutes.
_FEWEST_PICTURES, _MOST_PICTURES, _EPOCHS = 200, 1200, 16
_HELD_OUT = 0.25


def choose_side(
    images: NDArray[np.uint8],
    y: NDArray[Any],
    sides: Sequence[int],
    *,
    groups: ArrayLike | None = None,
    seed: int = 0,
    **training: Any,
) -> tuple[int, str] | None:
    """Choose the side of square pictures by short trainings; return it, and why in one line.

    `images` has the shape (n, side, side, channels), with the largest of the sides. `training` are
    the arguments of `train`. None where fewer than two sides can be compared.
    """
    rng = np.random.default_rng([seed, 5])
    used = np.sort(rng.permutation(len(images))[:_MOST_PICTURES])
    if len(used) < _FEWEST_PICTURES or len(sides) < 2:
        return None
    labels, codes = np.unique(y[used], return_inverse=True)
    part = None if groups is None else np.asarray(groups)[used]
    try:
        out = hold_out(codes, part, _HELD_OUT, seed)
    except TinykernelError:
        return None  # a class or a group has too few pictures
    given = training | {"effort": "quick", "link": False, "random_state": seed}
    given["epochs"] = min(_EPOCHS, training.get("epochs") or _EPOCHS)
    candidates = list[Candidate]()
    for number, side in enumerate(sides):
        progress.report("choosing the size of pictures", number, len(sides), f"{side} x {side}")
        small = _resized(images[used], side).reshape(len(used), -1)
        given["image_shape"] = (side, side, images.shape[3])
        with progress.observing(None), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the final training warns again
            try:
                found = train(
                    small[~out],
                    labels[codes[~out]],
                    groups=None if part is None else part[~out],
                    **given,
                )
            except TinykernelError:
                continue  # too large for the budget
        decisions = (found.model.scores(small[out]) * found.model.decision_scale).astype(np.float32)
        weight, name = np.ones(len(decisions), np.float32), f"{side} x {side}"
        judged = Candidate.of(name, decisions, codes[out], weight, temperatures=WIDE_TEMPERATURES)
        candidates.append(replace(judged, cost=side))
        if found.interrupted:
            break
    if len(candidates) < 2:
        return None
    choice = choose(candidates, groups=None if part is None else part[out])
    return candidates[choice.chosen].cost, choice.in_words


def _resized(images: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Resize pictures (n, m, m, channels) by the formula of `tinykernel.resizing`."""
    area = images.shape[1] * images.shape[2]
    sums = area_sums(images.transpose(1, 2, 0, 3), side)
    sums = area_sums(sums.transpose(1, 0, 2, 3), side).transpose(2, 1, 0, 3)
    return np.asarray((2 * sums + area) // (2 * area), np.uint8)
