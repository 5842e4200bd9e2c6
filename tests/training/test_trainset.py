"""The canonical training set, the scaler, and how inputs are varied."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.refusals import refused
from tinykernel.base.errors import DataError
from tinykernel.base.frames import coded_rows
from tinykernel.learn.augment import Augmentation, affine_moves, vary_windows
from tinykernel.learn.trainset import _hash_rows, canonical_rows, prepare, within_reach
from tinykernel.model.scale import raw_dtype_of, to_raw

pytestmark = pytest.mark.usefixtures("page")


@settings(max_examples=60)
@given(
    X=arrays(np.float32, (12, 2), elements=st.sampled_from([0.0, -0.0, 1.0, 2.0])),
    codes=arrays(np.int64, 12, elements=st.integers(0, 1)),
    weight=arrays(np.float64, 12, elements=st.integers(1, 5).map(float)),
    seed=st.integers(0, 99),
)
def test_canonical_rows_depend_only_on_the_content(X, codes, weight, seed):
    """Protects the canonical order: the same multiset of rows gives the same bytes."""
    first = canonical_rows(X, codes, weight)
    assert first[3] is None
    order = np.random.default_rng(seed).permutation(12)
    second = canonical_rows(X[order], codes[order], weight[order])
    assert [one.tobytes() for one in first[:3]] == [other.tobytes() for other in second[:3]]
    slow = {}
    for row, code, value in zip((X + 0).tolist(), codes.tolist(), weight.tolist(), strict=True):
        slow[(*row, code)] = slow.get((*row, code), 0.0) + value
    fast = {(*r, c): w for r, c, w in zip(*(a.tolist() for a in first[:3]), strict=True)}
    assert fast == slow
    assert len(first[0]) == len(slow)


@settings(max_examples=30)
@given(rows=arrays(np.uint8, st.tuples(st.integers(0, 9), st.integers(1, 5))))
def test_hashes_of_rows_are_those_of_the_standard(rows):
    """Protects the order of rows, which models depend on: FNV-1a, byte by byte."""
    slow = []
    for row in rows.tolist():
        value = 14695981039346656037
        for byte in row:
            value = (value ^ byte) * 1099511628211 % 2**64
        slow.append(value)
    assert _hash_rows(rows).tolist() == slow


def test_raw_types_refuse_what_does_not_fit():
    """Protects firmware from values that its input type cannot hold; names the place."""
    assert to_raw(np.array([[2**31 - 1]]), raw_dtype_of(np.dtype("int64"))).dtype == np.int32
    refused(DataError, to_raw, np.array([[0], [2**31]]), "int32")
    refused(DataError, raw_dtype_of, np.dtype("U3"))


@pytest.mark.parametrize(("kind", "gap"), [(np.float32, np.nan), (np.int32, -9999)])
def test_one_absurd_value_leaves_the_range_to_the_others(kind, gap):
    """Columns without one stay, to the bit; one of 1e30 took the range, or that of missing ones."""
    rows = (1000 * np.random.default_rng(0).normal(size=(40, 3))).astype(kind)
    far, mended = rows.copy(), rows.copy()
    far[[5, 17], 1], mended[[5, 17], 1] = (gap, -2e9), gap
    far, mended = (coded_rows(X)[0] for X in (far, mended))
    assert within_reach(rows, rows) is rows
    with pytest.warns(UserWarning, match="row 17, column 1 is -2e"):
        assert {*prepare(far, np.arange(40) % 2)[1].X.flat} == {*mended.flat}
    often = np.array([*range(30), *[2e9] * 9], kind)[:, None]  # in one row where rows are merged
    assert prepare(often, often[:, 0] > 99)[1].X.max() == kind(2e9)


def test_variation_of_inputs():
    """Protects that rotations keep lengths, a map of strength 0 is none, and flips mirror."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5, 20, 6))
    turned = vary_windows(X, Augmentation(rotate=0.5), rng)
    assert not np.allclose(turned, X)
    for axes in (slice(3), slice(3, 6)):
        np.testing.assert_allclose(*(np.linalg.norm(x[..., axes], axis=2) for x in (turned, X)))
    assert affine_moves(Augmentation(), 5, (8, 8), rng).size == 0
    moves = affine_moves(Augmentation(affine=1.0), 500, (28, 28), rng)
    assert np.abs(moves.mean(axis=0) - [1, 0, 0, 0, 1, 0]).max() < 0.3
    mirrored = affine_moves(Augmentation(flip=1.0), 2, (3, 8), rng)
    np.testing.assert_array_equal(mirrored, np.tile([1, 0, 0, 0, -1, 7], (2, 1)))
