"""The contracts of `tests/contracts.py`, of a sample of every piece and kind of model."""

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

from tests.codegen.kinds import EVERY
from tests.codegen.test_certificate import Checker
from tests.contracts import check_kind, check_one_class, check_piece, missing
from tests.fuzz.proofs import load_checker
from tinykernel import Classifier, NoveltyDetector, Regressor
from tinykernel.kinds.selection import KINDS

_N = 60
_RNG = np.random.default_rng(0)
Y = np.arange(_N) % 2
TABLE = (_RNG.normal(size=(_N, 5)) + Y[:, None]).astype(np.float32)
_PHASE = np.arange(32)[:, None] * (0.1 + 0.2 * Y[:, None, None]) + _RNG.uniform(0, 6, (_N, 1, 1))
WINDOWS = np.rint(900 * np.sin(_PHASE) + 99 * _RNG.normal(size=(_N, 32, 2))).astype(np.int16)
IMAGES = (_RNG.integers(0, 60, (_N, 8, 8)) + 90 * Y[:, None, None]).astype(np.uint8)
_LAYERS = {"n_channels": 4, "epochs": 2, "image_shape": (8, 8)}
#: By kind: options of a short training, and rows.
SAMPLES: dict[str, tuple[dict[str, Any], Any]] = {
    "components": ({"n_components": 32, "epochs": 2}, TABLE),
    "linear": ({"epochs": 2}, TABLE),
    "trees": ({}, TABLE),
    "perceptron": ({"n_units": 8, "epochs": 2}, TABLE),
    "kernels": ({"n_kernels": 16}, WINDOWS),
    "chains": (_LAYERS, IMAGES.reshape(_N, -1)),
    "separable": (_LAYERS, IMAGES.reshape(_N, -1)),
}


@pytest.fixture(scope="module")
def checker(tmp_path_factory) -> Checker:
    """Return the independent checker of proofs."""
    return Checker(load_checker(), tmp_path_factory.mktemp("proof"))


@pytest.mark.parametrize("name", EVERY)
def test_pieces_keep_their_contract(name, checker, tmp_path, capsys):
    """Ranges, copies, proof, memory and stream of every sample."""
    check_piece(EVERY[name](), checker, tmp_path)


def test_every_piece_and_kind_has_a_sample():
    """A new stage, part or kind comes with one."""
    assert missing([make() for make in EVERY.values()]) == set()
    assert {kind.name for kind in KINDS} == set(SAMPLES)


@pytest.mark.parametrize("task", [Classifier, Regressor])
@pytest.mark.parametrize("name", SAMPLES)
def test_kinds_keep_their_contract(name, task, tmp_path):
    """Bytes, files, hostile rows, Ctrl-C and budget, of labels and of values."""
    options, X = SAMPLES[name]
    estimator = task(model=name, effort="quick", random_state=0, n_jobs=1, **options)
    y = Y if task is Classifier else Y + 0.25 * np.random.default_rng(1).normal(size=_N)
    check_kind(estimator, X, y, tmp_path)
    assert np.isfinite(cross_val_score(estimator, X, y, cv=2, error_score="raise")).all()


@pytest.mark.parametrize("X", [TABLE, WINDOWS.reshape(_N, -1)], ids=["table", "windows"])
def test_models_of_one_class_keep_their_contract(X, tmp_path):
    """The same of what has no labels."""
    check_one_class(NoveltyDetector(false_alarms=0.2, random_state=0), X, tmp_path)
