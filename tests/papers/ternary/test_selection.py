"""Choosing sigma and lambda."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tinykernel.model.quantization.scaling import fit_scaling
from tinykernel.papers.ternary import selection
from tinykernel.papers.ternary.coordinate import PaperOptions, PaperRows
from tinykernel.papers.ternary.selection import assign_folds, choose


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


def test_what_is_given_is_not_chosen():
    """Protects sigma and lambda that the user gives."""
    X, y = load_digits(n_class=3, return_X_y=True)
    problem = problem_of(X[:90], y[:90])
    both = choose(problem, PaperOptions(n_components=32, sigma=3.0, regularization=0.5))
    assert (both.sigma, both.regularization, both.cv_results) == (3.0, 0.5, {})
    sigma = choose(problem, PaperOptions(n_components=32, sigma=3.0))
    assert sigma.sigma == 3.0
    assert set(sigma.cv_results["sigma"]) == {3.0}
    assert sigma.cv_results["regularization"].size == 5
    penalty = choose(problem, PaperOptions(n_components=32, regularization=0.5))
    assert penalty.regularization == 0.5
    assert set(penalty.cv_results["regularization"]) == {0.5}


@pytest.mark.parametrize("multiple", [0.2, 0.7, 1.0, 2.0, 4.0, 11.0])
def test_sigma_is_found_inside_and_beyond_the_grid(multiple, monkeypatch):
    """Protects sets whose best sigma is far from the neighbour distance: the search goes on."""

    def hits(self, sigma, regularization, part):
        far = abs(np.log(sigma / (multiple * self.distance))) + abs(np.log(regularization / 0.03))
        return part.held_out.sum() * np.exp(-0.3 * far)

    monkeypatch.setattr(selection._Search, "hits", hits)
    X, y = load_digits(n_class=3, return_X_y=True)
    choice = choose(problem_of(X, y), PaperOptions(n_components=64, n_threads=2))
    distance = choice.cv_results["sigma"][0] / 1.4
    assert abs(np.log(choice.sigma / (multiple * distance))) < 0.2
    assert choice.regularization == 0.03


def test_scores_that_round_to_more_than_1(monkeypatch):
    """Protects the choice between values of which one gets every row right, with float weights.

    The standard error was the root of a negative number, and with NaN the first value was taken.
    """

    def hits(self, sigma, regularization, part):
        share = 1 + 1e-15 if regularization == 0.3 else 0.1
        return share * part.held_out.sum()

    monkeypatch.setattr(selection._Search, "hits", hits)
    X, y = load_digits(n_class=2, return_X_y=True)
    choice = choose(problem_of(X, y), PaperOptions(n_components=32, sigma=1.0))
    assert choice.regularization == 0.3
