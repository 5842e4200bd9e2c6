"""The models that docs/convert.md lists, by family: each answers as before, in Python and in C."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn import ensemble, linear_model, svm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.random_projection import GaussianRandomProjection
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

import tinykernel
from tests.optional import import_tool
from tests.refusals import refused
from tinykernel.base.errors import ConvertError
from tinykernel.conversion.models import change_of, convert
from tinykernel.pieces.squares.spec import Squares

WINE, CANCER, VALUES = (
    load(return_X_y=True) for load in (load_wine, load_breast_cancer, load_diabetes)
)
COUNTS = VALUES[0], VALUES[1] // 25
BOTH = VALUES[0], np.column_stack([VALUES[1], VALUES[0][:, 2] * 999])
_RNG = np.random.default_rng(7)  # of 4 % of the rows, two classes have the most pairs
TIES = _RNG.normal(size=(300, 2)), _RNG.integers(0, 5, 300)
TREE = DecisionTreeClassifier(max_depth=4, random_state=0)
FEW: dict[str, Any] = {"n_estimators": 6, "max_depth": 4, "random_state": 0}
FOREST = ensemble.RandomForestClassifier(**FEW)


def scaled(*steps: Any) -> Any:
    """Return a Pipeline that begins with a scaler."""
    return make_pipeline(StandardScaler(), *steps)


def of(library: str, name: str, **options: Any) -> Callable[[], Any]:
    """Return a function that makes a small booster; the test is skipped without its library."""

    def make() -> Any:
        quiet: dict[str, Any] = {"lightgbm": {"verbose": -1}, "catboost": {"verbose": False}}.get(
            library, {}
        )
        quiet |= {"allow_writing_files": False} if library == "catboost" else {"n_jobs": 1}
        return getattr(import_tool(library), name)(**{"n_estimators": 6} | quiet | options)

    return make


light, extreme = partial(of, "lightgbm", "LGBMClassifier"), partial(of, "xgboost", "XGBClassifier")


def limited(make: Any) -> Callable[[], Any]:
    """Return a function that makes a threshold around what another one makes."""
    return lambda: FixedThresholdClassifier(make(), threshold=0.3)


#: By name: a model that is not fitted, or makes one, and its data.
EXACT: dict[str, tuple[Any, Any]] = {
    "DecisionTreeClassifier": (TREE, WINE),
    "RandomForestClassifier": (FOREST, WINE),
    "ExtraTreesRegressor": (ensemble.ExtraTreesRegressor(**FEW), VALUES),
    "GradientBoostingClassifier": (ensemble.GradientBoostingClassifier(**FEW), WINE),
    "HistGradientBoostingClassifier": (ensemble.HistGradientBoostingClassifier(max_iter=5), CANCER),
    'HistGradientBoostingRegressor(loss="poisson")': (
        ensemble.HistGradientBoostingRegressor(loss="poisson", max_iter=5),
        COUNTS,
    ),
    "IsolationForest": (ensemble.IsolationForest(n_estimators=6, random_state=0), WINE),
    "AdaBoostClassifier": (ensemble.AdaBoostClassifier(TREE, n_estimators=6, random_state=0), WINE),
    "BaggingClassifier": (
        ensemble.BaggingClassifier(TREE, 6, max_features=0.5, max_samples=9, random_state=0),
        WINE,
    ),
    'VotingClassifier(voting="soft")': (
        ensemble.VotingClassifier([("a", FOREST), ("b", TREE)], voting="soft", weights=[1, 2]),
        WINE,
    ),
    'VotingClassifier(voting="hard")': (
        ensemble.VotingClassifier(
            [("a", TREE), ("b", ExtraTreeClassifier(random_state=0)), ("c", TREE)]
        ),
        WINE,
    ),
    "VotingRegressor": (
        ensemble.VotingRegressor(
            [
                ("a", ensemble.RandomForestRegressor(**FEW)),
                ("b", ensemble.GradientBoostingRegressor(**FEW)),
            ]
        ),
        VALUES,
    ),
    "OneVsRestClassifier(RandomForestClassifier())": (OneVsRestClassifier(FOREST), WINE),
    "MultiOutputRegressor": (MultiOutputRegressor(ensemble.GradientBoostingRegressor(**FEW)), BOTH),
    "LGBMClassifier": (of("lightgbm", "LGBMClassifier"), WINE),
    'LGBMRegressor(objective="poisson")': (
        of("lightgbm", "LGBMRegressor", objective="poisson"),
        COUNTS,
    ),
    "LGBMRegressor(reg_sqrt=True)": (of("lightgbm", "LGBMRegressor", reg_sqrt=True), VALUES),
    "XGBClassifier": (of("xgboost", "XGBClassifier"), WINE),
    'XGBRegressor(objective="reg:tweedie")': (
        of("xgboost", "XGBRegressor", objective="reg:tweedie"),
        COUNTS,
    ),
    "CatBoostClassifier": (of("catboost", "CatBoostClassifier"), WINE),
    'CatBoostRegressor(loss_function="Poisson")': (
        of("catboost", "CatBoostRegressor", loss_function="Poisson"),
        COUNTS,
    ),
    "FixedThresholdClassifier": (FixedThresholdClassifier(FOREST, threshold=1 / 3), CANCER),
    "FrozenEstimator": (FrozenEstimator(FOREST.fit(*WINE)), WINE),
    "GridSearchCV": (GridSearchCV(TREE, {"max_depth": [2, 3]}, cv=2), WINE),
}
ROUNDED: dict[str, tuple[Any, Any]] = {
    "LogisticRegression": (scaled(linear_model.LogisticRegression()), WINE),
    "LinearSVC": (make_pipeline(MinMaxScaler(), svm.LinearSVC()), WINE),
    "SGDClassifier": (scaled(linear_model.SGDClassifier(random_state=0)), WINE),
    "RidgeClassifier": (linear_model.RidgeClassifier(), CANCER),
    'SVC(kernel="linear")': (svm.SVC(kernel="linear"), TIES),
    'NuSVC(kernel="linear")': (scaled(svm.NuSVC(kernel="linear", nu=0.1)), CANCER),
    'SVR(kernel="linear")': (scaled(svm.SVR(kernel="linear")), VALUES),
    "Ridge": (linear_model.Ridge(), VALUES),
    "PoissonRegressor": (scaled(linear_model.PoissonRegressor()), COUNTS),
    "LinearDiscriminantAnalysis": (LinearDiscriminantAnalysis(), WINE),
    "OneVsRestClassifier(SVC())": (scaled(OneVsRestClassifier(svm.SVC(kernel="linear"))), WINE),
    "BaggingRegressor(Ridge())": (
        ensemble.BaggingRegressor(linear_model.Ridge(), 4, max_features=0.5, random_state=0),
        VALUES,
    ),
    'XGBClassifier(booster="gblinear")': (
        of("xgboost", "XGBClassifier", booster="gblinear"),
        CANCER,
    ),
    "GaussianNB": (GaussianNB(), load_iris(return_X_y=True)),
    "QuadraticDiscriminantAnalysis": (
        scaled(QuadraticDiscriminantAnalysis(reg_param=1e-3)),
        CANCER,
    ),
    "PCA": (scaled(PCA(5, whiten=True), linear_model.LogisticRegression()), WINE),
    "TruncatedSVD": (
        scaled(TruncatedSVD(5, random_state=0), MLPClassifier(8, max_iter=90, random_state=0)),
        CANCER,
    ),
    "GaussianRandomProjection": (
        scaled(GaussianRandomProjection(5, random_state=0), linear_model.LogisticRegression()),
        CANCER,
    ),
    "TunedThresholdClassifierCV": (
        TunedThresholdClassifierCV(scaled(linear_model.LogisticRegression())),
        CANCER,
    ),
    "CalibratedClassifierCV": (
        CalibratedClassifierCV(scaled(svm.LinearSVC()), ensemble=False),
        CANCER,
    ),
    "MLPClassifier": (scaled(MLPClassifier(8, max_iter=90, random_state=0)), CANCER),
}
REFUSED: dict[str, tuple[Any, Any, str]] = {
    "KNeighborsClassifier": (KNeighborsClassifier(), WINE, "teacher="),
    "SVC": (svm.SVC(), WINE, "teacher="),
    "AdaBoostRegressor": (ensemble.AdaBoostRegressor(n_estimators=2), VALUES, "task=.numbers"),
    "LGBMRegressor(linear_tree=True)": (
        of("lightgbm", "LGBMRegressor", linear_tree=True),
        VALUES,
        "without linear_tree.*numbers",
    ),
}
ALL = EXACT | ROUNDED


def fitted(model: Any, data: Any) -> tuple[Any, Any]:
    """Return a fitted model, and float32 rows."""
    X, y = data[0].astype(np.float32), data[1]
    model = model() if callable(model) and not hasattr(model, "fit") else model
    return model.fit(X, y), X


def rows_near(X: Any) -> Any:
    """Return rows between and beside those of X."""
    rng = np.random.default_rng(0)
    rows = np.repeat(X, 3, axis=0)
    return (rows + 0.2 * X.std(axis=0) * rng.normal(size=rows.shape)).astype(np.float32)


@pytest.mark.parametrize("name", EXACT)
def test_trees_answer_as_before(name: str) -> None:
    """Every label is that of the library; values differ by the rounding of their sums."""
    model, X = fitted(*EXACT[name])
    converted, rows = convert(model, X), rows_near(X)
    expected, answers = model.predict(rows), converted.predict(rows)
    if converted.is_regressor:
        bound = 2.0**-14 if converted.answers.curve else 1e-6
        assert np.abs(answers - expected).max() < bound * np.abs(expected).max()
    else:
        other = answers != np.ravel(expected)  # of CatBoost they are a column
        if name.startswith("OneVsRest") and other.any():
            # scikit-learn 1.6 takes the last class of a tie, 1.9 the first, as the firmware does.
            best = np.sort(model.predict_proba(rows[other]), axis=1)
            assert np.array_equal(best[:, -1], best[:, -2])
        else:
            assert not other.any()


@pytest.mark.parametrize("name", ROUNDED)
def test_weights_change_little(name: str) -> None:
    """At most 0.5 % of the labels change on rows that the conversion has not seen."""
    model, X = fitted(*ROUNDED[name])
    assert change_of(model, convert(model, X), rows_near(X)).share <= 0.005


@pytest.mark.parametrize("name", REFUSED)
def test_others_are_refused_with_what_to_do(name: str) -> None:
    """One line says what stands in the way, and what to do."""
    model, data, message = REFUSED[name]
    refused(ConvertError, convert, *fitted(model, data), match=message)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_c_computes_what_python_does(name: str) -> None:
    """The same scores on the host."""
    model, X = fitted(*ALL[name])
    assert tinykernel.verify(convert(model, X), X[:100]).differences == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["AdaBoostClassifier", 'LGBMRegressor(objective="poisson")', "PCA"]
)
def test_a_core_computes_what_python_does(name: str, require_platforms: Any) -> None:
    """The same scores on a Cortex-M4."""
    require_platforms("cortex-m4")
    model, X = fitted(*ALL[name])
    assert tinykernel.verify(convert(model, X), X[:50], target="cortex-m4").differences == 0


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        (svm.SVC(kernel="linear", break_ties=True), WINE, "without break_ties.*LinearSVC"),
        (scaled(PCA(3), TREE), WINE, "compare sums of inputs"),
        (make_pipeline(PCA(3), MinMaxScaler(clip=True), svm.LinearSVC()), WINE, "no sums of"),
        (CalibratedClassifierCV(FOREST, cv=2), CANCER, "ensemble=False"),
        (CalibratedClassifierCV(FOREST, cv=2), WINE, "3 classes"),
        (limited(lambda: svm.SVC(kernel="linear", tol=9, probability=True)), CANCER, "no logistic"),
        (
            limited(lambda: ensemble.GradientBoostingClassifier(loss="exponential", **FEW)),
            CANCER,
            "response_method='decision_function'",
        ),
        (limited(light(sigmoid=2.0)), CANCER, "no logistic"),
        (limited(extreme(objective="binary:logitraw")), CANCER, "no logistic"),
        (light(objective="regression", reg_sqrt=True), CANCER, "reg_sqrt"),
        (extreme(objective="multi:softprob", num_class=2), CANCER, "columns in place of a label"),
        (ensemble.VotingClassifier([("a", FOREST)]), WINE, "voting='soft'"),
        (
            ensemble.BaggingClassifier(ensemble.VotingClassifier([("a", TREE), ("b", TREE)]), 2),
            WINE,
            "only labels",
        ),
        (lambda: OneVsRestClassifier(extreme(objective="binary:hinge")()), WINE, "only labels"),
        (
            ensemble.VotingClassifier(
                [("a", TREE), ("b", TREE), ("c", TREE)], weights=[0.3, 0.1, 0.2]
            ),
            WINE,
            "whole numbers",
        ),
        (
            OneVsRestClassifier(TREE),
            (CANCER[0], np.column_stack([CANCER[1], CANCER[0][:, 0] > 14])),
            "several labels",
        ),
        (ensemble.BaggingRegressor(linear_model.PoissonRegressor(), 2), COUNTS, "with a link"),
        (
            of("xgboost", "XGBRegressor", booster="gblinear", objective="count:poisson"),
            COUNTS,
            "no sums of inputs",
        ),
        (ensemble.VotingClassifier([("a", scaled(TREE))]), WINE, "before the Voting"),
        (ensemble.BaggingClassifier(linear_model.LogisticRegression(), 2), WINE, "are trees"),
        (ensemble.BaggingClassifier(KNeighborsClassifier(), 2), WINE, "teacher="),
        (
            ensemble.BaggingClassifier(ensemble.GradientBoostingClassifier(n_estimators=2), 2),
            WINE,
            "no shares of leaves",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_adds_up_to_no_sum_is_refused(model: Any, data: Any, message: str) -> None:
    """One line says which sum there is none of."""
    refused(ConvertError, convert, *fitted(model, data), match=message)


@pytest.mark.parametrize("positive", [None, 0])
@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_a_threshold_is_of_either_class_and_answer(method: str, positive: Any) -> None:
    """Probabilities and decisions, also of the first class, move the same sum."""
    boosted = ensemble.GradientBoostingClassifier(**FEW)
    model = FixedThresholdClassifier(
        boosted, threshold=0.3, response_method=method, pos_label=positive
    )
    fit, X = fitted(model, CANCER)
    rows = rows_near(X)
    assert np.array_equal(convert(fit, X).predict(rows), fit.predict(rows))
    assert np.any(fit.predict(rows) != fit.estimator_.predict(rows))


@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_a_threshold_of_votes_is_one_of_their_decisions(method: str) -> None:
    """Decisions of AdaBoost between two classes go from -1 to 1 twice, also where it calibrates."""
    boosted = ensemble.AdaBoostClassifier(n_estimators=9, random_state=0)
    model = FixedThresholdClassifier(boosted, threshold=0.55, response_method=method)
    for each in (model, CalibratedClassifierCV(boosted, method="isotonic", ensemble=False)):
        fit, X = fitted(each, CANCER)
        rows = rows_near(X)
        assert np.array_equal(convert(fit).predict(rows), fit.predict(rows))


def test_a_threshold_of_hard_votes_is_a_share_of_trees() -> None:
    """A tree counts once, whatever the weight of its member was."""
    members = ensemble.VotingClassifier([("a", FOREST), ("b", TREE)], voting="soft", weights=[2, 1])
    fit, X = fitted(FixedThresholdClassifier(members, threshold=0.35), CANCER)
    converted = convert(fit, X, votes="hard", max_change=1.0)
    forest, tree = fit.estimator_.estimators_
    votes = sum(each.predict(X) for each in (*forest.estimators_, tree))
    assert np.array_equal(converted.predict(X), votes >= 0.35 * 7)


@pytest.mark.parametrize("booster", [light(), extreme()], ids=["lightgbm", "xgboost"])
def test_a_threshold_around_a_booster_takes_rows(booster: Any) -> None:
    """Rows that are compared go to the threshold, not to the reader of boosters."""
    fit, X = fitted(limited(booster), CANCER)
    assert np.array_equal(convert(fit, X).predict(X), fit.predict(X))


def test_decisions_of_averaged_trees_are_their_sums() -> None:
    """LightGBM's random forests average leaves, but for the decisions that are calibrated."""
    averaged = light(boosting_type="rf", bagging_freq=1, bagging_fraction=0.6)()
    fit, X = fitted(CalibratedClassifierCV(averaged, ensemble=False), CANCER)
    assert np.array_equal(convert(fit).predict(X), fit.predict(X))


