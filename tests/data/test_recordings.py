"""Recordings: what is cut into windows, what is held out, and the line that each bad file gets."""

import sys
import tracemalloc
import wave
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import wavfile

from tests import refusals
from tinykernel.base.errors import FormatError, TinykernelError
from tinykernel.data.labels import NamePattern
from tinykernel.data.reading import Reading
from tinykernel.data.recordings import windows
from tinykernel.data.splits import split_recordings
from tinykernel.data.streams import pieces

pytestmark = pytest.mark.usefixtures("page")


def log(path: Path, *, step: int = 20, header: str = "time_ms,ax,ay,label") -> Path:
    """Write a table whose label changes in the middle."""
    noise = np.random.default_rng(len(path.name)).integers(-900, 900, (100, 2))
    lines = [f"{i * step},{a},{b},{'up' if i < 50 else 'down'}" for i, (a, b) in enumerate(noise)]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def sound(
    path: Path, samples: int = 80, *, rate: int = 8000, width: int = 2, channels: int = 1
) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        noise = np.random.default_rng(samples).integers(0, 256, samples * width * channels)
        file.writeframes(noise.astype(np.uint8).tobytes())
    return path


def refused(*args: object, call=windows, **options: object) -> str:
    return refusals.refused(TinykernelError, call, *args, **options)


