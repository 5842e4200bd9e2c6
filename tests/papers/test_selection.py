"""Drawing components, and choosing sigma and lambda."""

import numpy as np
import pytest
from scipy.linalg import hadamard
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import NearestNeighbors

from tinykernel.model.quantization.scaling import fit_scaling
from tinykernel.papers import selection
from tinykernel.papers.outputs import PaperOptions, PaperRows
from tinykernel.papers.selection import assign_folds, choose, draw_machine, neighbour_distance


def problem_of(X, y, **more):
    """Make the problem of rows that are as they come, each with the weight 1."""
    rows, codes, weight = X.astype(np.float32), np.asarray(y, dtype=np.int64), np.ones(len(y))
    scaling = fit_scaling(rows, "feature")
    classes = tuple(np.unique(codes).tolist())
    return PaperRows(rows, codes, weight, classes, "float32", scaling=scaling, **more)


def test_folds_are_stratified_and_leave_out_every_row_once():
    """Protects cross-validation: classes in proportion, the only row of a class never left out."""
    codes = np.array([0] * 30 + [1] * 9 + [2])
    folds = assign_folds(codes, 3, np.random.default_rng(0))
    assert folds[-1] == -1
    assert np.bincount(folds[:30]).tolist() == [10, 10, 10]
    assert np.bincount(folds[30:39]).tolist() == [3, 3, 3]


def test_groups_are_held_out_whole():
    """Protects grouped data: no group has rows in both parts, and every row is held out once."""
    X, y = load_digits(n_class=3, return_X_y=True)
    groups = np.arange(len(y)) % 5
    search = selection._PaperSearch(problem_of(X, y, groups=groups), PaperOptions(32))
    assert len(search.parts) == 3
    held_out = np.array([part.held_out > 0 for part in search.parts])
    assert np.array_equal(held_out, np.array([part.training == 0 for part in search.parts]))
    assert np.array_equal(held_out.sum(axis=0), np.ones(len(y)))
    assert all(len(set(groups[rows]) & set(groups[~rows])) == 0 for rows in held_out)


def test_what_is_given_is_not_chosen(monkeypatch):
    """Protects sigma and lambda that the user gives."""
    tried = set()

    def hits(self, sigma, regularization, part):
        tried.add((sigma, regularization))
        return part.held_out.sum()

    monkeypatch.setattr(selection._PaperSearch, "hits", hits)
    X, y = load_digits(n_class=3, return_X_y=True)
    problem = problem_of(X[:90], y[:90])
    assert choose(problem, PaperOptions(32, sigma=3.0, regularization=0.5)) == (3.0, 0.5)
    assert not tried
    assert choose(problem, PaperOptions(32, sigma=3.0))[0] == 3.0
    assert {sigma for sigma, _ in tried} == {3.0}
    assert len(tried) == 5
    tried.clear()
    assert choose(problem, PaperOptions(32, regularization=0.5))[1] == 0.5
    assert {penalty for _, penalty in tried} == {0.5}


@pytest.mark.parametrize("multiple", [0.2, 0.7, 1.0, 2.0, 4.0, 11.0])
def test_sigma_is_found_inside_and_beyond_the_grid(multiple, monkeypatch):
    """Protects sets whose best sigma is far from the neighbour distance: the search goes on."""

    def hits(self, sigma, regularization, part):
        far = abs(np.log(sigma / (multiple * self.distance))) + abs(np.log(regularization / 0.03))
        return part.held_out.sum() * np.exp(-0.3 * far)

    monkeypatch.setattr(selection._PaperSearch, "hits", hits)
    X, y = load_digits(n_class=3, return_X_y=True)
    problem, options = problem_of(X, y), PaperOptions(64, n_threads=2)
    sigma, regularization = choose(problem, options)
    distance = neighbour_distance(problem.scaling.apply(problem.X), options.seed)
    assert abs(np.log(sigma / (multiple * distance))) < 0.2
    assert regularization == 0.03


