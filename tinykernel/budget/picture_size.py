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

    `images` has the shape (n, side, side, channels), with the largest of the sides, which rise.
    `training` are the arguments of `train`. The third side and the one below are compared first;
    then larger ones while they do better, else smaller ones while they do not do worse. None where
    fewer than two sides can be compared, or none does better than chance.
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
    weight = np.ones(int(out.sum()), np.float32)
    if training.get("class_weight") == "balanced":
        weight = (1 / np.bincount(codes)[codes[out]]).astype(np.float32)

    def loss_of(side: int) -> float:
        """Return the mean loss of a side, infinite where it is over the budget."""
        progress.report("choosing the size of pictures", len(candidates), None, f"{side} x {side}")
        small = _resized(images[used], side).reshape(len(used), -1)
        given["image_shape"] = (side, side, images.shape[3])
        try:
            with progress.observing(None), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the final training warns again
                inside = None if part is None else part[~out]
                found = train(small[~out], labels[codes[~out]], groups=inside, **given)
        except TinykernelError:
            return np.inf
        decisions = (found.model.scores(small[out]) * found.model.decision_scale).astype(np.float32)
        name = f"{side} x {side}"
        judged = Candidate.of(name, decisions, codes[out], weight, temperatures=WIDE_TEMPERATURES)
        candidates.append(replace(judged, cost=side))
        return -np.inf if found.interrupted else float(np.average(judged.losses, weights=weight))

    at = min(2, len(sides) - 1)
    below = loss_of(sides[at - 1])
    here = loss_of(sides[at]) if below > -np.inf else np.inf
    rest = sides[at + 1 :] if here < below else sides[: at - 1][::-1]
    least = min(below, here)
    for side in rest:
        loss = loss_of(side) if least > -np.inf else np.inf
        if loss > least:
            break
        least = loss
    shares = np.bincount(codes[out], weights=weight) / weight.sum()
    chance = shares.max() + np.sqrt(shares.max() * (1 - shares.max()) / len(weight))
    if len(candidates) < 2 or max(each.score for each in candidates) <= chance:
        return None
    choice = choose(candidates, weight, groups=None if part is None else part[out])
    return candidates[choice.chosen].cost, choice.in_words


def _resized(images: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Resize pictures (n, m, m, channels) by the formula of `tinykernel.resizing`."""
    area = images.shape[1] * images.shape[2]
    sums = area_sums(images.transpose(1, 2, 0, 3), side)
    sums = area_sums(sums.transpose(1, 0, 2, 3), side).transpose(2, 1, 0, 3)
    return np.asarray((2 * sums + area) // (2 * area), np.uint8)
