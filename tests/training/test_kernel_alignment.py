"""Blocks, permutations and rows that the trainer keeps because of the labels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tinykernel import TernaryKernelClassifier, TernaryKernelRegressor, TinykernelError
from tinykernel.hadamard import fwht
from tinykernel.model.stages.components import Components
from tinykernel.training.components.kernel_alignment import (
    aligned_blocks,
    aligned_permutation,
    block_scores,
)
from tinykernel.training.inputs import draw_transform, fit_level_scaling
from tinykernel.training.options import TrainerOptions


@pytest.fixture(scope="module")
def digits():
    """Eight-bit images of digits."""
    X, y = load_digits(return_X_y=True)
    return X.astype(np.uint8), y


def _signs(_, projections):
    return np.sign(projections)


def test_block_scores_equal_the_double_sum():
    """The score of a block is the mean over its features of the double sum of 000 (16)."""
    rng = np.random.default_rng(0)
    mixed = rng.standard_normal((20, 32)).astype(np.float32)
    codes = np.arange(20) % 2
    diagonal = rng.standard_normal((3, 32))
    labels = 2 * codes - 1
    kernels = [_signs(0, fwht(mixed * g.astype(np.float32))) for g in diagonal]
    slow = [labels @ (z @ z.T) @ labels / 32 for z in kernels]
    np.testing.assert_allclose(block_scores(mixed, codes, diagonal, _signs), slow, rtol=1e-5)


def test_blocks_that_see_the_labels_are_kept():
    """A block whose G is blind to the feature that decides is left out."""
    rng = np.random.default_rng(0)
    codes = np.arange(600) % 2
    mixed = 0.1 * rng.standard_normal((600, 32)).astype(np.float32)
    mixed[:, 0] += 2 * codes - 1
    diagonal = rng.standard_normal((4, 32))
    diagonal[[0, 2], 0] = 0
    chosen = aligned_blocks(mixed, codes, diagonal, _signs, 2, np.random.default_rng(1))
    assert chosen.tolist() == [1, 3]


def test_permutation_is_one_of_the_candidates(digits):
    """The best permutation depends on the seed only, and one candidate changes nothing."""
    X, y = digits
    transform = draw_transform(fit_level_scaling(X, 8), 8, "uint8", np.random.default_rng(0))
    same = aligned_permutation(transform, X, y, 1, np.random.default_rng(1))
    assert same == transform
    first, second = (
        aligned_permutation(transform, X, y, 4, np.random.default_rng(1)) for _ in range(2)
    )
    assert first.permutation.multiplier == second.permutation.multiplier
    assert np.array_equal(np.sort(first.permutation.indices(64)), np.arange(64))


@pytest.mark.parametrize("layout", ["compact", "windows"])
def test_an_aligned_permutation_learns_digits(digits, layout):
    """The option `permutation` changes P, and what is learned from there is good."""
    X, y = digits
    given = {"n_components": 128, "epochs": 20, "layout": layout, "effort": "quick"}
    model = TernaryKernelClassifier(
        options={"permutation": "aligned"}, random_state=0, **given
    ).fit(X, y)
    assert np.mean(model.predict(X) == y) > 0.8
    drawn = TernaryKernelClassifier(random_state=0, **{**given, "epochs": 1}).fit(X, y)
    permutations = [one.machine_.find(Components).permutation for one in (model, drawn)]
    assert permutations[0] != permutations[1]


def test_an_aligned_permutation_is_refused_where_nothing_reads_it():
    """Linear parts alone have no permutation, and regressors no classes."""
    with pytest.raises(TinykernelError, match="permutation: a linear part alone"):
        TrainerOptions(n_components=0, permutation="aligned").check_for(None)
    with pytest.raises(TinykernelError, match="permutation"):
        TernaryKernelRegressor(options={"permutation": "aligned"}).fit([[1.0], [2.0]], [0, 1])
