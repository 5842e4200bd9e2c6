"""Discriminants: against scikit-learn's, and through the weights that the firmware holds."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from tinykernel.learn.linear.normal_equations import round_to_plane, standard_of
from tinykernel.learn.linear.ridge import discriminants, discriminating, fit_ridge


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n_classes=st.integers(3, 6))
def test_scores_are_those_of_shrunk_discriminant_analysis(seed: int, n_classes: int) -> None:
    """Differences of scores are scikit-learn's with the same shrinkage."""
    rng = np.random.default_rng(seed)
    codes = np.append(np.arange(n_classes), rng.integers(0, n_classes, 40))
    said = rng.normal(size=(n_classes, 4))[codes] + rng.normal(size=(len(codes), 4))
    slope, offset = discriminants(said, codes, np.ones(len(codes)))
    scores = said @ slope + offset
    peer = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.3).fit(said, codes)
    expected = peer.decision_function(said)
    assert np.allclose(scores - scores[:, :1], expected - expected[:, :1], atol=1e-7)


def test_a_fit_holds_its_discriminants_in_weights_of_few_bits() -> None:
    """Weights of inputs give the discriminants of the fit; 4 bits keep the classes."""
    rng = np.random.default_rng(1)
    codes = np.arange(120) % 6
    inputs = rng.integers(0, 90, (6, 30))[codes] + rng.integers(0, 90, (120, 30))
    inputs = inputs.astype(np.int16)
    fit = fit_ridge(inputs * 256, 2.0 * np.eye(6)[codes] - 1, np.ones(120))
    fit = fit._replace(weights=256 * fit.weights)
    better = discriminating(fit, codes, np.ones(120))
    slope, offset = discriminants(fit.left_out, codes, np.ones(120))
    assert np.allclose(better.fitted(inputs), fit.fitted(inputs) @ slope + offset)
    standard = standard_of(inputs, np.ones(120), better.penalty)
    (levels, step, moved), _ = round_to_plane(better, standard, 4)
    assert np.abs(levels).max() <= 7
    labels = (inputs @ (step * levels.T) + moved).argmax(axis=1)
    assert (labels == better.fitted(inputs).argmax(axis=1)).mean() > 0.95
