"""The estimators of the papers: conventions, edge cases, and what that of a paper promises."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import train_test_split
from sklearn.utils.estimator_checks import check_estimator

from tinykernel import papers
from tinykernel.base import progress
from tinykernel.learn.trainset import prepare
from tinykernel.papers.classifier import PaperClassifier, _Drawn
from tinykernel.pieces.components.spec import Components


def small(**parameters):
    """Make a classifier that trains in milliseconds."""
    quick = {"n_components": 64, "sigma": 2.0, "regularization": 0.1, "random_state": 0}
    return PaperClassifier(**quick | parameters)


def interrupt(message):
    raise KeyboardInterrupt


def test_learns_digits():
    """Protects the whole path: the rule for sigma, then training."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    model = small(n_components=128, sigma=None).fit(X_train, y_train)
    assert model.score(X_test, y_test) > 0.9
    assert (model.machine_.raw_dtype, model.n_components_) == ("float32", 128)
    assert 1 <= model.n_iter_ <= 20


@pytest.mark.parametrize("sigma", [2.0, 6.0])
def test_bits_tell_the_gaussian_kernel(sigma):
    """Components of two rows differ in a share of (2/pi) E|sin(w/2)|, w normal of |x-y|/sigma."""
    X, y = np.random.default_rng(0).normal(size=(200, 32)), np.arange(200) % 2
    data = prepare(X, y)[1]
    drawn = _Drawn(data, 8192, sigma, np.random.default_rng(1))
    z = drawn.features(data.X)
    mixed = drawn.transform.mix(data.X)  # as far from each other as the scaled inputs
    far = np.linalg.norm(mixed[0] - mixed[1:60], axis=1) / sigma
    turns = np.random.default_rng(2).normal(size=20_000)
    expected = [2 / np.pi * np.abs(np.sin(w * turns / 2)).mean() for w in far]
    np.testing.assert_allclose((z[:, :1] != z[:, 1:60]).mean(axis=0), expected, atol=0.04)


def test_constant_inputs():
    """Protects constant columns: some, and all of them."""
    X, y = load_iris(return_X_y=True)
    X *= [1, 10, 100, 0]  # a scaler for each input
    model = small(sigma=None).fit(X, y)
    assert model.score(X, y) > 0.85
    assert model.machine_.find(Components).sign[3] == 0
    assert model.machine_.scaler.bits == 16
    constant = small(sigma=None).fit(np.ones((30, 2)), y[40:70])
    assert set(constant.predict(np.ones((5, 2)))) == {1}


@pytest.mark.parametrize("sigma", [1e-9, 1e9])
def test_extreme_sigma(sigma):
    """Protects the phases: at most half a turn a unit, and never none."""
    X, y = load_iris(return_X_y=True)
    assert small(sigma=sigma).fit(X, y).machine_.find(Components).n_components > 1


def test_interrupted_fit_does_not_mix_two_models():
    """Protects Ctrl-C: it passes, and labels and machine of an earlier fit stay together."""
    X, y = load_iris(return_X_y=True)
    model = small(sigma=None).fit(X, np.array(["a", "b", "c"])[y])
    with progress.observing(interrupt), pytest.raises(KeyboardInterrupt):
        model.fit(X, np.array(["x", "y", "z"])[y])
    assert set(model.predict(X)) == {"a", "b", "c"}


def bell(w):
    """Compute the logarithm of a Gaussian density."""
    return -0.5 * (w**2).sum(axis=1)


FEW = {"n_turns": 1, "n_steps": 5, "random_state": 0}
KINDS = [
    papers.SpectralFeatures(random_state=0),
    papers.SpectralFeatures(log_density=bell, random_state=0),
    papers.Fastfood(random_state=0),
    papers.CirculantFeatures(random_state=0),
    papers.KernelAlignment(random_state=0),
    papers.CompactKernelMap(n_steps=10, random_state=0),
    papers.BinaryCodes(random_state=0),
    papers.BinaryCodes(papers.KernelAlignment(random_state=0), threshold="zero"),
    papers.CompactMapClassifier(**FEW),
    papers.CompactMapClassifier(projection="circulant", penalty="l1", **FEW),
    papers.TernaryLinearClassifier(random_state=0),
    papers.TernaryLinearClassifier(start="random", binary=True, random_state=0),
    papers.PaperClassifier(n_components=32, sigma=1.0, max_iter=3, random_state=0),
]


# Names of its own, as those of functions hold an address, by which workers would tell tests apart.
_LONG = (KINDS[5], *KINDS[8:11])
NAMES = [f"{number} {type(kind).__name__}" for number, kind in enumerate(KINDS)]


# Those of many steps are slow.
@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(kind, id=name, marks=[pytest.mark.slow] * (kind in _LONG))
        for kind, name in zip(KINDS, NAMES, strict=True)
    ],
)
def test_conventions_of_scikit_learn(estimator) -> None:
    """Every check of scikit-learn passes."""
    check_estimator(estimator, on_skip=None)


@pytest.mark.parametrize("estimator", KINDS[:8], ids=NAMES[:8])
def test_float32_and_parts_of_rows_give_the_same(estimator) -> None:
    """Rows are mapped one by one, whatever their number and width."""
    X = np.random.default_rng(0).normal(size=(1500, 5))
    estimator.fit(X, X[:, 0] > 0)
    Z = estimator.transform(X)
    np.testing.assert_allclose(estimator.transform(X[1000:1100]), Z[1000:1100], atol=1e-12)
    single = estimator.transform(X.astype(np.float32))
    assert np.mean(np.abs(single - Z) > 1e-4) < 1e-3
    assert len(estimator.get_feature_names_out()) == Z.shape[1]
