"""Formats of archives, devices and apps: read as they are, or refused in one line."""

import json
import sys
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests import refusals
from tests.data.test_recordings import sound
from tinykernel.base.errors import TinykernelError
from tinykernel.data.recordings import windows

pytestmark = pytest.mark.usefixtures("page")


def refused(*args: object, **options: object) -> str:
    return refusals.refused(TinykernelError, windows, *args, **options)


def heart(folder: Path, wfdb, name: str = "100", fmt: str = "212", **more) -> np.ndarray:
    """Write a record of two leads at 250 Hz, with beats N and V in turn and a rhythm."""
    signal = np.random.default_rng(0).integers(-900, 900, (2500, 2)) / 200
    options = {"fs": 250, "units": ["mV"] * 2, "sig_name": ["I", "II"], "fmt": [fmt] * 2}
    options |= {"p_signal": signal, "adc_gain": [200.0] * 2, "baseline": [0, 0]}
    wfdb.wrsamp(name, write_dir=str(folder), **options)
    at = np.arange(125, 2500, 250)
    marks = {"sample": at, "symbol": ["N", "V"] * 5} | more
    wfdb.wrann(name, "atr", write_dir=str(folder), **marks)
    return signal


@pytest.mark.parametrize("fmt", ["16", "212", "24"])
def test_records_of_physionet(tmp_path, require_tool, fmt):
    """Samples are those of the record, and a window has the beat in it, or the rhythm."""
    signal = heart(tmp_path, require_tool("wfdb"), fmt=fmt)
    found = windows(tmp_path, "1s", "1s")
    assert (found.X.shape, found.rate, found.channels) == ((10, 250, 2), 250, ("I", "II"))
    np.testing.assert_allclose(found.X.reshape(-1, 2), signal, atol=1e-6)
    assert found.y.tolist() == ["N", "V"] * 5


def test_rhythms_of_physionet(tmp_path, require_tool):
    """Changes of rhythm are labels where no beat is, or where they are asked for."""
    wfdb = require_tool("wfdb")
    marks = {"sample": np.array([0, 1250]), "symbol": ["+", "+"], "aux_note": ["(N", "(AFIB"]}
    heart(tmp_path, wfdb, **marks)
    found = windows(tmp_path / "100.hea", "1s", "1s")
    assert Counter(found.y) == {"N": 5, "AFIB": 5}
    assert "choose beat or rhythm" in refused(tmp_path, "1s", label="age")
    late = {"sample": np.array([10, 9999]), "symbol": ["N", "V"]}
    heart(tmp_path, wfdb, **late)
    assert "past the end" in refused(tmp_path, "1s")
    header = tmp_path / "100.hea"
    header.write_text(header.read_text().replace("100 2 250 ", "100 2 0 "))
    assert "rate of 0" in refused(tmp_path, "1s")
    (tmp_path / "100.dat").unlink()
    assert "100.dat is missing" in refused(tmp_path, "1s")


def test_leads_of_one_name_and_fine_annotations(tmp_path, require_tool):
    """Of two leads called ECG one was lost; annotations may count finer than samples."""
    wfdb = require_tool("wfdb")
    heart(tmp_path, wfdb)
    header = tmp_path / "100.hea"
    header.write_text(header.read_text().replace(" I\n", " ECG\n").replace(" II\n", " ECG\n"))
    marks = {"sample": np.arange(500, 10_000, 1000), "symbol": ["N", "V"] * 5, "fs": 1000}
    wfdb.wrann("100", "atr", write_dir=str(tmp_path), **marks)
    found = windows(tmp_path, "1s", "1s")
    assert (found.channels, found.y.tolist()) == (("ECG 1", "ECG 2"), ["N", "V"] * 5)


def edf(path: Path, pyedflib, rates: tuple[int, ...] = (100, 100), marks=((0, 5), (5, 5))) -> None:
    """Write ten seconds of signals with two annotations."""
    from pyedflib.highlevel import make_signal_header as header

    with pyedflib.EdfWriter(str(path), len(rates), pyedflib.FILETYPE_EDFPLUS) as file:
        limits = {"physical_min": -1000, "physical_max": 1000}
        headers = [header(f"EEG {i}", sample_frequency=n, **limits) for i, n in enumerate(rates)]
        file.setSignalHeaders(headers)
        t = [np.arange(10 * rate) / rate for rate in rates]
        file.writeSamples([500 * np.sin(3 * each) for each in t])
        for (begin, length), stage in zip(marks, ("wake", "sleep"), strict=True):
            file.writeAnnotation(begin, length, stage)


