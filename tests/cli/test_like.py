"""train --like: a model that takes the place of another one."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_wine

from tests.cli.tools import blobs, failed, run
from tinykernel.budget import train
from tinykernel.budget.successor import parameters_like, recipe_of
from tinykernel.codegen.blobs.layout import difference
from tinykernel.model.stages.components import Components
from tinykernel.model.stages.kernels import Kernels
from tinykernel.modelfile import load


def test_a_model_of_the_same_shape(work, tmp_path):
    """Trained again with other rows and another seed, a model opens where the first one did."""
    new = tmp_path / "new.tkm"
    X, y = blobs(90, 5)
    np.savez(tmp_path / "more.npz", X=X, y=y)
    result = run(
        "train",
        tmp_path / "more.npz",
        "-o",
        new,
        "--set",
        f"like={work / 'gesture.tkm'}",
        "--seed",
        3,
        "--set",
        "epochs=20",
        "--json",
        "-q",
    )
    assert result.exit_code == 0, result.output
    old, found = (load(path) for path in (work / "gesture.tkm", new))
    assert old.fingerprint() != found.fingerprint()
    assert difference(old, found) == ""
    assert json.loads(result.stdout)["test_accuracy"] > 0.5


@pytest.mark.parametrize("layout", ["compact", "windows"])
def test_shifts_are_held(layout):
    """Where the proof would choose other shifts, those of the other model are kept and proved."""
    X, y = load_wine(return_X_y=True)
    X = X.astype(np.float32)
    old = train(X, y, n_components=64, random_state=0, layout=layout, effort="quick", epochs=3)
    given = parameters_like(old.model, recipe_of(old.classifier))
    held = train(X[::2], y[::2], random_state=1, epochs=3, **given)
    assert difference(old.model, held.model) == ""
    # Later than this model would halve: it overflows unless the levels of G are smaller.
    later = list(old.model.find(Components).halve_second)
    first = later.index(True)
    later[first : first + 2] = later[first + 1], later[first]
    given["held_second"] = tuple(later)
    if layout == "windows":
        given["held_shift"] += 1
    held = train(X[::2], y[::2], random_state=0, epochs=3, **given)
    assert (
        held.model.find(Components).halve_second
        == tuple(later)
        != old.model.find(Components).halve_second
    )
    assert (
        np.abs(held.model.find(Components).diagonal).max()
        < np.abs(old.model.find(Components).diagonal).max()
    )
    assert held.model.find(Components).phase_shift == given.get(
        "held_shift", held.model.find(Components).phase_shift
    )
    # The float machine and the integers still agree.
    assert (held.model.predict(X) == held.classifier.predict(X)).mean() > 0.9


def test_kernels_of_signals_are_kept():
    """Kernels are drawn by chance: another training keeps them and places its own thresholds."""
    rng, phase = np.random.default_rng(0), np.arange(32)[:, np.newaxis]
    y = np.arange(80) % 2
    noise = rng.normal(size=(80, 32, 3))
    X = (np.sin(phase * (0.3 + 0.4 * y[:, None, None])) + 0.3 * noise).astype(np.float32)
    settings = {"n_kernels": 6, "effort": "quick", "epochs": 2}
    old = train(X[:40], y[:40], random_state=0, **settings).model
    held = train(X[40:], y[40:], random_state=1, epochs=2, **parameters_like(old)).model
    assert difference(old, train(X[40:], y[40:], random_state=1, **settings).model) != ""
    assert difference(old, held) == ""
    assert np.any(old.find(Kernels).threshold != held.find(Kernels).threshold)


def test_the_spectrum_of_sounds_is_kept():
    """Another training on sounds has the same frames and bands, so that its blob can be opened."""
    rng, n, y = np.random.default_rng(0), np.arange(2000), np.arange(40) % 2
    tones = 3000 * np.sin(n * (0.3 + 0.4 * y[:, None] + 0.1 * rng.random((40, 1))))
    X = (tones + rng.normal(0, 300, tones.shape)).astype(np.int16)[:, :, None]
    settings = {"rate": 8000.0, "epochs": 1, "effort": "quick", "n_kernels": 5}
    old = train(X[:20], y[:20], spectrum="128/100/6", hop=400, random_state=0, **settings).model
    given = parameters_like(old) | {"rate": 8000.0, "epochs": 1, "random_state": 1}
    held = train(X[20:], y[20:], **given).model
    assert difference(old, held) == ""
    np.testing.assert_array_equal(held.stages[0].edges, old.stages[0].edges)


def test_what_is_refused(work, tmp_path):
    """Options that the other model says, other inputs and other classes end before a training."""
    new, like = tmp_path / "new.tkm", ("--set", f"like={work / 'gesture.tkm'}")
    # convolutions=on was found out after the training only.
    for given in ("layout=compact", "convolutions=on", "model=trees"):
        message = failed("train", work / "data.npz", "-o", new, *like, "--set", given, status=2)
        assert "leave it out" in message
    X, y = blobs(40, 5)
    np.savez(tmp_path / "narrow.npz", X=X[:, 1:], y=y)
    np.savez(tmp_path / "other.npz", X=X, y=np.where(y == y[0], "else", y))
    assert "inputs, those of the other model" in failed(
        "train", tmp_path / "narrow.npz", "-o", new, *like
    )
    assert "the classes are not those" in failed("train", tmp_path / "other.npz", "-o", new, *like)
    assert not new.exists()
