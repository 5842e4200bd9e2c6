"""A sequence of decisions and labelled inputs, and what counters and offsets make of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.decisions.adaptation import Adaptation
from tinykernel.decisions.counters import Counters, saturated
from tinykernel.model import IntegerModel
from tinykernel.model.answers.decision import UNKNOWN, margins

#: What the C gives of a step; the last two of every `KEPT_EVERY`-th one only.
COLUMNS = (
    "decision",
    "margin",
    "label before learning",
    "check of the counters",
    "check of the offsets",
)
KEPT_EVERY = 64
_HEAD = 3  # what stands before the scores of a step


def given_steps(model: IntegerModel, X: ArrayLike, n: int) -> NDArray[np.int32]:
    """Return the steps that ``firmware/boards/field.c`` reads, shape (n, 3 + n_classes).

    The rows come again and again. Most labels are those of the model, so that counters see what
    they see in the field; a quarter are drawn, no class among them, so that offsets move.
    """
    rng = np.random.default_rng(0)
    rows = np.arange(n) % len(np.asarray(X))
    scores = model.scores(X)[rows]
    labels = scores.argmax(axis=1)
    drawn = rng.integers(-1, model.n_classes + 1, n)
    labels = np.where(rng.random(n) < 0.25, drawn, labels)
    refused = rng.random(n) < 1 / 16
    head = [labels, refused, saturated(model, X)[rows]]
    return np.column_stack([*head, scores]).astype(np.int32)


def expected_steps(model: IntegerModel, steps: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return what Python makes of the steps, shape (n, 5); 0 where the C gives nothing."""
    counters, adaptation = Counters(model), Adaptation(model)
    scores = np.ascontiguousarray(steps[:, _HEAD:])
    labels, margin = margins(scores)
    decided = labels if model.decision is None else model.decision.decide(scores)
    decided = np.where(steps[:, 1] != 0, UNKNOWN, decided)
    found = np.zeros((len(steps), len(COLUMNS)), dtype=np.int32)
    found[:, 0], found[:, 1] = decided, margin.view(np.int32)
    heads, sums = steps[:, :_HEAD].tolist(), margin.tolist()
    for at, row in enumerate(scores.tolist()):
        counters.update(int(decided[at]), sums[at], heads[at][2])
        found[at, 2] = adaptation.adapt_scores(row, heads[at][0])
        if at % KEPT_EVERY == 0:
            words = counters.to_bytes()[16:20] + adaptation.to_bytes()[-4:]
            found[at, 3:] = np.frombuffer(words, dtype="<i4")
    return found
