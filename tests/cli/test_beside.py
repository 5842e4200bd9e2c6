"""The command line with numbers beside windows: columns of recordings, and arrays."""

import io
from types import SimpleNamespace

import numpy as np
import pytest

from tests.cli.tools import failed, json_of, run, succeeded
from tests.training.signals.test_numbers import rows_of
from tinykernel import load
from tinykernel.data import streams

QUICK = ("--set", "n_kernels=16", "--quiet")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A folder with recordings of a wave and a temperature, and a model of them."""
    folder = tmp_path_factory.mktemp("sensor")
    (folder / "rec").mkdir()
    rng = np.random.default_rng(0)
    t = np.arange(320)
    for person in range(4):
        for label in ("cold", "hot"):
            wave = np.rint(500 * np.sin(0.4 * t + person) + 100 * rng.standard_normal(t.size))
            warm = np.rint({"cold": 180, "hot": 310}[label] + rng.normal(0, 5, t.size))
            rows = zip(20 * t, warm, wave, strict=True)
            lines = [f"{ms},{b:.0f},{a:.0f},{label}" for ms, b, a in rows]
            text = "\n".join(["time_ms,warm,ax,label", *lines])
            (folder / "rec" / f"{label}{person}.csv").write_text(text)
    cut = ("--window", "64", "--hop", "32", "--set", "beside=warm")
    succeeded("train", folder / "rec", *cut, "-o", folder / "m.tkm", *QUICK)
    return folder


@pytest.mark.slow
def test_a_column_of_recordings_is_a_number_beside(recorded, tmp_path, monkeypatch):
    """Later recordings are read the same way, by every command that reads some."""
    model, data = recorded / "m.tkm", recorded / "rec"
    assert json_of("evaluate", model, data)["accuracy"] == 1
    found = json_of("verify", model, data)
    assert (found["differences"], found["hops"] > 0) == (0, True)
    assert "hot" in run("predict", model, "--stream", data / "hot1.csv").output
    rows = np.loadtxt(data / "hot1.csv", int, delimiter=",", skiprows=1, usecols=(2, 1))
    pipe = SimpleNamespace(buffer=io.BytesIO(rows.astype("<i2").tobytes()))
    monkeypatch.setattr(streams, "sys", SimpleNamespace(stdin=pipe))
    piped = run("predict", model, "--stream", "-").stdout.split()[2:]
    assert piped[:2] == run("predict", model, "--stream", data / "hot1.csv").stdout.split()[3:5]
    assert load(model).n_numbers == 1
    succeeded("report", model, "--html", tmp_path / "page.html", "--data", data)
    assert "warm" in (tmp_path / "page.html").read_text()
    succeeded("export", model, "--format", "library", "-o", tmp_path / "c")
    header = next((tmp_path / "c").rglob("include/*.h"), None) or next(
        (tmp_path / "c").rglob("src/m.h")
    )
    assert "int m_predict(const m_input_t *input, const m_input_t *numbers" in header.read_text()


def test_an_array_beside_windows(tmp_path):
    """In an archive it joins the rows, without being asked for; what does not fit is refused."""
    X, y = rows_of(240)
    windows, numbers = X[:, :-2].reshape(240, 64, 1), X[:, -2:]
    model, file = tmp_path / "m.tkm", tmp_path / "a.npz"
    np.savez(file, X=windows, y=y, beside=numbers)
    given, shape = ("-o", model, *QUICK[:-1]), ("--window-shape", "64x1")
    succeeded("train", file, *shape, *given)
    assert load(model).n_numbers == 2
    assert json_of("verify", model, file)["differences"] == 0
    np.savez(tmp_path / "flat.npz", X=X[:, :-2], y=y, beside=numbers)
    assert json_of("verify", model, tmp_path / "flat.npz")["differences"] == 0
    failed("train", file, *given)
    failed("train", file, *shape, "--set", "beside=1", *given)
    failed("train", file, "--window", "64", *given)
    np.savez(file, X=windows, y=y, beside=numbers + 0.5)
    failed("train", file, *shape, *given)
    np.savez(file, X=windows, y=y, beside=numbers[:9])
    failed("train", file, *shape, *given)
    np.savez(file, X=windows, y=y, beside=numbers.astype(str))
    failed("train", file, *shape, *given)