@st.composite
def recordings(draw):
    """Draw a recording with gaps, missing values and labels, and how to cut it."""
    n = draw(st.integers(10, 80))
    gaps = draw(st.sets(st.integers(1, n - 1), max_size=n // 4))
    steps = np.full(n - 1, 20)
    for i, gap in enumerate(sorted(gaps)):
        steps[gap - 1] = -70 if i == 0 and draw(st.booleans()) else draw(st.integers(31, 999))
    window = draw(st.integers(1, 9))
    some = st.sets(st.integers(0, n - 1), max_size=4)
    changes = sorted(draw(some))
    return {
        "time_ms": np.concatenate([[0], np.cumsum(steps)]),
        "label": 1 + np.searchsorted(changes, np.arange(n), side="right") % 3,
        "group": np.searchsorted(sorted(draw(some)), np.arange(n), side="right"),
        "holes": draw(some),
        "window": window,
        "hop": draw(st.integers(1, window)),
    }


def slow_windows(case: dict, mixed: str):
    """Cut sample by sample, as the firmware does: a buffer that forgets at every gap."""
    cut, dropped, buffer, seen = [], Counter(), [], 0
    times, label, group = case["time_ms"], case["label"], case["group"]
    for i in range(len(times)):
        if i and (not 0 <= times[i] - times[i - 1] <= 30 or group[i] != group[i - 1]):
            buffer, seen = [], 0
        buffer = [*buffer, i][-case["window"] :]
        seen += 1
        if seen < case["window"] or (seen - case["window"]) % case["hop"]:
            continue
        counts = Counter(label[j] for j in buffer)
        if len(counts) > 1 and mixed == "drop":
            dropped["mixed"] += 1
        elif set(buffer) & case["holes"]:
            dropped["missing"] += 1
        else:
            most = [name for name, count in counts.items() if count == max(counts.values())]
            latest = next(label[j] for j in reversed(buffer) if label[j] in most)
            cut.append((buffer[0], latest, str(group[i]), times[i] / 1000))
    return cut, dropped


@settings(max_examples=80)
@given(
    case=recordings(),
    mixed=st.sampled_from(["drop", "majority"]),
    groups=st.sampled_from([None, "g"]),
)
def test_windows_are_those_of_a_stream(tmp_path_factory, case, mixed, groups):
    """Positions, labels, groups, times and counts are those of a buffer fed sample by sample."""
    file = tmp_path_factory.mktemp("cut") / "a.npz"
    X = np.random.default_rng(0).normal(size=(len(case["time_ms"]), 2)).astype(np.float32)
    X[list(case["holes"]), 1] = np.nan
    arrays = {"y": case["label"], groups or "group": case["group"], "time_ms": case["time_ms"]}
    np.savez(file, X=X, **arrays)
    expected, dropped = slow_windows(case, mixed)
    options = {"groups": groups, "mixed": mixed, "missing": "drop", "labels_needed": False}
    if not expected:
        with pytest.raises(TinykernelError):
            windows(file, case["window"], case["hop"], **options)
        return
    found = windows(file, case["window"], case["hop"], **options)
    columns = (found.starts, found.y, found.groups, found.end_times)
    assert list(zip(*(c.tolist() for c in columns), strict=True)) == expected
    assert all(found.dropped[reason] == dropped[reason] for reason in ("mixed", "missing"))
    for start, window in zip(found.starts, found.X, strict=True):
        np.testing.assert_array_equal(window, X[start : start + case["window"]])


def test_tables_of_all_kinds_are_equal(tmp_path, require_tool):
    """CSV, decimal commas, tabs, dates, parquet and arrays give the same windows and times."""
    require_tool("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    ms, v = np.arange(40) * 20, np.random.default_rng(1).integers(-99, 99, 40) / 4
    y = np.where(ms < 400, "up", "down")
    cells = [f"{t}|{a}|{w}" for t, a, w in zip(ms, v, y, strict=True)]
    date = np.datetime64("1970-01-01T00:00:00") + ms.astype("m8[ms]")
    texts = {
        "a.csv": "\n".join(["time_ms|a|label", *cells]).replace("|", ","),
        "b.tsv": "\n".join(["Time [ms]|a|label", *cells]).replace("|", "\t"),
        "c.csv": "\n".join(["t_ms|a|label", *cells]).replace("|", ";").replace(".", ","),
        "d.csv": "timestamp,a,label\n"
        + "".join(f"{d}Z,{a},{w}\n" for d, a, w in zip(date, v, y, strict=True)),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    pq.write_table(pa.table({"time": date, "a": v, "label": y}), tmp_path / "e.parquet")
    np.savez(tmp_path / "f.npz", X=v, y=y, time=ms / 1000, rate=50.0, channels=["a"])
    first = windows(tmp_path / "a.csv", "200ms")
    assert (first.X.dtype, first.hop, first.rate) == (np.float32, 5, 50)
    for name in (*list(texts)[1:], "e.parquet", "f.npz"):
        other = windows(tmp_path / name, "200ms")
        np.testing.assert_array_equal(other.X, first.X)
        np.testing.assert_array_equal(other.y, first.y)
        np.testing.assert_allclose(other.end_times, first.end_times)
    np.savez(tmp_path / "g.npz", X=np.eye(9), y=y[:9], channels=["a", "b", "a", *"cdefgh"])
    assert windows(tmp_path / "g.npz", 1, labels_needed=False).channels[:3] == ("a 1", "b", "a 3")


def test_sounds_take_their_label_from_the_folder(tmp_path):
    """The rate of a .wav comes from the file, its group is the file itself."""
    for i, name in enumerate(["no/1.wav", "no/2.wav", "yes/1.wav", "yes/2.wav"]):
        sound(tmp_path / name, 80 + i)
    found = windows(tmp_path, "5ms", "5ms")
    assert (found.X.shape, found.X.dtype, found.rate) == ((8, 40, 1), np.int16, 8000)
    assert found.y.tolist() == ["no"] * 4 + ["yes"] * 4
    train, test = split_recordings(found, 0.5)
    assert set(found.y[train]) == set(found.y[test]) == {"no", "yes"}
    assert not set(found.groups[train]) & set(found.groups[test])


def test_smallest_type(tmp_path):
    """Whole numbers become the smallest integers that hold them, all else float32."""
    file = tmp_path / "a.csv"
    types = {"-3": "i2", "2.0": "i2", "70000": "i4", "2.5": "f4", "5000000000": "f4"}
    for cells, dtype in types.items():
        file.write_text("a,label\n" + f"{cells},0\n1,1\n" * 5)
        assert windows(file, 1).X.dtype == dtype


def test_times_without_a_unit(tmp_path):
    """A rate makes seconds of unnamed units, and only then may lengths be seconds."""
    file = log(tmp_path / "a.csv", header="counter,ax,ay,label")
    assert windows(file, 10, time="counter").end_times is None
    refused(file, "1s", time="counter")
    found = windows(file, "200ms", rate=50, time="counter")
    assert (found.X.shape[1], found.end_times[0], found.time) == (10, 0.18, "counter")
    refused(log(tmp_path / "b.csv"), 10, rate=500)


def test_steps_of_whole_milliseconds_do_not_shift_the_rate(tmp_path):
    """60 Hz in milliseconds is 16, 17, 17, ...: the rate is the mean, not the median."""
    file = tmp_path / "a.npz"
    times = np.round(np.arange(300) * 1000 / 60)
    np.savez(file, X=np.ones((300, 1)), y=np.arange(300) // 150, time_ms=times)
    assert windows(file, 10).rate == 60


def test_bad_recordings(tmp_path):
    """Every bad input of the list gets one line that names the file and what to do."""
    a = log(tmp_path / "d" / "a.csv")
    folder = tmp_path / "d"
    refused(a, 101)
    refused(a, 10, 0)
    refused(a, 10, 11)
    for length in ("2m", "", "1.5", 2.5, True, "-1s"):
        refused(a, length)
    refused(a)
    refused(a, 10, label="nought")
    refused(a, 10, inputs=["az"])
    refused(a, 10, drop=["az"])
    refused(a, 10, label="ax")
    log(folder / "b.csv", step=10)
    refused(folder, 10)
    log(folder / "b.csv", header="time_ms,ax,az,label")
    refused(folder, 10)
    assert windows(folder, 10, inputs=["ax"]).X.shape == (36, 10, 1)
    log(folder / "b.csv", header="counter,ax,ay,label")
    refused(folder, 10)
    (folder / "b.csv").write_text("time_ms,ax,ay,label\n" + "0,1,2,3\n20,1,2,4\n" * 6)
    refused(folder / "b.csv", 3)
    one = tmp_path / "one.csv"
    one.write_text("ax,label\n" + "1,0\n2,0\n" * 9)
    refused(one, 2)


def test_bad_sounds(tmp_path):
    """Two rates, a file that was cut short, and samples that are no numbers are told apart."""
    sound(tmp_path / "w" / "a.wav")
    b = sound(tmp_path / "w" / "b.wav", rate=16000)
    refused(tmp_path / "w", 10)
    whole = b.read_bytes()
    for size in (0, 10, 40, len(whole) - 3):
        b.write_bytes(whole[:size])
        refused(b, 10)
    wavfile.write(b, 8000, np.array([0, np.nan], np.float32))
    refused(b, 1)
    wavfile.write(b, 8000, np.array([0, 8000], np.float32))
    refused(b, 1)


@pytest.mark.parametrize("channels", [1, 2])
def test_a_wav_without_samples_is_one_line(tmp_path, channels):
    """A recorder that is stopped at once leaves a header and no samples: one line says so."""
    sound(tmp_path / "w" / "a.wav", channels=channels)
    sound(tmp_path / "w" / "b.wav", 0, channels=channels)
    refused(tmp_path / "w", 10)


def test_sounds_of_another_rate_are_resampled_where_a_rate_is_asked_for(tmp_path):
    """A tone stays the tone that it is, at the asked-for rate, and a line counts such sounds."""
    t = {rate: np.arange(2 * rate) / rate for rate in (8000, 11025)}
    (tmp_path / "w").mkdir()
    for name, rate in (("a", 8000), ("b", 11025)):
        tone = 9000 * np.sin(2 * np.pi * 440 * t[rate])
        wavfile.write(tmp_path / "w" / f"{name}.wav", rate, np.rint(tone).astype(np.int16))
    refused(tmp_path / "w", "1s")
    for rate in (1e9, 0.01):  # filled the memory
        refused(tmp_path / "w", 10, rate=rate)
    (tmp_path / "w" / "c.MP3").touch()
    found = windows(tmp_path / "w", "1s", "1s", rate=8000, labels_needed=False)
    assert (found.rate, found.resampled, found.X.shape) == (8000, 1, (4, 8000, 1))
    unread = "not read: 1 sound, such as c.MP3; convert to .wav"
    assert {*found.notes} == {"resampled to 8000 Hz: 1 sound", unread}
    inside = slice(100, -100)  # the filter begins and ends with silence
    gap = found.X[2, inside].astype(int) - found.X[0, inside]
    assert np.abs(gap).max() < 20


@pytest.mark.parametrize("kind", [np.uint8, np.int16, 24, np.int32, np.float32, np.float64])
def test_sounds_of_every_width_are_the_same_to_16_bits(tmp_path, kind):
    """Whatever program wrote the file, the model gets the samples that the chip will give it."""
    wanted = (np.arange(-128, 128) * 256).astype(np.int16)
    path = tmp_path / "w" / "a.wav"
    path.parent.mkdir()
    if kind == 24:
        with wave.open(str(path), "wb") as file:
            file.setparams((1, 3, 8000, 0, "NONE", "none"))
            wide = (wanted.astype("<i4") << 8).view(np.uint8).reshape(-1, 4)
            file.writeframes(wide[:, :3].tobytes())
    else:
        scaled = {
            "u": (wanted >> 8) + 128,
            "i": wanted.astype(np.int64) << (8 * np.dtype(kind).itemsize - 16),
            "f": wanted / 32768,
        }
        wavfile.write(path, 8000, scaled[np.dtype(kind).kind].astype(kind))
    found = windows(path, 256, inputs=["channel 1"], labels_needed=False)
    assert found.X.dtype == np.int16
    np.testing.assert_array_equal(found.X.ravel(), wanted)


@pytest.mark.parametrize(("suffix", "format"), [("flac", "FLAC"), ("ogg", "OGG")])
def test_coded_sounds_are_those_of_the_wav(tmp_path, require_tool, suffix, format):
    """FLAC loses nothing, Ogg little; a damaged file is one clear line."""
    soundfile = require_tool("soundfile")
    tone = np.rint(9000 * np.sin(np.arange(8000) / 9)).astype(np.int16)
    file = tmp_path / "w" / f"a.{suffix}"
    file.parent.mkdir()
    soundfile.write(file, tone, 8000, format=format)
    found = windows(tmp_path / "w", "1s", labels_needed=False)
    assert found.rate == 8000
    gap = np.abs(found.X.ravel().astype(int) - tone).max()
    assert gap == 0 if suffix == "flac" else gap < 1000
    file.write_bytes(file.read_bytes()[:20])
    with pytest.raises(FormatError):
        windows(file, 100)


def test_coded_sounds_without_soundfile(tmp_path, monkeypatch):
    """Where soundfile is missing the message says what to install."""
    monkeypatch.setitem(sys.modules, "soundfile", None)
    (tmp_path / "a.flac").write_bytes(b"fLaC")
    refused(tmp_path / "a.flac", 100)


def test_names_of_files_tell_label_and_group(tmp_path):
    """Label and person stand in names or folders; another name, or none, is one clear line."""
    for name in ("7_anna_1", "8_anna_1", "7_ben_1", "8_ben_2"):
        sound(tmp_path / "flat" / f"{name}.wav", 40)
        label, person, n = name.split("_")
        sound(tmp_path / "deep" / person / label / f"{n}.wav", 40)
    flat = windows(tmp_path / "flat", 40, name="{label}_{person}_{n}")
    deep = windows(tmp_path / "deep", 40, name="{person}/{label}/*")
    said = [(7, "anna"), (7, "ben"), (8, "anna"), (8, "ben")]  # numbers, as in a table
    for cut in (flat, deep):
        assert sorted(zip(cut.y, cut.groups, strict=True)) == said
    named = windows(tmp_path / "flat", 40, name="{a}_{b}_*", label="b", groups="a")
    assert set(named.y) == {"anna", "ben"}
    assert set(named.groups) == {"7", "8"}
    sound(tmp_path / "flat" / "noise.wav", 40)
    pattern = "{label}_{person}_{n}"
    refused(tmp_path / "flat", 40, name=pattern)
    refused(tmp_path / "flat", 40, name="{a}_{b}")
    for name in ("{y}/{y}", "{label}_{person", "{label}{person}"):
        refused(tmp_path / "flat", 40, name=name)
    alone = windows(tmp_path / "flat" / "noise.wav", 40, name=pattern, labels_needed=False)
    assert alone.y is None


@pytest.mark.parametrize("field", ["1", "\u00b2"])
def test_field_of_a_name_that_is_no_name_of_python(field):
    """{1} in --name ended in a traceback of the module of regular expressions."""
    text, path = f"{{{field}}}_{{label}}", Path("7_yes.wav")
    assert NamePattern("{label}{n}").find(Path("walk12.csv")) == ("walk", None)
    assert NamePattern(text).find(path) == ("yes", None)
    assert NamePattern(text, group=field).find(path) == ("yes", "7")


def test_clips_shorter_than_a_window_are_padded(tmp_path):
    """Sounds get zeros after their end, and are counted; others need an option."""
    for i, length in enumerate((40, 25, 90)):
        sound(tmp_path / "yn"[i % 2] / f"{i}.wav", length)
    found = windows(tmp_path, 40, 40)
    assert (len(found.X), found.padded) == (4, 1)
    assert "padded" in str(found)
    short = found.X[found.recording == found.recordings.index("n/1.wav")].ravel()
    assert short[:25].any()
    assert not short[25:].any()
    assert "1 stretch too short" in str(
        windows(tmp_path, 40, 40, short="drop", labels_needed=False)
    )
    table = log(tmp_path / "t" / "a.csv")
    refused(table, 101)
    assert windows(table, 101, short="pad", mixed="majority", labels_needed=False).padded == 1
    refused(table, 101, short="drop")


def test_missing_values_are_never_silent(tmp_path):
    """A missing value or label inside a window is an error with its line, or a counted drop."""
    file = log(tmp_path / "a.csv")
    lines = file.read_text().splitlines()
    lines[31] = "600,,5,up"
    lines[71] = "1400,4,5,"
    file.write_text("\n".join(lines))
    refused(file, 10, 10)
    found = windows(file, 10, 10, missing="drop")
    assert found.dropped == {"mixed": 0, "missing": 2, "short": 0}
    assert (len(found.X), found.X.dtype) == (8, np.int16)
    lines[31] = "600,4,5,up"
    file.write_text("\n".join(lines))
    refused(file, 10, 10)
    lines[31] = "600,inf,5,up"
    file.write_text("\n".join(lines))
    refused(file, 10, missing="drop")


def test_sounds_of_one_and_of_two_channels_are_read(tmp_path) -> None:
    """The channels that all have are taken, and told."""
    samples = np.random.default_rng(0).integers(-999, 999, (800, 2), dtype=np.int16)
    for label, n in (("a", 1), ("b", 2)):
        (tmp_path / label).mkdir()
        wavfile.write(tmp_path / label / "1.wav", 8000, samples[:, :n])
    found = windows(tmp_path, 200)
    assert found.X.shape[2] == 1
    assert found.notes == ("of the sounds channel 1 is taken, and not channel 2",)
    assert windows(tmp_path / "b", 40, labels_needed=False).notes == ()


def test_a_folder_of_sounds_takes_little_memory(tmp_path) -> None:
    """Labels, groups and times of a sound are no arrays of a value a sample."""
    n, samples = 24, 8000
    for i in range(n):
        sound(tmp_path / f"p{i % 3}/word{i % 2}_{i}.wav", samples, rate=16000, width=2)
    tracemalloc.start()
    cut = windows(tmp_path, "500ms", name="{person}/{label}_*", groups="person")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert set(np.asarray(cut.end_times)) == {(samples - 1) / 16000}
    assert peak < 16 * n * samples


def test_times_may_begin_again_at_each_session(tmp_path) -> None:
    """At another group, another label, or back at the start; what falls elsewhere is no time."""
    parts = [(f"s{i // 2}", label) for i, label in enumerate(["air", "tea"] * 8)]
    rows = [f"{i},{7 * i % 5},{name},{y}" for name, y in parts for i in range(30)]
    header = "elapsed_s,g,session,label"
    path = tmp_path / "nose.csv"
    path.write_text("\n".join([header, *rows]))
    for groups, drop in (("session", ()), (None, ("session",))):
        cut = windows(path, 10, 10, groups=groups, drop=drop)
        assert (len(cut.X), cut.rate) == (16 * 3, 1.0)
    jumps = [f"{i - 4 * (i % 5 == 4)},{i % 5},s0,air" for i in range(300)]
    path.write_text("\n".join([header, *jumps, *rows]))
    refused(path, 10, groups="session")


@pytest.mark.parametrize(("blank", "expected"), [("\n", 8), (",,\n", 8), ("\n\n\n", 8), ("", 10)])
def test_blank_lines_are_gaps(blank, expected, tmp_path) -> None:
    """A window joins no two gestures; without blank lines it may."""
    for label in ("flex", "punch"):
        gesture = "".join(f"{i % 7},{i % 5}\n" for i in range(25))
        (tmp_path / f"{label}.csv").write_text("ax,ay\n" + (gesture + blank) * 4)
    assert len(windows(tmp_path, 20, name="{label}", rate=50).X) == (
        expected if blank else 2 * expected - 2
    )


def test_a_blank_line_after_each_row_is_no_gap(tmp_path) -> None:
    """Some programs write two line ends."""
    path = log(tmp_path / "a.csv")
    n = len(windows(path, 10).X)
    path.write_text(path.read_text().replace("\n", "\n\n"))
    assert len(windows(path, 10).X) == n


def test_a_stream_of_other_channels_is_refused(tmp_path) -> None:
    """Predictions and an emulated board take as many as the model, and name those there."""
    path, reading = log(tmp_path / "a.csv"), Reading(labels_needed=False)
    assert next(pieces(path, reading, 2)).X.shape == (100, 2)
    refused(path, reading, 3, call=lambda *given: list(pieces(*given)))
