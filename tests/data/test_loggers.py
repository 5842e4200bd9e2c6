"""Recordings as loggers and recorders write them: nothing is lost, and what is changed is said."""

import struct
import wave
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests import refusals
from tinykernel import Classifier
from tinykernel.base.errors import TinykernelError
from tinykernel.data.reading import Reading
from tinykernel.data.recordings import RecordingSource, windows

_PATTERN = "{label}/{person}"


def refused(*args: object, **options: object) -> str:
    return refusals.refused(TinykernelError, windows, *args, **options)


def times_of(i: int) -> dict[str, object]:
    """Return the time of a sample at 50 Hz as loggers write it."""
    ns = 20_000_000 * i
    return {
        "t": 20 * i,
        "s": f"{0.02 * i:06.3f}",
        "n": ns // 10**9,
        "ns": ns % 10**9,
        "batch": i // 5 / 10,
        "late": (i + 3) // 5 / 10,
        "twice": 20 * (i - (i % 7 in (1, 3, 5))),
    }


def logs(
    folder: Path, head: str = "time_ms,ax,ay,az\n", row: str = "{t},{x},{y},{z}\n", n: int = 60
) -> Path:
    """Write two recordings of walk and run, each with its head and a row a sample."""
    rng = np.random.default_rng(0)
    for label in ("walk", "run"):
        (folder / label).mkdir(parents=True)
        for person in "ab":
            rows = [
                row.format(x=x, y=y, z=z, **times_of(i))
                for i, (x, y, z) in enumerate(rng.normal(size=(n, 3)).round(2))
            ]
            (folder / label / f"{person}.csv").write_text(head + "".join(rows))
    return folder


@pytest.mark.parametrize("axes", ["x,y,z", "X,Y,Z", "z,y,x"])
def test_the_axis_y_is_a_channel(tmp_path, axes):
    """It became the label, so that the firmware took two of three axes."""
    folder = logs(tmp_path, f"time_ms,{axes}\n")
    found = windows(folder, 20, name=_PATTERN)
    assert (found.channels, set(found.y)) == (tuple(axes.split(",")), {"walk", "run"})
    assert "--name '{label}/*'" in refused(folder, 20)
    labelled = logs(tmp_path / "labelled", f"time_ms,{axes},label\n", "{t},{x},{y},{z},{t}\n")
    assert windows(labelled, 1).channels == tuple(axes.split(","))


def test_a_column_y_of_values_is_named(tmp_path):
    """Beside no x and z it is the label; the message about its values says so."""
    folder = logs(tmp_path / "values", "time_ms,y,b,c\n")
    assert "of column 'y' are not classes" in refused(folder, 20)
    one = logs(tmp_path / "one", "time_ms,b,c,y\n", "{t},{x},{z},0\n")
    assert "label 0 of column 'y'" in refused(one, 20)
    assert windows(folder, 20, name=_PATTERN).channels == ("y", "b", "c")


