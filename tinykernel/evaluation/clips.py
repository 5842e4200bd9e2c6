"""One answer for a whole clip, from the scores of its windows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.evaluation.labels import LabelEvaluation, compare
from tinykernel.model import IntegerModel


def evaluate_clips(
    model: IntegerModel,
    X: ArrayLike,
    y: ArrayLike,
    clip: NDArray[np.int64],
    groups: ArrayLike | None = None,
) -> LabelEvaluation | None:
    """Judge the answers for whole clips: the class with the largest sum of the windows' scores.

    X (n, ...) are windows, y (n,) their labels, and `clip` (n,) says which clip a window is of.
    Groups say what belongs together, for the interval; that of its first window is that of a clip.
    None where no clip has several windows, or a clip has several labels.
    """
    true = np.asarray(y)
    _, first, where = np.unique(clip, return_index=True, return_inverse=True)
    if len(first) == len(clip) or (true != true[first][where]).any():
        return None
    scores = model.scores(X)
    total = np.zeros((len(first), scores.shape[1]), np.int64)
    np.add.at(total, where, scores.astype(np.int64))
    answers = np.array(model.classes)[total.argmax(axis=1)]
    group = None if groups is None else np.asarray(groups)[first]
    return compare(true[first], answers, model.classes, group)
