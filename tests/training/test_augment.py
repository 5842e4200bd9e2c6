"""How inputs are varied."""

import numpy as np

from tinykernel.learn.augment import Augmentation, affine_moves, vary_windows


def test_variation_of_inputs():
    """Protects that rotations keep lengths, a map of strength 0 is none, and flips mirror."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5, 20, 6))
    turned = vary_windows(X, Augmentation(rotate=0.5), rng)
    assert not np.allclose(turned, X)
    for c in (0, 3):
        np.testing.assert_allclose(
            np.linalg.norm(turned[:, :, c : c + 3], axis=2),
            np.linalg.norm(X[:, :, c : c + 3], axis=2),
        )
    assert affine_moves(Augmentation(), 5, (8, 8), rng).size == 0
    moves = affine_moves(Augmentation(affine=1.0), 500, (28, 28), rng)
    assert np.abs(moves.mean(axis=0) - [1, 0, 0, 0, 1, 0]).max() < 0.3
    mirrored = affine_moves(Augmentation(flip=1.0), 2, (3, 8), rng)
    np.testing.assert_array_equal(mirrored, np.tile([1, 0, 0, 0, -1, 7], (2, 1)))
