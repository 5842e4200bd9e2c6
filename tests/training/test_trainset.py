"""The canonical training set and the scaler."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tinykernel.errors import TinykernelError
from tinykernel.model.quantization.scaling import fit_scaling, raw_dtype_of, to_raw
from tinykernel.training.trainset import canonical_rows


@settings(max_examples=60, deadline=None)
@given(
    X=arrays(np.float32, (12, 2), elements=st.sampled_from([0.0, -0.0, 1.0, 2.0])),
    codes=arrays(np.int64, 12, elements=st.integers(0, 1)),
    weight=arrays(np.float64, 12, elements=st.integers(1, 5).map(float)),
    seed=st.integers(0, 99),
)
def test_canonical_rows_depend_only_on_the_content(X, codes, weight, seed):
    """Protects the canonical order: the same multiset of rows gives the same bytes."""
    first = canonical_rows(X, codes, weight)
    order = np.random.default_rng(seed).permutation(12)
    second = canonical_rows(X[order], codes[order], weight[order])
    for one, other in zip(first[:3], second[:3], strict=True):
        assert one.tobytes() == other.tobytes()
    slow = {}
    for row, code, value in zip((X + 0).tolist(), codes.tolist(), weight.tolist(), strict=True):
        slow[(*row, code)] = slow.get((*row, code), 0.0) + value
    fast = {(*r, c): w for r, c, w in zip(*(a.tolist() for a in first[:3]), strict=True)}
    assert fast == slow
    assert len(first[0]) == len(slow)
    assert np.array_equal(first[0][first[3]], X)
    assert np.array_equal(first[1][first[3]], codes)


@pytest.mark.parametrize("kind", ["minmax", "standard"])
@pytest.mark.parametrize("scope", ["feature", "global"])
def test_scaling(kind, scope):
    """Protects the scalers against numpy's obvious formulas."""
    X = np.random.default_rng(0).normal(3, [1, 2, 5], (5000, 3)).astype(np.float32)
    scaling = fit_scaling(X, np.ones(5000), kind, scope)
    axis = 0 if scope == "feature" else None
    if kind == "minmax":
        low, high = X.min(axis=axis), X.max(axis=axis)
        expected = 2 * (X - low) / (high - low) - 1
    else:
        expected = np.clip((X - X.mean(axis=axis)) / X.std(axis=axis), -4, 4)
    assert np.allclose(scaling.apply(X), expected, atol=1e-4)
    assert scaling.offset.shape == scaling.scale.shape == (3,)


def test_standard_scaling_takes_weights():
    """Protects the equivalence of weights and repetition in the scaler."""
    X, counts = np.array([[1.0], [2.0], [5.0]]), np.array([3, 1, 2])
    weighted = fit_scaling(X, counts.astype(float), "standard", "feature")
    repeated = fit_scaling(np.repeat(X, counts, axis=0), np.ones(6), "standard", "feature")
    assert weighted.offset == pytest.approx(repeated.offset)
    assert weighted.scale == pytest.approx(repeated.scale)


def test_constant_features():
    """Protects constants from a division by zero, and from vanishing under a global scaler."""
    X = np.array([[0.0, 5.0], [10.0, 5.0]])
    assert fit_scaling(X, np.ones(2), "minmax", "feature").scale.tolist() == [0.2, 0.0]
    assert fit_scaling(X, np.ones(2), "minmax", "global").scale.tolist() == [0.2, 0.2]
    constant = np.full((2, 2), 5.0)
    for kind in ("minmax", "standard"):
        assert fit_scaling(constant, np.ones(2), kind, "global").scale.tolist() == [0.0, 0.0]


def test_raw_types_refuse_what_does_not_fit():
    """Protects firmware from values that its input type cannot hold; names the place."""
    assert to_raw(np.array([[2**31 - 1]]), raw_dtype_of(np.dtype("int64"))).dtype == np.int32
    with pytest.raises(TinykernelError, match="row 1, column 0 is 2147483648, which int32"):
        to_raw(np.array([[0], [2**31]]), "int32")
    with pytest.raises(TinykernelError, match="not numbers"):
        raw_dtype_of(np.dtype("U3"))