def test_scores_that_round_to_more_than_1(monkeypatch):
    """Protects the choice between values of which one gets every row right, with float weights.

    The standard error was the root of a negative number, and with NaN the first value was taken.
    """

    def hits(self, sigma, regularization, part):
        share = 1 + 1e-15 if regularization == 0.3 else 0.1
        return share * part.held_out.sum()

    monkeypatch.setattr(selection._PaperSearch, "hits", hits)
    X, y = load_digits(n_class=2, return_X_y=True)
    assert choose(problem_of(X, y), PaperOptions(32, sigma=1.0))[1] == 0.3


def drawn(n_inputs, sigma, n_components, seed=0):
    """Draw a machine for inputs within [-1, 1]."""
    X = np.array([[-1.0] * n_inputs, [1.0] * n_inputs])
    return draw_machine(problem_of(X, [0, 1]), sigma, n_components, seed)


@pytest.mark.parametrize("n_inputs", [1, 40])
def test_components_equal_the_dense_formula(n_inputs):
    """Protects (3)-(5): phases are H G P H B x' / (sigma sqrt(d))."""
    machine = drawn(n_inputs, 0.7, 150, seed=3)
    d = machine.dimension
    H, B = hadamard(d).astype(np.float64), np.zeros((d, n_inputs))
    np.fill_diagonal(B, machine.sign)
    mixed = np.eye(d)[machine.permutation.indices(d)] @ H @ B
    R = np.concatenate([H @ np.diag(g) @ mixed for g in machine.diagonal]) / (0.7 * np.sqrt(d))
    X = np.random.default_rng(0).uniform(-1, 1, (60, n_inputs)) / np.sqrt(n_inputs)
    half = machine.width.ravel() / 2
    margin = np.cos(X @ R.T + machine.start.ravel() - half) - np.cos(half)
    clear = np.abs(margin) > 1e-4
    assert clear.mean() > 0.99
    assert np.array_equal(machine.features(X)[clear], margin[clear] > 0)


def test_hamming_distance_follows_the_kernel():
    """Protects Lemma 1: the share of differing components of all pairs, within 0.025.

    ``8/pi^2 sum_{m >= 1} (1 - k(m x, m y)) / (4 m^2 - 1)`` (Raginsky & Lazebnik 2009, lemma 2.3)
    with ``k(m x, m y) = k(x, y)^(m^2)``, and ``sum 1 / (4 m^2 - 1) = 1/2``.
    """
    p = int(np.ceil(np.log(60**2 / 0.01) / (2 * 0.025**2)))
    X = np.random.default_rng(5).standard_normal((60, 50)) / np.sqrt(50)
    X = np.clip(X * np.geomspace(0.05, 5, 60)[:, None], -1, 1)
    kernel = rbf_kernel(X, gamma=0.5)
    expected = np.full(kernel.shape, 0.5)
    for square in np.arange(1.0, 2001.0) ** 2:
        expected -= kernel**square / (4 * square - 1)
    signs = 2.0 * drawn(50, 1.0, p).features(X)[:, :p] - 1
    share = (p - signs @ signs.T) / (2 * p)
    assert np.allclose(share, 8 / np.pi**2 * expected, atol=0.025)


def test_fewer_components_are_a_prefix_of_the_same_blocks():
    """Protects the seed, which decides everything."""
    more, fewer, other = drawn(20, 1.0, 64, 7), drawn(20, 1.0, 50, 7), drawn(20, 1.0, 64, 8)
    assert np.array_equal(more.start, fewer.start)
    assert not np.array_equal(more.start, other.start)


def test_neighbour_distance():
    """Protects the width that a search starts from: against a search, and far from the origin."""
    X = np.random.default_rng(1).standard_normal((90, 4)).astype(np.float32)
    distances, _ = NearestNeighbors(n_neighbors=51).fit(X).kneighbors(X)
    assert neighbour_distance(X, 0) == pytest.approx(distances[:, 50].mean())
    assert neighbour_distance(np.array([[0.0], [2.0]]), 0) == 2.0
    assert neighbour_distance(np.ones((5, 2)), 0) == neighbour_distance(np.ones((1, 2)), 0) == 1.0
    moved = X + np.float32(2**14)
    assert neighbour_distance(moved, 0) == pytest.approx(neighbour_distance(moved - 2**14, 0), 1e-3)
