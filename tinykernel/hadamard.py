"""The fast Walsh-Hadamard transform: in place, batched, in compiled code, for floats and integers.

The transform multiplies by the matrix ``H_1 = [1]``, ``H_2d = [[H_d, H_d], [H_d, -H_d]]``
(Lei & Lan 2021, below formula (3)) in ``d log2(d)`` additions. It is not normalised:
``H H = d I``.

How it is made fast. A pass over the row loads a few vectors of 64 bytes, does as many stages as it
can in registers, and stores them: seven stages of float32 in the first pass (strides 1 to 64, the
short ones by shuffles inside a vector), eight of int16, three in each further pass. Rows of more
than 16 KB do all stages of short stride chunk by chunk, so that a chunk stays in the first-level
cache. Threads share out rows only, so that the result does not depend on their number.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numba
import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from tinykernel.errors import TinykernelError
from tinykernel.hadamard_passes import (
    first_pass_1,
    first_pass_2,
    first_pass_4,
    first_pass_8,
    further_pass_2,
    further_pass_4,
    further_pass_8,
    halving_first_pass_1,
    halving_first_pass_2,
    halving_first_pass_4,
    halving_first_pass_8,
    halving_further_pass_2,
    halving_further_pass_4,
    halving_further_pass_8,
    lanes_of,
)

__all__ = [
    "fwht",
    "fwht_halving",
    "fwht_row",
    "fwht_row_halving",
    "padded_dimension",
    "run_on_rows",
    "useful_threads",
]

_ArrayT = TypeVar("_ArrayT", bound=NDArray[Any])

_LARGEST = 65536
_CHUNK_VECTORS = 256
# Handing work to another thread takes about 0.1 ms, the time of this number of butterflies.
_BUTTERFLIES_PER_THREAD = 1 << 20
_DTYPES = (np.float32, np.float64, np.int16, np.int32)


def padded_dimension(n_features: int) -> int:
    """Return the length to which an input is padded: a power of two, at least 32.

    At least 32, so that one block of features fills one 32-bit word of the firmware.

    Parameters
    ----------
    n_features : int
        Number of inputs, 1 to 65536.

    Returns
    -------
    int
        Between 32 and 65536.

    Raises
    ------
    TinykernelError
        If `n_features` is out of range.

    Examples
    --------
    >>> padded_dimension(1), padded_dimension(256), padded_dimension(257)
    (32, 256, 512)
    """
    if not 1 <= n_features <= _LARGEST:
        raise TinykernelError(
            f"{n_features} input features: from 1 to {_LARGEST} are supported; "
            "remove or merge features"
        )
    return max(32, 1 << (int(n_features) - 1).bit_length())


# --- one row ---------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _scalar_row(x):  # type: ignore[no-untyped-def]
    """Transform a row that is shorter than one vector."""
    stride = 1
    while stride < x.shape[0]:
        for start in range(0, x.shape[0], 2 * stride):
            for i in range(start, start + stride):
                a = x[i]
                b = x[i + stride]
                x[i] = a + b
                x[i + stride] = a - b
        stride *= 2


@njit(cache=True, nogil=True)
def _first_pass(x, begin, end, lanes):  # type: ignore[no-untyped-def]
    """Do all stages of stride below the returned length on ``x[begin:end]``."""
    vectors = (end - begin) // lanes
    if vectors >= 8:
        for i in range(begin, end, 8 * lanes):
            first_pass_8(x, i, lanes)
        return 8 * lanes
    if vectors == 4:
        first_pass_4(x, begin, lanes)
    elif vectors == 2:
        first_pass_2(x, begin, lanes)
    else:
        first_pass_1(x, begin, lanes)
    return end - begin


@njit(cache=True, nogil=True)
def _further_passes(x, begin, end, stride, lanes):  # type: ignore[no-untyped-def]
    """Do the stages from `stride` up to the length of ``x[begin:end]``."""
    while stride < end - begin:
        left = (end - begin) // stride
        if left >= 8 and left != 16:
            for start in range(begin, end, 8 * stride):
                for i in range(start, start + stride, lanes):
                    further_pass_8(x, i, stride)
            stride *= 8
        elif left >= 4:
            for start in range(begin, end, 4 * stride):
                for i in range(start, start + stride, lanes):
                    further_pass_4(x, i, stride)
            stride *= 4
        else:
            for i in range(begin, begin + stride, lanes):
                further_pass_2(x, i, stride)
            stride *= 2


@njit(cache=True, nogil=True)
def fwht_row(x):  # type: ignore[no-untyped-def]
    """Transform one row in place; for use inside other compiled loops.

    Parameters
    ----------
    x : ndarray of float32, float64, int16 or int32, shape (d,)
        C-contiguous; d a power of two (not checked). Integers wrap around.

    Examples
    --------
    >>> row = np.array([1, 0, 1, 0], dtype=np.float32)
    >>> fwht_row(row)
    >>> row
    array([2., 2., 0., 0.], dtype=float32)
    """
    d = x.shape[0]
    lanes = lanes_of(x)
    if d < lanes:
        _scalar_row(x)
        return
    chunk = min(d, lanes * _CHUNK_VECTORS)
    for begin in range(0, d, chunk):
        stride = _first_pass(x, begin, begin + chunk, lanes)
        _further_passes(x, begin, begin + chunk, stride, lanes)
    _further_passes(x, 0, d, chunk, lanes)


@njit(cache=True, nogil=True)
def _scalar_row_halving(x, shifts):  # type: ignore[no-untyped-def]
    """Transform a row that is shorter than one vector, with halving."""
    stride = 1
    k = 0
    while stride < x.shape[0]:
        shift = np.int32(shifts[k])
        for start in range(0, x.shape[0], 2 * stride):
            for i in range(start, start + stride):
                a = np.int32(x[i])
                b = np.int32(x[i + stride])
                x[i] = np.int16((a + b) >> shift)
                x[i + stride] = np.int16((a - b) >> shift)
        stride *= 2
        k += 1


@njit(cache=True, nogil=True)
def _further_passes_halving(x, begin, end, stride, stage, shifts):  # type: ignore[no-untyped-def]
    """Do the stages from `stride`, number `stage`, up to the length of ``x[begin:end]``."""
    while stride < end - begin:
        left = (end - begin) // stride
        if left >= 8 and left != 16:
            for start in range(begin, end, 8 * stride):
                for i in range(start, start + stride, 32):
                    halving_further_pass_8(x, i, stride, shifts, stage)
            stride *= 8
            stage += 3
        elif left >= 4:
            for start in range(begin, end, 4 * stride):
                for i in range(start, start + stride, 32):
                    halving_further_pass_4(x, i, stride, shifts, stage)
            stride *= 4
            stage += 2
        else:
            for i in range(begin, begin + stride, 32):
                halving_further_pass_2(x, i, stride, shifts, stage)
            stride *= 2
            stage += 1


@njit(cache=True, nogil=True)
def fwht_row_halving(x, shifts):  # type: ignore[no-untyped-def]
    """Transform one row of int16 in place with halving; for use inside other compiled loops.

    Parameters
    ----------
    x : ndarray of int16, shape (d,)
        C-contiguous; d a power of two (not checked).
    shifts : ndarray of int16, shape (log2(d),)
        1 where the butterflies of the stage of stride ``2**k`` are halved, else 0. See
        `fwht_halving`.

    Examples
    --------
    >>> row = np.array([3, 0, 1, 0], dtype=np.int16)
    >>> fwht_row_halving(row, np.array([0, 1], dtype=np.int16))
    >>> row
    array([2, 2, 1, 1], dtype=int16)
    """
    d = x.shape[0]
    if d < 32:
        _scalar_row_halving(x, shifts)
        return
    if d >= 256:
        for i in range(0, d, 256):
            halving_first_pass_8(x, i, 32, shifts, 0)
        _further_passes_halving(x, 0, d, 256, 8, shifts)
    elif d == 128:
        halving_first_pass_4(x, 0, 32, shifts, 0)
    elif d == 64:
        halving_first_pass_2(x, 0, 32, shifts, 0)
    else:
        halving_first_pass_1(x, 0, 32, shifts, 0)


# --- many rows -------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _transform_rows(begin, end, x):  # type: ignore[no-untyped-def]
    for i in range(begin, end):
        fwht_row(x[i])


@njit(cache=True, nogil=True)
def _transform_rows_halving(begin, end, x, shifts):  # type: ignore[no-untyped-def]
    for i in range(begin, end):
        fwht_row_halving(x[i], shifts)


def run_on_rows(
    kernel: Callable[..., None], n_rows: int, n_threads: int, *arguments: object
) -> None:
    """Call ``kernel(begin, end, *arguments)`` so that the ranges cover all rows.

    Plain threads around a compiled function that releases the interpreter lock: they nest, they
    survive a fork, and they compile in a fraction of the time of numba's parallel loops.

    Parameters
    ----------
    kernel : callable
        A function compiled with ``nogil=True`` that returns nothing. Rows must be independent.
    n_rows : int
        Number of rows.
    n_threads : int
        Number of ranges; 1 runs in the caller's thread.
    *arguments : object
        Passed on.

    Examples
    --------
    >>> rows = []
    >>> run_on_rows(lambda begin, end: rows.append((begin, end)), 5, 1)
    >>> rows
    [(0, 5)]
    """
    n_threads = max(1, min(n_threads, n_rows))
    if n_threads == 1:
        kernel(0, n_rows, *arguments)
        return
    bounds = [n_rows * i // n_threads for i in range(n_threads + 1)]
    with ThreadPoolExecutor(n_threads - 1) as pool:
        others = [
            pool.submit(kernel, bounds[i], bounds[i + 1], *arguments) for i in range(1, n_threads)
        ]
        kernel(0, bounds[1], *arguments)
        for other in others:
            other.result()


def useful_threads(n_butterflies: int) -> int:
    """Return how many threads pay for themselves, at most `numba.config.NUMBA_NUM_THREADS`.

    Parameters
    ----------
    n_butterflies : int
        The work, in units of one pair of additions in vector code (0.1 ns).

    Returns
    -------
    int
        At least 1.

    Examples
    --------
    >>> useful_threads(1000)
    1
    """
    available = int(numba.config.NUMBA_NUM_THREADS)
    return max(1, min(available, n_butterflies // _BUTTERFLIES_PER_THREAD))


def _threads_for(x: NDArray[Any], n_threads: int | None) -> int:
    """Return `n_threads`, or how many pay for the transform of `x`."""
    if n_threads is None:
        return useful_threads(x.size * x.shape[-1].bit_length() // 2)
    if n_threads < 1:
        raise TinykernelError(f"fwht: n_threads must be at least 1, got {n_threads}")
    return n_threads


def _check(x: NDArray[Any], dtypes: tuple[type, ...]) -> None:
    """Refuse what cannot be transformed in place."""
    if not isinstance(x, np.ndarray):
        raise TinykernelError(f"fwht: expected a numpy array, got {type(x).__name__}")
    if x.dtype not in dtypes or not x.dtype.isnative:
        names = ", ".join(np.dtype(dtype).name for dtype in dtypes)
        raise TinykernelError(f"fwht: dtype {x.dtype} is not supported; convert to {names}")
    if x.ndim == 0 or not 1 <= x.shape[-1] <= _LARGEST or x.shape[-1] & (x.shape[-1] - 1):
        raise TinykernelError(
            f"fwht: the last axis must be a power of two from 1 to {_LARGEST}, got shape {x.shape}"
        )
    if not x.flags.writeable:
        raise TinykernelError("fwht: the array is read-only and the transform works in place")


def _in_place(x: NDArray[Any], transform: Callable[[NDArray[Any]], None]) -> None:
    """Call `transform` with the rows of `x` as a contiguous matrix, and copy back if it must."""
    contiguous = x.flags.c_contiguous and x.flags.aligned
    rows = (x if contiguous else np.array(x, order="C")).reshape(-1, x.shape[-1])
    transform(rows)
    if not contiguous:
        x[...] = rows.reshape(x.shape)


def fwht(x: _ArrayT, *, n_threads: int | None = None) -> _ArrayT:
    """Multiply every row by the Walsh-Hadamard matrix, in place, without normalisation.

    Parameters
    ----------
    x : ndarray of float32, float64, int16 or int32, shape (..., d)
        Overwritten. d is a power of two from 1 to 65536. Integers wrap around. An array that is not
        C-contiguous is transformed in a copy that is written back.
    n_threads : int, optional
        How many threads share the rows; as many as pay for themselves when not given. The result
        does not depend on it.

    Returns
    -------
    ndarray
        `x` itself.

    Raises
    ------
    TinykernelError
        If `x` has another dtype or length, or is read-only.

    Examples
    --------
    >>> fwht(np.array([[1.0, 2.0, 3.0, 4.0]]))
    array([[10., -2., -4.,  0.]])
    """
    _check(x, _DTYPES)
    if x.size and x.shape[-1] > 1:
        threads = _threads_for(x, n_threads)
        _in_place(x, lambda rows: run_on_rows(_transform_rows, rows.shape[0], threads, rows))
    return x


def fwht_halving(
    x: NDArray[np.int16], halve: ArrayLike, *, n_threads: int | None = None
) -> NDArray[np.int16]:
    """Transform every row in place in 16-bit integers, halving after chosen stages.

    Stage k = 0, 1, ..., log2(d) - 1 combines elements ``2**k`` apart: ``(a, b)`` becomes
    ``(a + b, a - b)``, modulo 2^16, or, where ``halve[k]``, ``((a + b) >> 1, (a - b) >> 1)`` with
    the exact sum (17 bits) rounded down.

    Parameters
    ----------
    x : ndarray of int16, shape (..., d)
        Overwritten. d is a power of two from 1 to 65536.
    halve : array-like of bool, shape (log2(d),)
        The schedule.
    n_threads : int, optional
        As in `fwht`.

    Returns
    -------
    ndarray of int16
        `x` itself.

    Raises
    ------
    TinykernelError
        If `x` is not int16, or `halve` has another length than log2(d).

    Examples
    --------
    >>> fwht_halving(np.array([3, 0, 1, 0], dtype=np.int16), [False, True])
    array([2, 2, 1, 1], dtype=int16)
    """
    _check(x, (np.int16,))
    shifts = np.ascontiguousarray(np.asarray(halve, dtype=bool), dtype=np.int16)
    n_stages = x.shape[-1].bit_length() - 1
    if shifts.shape != (n_stages,):
        raise TinykernelError(
            f"fwht_halving: rows of {x.shape[-1]} have {n_stages} stages, "
            f"but the schedule has shape {shifts.shape}"
        )
    if x.size and n_stages:
        threads = _threads_for(x, n_threads)
        _in_place(
            x,
            lambda rows: run_on_rows(_transform_rows_halving, rows.shape[0], threads, rows, shifts),
        )
    return x