def test_edf_with_annotations(tmp_path, require_tool):
    """Annotations are labels; signals of another rate are put on the clock of the fastest."""
    pyedflib = require_tool("pyedflib")
    edf(tmp_path / "a.edf", pyedflib)
    found = windows(tmp_path / "a.edf", "1s", "1s")
    assert (found.X.shape, found.rate) == ((10, 100, 2), 100)
    assert found.y.tolist() == ["wake"] * 5 + ["sleep"] * 5
    wanted = 500 * np.sin(3 * np.arange(1000) / 100)
    assert np.abs(found.X[..., 0].ravel() - wanted).max() < 0.04
    edf(tmp_path / "b.edf", pyedflib, (100, 50, 1))
    other = windows(tmp_path / "b.edf", "1s", "1s")
    assert other.channels == ("EEG 0", "EEG 1")
    assert np.abs(other.X[:9, :, 1].ravel() - wanted[:900]).max() < 1
    assert any("EEG 2 (1 Hz)" in note for note in other.notes)
    edf(tmp_path / "c.edf", pyedflib, marks=((0, 10), (4, 1)))
    within = windows(tmp_path / "c.edf", "1s", "1s")
    assert within.y.tolist() == ["wake"] * 4 + ["sleep"] + ["wake"] * 5
    assert "where annotations overlap" in within.notes[0]


def test_bad_edf(tmp_path, require_tool):
    """A file cut short, annotations past the end, and none at all are one line each."""
    pyedflib = require_tool("pyedflib")
    file = tmp_path / "a.edf"
    edf(file, pyedflib, marks=((0, 5), (5, 90)))
    assert "past the end" in refused(file, "1s")
    edf(file, pyedflib, marks=((0, -1), (5, -1)))
    assert "--name" in refused(file, "1s")
    file.write_bytes(file.read_bytes()[:-300])
    assert "is not an EDF or BDF that can be read" in refused(file, "1s")


def acquired(label: str, n: int = 40, **more) -> dict:
    """Return an acquisition of Edge Impulse."""
    rng = np.random.default_rng(len(label))
    values = rng.integers(-99, 99, (n, 2)).tolist()
    values[3][1] = 0.5
    sensors = [{"name": "accX", "units": "m/s2"}, {"name": "accY", "units": "m/s2"}]
    payload = {"device_type": "X", "interval_ms": 20, "sensors": sensors, "values": values}
    return {"protected": {"ver": "v1"}, "signature": "0", "payload": payload | more}


@pytest.mark.parametrize("suffix", ["json", "cbor"])
def test_acquisitions_of_edge_impulse(tmp_path, require_tool, monkeypatch, suffix):
    """The label begins the name of the file; other .json in the folder are no recordings."""
    dumps = require_tool("cbor2").dumps if suffix == "cbor" else lambda x: json.dumps(x).encode()
    for label in ("wave", "idle"):
        (tmp_path / f"{label}.1a2b.{suffix}").write_bytes(dumps(acquired(label)))
    (tmp_path / "package.json").write_text("{}")
    found = windows(tmp_path, "200ms", "200ms")
    assert (found.X.shape, found.rate, found.channels) == ((8, 10, 2), 50, ("accX", "accY"))
    assert Counter(found.y) == {"wave": 4, "idle": 4}
    for wrong, said in (
        ({"interval_ms": 0}, "so it has no rate"),
        ({"values": [[1, 2], [3]]}, "sample 2 does not fit"),
        ({"sensors": None}, "is no acquisition"),
    ):
        file = tmp_path / "bad" / f"a.{suffix}"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(dumps(acquired("a", **wrong)))
        assert said in refused(file, 5)
    file.write_bytes(dumps(acquired("a"))[:-9])
    assert "is no acquisition" in refused(file, 5)
    if suffix == "cbor":
        monkeypatch.setitem(sys.modules, "cbor2", None)
        assert "tinykernel-mcu[formats]" in refused(file, 5)


