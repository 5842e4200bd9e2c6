"""Novelty by prototypes and margin: what it computes, and what it is fitted to."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tests.random_models import random_model, random_raw
from tests.refusals import refused
from tinykernel import Classifier, calibrate, load
from tinykernel.base.errors import ModelError, OptionError, RowsError
from tinykernel.learn.novelty import MOST_BYTES, fit_margin_line, fit_prototypes
from tinykernel.model.answers import margins
from tinykernel.model.file import save
from tinykernel.pieces.components.spec import Components


@pytest.mark.parametrize("bits", [8, 16])
def test_novelty_is_the_specification(bits) -> None:
    """Python's numbers are those of the formula, one row and prototype after the other."""
    model = random_model(3, n_classes=4, bits=bits, n_features=11)
    X = random_raw(model, 1, 300)
    y = np.array(model.classes)[np.arange(300) % 4]
    found = calibrate(model, X, y, false_alarms=0.1, known=(X[:100], y[:100])).model
    decision = found.decision
    assert decision is not None
    assert decision.prototypes is not None
    assert decision.prototypes.size <= 2 * MOST_BYTES
    assert decision.margin_line is not None
    bias, gain, steps = decision.margin_line
    Q, margin = found.quantize_inputs(X), margins(found.scores(X))[1]
    for row, (inputs, own) in enumerate(zip(Q.tolist(), margin.tolist(), strict=True)):
        b = [
            0 if sign == 0 else q >> (bits - 8)
            for q, sign in zip(inputs, model.find(Components).sign.tolist(), strict=True)
        ]
        distance = min(
            sum((x - (16 * level + 8)) ** 2 for x, level in zip(b, levels, strict=True))
            for levels in decision.prototypes.tolist()
        )
        counted = min(own >> steps, (2**31 - 1) // gain)
        assert found.novelty(X[row : row + 1])[0] == max(distance, bias - counted * gain)


def test_a_margin_is_worth_the_distance_of_its_quantile() -> None:
    """The margin that 5 % fall short of counts as the distance that 5 % exceed."""
    rng = np.random.default_rng(1)
    distance = rng.integers(1000, 9000, 5000).astype(np.int32)
    margin = rng.integers(10**6, 10**8, 5000)
    scores = np.stack([margin, np.zeros_like(margin)], axis=1).astype(np.int32)
    (bias, gain, steps), used = fit_margin_line(scores, distance)
    assert used.sum() == 1000
    low = int(np.quantile(margin[used], 0.05))
    far = np.quantile(distance[used], 0.95)
    assert bias - (low >> steps) * gain == pytest.approx(far, rel=0.02)


@pytest.mark.slow
def test_novelty_goes_by_the_scores_where_inputs_are_too_alike_for_prototypes() -> None:
    """Small counts are all in one level of 4 bits: their distances hid every novel row."""
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.uint8)
    classifier = Classifier(window_shape=(64, 1), n_kernels=84, cells=16, random_state=0)
    model = classifier.fit(X[:400], y[:400]).quantize()
    assert not np.any(np.diff(fit_prototypes(model, X[:400], y[:400]), axis=0))
    found = calibrate(model, X[800:1400], y[800:1400], false_alarms=0.02, known=(X[:400], y[:400]))
    assert found.model.decision is not None
    assert found.model.decision.prototypes is None
    assert found.remarks
    noise = np.random.default_rng(0).integers(0, 17, (300, 64), dtype=np.uint8)
    assert found.model.is_novel(noise).mean() > 0.25
    assert found.model.is_novel(X[1400:]).mean() < 0.05


def test_bad_decisions_are_refused(tmp_path) -> None:
    """Prototypes, line and threshold go together, in their ranges; a model keeps them."""
    model = random_model(3, n_classes=4)
    X = random_raw(model, 1, 400)
    y = np.array(model.classes)[np.arange(400) % 4]
    found = calibrate(model, X, y, false_alarms=0.05, known=(X, y)).model
    save(found, tmp_path / "m.tkm")
    assert load(tmp_path / "m.tkm") == found
    decision = found.decision
    assert decision is not None
    for wrong in (
        {"margin_line": None},
        {"novelty_threshold": None},
        {"prototypes": None},
        {"margin_line": (1, 0, 0)},
        {"margin_line": (1, 1, 32)},
    ):
        refused(ModelError, replace, decision, **wrong)
    refused(ModelError, replace, decision, prototypes=np.full_like(decision.prototypes, 8))
    with pytest.raises(ModelError):
        replace(found, decision=replace(decision, prototypes=decision.prototypes[:, :3]))
    refused(RowsError, calibrate, model, X[:40], y[:40], false_alarms=0.05, known=(X, y))
    refused(OptionError, calibrate, model, X, y, known=(X, y))