def test_small_variances_are_compared_in_their_own_size() -> None:
    """Inputs of small numbers have variances that differ, too."""
    fit, X = fitted(GaussianNB(), (WINE[0] * 1e-6, WINE[1]))
    assert convert(fit, X).find(Squares) is not None


def test_votes_tie_as_before() -> None:
    """Three votes are as many as one and two; the first class is that of the library."""
    labels = np.random.default_rng(0).integers(0, 2, len(CANCER[0]))
    members = [(str(i), ExtraTreeClassifier(max_depth=7, random_state=i)) for i in range(3)]
    vote = ensemble.VotingClassifier(members, weights=[3, 1, 2])
    fit, X = fitted(vote, (CANCER[0], labels))
    converted = convert(fit)
    assert np.array_equal(converted.predict(X), fit.predict(X))
    assert np.any(converted.scores(X) == 0)
    assert converted.decision_scale == 1


@pytest.mark.parametrize(
    "member", [DecisionTreeRegressor(max_depth=3, random_state=0), linear_model.LinearRegression()]
)
def test_one_versus_rest_compares_values_with_one_half(member: Any) -> None:
    """Of two classes, the value of a regressor is that of the second one if it is above 0.5."""
    fit, X = fitted(OneVsRestClassifier(member), CANCER)
    assert change_of(fit, convert(fit, X), X).share <= 0.005


