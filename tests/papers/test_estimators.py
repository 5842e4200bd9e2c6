"""Every estimator of the papers keeps the conventions of scikit-learn."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from tinykernel import papers


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
