"""The size to which pictures are resized, chosen on held-out pictures."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base import progress
from tinykernel.base.errors import TinykernelError
from tinykernel.base.resizing import resize
from tinykernel.kinds.train.fitting import train
from tinykernel.learn.choice import Candidate, choose, hold_out
from tinykernel.learn.convolutions.chains import no_chains
from tinykernel.learn.loss import WIDE_TEMPERATURES, Truth
from tinykernel.learn.trainset import class_weights

# Pictures of the short trainings: with fewer, chance decides; with more it takes minutes.
_FEWEST_PICTURES, _MOST_PICTURES, _EPOCHS = 200, 1200, 16
_HELD_OUT = 0.25
_SHARE_OF_TIME = 0.06  # of a training with a time limit, for each size.
# With less time, in seconds, short trainings would leave too little for the final one.
_SHORTEST = 120.0


def choose_side(
    images: NDArray[np.uint8],
    y: NDArray[Any],
    sides: Sequence[int],
    usual: int,
    *,
    groups: ArrayLike | None = None,
    seed: int = 0,
    **training: Any,
) -> tuple[int, str]:
    """Choose the side of square pictures by short trainings; return it, and why in one line.

    `images` has the shape (n, side, side, channels), with the largest of the sides, which rise.
    `training` are the arguments of `train`, `max_time` in seconds. The usual side and the one below
    are compared first; then larger ones while they do better, else smaller ones while they do not
    do worse. It is the usual one, without a reason, where pictures or seconds are too few, or no
    size does better than chance.
    """
    used = np.sort(np.random.default_rng([seed, 5]).permutation(len(images))[:_MOST_PICTURES])
    limit = training.get("max_time")
    if len(used) < _FEWEST_PICTURES or len(sides) < 2 or (limit or np.inf) < _SHORTEST:
        return usual, ""
    labels, codes = np.unique(y[used], return_inverse=True)
    part = None if groups is None else np.asarray(groups)[used]
    try:
        out = hold_out(codes, part, _HELD_OUT, seed)
        balance = training.get("class_weight"), tuple(labels.tolist()), codes, np.ones(len(used))
        weight = class_weights(*balance)[codes[out]].astype(np.float32)
    except TinykernelError:
        return usual, ""  # a class or a group has too few pictures
    options = training | {"effort": "quick", "link": False, "random_state": seed}
    if limit not in (None, np.inf):
        options["max_time"] = limit * _SHARE_OF_TIME
    options["epochs"] = min(_EPOCHS, training.get("epochs") or _EPOCHS)
    trials = _Trials(images[used], y[used], codes, part, out, weight, options)
    at = max(1, sides.index(usual))
    below, here = trials.loss(sides[at - 1]), trials.loss(sides[at])
    least = min(below, here)
    for side in sides[at + 1 :] if here < below else sides[: at - 1][::-1]:
        loss = trials.loss(side)
        if loss > least:
            break
        least = loss
    return trials.choice(usual)


@dataclass(eq=False)
class _Trials:
    """Short trainings on pictures of several sizes, judged on the same held-out ones."""

    images: NDArray[np.uint8]
    y: NDArray[Any]
    codes: NDArray[np.intp]
    groups: NDArray[Any] | None
    out: NDArray[np.bool_]  # the held-out pictures
    weight: NDArray[np.float32]  # of these
    options: dict[str, Any]
    candidates: list[Candidate] = field(default_factory=list)
    interrupted: bool = False

    def loss(self, side: int) -> float:
        """Train; return the mean loss, infinite over the budget and after Ctrl-C."""
        if self.interrupted:
            return np.inf
        name = f"{side} x {side}"
        progress.report("choosing the size of pictures", 0, None, name)
        small = np.stack([_resize(image, side) for image in self.images])
        rows, inside = small.reshape(len(small), -1), ~self.out
        groups = None if self.groups is None else self.groups[inside]
        options = self.options | {"image_shape": small.shape[1:], "groups": groups}
        if options.get("model", "auto") == "auto":  # sizes are compared, not kinds
            options["model"] = "separable" if no_chains(small.shape[1:]) else "chains"
        try:
            with progress.observing(None), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the final training warns again
                found = train(rows[inside], self.y[inside], **options)
        except TinykernelError:
            return np.inf
        self.interrupted = found.interrupted
        scores = found.model.scores(rows[self.out]) * found.model.decision_scale
        truth = Truth(self.codes[self.out], self.weight)
        judged = Candidate.of(
            name, scores.astype(np.float32), truth, temperatures=WIDE_TEMPERATURES
        )
        self.candidates.append(replace(judged, cost=side))
        return float(np.average(judged.losses, weights=self.weight))

    def choice(self, usual: int) -> tuple[int, str]:
        if len(self.candidates) == 1:
            only = self.candidates[0]
            return only.cost, f"{only.name} chosen: no other size was trained within the budget"
        shares = np.bincount(self.codes[self.out], weights=self.weight) / self.weight.sum()
        chance = shares.max() + np.sqrt(shares.max() * (1 - shares.max()) / len(self.weight))
        if max((candidate.score for candidate in self.candidates), default=0.0) <= chance:
            return usual, ""
        groups = None if self.groups is None else self.groups[self.out]
        choice = choose(self.candidates, self.weight, groups)
        return self.candidates[choice.chosen].cost, choice.in_words


def _resize(image: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    return resize(lambda top, end: image[top:end], image.shape[0], image.shape[1], side, side)
