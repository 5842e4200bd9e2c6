"""Counters and drift of a device: what they count, find and refuse."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.tools import failed, run, succeeded
from tests.random_models import balanced, changed, random_model, random_raw
from tests.refusals import refused
from tinykernel.base.errors import FormatError, ModelError, TinykernelError
from tinykernel.judge.drift import drift, expected_counts
from tinykernel.learn.calibration import calibrate
from tinykernel.model.answers import margins
from tinykernel.model.counters import Counters, saturated
from tinykernel.model.file import save
from tinykernel.model.integer import IntegerModel

MODEL = balanced(random_model(3, n_features=12, n_classes=3, n_blocks=1, raw_dtype="int16"))


def counted(model: IntegerModel, X: np.ndarray) -> Counters:
    """Return what a device counts of these rows."""
    counters = Counters(model)
    labels, margin = margins(model.scores(X))
    given = zip(labels, margin, saturated(model, X), strict=True)
    for label, value, ends in given:
        counters.update(int(label), int(value), int(ends))
    return counters


def test_sums_of_64_bits_and_a_full_count() -> None:
    """Sums carry into the high word, and after 2**32 - 1 decisions nothing moves."""
    counters = Counters(MODEL)
    for _ in range(3):
        counters.update(1, 2**32 - 1, 2**32 - 1)
    again = Counters.from_bytes(MODEL, counters.to_bytes())
    assert (again.margin, again.saturated) == (3 * (2**32 - 1),) * 2
    again.labels[1] = 2**32 - 1
    full = again.to_bytes()
    again.update(0, 5)
    assert again.to_bytes() == full
    assert len(full) <= 64 + 4 * MODEL.n_classes


def test_sums_beyond_their_decisions_are_refused() -> None:
    """Counters whose sums no decisions can have made are refused: the next one would overflow."""
    counters = Counters(MODEL)
    counters.update(1, 5, 5)
    counters.margin = 2**64 - 1
    refused(FormatError, Counters.from_bytes, MODEL, counters.to_bytes())


def test_every_flipped_bit_is_found() -> None:
    """Counters with one wrong bit, cut off or of another model are refused."""
    data = counted(MODEL, random_raw(MODEL, 1, 50)).to_bytes()
    assert Counters.from_bytes(MODEL, data).to_bytes() == data
    for bit in range(8 * len(data)):
        wrong = bytearray(data)
        wrong[bit // 8] ^= 1 << bit % 8
        refused(TinykernelError, Counters.from_bytes, MODEL, bytes(wrong))
    for length in range(len(data)):
        refused(FormatError, Counters.from_bytes, MODEL, data[:length])
    other = changed(MODEL, offset=MODEL.readout.offset + np.int32(1))
    refused(ModelError, Counters.from_bytes, other, data)


def test_false_alarms_are_as_rare_as_promised() -> None:
    """Devices that see what the held-out rows showed are rarely said to differ, streams too."""
    rng = np.random.default_rng(0)
    X = random_raw(MODEL, 1, 1500)
    pool, expected = X[500:], expected_counts(MODEL, X[:500])
    alarms = 0
    for _ in range(60):
        # Each input stays for a random while, as people sit and walk.
        order = np.repeat(rng.integers(0, len(pool), 40), rng.integers(1, 30, 40))
        found = drift(counted(MODEL, pool[order]), expected, false_alarm=0.05)
        assert found.independent < len(order) / 4
        alarms += bool(found.differs)
    assert alarms <= 8


def test_another_mix_is_found() -> None:
    """A device that sees other shares of the classes differs, given enough decisions only."""
    X = random_raw(MODEL, 1, 3000)
    labels = MODEL.scores(X).argmax(axis=1)
    expected = expected_counts(MODEL, X[:1000])
    kept = np.flatnonzero((labels != 0) | (np.arange(3000) % 3 == 0))
    there = X[kept[kept >= 1000]]
    assert "labels" in drift(counted(MODEL, there), expected, independent=True).differs
    few = drift(counted(MODEL, there[:10]), expected, independent=True)
    assert not few.enough
    assert not few.differs


@pytest.fixture(scope="module")
def work(tmp_path_factory) -> Path:
    """Return a folder with a calibrated model, held-out rows, and counters of two devices."""
    folder = tmp_path_factory.mktemp("drift")
    X = random_raw(MODEL, 2, 900)
    y = np.array(MODEL.classes)[MODEL.scores(X).argmax(axis=1)]
    np.savez(folder / "rows.npz", X=X, y=y)
    save(MODEL, folder / "m.tkm")
    given = (folder / "m.tkm", folder / "rows.npz", "-o", folder / "sure.tkm")
    succeeded("calibrate", *given, "--coverage", "90%")
    sure = calibrate(MODEL, X, y, coverage=0.9).model
    rng = np.random.default_rng(1)
    same = Counters(sure)
    scores = sure.scores(X)
    margin = margins(scores)[1]
    decided, ends = sure.decide(X), saturated(sure, X)
    for at in rng.permutation(900)[:400]:
        same.update(int(decided[at]), int(margin[at]), int(ends[at]))
    (folder / "same.bin").write_bytes(same.to_bytes())
    stuck = Counters(sure)
    for _ in range(400):
        stuck.update(-1, 0)
    (folder / "stuck.bin").write_bytes(stuck.to_bytes())
    return folder


def test_drift_on_the_command_line(work) -> None:
    """Calibrate leaves in the file what drift compares with; rows may be given instead."""
    succeeded("drift", work / "sure.tkm", work / "same.bin", "--independent")
    stuck = ("drift", work / "sure.tkm", work / "stuck.bin")
    result = run(*stuck, "--independent", "--json", "--data", work / "rows.npz")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert found["differs"] == ["labels", "margin", "saturated"]
    assert found["decisions"] == found["independent"] == 400
    result = run(*stuck)
    assert result.exit_code == 1


def test_what_drift_refuses(work, tmp_path) -> None:
    """Counters of another model, damaged ones, and a model that remembers no rows: one line."""
    failed("drift", work / "m.tkm", work / "same.bin", "--data", work / "rows.npz")
    data = (work / "same.bin").read_bytes()
    (tmp_path / "cut.bin").write_bytes(data[:-3])
    failed("drift", work / "sure.tkm", tmp_path / "cut.bin")
    (tmp_path / "bare.bin").write_bytes(Counters(MODEL).to_bytes())
    failed("drift", work / "m.tkm", tmp_path / "bare.bin")
    failed("drift", work / "m.tkm", tmp_path / "bare.bin", "--data", work / "rows.npz")