@pytest.mark.parametrize("said", [0, 40, 41, 8000])
def test_a_wav_is_read_to_its_end(tmp_path, said):
    """A recorder that lost its power says a shorter length; what it recorded is there."""
    samples = np.random.default_rng(0).integers(-900, 900, 8000).astype("<i2")
    form = struct.pack("<HHIIHH", 1, 1, 8000, 16000, 2, 16)

    def written(name: str, said: int, after: bytes = b"") -> Path:
        chunks = b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", said)
        whole = chunks + samples.tobytes() + after
        (tmp_path / name).write_bytes(b"RIFF" + struct.pack("<I", len(whole)) + whole)
        return tmp_path / name

    found = windows(written("a.wav", said), 100, 100, labels_needed=False)
    np.testing.assert_array_equal(found.X.ravel(), samples)
    assert str((16000 - said) // 2) in found.notes[0]
    chunk = b"LIST" + struct.pack("<I", 4) + b"INFO"
    whole = windows(written("b.wav", 16000, chunk), 100, 100, labels_needed=False)
    np.testing.assert_array_equal(whole.X.ravel(), samples)
    assert whole.notes == ()


@pytest.mark.parametrize(
    ("name", "form", "subtype"),
    [
        ("a.wav", "WAV", "ULAW"),
        ("a.wav", "WAV", "ALAW"),
        ("a.wav", "RF64", "PCM_16"),
        ("a.w64", "W64", "PCM_16"),
        ("a.aiff", "AIFF", "PCM_16"),
        ("a.wav", "WAV", "MS_ADPCM"),
    ],
)
def test_sounds_of_other_forms(tmp_path, require_tool, monkeypatch, name, form, subtype):
    """soundfile reads them; without it one line says how to convert them."""
    soundfile = require_tool("soundfile")
    tone = np.rint(9000 * np.sin(np.arange(8000) / 9)).astype(np.int16)
    soundfile.write(tmp_path / name, tone, 8000, format=form, subtype=subtype)
    found = windows(tmp_path / name, 8000, labels_needed=False)
    assert np.abs(found.X.ravel().astype(int) - tone).max() <= (0 if subtype == "PCM_16" else 300)
    monkeypatch.setitem(__import__("sys").modules, "soundfile", None)
    assert "ffmpeg -i" in refused(tmp_path / name, 100)


def test_loud_sounds_are_clipped_and_counted(tmp_path, require_tool):
    """An .ogg above full scale wrapped: 1.14 became -0.86."""
    soundfile = require_tool("soundfile")
    loud = 1.14 * np.sin(np.arange(16000) / 20)
    soundfile.write(tmp_path / "a.ogg", loud, 16000, format="OGG", subtype="VORBIS")
    found = windows(tmp_path / "a.ogg", 16000, labels_needed=False)
    heard = found.X.ravel() / 32768
    assert np.abs(heard - np.clip(loud, -1, 1)).max() < 0.3
    assert "louder than full scale" in found.notes[0]


@pytest.mark.parametrize(
    ("head", "row", "left_out"),
    [
        ("time_ms,ax,ay,az,\n", "{t},{x},{y},{z},\n", "column5"),
        ("time_ms,ax,temp,ay,az\n", "{t},{x},,{y},{z}\n", "temp"),
        ("time_ms,ax,ay,az,,\n", "{t},{x},{y},{z},,\n", "column6"),
        ("time,seconds_elapsed,ax,ay,az\n", "17{t:0>17},{t},{x},{y},{z}\n", "seconds_elapsed"),
        (",time_ms,ax,ay,az\n", "{t},{t},{x},{y},{z}\n", "column1"),
    ],
)
def test_columns_that_say_nothing_are_left_out(tmp_path, head, row, left_out):
    """Columns without a value, and times beside the times, are no channels, and a note says so."""
    folder = logs(tmp_path, head, row)
    found = windows(folder, 20, name=_PATTERN)
    assert found.channels == ("ax", "ay", "az")
    assert any(left_out in note for note in found.notes)
    assert found.time in ("time", "time_ms")
    file = folder / "run" / "a.csv"
    if left_out == "temp":  # a value elsewhere makes it a channel
        file.write_text(file.read_text().replace(",,", ",3,"))
        assert "the value is missing" in refused(folder, 20, name=_PATTERN)


@pytest.mark.parametrize(
    ("head", "row", "channels"),
    [
        ("time,ax,ay,az\nms,g,g,g\n", "{t},{x},{y},{z}\n", "ax ay az"),
        ("'Elapsed time','I','II'\n'hh:mm:ss.mmm','mV','mV'\n", "'0:{s}',{x},{y}\n", "I II"),
        ("# logger\n\n# nano\ntime_ms,ax,ay,az\n", "{t},{x},{y},{z}\n", "ax ay az"),
        ("# time_ms,ax,ay,az\n", "{t},{x},{y},{z}\n", "ax ay az"),
        ("time_ms ax ay az\n", " {t}  {x} {y} {z}\n", "ax ay az"),
        ("", "  {t} {x} {y} {z}\n", "column2 column3 column4"),
        ("0,1,2\n", "{x},{y},{z}\n", "0 1 2"),
        ("epoch (ms),elapsed (s),x-axis (g),y-axis (g)\n", "{t},{t},{x},{y}\n", "x-axis (g) y"),
    ],
)
def test_lines_above_the_data(tmp_path, head, row, channels):
    """Units, comments, blanks between values and a missing header do not hide the channels."""
    folder = logs(tmp_path, head, row)
    found = windows(folder, 20, name=_PATTERN)
    assert " ".join(found.channels).startswith(channels)
    assert found.X.shape[:2] == (20, 20)
    assert found.rate in (50, None)


def test_lines_that_are_not_numbers(tmp_path):
    """One line names what is wrong, and options with blanks are in quotes for the shell."""
    folder = logs(tmp_path / "a", "time_ms,ax,ay,az\nfoo,left,right,up\n")
    assert "line 2" in refused(folder, 20, name=_PATTERN)
    folder = logs(tmp_path / "c", "Nr [s],ax,ay,az\n")
    assert "--set drop='Nr [s]'" in refused(folder, 20, name=_PATTERN)


def test_columns_of_one_name_and_of_people(tmp_path):
    """The first are numbered; the second are groups, unless all recordings have the same one."""
    folder = logs(tmp_path / "a", "time_ms,x,x,person_id\n", "{t},{x},{y},3\n")
    found = windows(folder, 20, name=_PATTERN)
    assert found.channels == ("x 2", "x 3")
    assert set(windows(folder, 20, name="{label}/*").groups) == set(found.recordings)
    file = folder / "run" / "a.csv"
    file.write_text(file.read_text().replace(",3\n", ",4\n"))
    assert set(windows(folder, 20, name="{label}/*").groups) == {"3", "4"}
    assert (
        "person_id" in windows(folder, 20, name="{label}/*", inputs=["x 2", "person_id"]).channels
    )


def test_a_channel_that_never_varies_is_left_out(tmp_path):
    """Where no recording has another value; a finished model takes it nevertheless."""
    folder = logs(tmp_path, "time_ms,ax,ay,temp\n", "{t},{x},{y},7\n")
    found = windows(folder, 20, name=_PATTERN)
    assert found.channels == ("ax", "ay")
    assert any("temp (never varies)" in note for note in found.notes)
    assert windows(folder, 20, labels_needed=False).channels == ("ax", "ay", "temp")
    still = logs(tmp_path / "still", "time_ms,x\n", "{t},7\n")
    assert windows(still, 20, name=_PATTERN).channels == ("x",)


def gestures(folder: Path, length: int, name: str = "day") -> Path:
    """Write a recording of rest with ten strong gestures of some samples, and a label a sample."""
    rng = np.random.default_rng(length)
    X, y = rng.normal(size=(1000, 2)), np.full(1000, "rest", object)
    for at in range(50, 1000, 100):
        X[at : at + length] *= 30
        y[at : at + length] = "wave"
    rows = [f"{a:.2f},{b:.2f},{label}\n" for (a, b), label in zip(X, y, strict=True)]
    (folder / f"{name}.csv").write_text("ax,ay,label\n" + "".join(rows))
    return folder / f"{name}.csv"


def test_gestures_shorter_than_a_window_are_counted_and_may_be_kept(tmp_path):
    """They vanished from the classes without a word."""
    file = gestures(tmp_path, 12)
    found = windows(file, 20, 5, labels_needed=False)
    assert set(found.y) == {"rest"}
    assert any("wave 10 of 10 stretches" in note for note in found.notes)
    kept = windows(file, 20, 5, label_at="peak", background=["rest"])
    waves = kept.starts[kept.y == "wave"]
    assert {int(start + 10) // 100 for start in waves} == set(range(10))
    assert all((start + 10) % 100 in range(45, 70) for start in waves)


def test_rest_in_a_clip_of_a_gesture_becomes_background(tmp_path):
    """It had the label of the gesture, so that the device told it at rest."""
    rng = np.random.default_rng(0)
    for label, loud in (("wave", 30), ("silence", 1)):
        for n in range(2):
            X = rng.normal(size=(200, 1))
            X[80:120] *= loud
            path = tmp_path / label / f"{n}.csv"
            path.parent.mkdir(exist_ok=True)
            path.write_text("ax\n" + "".join(f"{x:.3f}\n" for (x,) in X))
    whole = windows(tmp_path, 20, 20, name="{label}/*")
    assert Counter(whole.y) == {"wave": 20, "silence": 20}
    at_peak = windows(tmp_path, 20, 20, name="{label}/*", label_at="peak")
    assert set(at_peak.starts[at_peak.y == "wave"]) <= {60, 80, 100, 120, *range(200)}
    assert {80, 100} <= set(at_peak.starts[at_peak.y == "wave"].tolist())
    assert Counter(at_peak.y)["wave"] < 8
    assert any("label_at=all" in note for note in at_peak.notes)
    with pytest.raises(TinykernelError, match="needs a class of rest"):
        windows(tmp_path / "wave", 20, name="{label}/*", label_at="peak", labels_needed=False)


def test_a_finished_model_takes_a_column_of_labels(tmp_path):
    """A model trained with --name counted the labelled gestures of a stream as false alarms."""
    file = gestures(tmp_path, 40)
    reading = Reading(window=20, name="{label}/*", labels_needed=False, classes=("wave", "rest"))
    assert set(RecordingSource(file, reading).windows().y) == {"wave", "rest"}
    other = RecordingSource(file, replace(reading, classes=("up", "down"))).windows()
    assert set(other.y) == {tmp_path.name}
    assert any("'label' is not used" in note for note in other.notes)
    unlike = RecordingSource(logs(tmp_path / "logs"), replace(reading, name="{label}_*")).windows()
    assert unlike.y is None
    assert "without a label: names are not like '{label}_*' (4 files)" in unlike.notes


def test_words_are_not_looked_for_where_labels_have_spans(tmp_path):
    """Clips of two channels are told how words in them are found, recordings with spans not."""
    for label in ("word", "noise"):
        (tmp_path / label).mkdir()
        for name in "ab":
            with wave.open(str(tmp_path / label / f"{name}.wav"), "wb") as file:
                file.setparams((2, 2, 8000, 0, "NONE", ""))
                file.writeframes(b"\0\1\2\3" * 24000)
    reading = Reading(window="1s", clips="auto")
    notes = RecordingSource(tmp_path, reading).train_rows(0.5, 0).notes
    assert any("set drop='channel 2'" in note for note in notes)
    for file in tmp_path.rglob("*.wav"):
        file.with_suffix(".txt").write_text("0\t1.5\tword")
    notes = RecordingSource(tmp_path, reading).train_rows(0.5, 0).notes
    assert not any("drop=" in note for note in notes)


def test_recordings_of_two_rates_are_resampled(tmp_path):
    """48.6 and 50 Hz in one folder had no remedy; a slow sine stays what it is."""
    for name, rate in (("a", 50.0), ("b", 48.6)):
        t = np.delete(np.arange(400) / rate, range(200, 220))
        rows = [f"{s:.5f},{100 * np.sin(s):.4f},{s > 4}\n" for s in t]
        rows[90] = f"{t[90]:.5f},,False\n"  # no other sample may have a part of it
        (tmp_path / f"{name}.csv").write_text("time_s,ax,label\n" + "".join(rows))
    assert "--set rate=50 resamples" in refused(tmp_path, 20)
    found = windows(tmp_path, 20, 20, rate=50, missing="drop")
    assert (found.rate, len(set(found.segments))) == (50, 4)
    for rows, end in zip(found.X, found.end_times, strict=True):
        t = end + (np.arange(20) - 19) / 50
        np.testing.assert_allclose(rows.ravel(), 100 * np.sin(t), atol=0.02)
    assert "resampled to 50 Hz" in found.notes
    assert found.dropped["missing"] == 2


@pytest.mark.parametrize(
    ("head", "row"),
    [
        ("sec,nanosec,ax,ay\n", "17{n:0>8},{ns},{x},{y}\n"),
        ("time_s,ax,ay\n", "{batch},{x},{y}\n"),
        ("time_s,ax,ay\n", "{late},{x},{y}\n"),
        ("time_ms,ax,ay\n", "{twice},{x},{y}\n"),
        ("time;ax;ay\n", "2026-01-01 00:00:00,{t:0>3};{x};{y}\n"),
        (",ax,ay\n", "2026-01-01 00:00:{s},{x},{y}\n"),
        ("timestamp,ax,ay\n", "17{n:0>8}{ns:0>9},{x},{y}\n"),
    ],
)
def test_times_as_people_have_them(tmp_path, head, row):
    """Seconds beside nanoseconds, packets, also begun before, nanoseconds since 1970, dates."""
    folder = logs(tmp_path, head, row, 49)
    found = windows(folder, "200ms", name=_PATTERN)
    assert (found.rate, found.channels, found.dropped["short"]) == (50, ("ax", "ay"), 0)


def test_a_signal_a_line(tmp_path):
    """A file a class, a line a signal of three axes, as NanoEdge has them; it was refused."""
    rng = np.random.default_rng(0)
    for label in ("idle", "run"):
        X = rng.integers(-99, 99, (6, 60))
        (tmp_path / f"{label}.csv").write_text("".join(f"{' '.join(map(str, x))}\n" for x in X))
    assert "--set axes=3" in refused(tmp_path, 20)
    found = windows(tmp_path, 20, axes=3)
    assert (found.X.shape, Counter(found.y)) == ((12, 20, 3), {"idle": 6, "run": 6})
    assert len(set(found.groups)) == 12
    np.testing.assert_array_equal(found.X[-1], X[-1].reshape(20, 3))
    assert "no samples of 7 axes" in refused(tmp_path, 20, axes=7)


def test_a_table_of_pandas_with_two_unnamed_levels(tmp_path, require_tool):
    """The values of one level had the name of another."""
    require_tool("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    levels = {"__index_level_0__": range(40), "__index_level_1__": range(40, 80)}
    columns = {"ax": np.arange(40) % 7, **levels, "label": ["a"] * 20 + ["b"] * 20}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    found = windows(tmp_path / "a.parquet", 10, 10)
    assert found.channels == ("ax",)
    np.testing.assert_array_equal(found.X.ravel(), np.arange(40) % 7)


def test_a_class_without_a_signal_is_named(tmp_path):
    """A class of all-zero sounds trained without a word."""
    for label, loud in (("noise", 9), ("word", 0)):
        X = np.random.default_rng(0).integers(-99, 99, 400) * loud
        (tmp_path / f"{label}.csv").write_text("ax\n" + "".join(f"{x}\n" for x in X))
    found = windows(tmp_path, 20, name="{label}")
    assert any("windows of word hold one value" in note for note in found.notes)


def test_unequal_windows_in_a_list_are_one_line():
    """They ended in a traceback of NumPy."""
    X = [np.ones((10, 2)), np.ones((8, 2))] * 5
    model = Classifier(effort="quick")
    assert "(8, 2), (10, 2)" in refusals.refused(TinykernelError, model.fit, X, [0, 1] * 5)