def test_columns_that_a_member_has_twice_add_up() -> None:
    """Bagging may draw a column several times."""
    bag = ensemble.BaggingRegressor(linear_model.Ridge(), 3, bootstrap_features=True)
    fit, X = fitted(bag.set_params(random_state=0), VALUES)
    assert max(np.bincount(fit.estimators_features_[0])) > 1
    assert change_of(fit, convert(fit, X), X).share <= 0.005


def test_raw_sums_of_gblinear_are_compared_with_one_half() -> None:
    """The objective logitraw has no link; XGBoost compares its sums with 0.5 even so."""
    fit, X = fitted(
        of("xgboost", "XGBClassifier", booster="gblinear", objective="binary:logitraw"), CANCER
    )
    assert change_of(fit, convert(fit, X), X).share <= 0.005


def test_the_page_lists_what_is_tested(checkout: Any) -> None:
    """Names of docs/convert.md are those above."""
    page = (checkout / "docs/convert.md").read_text(encoding="utf-8")
    section = page.partition("## Models by family\n")[2].partition("\n## ")[0]
    converts, _, refuses = section.partition("| refused |")
    assert set(re.findall(r"`([^`]+)`", converts)) == set(ALL)
    assert set(re.findall(r"`([^`]+)`", refuses)) == set(REFUSED)
