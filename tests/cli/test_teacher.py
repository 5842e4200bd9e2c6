"""train --set teacher=FILE: an own model, or probabilities, beside the labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cli.tools import blobs, failed, run
from tinykernel.budget.teacher import probabilities_of
from tinykernel.modelfile import load

_QUICK = ("--effort", "quick", "--quiet", "--test", 0)
_FORMS = {
    "table": ((), ("n_components=64", "epochs=5")),
    "linear": ((), ("n_components=0", "linear=8", "epochs=5")),
    "trees": ((), ("model=trees",)),
    "signal": (("--window-shape", "16x1"), ("n_kernels=16",)),
    "image": (("--image-shape", "4x4"), ("n_kernels=4", "epochs=3", "convolutions=off")),
    "convolutions": (("--image-shape", "16x16"), ("n_kernels=4", "epochs=3", "convolutions=on")),
}


def _rows(form: str) -> tuple[np.ndarray, np.ndarray]:
    if form in ("table", "linear", "trees"):
        return blobs(90, 0)
    rng, y = np.random.default_rng(0), np.arange(90) % 3
    X = rng.normal(size=(90, 256 if form == "convolutions" else 16)).cumsum(axis=1)
    X[np.arange(90), 4 * y] += 9
    return np.asarray(X, dtype=np.float32), y


@pytest.mark.parametrize("form", list(_FORMS))
def test_a_teacher_is_never_ignored(tmp_path: Path, form: str) -> None:
    """What a teacher file says reaches every learner, and a model says what its array says."""
    X, y = _rows(form)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    shape, settings = _FORMS[form]
    made: dict[str, bytes] = {}

    def train(name: str, *more: str) -> None:
        told = [part for each in (*settings, *more) for part in ("--set", each)]
        file = tmp_path / f"{name}.tkm"
        done = run("train", tmp_path / "data.npz", "-o", file, *_QUICK, *shape, *told)
        assert done.exit_code == 0, done.output
        made[name] = load(file).scores(X).tobytes()

    train("alone")
    np.save(tmp_path / "soft.npy", probabilities_of(tmp_path / "alone.tkm", X, y))
    np.savetxt(tmp_path / "soft.csv", np.load(tmp_path / "soft.npy"), delimiter=",")
    train("by_model", f"teacher={tmp_path / 'alone.tkm'}")
    for kind in ("npy", "csv"):
        train(kind, f"teacher={tmp_path / 'soft'}.{kind}")
        assert made[kind] == made["by_model"]
    np.save(tmp_path / "soft.npy", np.full((90, 3), 1 / 3) + 0.5 * np.eye(3)[(y + 1) % 3])
    train("wrong", f"teacher={tmp_path / 'soft.npy'}")
    assert made["wrong"] != made["alone"]


def test_a_teacher_that_does_not_fit(tmp_path: Path) -> None:
    """Rows, classes, tasks and files that do not fit are refused in one line."""
    X, y = blobs(60, 0)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    command = ("train", tmp_path / "data.npz", "-o", tmp_path / "m.tkm", *_QUICK)

    def words(name: str, *more: object, status: int = 1) -> str:
        return failed(*command, *more, "--set", f"teacher={tmp_path / name}", status=status)

    np.save(tmp_path / "few.npy", np.ones((59, 3)))
    assert "needed are 60 training rows and 3 classes" in words("few.npy")
    np.save(tmp_path / "below.npy", -np.ones((60, 3)))
    assert "negative or NaN" in words("below.npy")
    np.save(tmp_path / "objects.npy", np.array([{}, None]), allow_pickle=True)
    assert "no array of numbers" in words("objects.npy")
    (tmp_path / "words.csv").write_text("a,b\n")
    assert "no array of numbers" in words("words.csv")
    (tmp_path / "model.pkl").write_bytes(b"")
    assert "a teacher is a .tkm" in words("model.pkl")
    assert "no such file" in words("none.npy")
    assert "only for task classes" in words("few.npy", "--task", "numbers", status=2)
    two = tmp_path / "two.npz"
    np.savez(two, X=X[y < 2], y=y[y < 2])
    assert run("train", two, "-o", tmp_path / "two.tkm", *_QUICK).exit_code == 0
    assert "the classes are not those of the other model" in words("two.tkm")
