"""Blends of learned weights with discriminants: their choice, and what they decide."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from tinykernel import Classifier
from tinykernel.kinds.kind import Problem
from tinykernel.kinds.pace import Pace
from tinykernel.learn.linear import normal_equations
from tinykernel.learn.linear.kind import LinearKind, LinearSpec
from tinykernel.learn.linear.normal_equations import LIKELY, fit_discriminants
from tinykernel.learn.linear.training import LinearLearner, LinearRecipe, TrainingRows, blend
from tinykernel.learn.loop import run_epochs
from tinykernel.learn.loss import targets_of
from tinykernel.learn.options import TrainerOptions
from tinykernel.learn.trainset import prepare


def clouds(n_classes: int, n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Make rows of classes that are Gaussian clouds of one shape, in levels of 8 bits."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    means, shape = 12 * rng.standard_normal((n_classes, d)), rng.standard_normal((d, d))
    rows = means[codes] + 20 * rng.standard_normal((n, d)) @ shape / np.sqrt(d)
    return np.clip(np.rint(rows), -128, 127).astype(np.int8), codes


def learned(rows: np.ndarray, codes: np.ndarray, n_classes: int, **known: object) -> LinearLearner:
    recipe = LinearRecipe(**{"bits": 8, "epochs": 20, "batch_rows": 32, **known})
    weight = np.ones(len(rows), np.float32)
    learner = LinearLearner(TrainingRows(rows, targets_of(codes, n_classes), weight), recipe)
    run_epochs(learner, recipe.epochs, stage=None)
    return learner


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), n_classes=st.integers(2, 5))
def test_discriminants_are_those_of_ridge_predictions(seed: int, n_classes: int) -> None:
    """Protects the fit to many rows, of two classes too, against scikit-learn's of a slow ridge."""
    rows, codes = clouds(n_classes, 200, 5, seed)
    targets = targets_of(codes, n_classes)
    fit, _ = fit_discriminants(rows.astype(np.int16), codes, targets, np.ones(200))
    centred = rows - rows.mean(axis=0)
    unit = np.maximum(rows.std(axis=0), 0.25 * np.median(rows.std(axis=0)))
    gram = (centred / unit).T @ (centred / unit) / 200
    penalty = LIKELY * np.trace(gram) / 5
    right = (centred / unit).T @ (targets - targets.mean(axis=0)) / 200
    said = (centred / unit) @ np.linalg.solve(gram + penalty * np.eye(5), right)
    peer = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.3).fit(said, codes)
    expected, scores = peer.decision_function(said), fit.fitted(rows)
    if n_classes == 2:
        assert np.allclose(scores[:, 0], expected, atol=1e-6)
    else:
        assert np.allclose(scores - scores[:, :1], expected - expected[:, :1], atol=1e-6)


def chosen(rows: np.ndarray, codes: np.ndarray, **fitted: object) -> str:
    """Return the linear part that `select` takes, in words."""
    options = {"model": "linear", "linear": 8, "epochs": 20, "random_state": 0}
    model = Classifier(**options).fit(rows, codes, **fitted)
    return str(model.search_["chosen"])


def test_a_blend_is_taken_where_it_is_ahead() -> None:
    """Few rows of clouds have one; rows that discriminants cannot tell apart have none."""
    rows, codes = clouds(6, 240, 30, 1)
    groups = np.random.default_rng(0).integers(0, 12, 240)
    assert "blended" in chosen(rows, codes)
    assert "blended" in chosen(rows, codes, groups=groups)
    learner = learned(rows, codes, 6)
    levels, unit, offset = blend(learner)
    fresh, truth = clouds(6, 6000, 30, 1)
    fresh, truth = fresh[240:], truth[240:]
    by_blend = (fresh @ (unit * levels.T) + offset).argmax(axis=1)
    assert (by_blend == truth).mean() > (learner.decide(fresh).argmax(axis=1) == truth).mean()
    # One far row of a class in ten moves its mean, and no learned border.
    rng = np.random.default_rng(2)
    truth = np.arange(400) % 2
    rows = np.where(rng.random(400) < 0.1, 127, 2)[:, None] * (2 * truth[:, None] - 1)
    rows = np.hstack([rows, rng.integers(-100, 100, (400, 3))]).astype(np.int8)
    assert "blended" not in chosen(rows, truth)


def test_ctrl_c_ends_the_rounding_of_a_blend(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best step so far is no blend that was judged: learned weights are kept, and said so."""
    data = prepare(*clouds(6, 240, 30, 1))[1]
    kind, problem = LinearKind(), Problem(data, TrainerOptions(epochs=20, random_state=0))
    plane, left = normal_equations._nearest_plane, iter(range(3))

    def interrupted(*arguments: object) -> object:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return plane(*arguments)

    monkeypatch.setattr(normal_equations, "_nearest_plane", interrupted)
    result = kind.fit(LinearSpec(8, "blend"), problem, Pace())
    assert result.history.interrupted
    assert len(result.history.epochs) == 20
    whole = kind.fit(LinearSpec(8), problem, Pace())
    assert result.machine.fingerprint() == whole.machine.fingerprint()


def test_a_class_in_one_group_alone_makes_a_finite_blend() -> None:
    """Folds without the class give neither NaN, whose loss would be 0, nor an error of NumPy."""
    rows, codes = clouds(4, 240, 10, 3)
    groups = np.arange(240) % 11
    for alone in (1, 3):
        parted = np.where(codes == alone, 11, groups)
        learner = learned(rows, codes, 4)
        assert np.isfinite(blend(learner)[2]).all()
        inside = learned(rows[codes != alone], codes[codes != alone], 4)
        assert np.array_equal(blend(inside)[0], inside.stored()[0])
        options = {"model": "linear", "linear": 8, "epochs": 5}
        model = Classifier(**options, random_state=0).fit(rows, codes, groups=parted)
        assert np.isfinite(model.decision_function(rows)).all()


def test_one_group_left_beside_validation_rows_is_trained() -> None:
    """Two groups of which one is held out leave one, which counts as none."""
    rows, codes = clouds(2, 120, 6, 0)
    options = {"model": "linear", "linear": 8, "epochs": 5, "validation_fraction": 0.2}
    Classifier(**options, random_state=0).fit(rows, codes, groups=np.arange(120) // 60)
