"""Numbers relative to their own past: `<name>_past_t` of the C code."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.checks import check_choice, check_count
from tinykernel.errors import OptionError, ShapeError
from tinykernel.groups import as_groups

#: What `over` gives for a number that equals its past, and its largest result.
UNIT, MOST = 128, 1023
_LARGEST, _MOST_SHIFT = 65535, 8


def relative(
    numbers: ArrayLike, groups: ArrayLike | None = None, *, n: int = 32, how: str = "over"
) -> NDArray[np.int32]:
    """Return numbers relative to the mean of those before them, as the firmware computes them.

    A patient's pulse, the noise of a place or the wear of a machine moves all numbers of a stream;
    what matters is often how one differs from those before. With a sum s that starts at n times the
    first number x, and ``>>`` and ``//`` that round down, each number gives::

        mean = s >> log2(n)
        s = s + x - mean
        less: x - mean          over: min(128 * max(x, 0) // max(mean, 1), 1023)

    This is an exponential mean, whose weights fall by 1 - 1/n from one number to the next. The
    first result of a stream is 0 or 128.

    Parameters
    ----------
    numbers : array-like of int, shape (n_rows,) or (n_rows, n_numbers), -65535 to 65535
        In order of time; each column has a past of its own.
    groups : array-like, shape (n_rows,), optional
        Which stream each row belongs to; their rows may alternate. By default all rows are one.
    n : {2, 4, 8, ..., 256}
        How many numbers the mean remembers.
    how : {"over", "less"}
        A multiple of the mean, in units of 1/128, for numbers above 0; or the difference.

    Returns
    -------
    ndarray of int32, of the shape of `numbers`

    Raises
    ------
    TinykernelError
        If numbers are no integers or out of range, or `n` or `how` is none of these.

    Examples
    --------
    >>> relative([100, 100, 80, 120, 100], n=2).tolist()
    [128, 128, 102, 170, 121]
    >>> relative([100, 100, 80, 120, 100], [0, 1, 0, 1, 0], n=2, how="less").tolist()
    [0, 0, -20, 20, 10]
    """
    shift = check_count("n", n, 2).bit_length() - 1
    if shift > _MOST_SHIFT or n != 1 << shift:
        raise OptionError(f"n: {n}; give 2, 4, 8, ... or {1 << _MOST_SHIFT}")
    check_choice("how", how, ("over", "less"))
    try:
        x = np.asarray(numbers)
    except ValueError:
        raise ShapeError("numbers: rows of unequal lengths; give a row or rows") from None
    is_whole = x.ndim in (1, 2) and x.dtype.kind in "iu"
    if not is_whole or x.min(initial=0) < -_LARGEST or x.max(initial=0) > _LARGEST:
        raise ShapeError(
            f"numbers: {x.dtype} of shape {x.shape}; give a row or rows of integers, "
            f"{-_LARGEST} to {_LARGEST}"
        )
    x = x.astype(np.int64)
    mean, group = np.empty_like(x), as_groups(groups, len(x))
    streams = (
        np.zeros(len(x), np.intp) if group is None else np.unique(group, return_inverse=True)[1]
    )
    total = np.empty((streams.max(initial=-1) + 1, *x.shape[1:]), np.int64)
    total[streams[::-1]] = x[::-1] << shift  # the first row of each stream is stored last
    for row, stream in enumerate(streams.tolist()):
        mean[row] = total[stream] >> shift
        total[stream] += x[row] - mean[row]
    over = np.minimum(UNIT * np.maximum(x, 0) // np.maximum(mean, 1), MOST)
    return np.asarray(x - mean if how == "less" else over, dtype=np.int32)
