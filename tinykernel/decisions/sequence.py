"""A sequence of decisions, and the counters after it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.decisions.counters import Counters, saturated
from tinykernel.model import IntegerModel
from tinykernel.model.answers.decision import UNKNOWN, margins

#: What the C prints for a step; the last column for every `KEPT_EVERY`-th step only.
COLUMNS = ("decision", "margin", "check of the counters")
KEPT_EVERY = 64
_HEAD = 2  # columns before the scores of a step


def given_steps(model: IntegerModel, X: ArrayLike, n: int) -> NDArray[np.int32]:
    """Return the steps that ``firmware/boards/field.c`` reads, shape (n, 2 + n_classes).

    The rows repeat; one decision in sixteen is a refusal whatever the scores are.
    """
    rng = np.random.default_rng(0)
    rows = np.arange(n) % len(np.asarray(X))
    scores = model.scores(X)[rows]
    refused = rng.random(n) < 1 / 16
    return np.column_stack([refused, saturated(model, X)[rows], scores]).astype(np.int32)


def expected_steps(model: IntegerModel, steps: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return what Python computes for the steps, shape (n, 3); 0 where the C prints nothing."""
    counters = Counters(model)
    scores = np.ascontiguousarray(steps[:, _HEAD:])
    labels, margin = margins(scores)
    decided = labels if model.decision is None else model.decision.decide(scores)
    decided = np.where(steps[:, 0] != 0, UNKNOWN, decided)
    expected = np.zeros((len(steps), len(COLUMNS)), dtype=np.int32)
    expected[:, 0], expected[:, 1] = decided, margin.view(np.int32)
    each = zip(decided.tolist(), margin.tolist(), steps[:, 1].tolist(), strict=True)
    for at, step in enumerate(each):
        counters.update(*step)
        if at % KEPT_EVERY == 0:
            expected[at, 2] = np.frombuffer(counters.to_bytes()[16:20], dtype="<i4")[0]
    return expected
