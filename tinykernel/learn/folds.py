"""Which rows the trainer holds out: to choose hyper-parameters, and to choose an epoch."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.errors import RowsError

_TRIAL_ROWS = 16000
_TRIAL_PART, _MOST_TRIAL_ROWS = 6, 50000
_PARTS, _FOLDS, _FEW_ROWS = 4, 3, 8000


@dataclass(frozen=True, eq=False)
class Fold:
    """Indices of the rows that one short training learns from, and of those it is judged on."""

    inside: NDArray[np.int64]
    outside: NDArray[np.int64]


def trial_folds(
    codes: NDArray[np.int64], groups: ArrayLike | None, seed: int, fewest: int = 2
) -> list[Fold]:
    """Hold out a quarter of some rows: whole groups, or rows of every class.

    Where few rows or few groups are held out, the choice among options is decided by chance unless
    it is repeated with others.

    There are three where there are groups or few rows, else one; fewer, or none, where a class or a
    group has too few rows. A training needs rows of the `fewest` classes.
    """
    return _folds(codes, groups, seed, range(_n_folds(codes, groups)), fewest)


def final_fold(
    codes: NDArray[np.int64], groups: ArrayLike | None, seed: int, fewest: int = 2
) -> Fold | None:
    """Hold out the quarter that no fold of `trial_folds` holds out, to compare what these chose."""
    return next(iter(_folds(codes, groups, seed, [_n_folds(codes, groups)], fewest)), None)


def _n_folds(codes: NDArray[np.int64], groups: ArrayLike | None) -> int:
    return _FOLDS if groups is not None or codes.size <= _FEW_ROWS else 1


def _folds(
    codes: NDArray[np.int64],
    groups: ArrayLike | None,
    seed: int,
    numbers: Iterable[int],
    fewest: int,
) -> list[Fold]:
    """Hold out parts of the rows that short trainings use, where both sides have enough."""
    rng = np.random.default_rng([seed, 2])
    n = codes.size
    used = np.sort(rng.permutation(n)[: max(_TRIAL_ROWS, min(n // _TRIAL_PART, _MOST_TRIAL_ROWS))])
    part = _dealt_rows(codes, rng) if groups is None else _dealt_groups(groups, rng)
    folds = [Fold(used[part[used] != number], used[part[used] == number]) for number in numbers]
    return [f for f in folds if f.outside.size and np.unique(codes[f.inside]).size >= fewest]


def _dealt_rows(codes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Deal the rows of every class to the parts; those of tiny classes to none."""
    shuffled = rng.permutation(codes.size)
    part = np.empty(codes.size, dtype=np.int64)
    part[shuffled[np.argsort(codes[shuffled], kind="stable")]] = np.arange(codes.size) % _PARTS
    part[(np.bincount(codes) < _PARTS)[codes]] = -1
    return part


def _dealt_groups(groups: ArrayLike, rng: np.random.Generator) -> NDArray[np.int64]:
    names, index = np.unique(np.asarray(groups), return_inverse=True)
    if names.size < 2:
        raise RowsError("groups: all rows are in one group; give at least two groups")
    dealt = rng.permutation(np.arange(names.size) % min(_PARTS, names.size))
    return np.asarray(dealt[index], dtype=np.int64)


def hold_out(
    codes: NDArray[np.int64], groups: ArrayLike | None, share: float, seed: int
) -> NDArray[np.bool_]:
    """Choose about a share of the rows: whole groups, or rows of every class.

    The result marks the held-out rows. A TinykernelError says where no row is left, or a
    class has none among the others.

    >>> int(hold_out(np.arange(100) % 2, None, 0.2, 0).sum())
    20
    """
    rng = np.random.default_rng([seed, 4])
    out = np.zeros(codes.size, dtype=bool)
    if groups is None:
        for code in np.unique(codes):
            rows = rng.permutation(np.flatnonzero(codes == code))
            out[rows[: round(share * rows.size)]] = True
    else:
        names, index = np.unique(np.asarray(groups), return_inverse=True)
        order = rng.permutation(names.size)
        sizes = np.bincount(index)[order]
        # Groups until the share is reached, the one that passes it included.
        out = np.isin(index, order[np.cumsum(sizes) - sizes < share * codes.size])
    if not out.any() or np.unique(codes[~out]).size < np.unique(codes).size:
        raise RowsError(
            f"validation: {codes.size} rows are too few, or in too few groups, to hold out "
            f"{share:g} of them"
        )
    return out


def weights_like(
    codes: NDArray[np.int64], weight: NDArray[Any], others: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Return weights of other rows: the mean of those that the rows of the same class have.

    >>> weights_like(np.array([0, 0, 1]), np.array([1.0, 3.0, 5.0]), np.array([1, 0])).tolist()
    [5.0, 2.0]
    """
    by_class = np.bincount(codes, weights=weight) / np.bincount(codes)
    return by_class[others].astype(np.float32)
