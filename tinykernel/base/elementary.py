"""exp, log, sin and cos whose bits depend on the arguments alone, for scalars in compiled code.

NumPy and the C library choose among versions of these by the processor, and the versions differ in
the last bit. Here every operation is an addition, a product or a quotient of float64, rounded in
the order of the source. Arguments are reduced as usual (Muller, Elementary Functions, 3rd ed., ch.
11) and the rest is a Taylor series to the last bit::

    exp x = 2^n exp r,      n = floor(x / log 2 + 1/2),    |r| <= log 2 / 2
    log x = n log 2 + 2 artanh s,    x = 2^n m,    s = (m - 1) / (m + 1),    m in [0.71, 1.42]
    sin x, cos x from y = x - q pi/2,    q = floor(2 x / pi + 1/2),    |y| <= pi/4

The error is below 2 units in the last place (for sin and cos below 1e-15 for |x| up to 1000).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.compiled import njit

_inlined = njit(nogil=True, error_model="numpy", forceinline=True)

# log 2 in two parts, the first with 32 bits: its product with n is exact. So for pi / 2.
_LOG2_HIGH, _LOG2_LOW = 0.6931471803691238, 1.9082149292705877e-10
_HALF_PI_HIGH, _HALF_PI_LOW = 1.5707963267341256, 6.077100506506192e-11
_SQUARE_ROOT_OF_2 = 1.4142135623730951
_LAST_BITS = 1.5 * 2.0**52


@_inlined
def exp(x):  # type: ignore[no-untyped-def]
    """Return e^x as float64; 0 below -708, and not above e^709."""
    is_tiny = x < -708.0
    x = min(max(np.float64(x), -708.0), 709.0)
    n = np.floor(x * 1.4426950408889634 + 0.5)
    r = (x - n * _LOG2_HIGH) - n * _LOG2_LOW
    p = 1 / 39916800 + r * (1 / 479001600 + r * (1 / 6227020800))
    p = 1 / 40320 + r * (1 / 362880 + r * (1 / 3628800 + r * p))
    p = 1 / 120 + r * (1 / 720 + r * (1 / 5040 + r * p))
    p = 1.0 + r * (1.0 + r * (1 / 2 + r * (1 / 6 + r * (1 / 24 + r * p))))
    # A sum whose last bits are those of the integer n: vectors of old processors convert no int64.
    power = np.int64((np.float64(n + _LAST_BITS).view(np.int64) + 1023) << 52).view(np.float64)
    return 0.0 if is_tiny else p * power


@_inlined
def log(x):  # type: ignore[no-untyped-def]
    """Return the natural logarithm of a normal float64 above 0."""
    bits = np.float64(x).view(np.int64)
    n = (bits >> 52) - 1023
    m = np.int64((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000).view(np.float64)
    if m > _SQUARE_ROOT_OF_2:
        m *= 0.5
        n += 1
    s = (m - 1.0) / (m + 1.0)
    square = s * s
    p = 0.0
    for k in range(21, 1, -2):
        p = (p + 1.0 / k) * square
    return n * _LOG2_HIGH + (n * _LOG2_LOW + 2.0 * s * p + 2.0 * s)


@_inlined
def _turn(x, quarter):  # type: ignore[no-untyped-def]
    """Return cos(x - quarter * pi / 2)."""
    q = np.floor(x * 0.6366197723675814 + 0.5)
    y = (x - q * _HALF_PI_HIGH) - q * _HALF_PI_LOW
    which = (np.int64(q) - quarter) & 3
    square = y * y
    p = 1.0
    if which & 1:
        for k in range(19, 2, -2):
            p = 1.0 - p * square / (k * (k - 1))
        p *= y
    else:
        for k in range(18, 1, -2):
            p = 1.0 - p * square / (k * (k - 1))
    return -p if which == 1 or which == 2 else p


@_inlined
def cos(x):  # type: ignore[no-untyped-def]
    """Return the cosine of an angle."""
    return _turn(x, 0)


@njit(nogil=True, error_model="numpy")
def _exps(values, out):  # type: ignore[no-untyped-def]
    for i in range(values.size):
        out[i] = exp(values[i])


@njit(nogil=True, error_model="numpy")
def _logs(values, out):  # type: ignore[no-untyped-def]
    for i in range(values.size):
        out[i] = log(values[i])


@njit(nogil=True, error_model="numpy")
def _cosines(values, quarter, out):  # type: ignore[no-untyped-def]
    for i in range(values.size):
        out[i] = _turn(values[i], quarter)


def _of_each(kernel: Callable[..., None], x: ArrayLike, *further: Any) -> NDArray[np.float64]:
    values = np.ascontiguousarray(x, dtype=np.float64)
    out = np.empty(values.shape)
    kernel(values.reshape(-1), *further, out.reshape(-1))
    return out


def exps(x: ArrayLike) -> NDArray[np.float64]:
    """Return e^x of every element."""
    return _of_each(_exps, x)


def logs(x: ArrayLike) -> NDArray[np.float64]:
    """Return the natural logarithm of every element; all are above 0."""
    return _of_each(_logs, x)


def cosines(x: ArrayLike) -> NDArray[np.float64]:
    """Return the cosine of every element."""
    return _of_each(_cosines, x, 0)


def sines(x: ArrayLike) -> NDArray[np.float64]:
    """Return the sine of every element."""
    return _of_each(_cosines, x, 1)
