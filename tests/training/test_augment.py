"""How inputs are varied."""

import numpy as np

from tinykernel.learn.augment import Augmentation, _between, affine_moves, vary_windows


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


def test_variation_of_spectra():
    """Protects that a place between levels has a level between, and silence and bands stay."""
    rng = np.random.default_rng(0)
    levels = rng.uniform(0, 255, (4, 9, 2, 5))
    place = rng.uniform(-2, 7, (4, 1, 1, 5))
    found = _between(levels, place, 3)
    for i in np.ndindex(4, 9, 2):
        np.testing.assert_allclose(found[i], np.interp(place[i[0], 0, 0], np.arange(5), levels[i]))
    loud = np.tile([[0.0] * 5 + [90.0] * 5], (40, 9, 1))  # a silent channel beside another
    varied = vary_windows(loud, Augmentation(affine=1, bands=5), rng)
    assert not varied[:, :, :5].any()
    louder = varied[:, :, 5:] - 90
    assert np.all(louder == louder[:, :1, :1])
    assert 6 < np.abs(louder).max() <= 12