def test_a_project_of_edge_impulse(tmp_path):
    """The labels of an exported project are those of info.labels, not of folders."""
    files = []
    for n, label in enumerate(("up", "down", "up", "down")):
        path = sound(tmp_path / "training" / f"x{n}.wav", 80 + n)
        entry = {"type": "label", "label": label}
        files.append({"path": path.relative_to(tmp_path).as_posix(), "label": entry})
    spans = [{"startIndex": 0, "endIndex": 39, "label": "up"}]
    files[0]["label"] = {"type": "multi-label", "labels": [*spans]}
    (tmp_path / "info.labels").write_text(json.dumps({"version": 1, "files": files}))
    found = windows(tmp_path, 40, 40)
    assert found.y.tolist() == ["up", "background", "down", "down", "up", "up", "down", "down"]
    files[1]["label"] = {"type": "unlabeled"}
    (tmp_path / "info.labels").write_text(json.dumps({"version": 1, "files": files}))
    assert "x1.wav: has no label" in refused(tmp_path, 40)


@pytest.mark.parametrize("has_label", [True, False])
def test_series_of_aeon(tmp_path, has_label):
    """Labels keep their case, lengths may differ and are said, and ? is a missing value."""
    mark = ":Up", ":down"
    lines = [f"1,2,3,4,5,6:6,5,4,3,2,1{mark[i % 2] * has_label}" for i in range(6)]
    lines[4] = "1,2,3,4:4,3,2,1" + mark[0] * has_label
    head = f"# a comment\n@problemName x\n@classLabel {str(has_label).lower()} Up down\n@data\n"
    (tmp_path / "a.ts").write_text(head + "\n".join(lines) + "\n")
    if not has_label:
        assert "--name" in refused(tmp_path / "a.ts", 4)
        return
    found = windows(tmp_path / "a.ts", 4, 4)
    assert (found.X.shape, Counter(found.y)) == ((6, 4, 2), {"Up": 3, "down": 3})
    assert found.X[0].tolist() == [[1, 6], [2, 5], [3, 4], [4, 3]]
    assert "6 series of 4 to 6 samples" in found.notes
    (tmp_path / "a.ts").write_text(head + "1,2,?,4:1,2,3,4:Up\n1,x:2,3:down\n")
    assert "line 6: is no series" in refused(tmp_path / "a.ts", 2)


def test_tables_of_the_ucr_archive(tmp_path):
    """The first column is the label, whatever is in it; shorter series are filled up with NaN."""
    X = np.random.default_rng(0).normal(size=(6, 30)).round(3)
    rows = ["\t".join([str(i % 2 + 1), *map(str, x)]) for i, x in enumerate(X)]
    rows[5] = "\t".join([*rows[5].split("\t")[:21], *["NaN"] * 10])
    (tmp_path / "A_TRAIN.tsv").write_text("\n".join(rows))
    found = windows(tmp_path / "A_TRAIN.tsv", 20, 20)
    assert (found.X.shape, found.y.tolist()) == ((6, 20, 1), [1, 2] * 3)
    assert "6 series of 20 to 30 samples" in found.notes
    np.testing.assert_allclose(found.X[..., 0], X[:, :20], rtol=1e-6)


def session(folder: Path, app: str, begin: float = 0.0) -> None:
    """Write two sensors of 100 and 50 Hz that begin at different times, as an app does."""
    folder.mkdir(parents=True)
    for sensor, rate, first in (("Accelerometer", 100, 0.0), ("Gyroscope", 50, 0.3004 + begin)):
        t = first + np.arange(3.3 * rate) / rate
        pairs = zip(t, np.column_stack([np.sin(t), np.cos(t), np.sin(2 * t)]), strict=True)
        if app == "phyphox":
            head = '"Time (s)","X (m/s^2)","Y (m/s^2)","Z (m/s^2)"\n'
            form = "{0:.9E},{1:.9E},{2:.9E},{3:.9E}\n"
        else:
            head = "time,seconds_elapsed,z,y,x\n"
            form = "17{4:0>17.0f},{0:.6f},{3:.6f},{2:.6f},{1:.6f}\n"
        rows = [form.format(s, *axes, 1e9 * s) for s, axes in pairs]
        (folder / f"{sensor}.csv").write_text(head + "".join(rows))
    meta = folder / ("meta/device.csv" if app == "phyphox" else "Metadata.csv")
    meta.parent.mkdir(exist_ok=True)
    meta.write_text("property,value\nversion,1.1\n")


