"""Which rows the others learn from, and choose by."""

import numpy as np
from _data import Data

__all__ = ["MOST_ROWS", "TABLES", "TRIAL_ROWS", "balanced_rows", "held_out"]

#: Data sets of which one value a column is measured in its own unit.
TABLES = ("covtype", "har", "dna", "gas_drift")
#: Rows to choose by, and to train on, at most.
TRIAL_ROWS, MOST_ROWS = 20000, 100000


def held_out(part: Data, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return which of the training rows are learned from to choose, and which are scored."""
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(part.y))[:TRIAL_ROWS]
    if part.groups is None:
        out = np.arange(chosen.size) % 5 == 0
    else:
        names = rng.permutation(np.unique(part.groups))
        out = np.isin(part.groups[chosen], names[: max(1, len(names) // 4)])
    return chosen[~out], chosen[out]


def balanced_rows(y: np.ndarray) -> np.ndarray:
    """Draw as many rows of each class; a class with fewer is repeated in whole rounds."""
    rng = np.random.default_rng(0)
    classes = np.unique(y)
    each = max(1, len(y) // len(classes))
    drawn = [np.resize(rng.permutation(np.flatnonzero(y == label)), each) for label in classes]
    return rng.permutation(np.concatenate(drawn))
