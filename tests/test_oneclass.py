"""Models of one class: learned from normal rows alone, and the same in C."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tests.firmware.test_host import SANITISERS
from tests.random_models import changed
from tests.refusals import refused
from tinykernel import NoveltyDetector, calibrate, verify
from tinykernel.base.errors import ModelError, RowsError, TinykernelError
from tinykernel.kinds.estimators.oneclass import calibrate_one_class
from tinykernel.model.answers import Labels
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.linear.spec import Linear
from tinykernel.pieces.piece import Readout
from tinykernel.pieces.prototypes.spec import Prototypes, centres, coarse

pytestmark = pytest.mark.usefixtures("page")


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return digits below 5, which are normal, and the others."""
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.uint8)
    return X[y < 5], X[y >= 5]


@pytest.fixture(scope="module")
def watch(digits) -> NoveltyDetector:
    """Return what has learned the normal ones."""
    return NoveltyDetector(false_alarms=0.05, random_state=0).fit(digits[0])


def windows(n: int, scale: float) -> np.ndarray:
    """Return windows of two channels that swing together, as loud as the scale."""
    rng = np.random.default_rng(int(100 * scale))
    t, phase = np.arange(64) / 10, rng.uniform(0, 6, (n, 1))
    swing = np.sin(t * rng.uniform(0.9, 1.1, (n, 1)) + phase)
    both = swing[:, :, np.newaxis] * [1, 2] + 0.1 * rng.normal(size=(n, 64, 2))
    return (1000 * scale * both).astype(np.int16)


def test_what_was_never_shown_is_found(digits, watch) -> None:
    """False alarms are rare, other digits are found, and signs and threshold fit together."""
    known, others = digits
    assert watch.alarms_ is not None
    assert np.mean(watch.predict(known) < 0) < 0.05
    assert np.mean(watch.predict(others) < 0) > 0.7
    model = watch.quantize()
    assert np.array_equal(model.predict(others) == "novel", watch.predict(others) < 0)
    assert np.array_equal(model.scores(others)[:, 1], -watch.decision_function(others))


def test_the_score_is_the_distance(watch) -> None:
    """The score is that of the formula."""
    model = watch.quantize()
    X = np.random.default_rng(0).integers(0, 256, (50, 64)).astype(np.uint8)
    rows = coarse(model.quantize_inputs(X))
    known = model.find(Prototypes).levels
    wanted = [min(int(((row - mean) ** 2).sum()) for mean in centres(known)) for row in rows]
    assert model.scores(X)[:, 1].tolist() == [d + int(model.readout.offset[0]) for d in wanted]


def test_windows_and_streams(require_tool) -> None:
    """Kernels need no labels; a stream decides as the windows do; groups stay together."""
    require_tool("gcc")
    rows, groups = windows(300, 1.0), np.arange(300) // 10
    watch = NoveltyDetector(
        false_alarms=0.2, hop=32, n_kernels=40, random_state=0, window_shape=(64, 2)
    ).fit(rows, groups=groups)
    assert np.mean(watch.predict(rows) < 0) < 0.2
    assert np.mean(watch.predict(windows(100, 0.2)) < 0) > 0.9
    result = verify(watch, rows[:30], flags=SANITISERS)
    assert (result.first_difference, result.hops > 30) == (None, True)


def test_bad_input(digits, watch) -> None:
    """One line says what is wrong; rows that promise nothing are told."""
    known, model = digits[0], watch.quantize()
    few = NoveltyDetector(false_alarms=0.01, random_state=0).fit(known)
    assert few.alarms_ is None
    assert "180" in few.refusal_
    assert few.predict(known[:5]).tolist() == [1] * 5
    for options in ({"false_alarms": 0}, {"hop": 3}, {"window_shape": (9, 9)}, {"n_prototypes": 0}):
        refused(TinykernelError, NoveltyDetector(**options).fit, known)
    refused(RowsError, NoveltyDetector().fit, known, groups=np.zeros(len(known)))
    refused(ModelError, calibrate_one_class, _two_classes(model), known, 0.05)
    refused(ModelError, calibrate, model, known, np.full(len(known), "normal"))
    for wrong in (
        lambda: changed(model, answers=Labels(("a", "b", "c"))),
        lambda: changed(model, offset=[-(2**31)]),
        lambda: changed(model, Prototypes(np.full((1, 64), 8))),
        lambda: replace(model, readout=Readout((), model.readout.offset)),
    ):
        refused(TinykernelError, wrong)


def _two_classes(model: IntegerModel) -> IntegerModel:
    linear = Linear(1 - model.scaler.constant(model.n_features)[np.newaxis], [1])
    return replace(model, readout=Readout((linear,), model.readout.offset))