@pytest.mark.parametrize("app", ["phyphox", "Sensor Logger"])
def test_folders_of_apps(tmp_path, app):
    """A folder is one recording: its sensors are joined by time, and a line says so."""
    for name in ("walk_1", "walk_2", "run_1", "run_2"):
        session(tmp_path / name, app)
    found = windows(tmp_path, "1s", "1s", name="{label}_*")
    assert (len(found.recordings), found.rate, found.X.shape) == (4, 100, (12, 100, 6))
    assert any("joined by time at 100 Hz: Accelerometer, Gyroscope" in n for n in found.notes)
    one = next(i for i, name in enumerate(found.channels) if name.lower().startswith("gyroscope x"))
    t = 0.3004 + np.arange(100) / 100
    np.testing.assert_allclose(found.X[0][:, one], np.sin(t), atol=1e-4)
    assert "--name '{label}_*' or" in refused(tmp_path, "1s")
    for number in (1, 2):  # all titles begin with one word, which is no label.
        session(tmp_path / "run" / f"Motion {number}", app)
    assert "the labels with --name '{label}/*'" in refused(tmp_path / "run", "1s")
    session(tmp_path / "sit_1", app, begin=9.0)
    assert "have no time in common" in refused(tmp_path / "sit_1", "1s", name="{label}_*")


def packed(archive: Path, folder: Path) -> Path:
    """Write what is in a folder into an archive."""
    archive.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(folder.rglob("*")):
            file.write(path, path.relative_to(folder))
    return archive


def test_archives_are_read_as_folders(tmp_path):
    """A folder of archives, or an archive of them, is what its contents are; nothing is twice."""
    for name in ("walk_1", "walk_2", "run_1"):
        session(tmp_path / "open" / name, "phyphox")
        packed(tmp_path / "shut" / f"{name}.zip", tmp_path / "open" / name)
    wanted = windows(tmp_path / "open", "1s", "1s", name="{label}_*")
    all_in_one = packed(tmp_path / "all.zip", tmp_path / "shut")
    for place in (tmp_path / "shut", all_in_one, packed(tmp_path / "b.zip", tmp_path / "open")):
        found = windows(place, "1s", "1s", name="{label}_*")
        np.testing.assert_array_equal(found.X, wanted.X)
        assert found.y.tolist() == wanted.y.tolist()
    assert windows(tmp_path / "shut", "1s", name="{label}_*").recordings[0] == "run_1.zip"
    session(tmp_path / "shut" / "run_1", "phyphox")
    assert len(windows(tmp_path / "shut", "1s", name="{label}_*").recordings) == 3
    (tmp_path / "open" / "sit_1.csv").write_text("time_ms,x\n0,1\n20,up\n")
    wrong = refused(packed(tmp_path / "b.zip", tmp_path / "open"), "1s", name="{label}_*")
    assert wrong.startswith(f"{tmp_path / 'b.zip'}:sit_1.csv: ")
    all_in_one.write_bytes(all_in_one.read_bytes()[:-99])
    assert "cannot be unpacked" in refused(all_in_one, "1s")


def test_annotations_of_sensor_logger(tmp_path):
    """A text is the label up to the next one, unless --name says the labels; a pause is a gap."""
    session(tmp_path / "a_1", "Sensor Logger")
    marks = "time,seconds_elapsed,text,millisecond_press_duration\n"
    said = (0, "walk"), (2, "run"), (9, "late")
    rows = [f"17{1e9 * s:0>17.0f},{s},{text},90\n" for s, text in said]
    (tmp_path / "a_1" / "Annotation.csv").write_text(marks + "".join(rows))
    found = windows(tmp_path, "500ms", "500ms")
    assert Counter(found.y) == {"walk": 3, "run": 2}
    assert any("1 annotations after the last sample" in note for note in found.notes)
    session(tmp_path / "b_1", "Sensor Logger")
    named = windows(tmp_path, "500ms", "500ms", name="{label}_*")
    assert set(named.y) == {"a", "b"}
    assert any("Annotation.csv" in note and "not used" in note for note in named.notes)
    file = tmp_path / "b_1" / "Accelerometer.csv"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:150] + lines[250:]))
    cut = windows(tmp_path / "b_1", "500ms", "500ms", name="{label}_*", labels_needed=False)
    assert len(cut.X) == 3  # 119 samples before the gap, 81 behind it
