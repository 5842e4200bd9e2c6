"""The Walsh-Hadamard transforms against matrices and against slow obvious loops."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import hadamard

import tinykernel.base.hadamard as hadamard_module
from tests.refusals import refused
from tinykernel.base.errors import ShapeError
from tinykernel.base.hadamard import (
    fwht,
    fwht_halving,
    padded_dimension,
    run_on_rows,
    useful_threads,
)

DTYPES = (np.float32, np.float64)
quick = settings(max_examples=40)
seeds = st.integers(0, 2**32 - 1)


def any_rows(seed: int, shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """Random rows over the whole range of an integer type, its ends often, or normal floats."""
    rng = np.random.default_rng(seed)
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        anywhere = rng.integers(info.min, info.max, shape, endpoint=True)
        ends = rng.choice([info.min, -1, info.max], shape)
        return np.where(rng.random(shape) < 0.3, ends, anywhere).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def slow_halving(row: np.ndarray, halve: list[bool]) -> np.ndarray:
    """Halve stage by stage in Python integers, wrapping to 16 bits after each stage."""
    values = [int(v) for v in row]
    for k, halved in enumerate(halve):
        stride = 2**k
        for i in range(len(values)):
            if i & stride == 0:
                total, difference = values[i] + values[i + stride], values[i] - values[i + stride]
                if halved:
                    total, difference = total // 2, difference // 2
                values[i], values[i + stride] = total, difference
        values = [(v + 2**15) % 2**16 - 2**15 for v in values]
    return np.array(values, dtype=np.int16)


@pytest.mark.parametrize("dtype", DTYPES)
@given(log_d=st.integers(0, 11), n_rows=st.sampled_from([0, 1, 5, 32, 33]), seed=seeds)
@quick
def test_is_the_product_with_the_matrix(dtype, log_d, n_rows, seed) -> None:
    """Every length gives x H to rounding, in the dtype of x."""
    d = 2**log_d
    x = any_rows(seed, (n_rows, d), dtype)
    got = fwht(x.copy())
    tolerance = 100 * np.finfo(dtype).eps * np.sqrt(d)
    np.testing.assert_allclose(got, x.astype(np.float64) @ hadamard(d), atol=tolerance)
    assert got.dtype == dtype


@pytest.mark.parametrize("log_d", [12, 13, 16])
def test_long_rows(log_d) -> None:
    """Rows beyond one cache chunk are right: H e_k is the k-th row of signs, and H H = d I."""
    d = 2**log_d
    k = 0b1011_0000_0110_1101 % d
    x = np.zeros((1, d))
    x[0, k] = 1
    expected = 1 - 2 * (np.bitwise_count(np.arange(d) & k).astype(np.int32) & 1)
    np.testing.assert_array_equal(fwht(x)[0], expected)
    y = any_rows(log_d, (1, d), np.float32)
    np.testing.assert_allclose(fwht(fwht(y.copy())) / d, y, atol=1e-5)
    halve = [bool(i % 3) for i in range(log_d)]
    z = any_rows(log_d, (d,), np.int16)
    np.testing.assert_array_equal(fwht_halving(z.copy(), halve), slow_halving(z, halve))


@given(log_d=st.integers(0, 10), seed=seeds, data=st.data())
@quick
def test_halving_equals_the_slow_version(log_d, seed, data) -> None:
    """Every schedule and the full int16 range give what Python integers give."""
    halve = data.draw(st.lists(st.booleans(), min_size=log_d, max_size=log_d))
    x = any_rows(seed, (2**log_d,), np.int16)
    np.testing.assert_array_equal(fwht_halving(x.copy(), halve), slow_halving(x, halve))


@pytest.mark.parametrize("dtype", DTYPES)
def test_in_place_on_any_array(dtype) -> None:
    """Leading axes, strides and Fortran order are all transformed in place."""
    whole = any_rows(1, (3, 5, 128), dtype)
    expected = fwht(whole.copy().reshape(15, 128)).reshape(3, 5, 128)
    batched = whole.copy()
    assert fwht(batched) is batched
    np.testing.assert_array_equal(batched, expected)
    strided = np.zeros((3, 10, 256), dtype=dtype)[:, ::2, 1::2]
    strided[...] = whole
    assert fwht(strided) is strided
    np.testing.assert_array_equal(strided, expected)
    np.testing.assert_array_equal(fwht(np.asfortranarray(whole)), expected)
    single = whole[0, 0].copy()
    fwht(single)
    np.testing.assert_array_equal(single, expected[0, 0])


def test_threads_do_not_change_the_result(monkeypatch) -> None:
    """Any number of threads, more than rows too, gives the same bits."""
    x = any_rows(2, (7, 512), np.float32)
    z = any_rows(2, (7, 512), np.int16)
    halve = [True, False, True] * 3
    plain = fwht(x.copy()), fwht_halving(z.copy(), halve)
    for n_threads in (2, 3, 20):
        monkeypatch.setattr(hadamard_module, "useful_threads", lambda work, n=n_threads: n)
        np.testing.assert_array_equal(fwht(x.copy()), plain[0])
        np.testing.assert_array_equal(fwht_halving(z.copy(), halve), plain[1])


def test_threads_are_used_only_for_large_work(monkeypatch) -> None:
    """A small transform stays in its thread; an error inside a thread reaches the caller."""
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 3)
    assert (useful_threads(0), useful_threads(1 << 40)) == (1, 3)

    def fails(begin: int, end: int) -> None:
        if begin:
            raise KeyError(begin)

    with pytest.raises(KeyError):
        run_on_rows(fails, 4, 2)


@given(st.integers(1, 65536))
@quick
def test_padded_dimension(n) -> None:
    """The smallest power of two that holds n and fills a 32-bit word."""
    d = padded_dimension(n)
    assert d >= n
    assert d >= 32
    assert d & (d - 1) == 0
    assert d == 32 or d // 2 < n


@pytest.mark.parametrize("n", [0, -1, 65537])
def test_padded_dimension_refuses(n) -> None:
    """Outside 1..65536 the message names the number and the limit."""
    refused(ShapeError, padded_dimension, n)
