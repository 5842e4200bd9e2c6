"""The linear classifier with ternary weights: its start, its weights and its objective."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_circles
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from tinykernel.papers.maps import BinaryCodes, Fastfood
from tinykernel.papers.ternary import LOSSES, PENALTIES, TernaryLinearClassifier, TernaryProblem


def codes_of(n_components, n=300):
    X, y = load_digits(n_class=3, return_X_y=True)
    map = Fastfood(n_components=n_components, sigma=20.0, random_state=0)
    return BinaryCodes(map, random_state=0).fit_transform(X[:n]), y[:n]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("start", ["svm", "random"])
def test_every_loss_penalty_and_start_learns(loss, penalty, binary, start) -> None:
    """No sweep raises the objective (Lemma 2), and the labels are learned."""
    Z, y = codes_of(128)
    how = {"loss": loss, "penalty": penalty, "binary": binary, "start": start}
    model = TernaryLinearClassifier(regularization=0.01, random_state=0, **how).fit(Z, y)
    assert model.score(Z, y) > 0.97
    assert set(np.unique(model.coef_)) == ({-1, 1} if binary else {-1, 0, 1})
    for output in model.objectives_:
        assert np.all(np.diff(output) <= 1e-12)


def test_the_start_is_12() -> None:
    """w has the signs of a linear SVM's weights, and alpha is their mean magnitude."""
    Z, y = codes_of(32)
    model = TernaryLinearClassifier(random_state=0)
    problem = TernaryProblem(
        np.ascontiguousarray(Z.T), np.where(y == 1, 1.0, -1.0), np.full(300, 1 / 300)
    )
    w, alpha = model._start(problem, np.random.RandomState(0))
    svm = LinearSVC(C=1 / 32, random_state=9).fit(Z, problem.y).coef_[0]
    assert np.mean(w == np.sign(svm)) > 0.95
    assert alpha == pytest.approx(np.abs(svm).sum() / 32, rel=0.01)


def test_circles_are_told_apart() -> None:
    """001, figure 3: the boundary is not linear, with ternary and with binary weights."""
    X, y = make_circles(400, noise=0.1, factor=0.4, random_state=0)
    for binary in (False, True):
        map = BinaryCodes(Fastfood(n_components=256, sigma=0.5, random_state=0), random_state=0)
        model = TernaryLinearClassifier(binary=binary, random_state=0)
        assert make_pipeline(map, model).fit(X, y).score(X, y) > 0.95
