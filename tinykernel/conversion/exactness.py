"""Where trees are exact: refuse any other answer but a tie in the last bits."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import ConvertError
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.trees.spec import Trees

_LAST_BITS = 2.0**-18  # of the largest score: sums of libraries are float32, ours are not


def refuse_difference(before: NDArray[Any], scores: NDArray[Any], converted: IntegerModel) -> None:
    """Refuse a model whose scores do not have the answers of the original, which `before` has."""
    after, scale = converted.answers.predict(scores), converted.decision_scale
    trees = converted.find(Trees)
    n_trees = 0 if trees is None else trees.size.size
    largest = max(abs(float(converted.least_score)), float(np.abs(scores).max(initial=0)))
    near = largest * _LAST_BITS + (n_trees if scale < 1 else 0)
    if converted.is_regressor:
        gaps = np.abs(np.reshape(before, (len(after), -1)) - np.reshape(after, (len(after), -1)))
        wrong = (~(gaps <= near * scale)).any(axis=1)
    else:
        place = {label: number for number, label in enumerate(converted.classes)}
        other = np.array([place.get(label, -1) for label in before.tolist()], dtype=np.int64)
        every = np.arange(len(other))
        behind = scores.max(axis=1).astype(np.int64) - scores[every, other]
        wrong = (before != after) & ((other < 0) | (behind > near))
    if not np.any(wrong):
        return
    row = int(np.argmax(wrong))
    raise ConvertError(
        f"convert: row {row} of X gives {after[row]}, but {before[row]} by the original, and so "
        f"{int(wrong.sum())} of {len(wrong)} rows differ, though trees are converted exactly; the "
        "usual causes are a value that stands for missing ones, columns of categories and another "
        "order of columns"
    )
