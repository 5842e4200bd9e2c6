"""The width heuristic against a search."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from tinykernel.errors import TinykernelError
from tinykernel.papers.features import neighbour_distance


@pytest.mark.parametrize("k", [1, 7, 39])
def test_neighbour_distance_is_the_mean_over_all_rows(k: int) -> None:
    """With the sample as large as the data, it is the plain mean of a neighbour search."""
    X = np.random.default_rng(1).standard_normal((40, 4))
    distances, _ = NearestNeighbors(n_neighbors=k + 1).fit(X).kneighbors(X)
    assert neighbour_distance(X, k=k) == pytest.approx(distances[:, k].mean())


def test_neighbour_distance_of_a_sample_estimates_the_same() -> None:
    """A sample of rows measures to all rows: near the full answer, and reproducible."""
    X = np.random.default_rng(2).standard_normal((600, 3))
    full = neighbour_distance(X, n_rows=600)
    part = neighbour_distance(X, n_rows=100, random_state=0)
    assert part == neighbour_distance(X, n_rows=100, random_state=0)
    assert part == pytest.approx(full, rel=0.15)


def test_neighbour_distance_edge_cases() -> None:
    """Fewer rows than k, identical rows, float32, and refusals."""
    assert neighbour_distance([[0.0], [2.0]], k=50) == 2.0
    assert neighbour_distance(np.ones((5, 2))) == 1.0
    assert neighbour_distance(np.array([[0], [3]], dtype=np.float32), k=1) == pytest.approx(3)
    with pytest.raises(TinykernelError, match="two rows"):
        neighbour_distance([[1.0]])
    with pytest.raises(TinykernelError, match="start at 1"):
        neighbour_distance([[1.0], [2.0]], k=0)


def test_neighbour_distance_far_from_the_origin() -> None:
    """Raw readings in float32 around a large mean once gave rounding errors, or 1.0, as width."""
    X = np.random.default_rng(3).standard_normal((300, 3)).astype(np.float32)
    moved = X + np.float32(2**14)
    assert neighbour_distance(moved) == pytest.approx(neighbour_distance(moved - 2**14), rel=1e-3)
