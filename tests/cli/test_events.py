"""From clips to events: calibrate on joined clips, evaluate a labelled long recording."""

import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
from scipy.io import wavfile

from tests.cli.tools import failed, json_of, run, succeeded
from tinykernel import load
from tinykernel.data import recordings, streams
from tinykernel.model.answers import Labels
from tinykernel.model.file import about, save
from tinykernel.run.parity import verify

pytestmark = pytest.mark.usefixtures("page")

RATE = 2000
TONES = {"low": 150, "high": 420, "other": 800, "noise": 0}


def _clip(label: str, rng: np.random.Generator) -> np.ndarray:
    """Return a second with a tone of half a second in it."""
    t = np.arange(RATE) / RATE
    on = (t > 0.2) & (t < 0.75)
    tone = np.sin(2 * np.pi * TONES[label] * rng.uniform(0.95, 1.05) * t) * on
    return 6000 * tone * (label != "noise") + 120 * rng.standard_normal(RATE)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of clips to train on, others to calibrate, and a long recording with its labels."""
    folder, rng = tmp_path_factory.mktemp("told"), np.random.default_rng(0)
    for label in TONES:
        for person in "abcdefgh":
            for n in range(4):
                part = "train" if person < "e" else "new"
                file = folder / part / label / f"{person}_{n}.wav"
                file.parent.mkdir(parents=True, exist_ok=True)
                wavfile.write(file, RATE, _clip(label, rng).astype(np.int16))
    samples, lines = 120 * rng.standard_normal(120 * RATE), ["start,end,label"]
    for at, label in zip(range(5, 115, 5), ["low", "high", "other"] * 8, strict=False):
        samples[at * RATE : (at + 1) * RATE] += _clip(label, rng)
        lines.append(f"{at},{at + 1},{label}")
    (folder / "long").mkdir()
    wavfile.write(folder / "long" / "day.wav", RATE, samples.astype(np.int16))
    (folder / "long" / "day.csv").write_text("\n".join(lines))
    how = ("--name", "{label}/{person}_*", "--window", "1s", "--hop", "0.1s", "--test", "0")
    how += ("--set", "n_kernels=64", "--quiet", "--target", "host")
    how += ("--augment", "shift:500", "--set", "background=noise,other")
    succeeded("train", folder / "train", *how, "-o", folder / "m.tkm")
    calibrate = ("calibrate", folder / "m.tkm", folder / "new", "--false-alarms", "60/h")
    done = succeeded(*calibrate, "-o", folder / "e.tkm")
    assert "(chosen)" in done.stdout  # in the table of thresholds
    return folder


def test_from_clips_to_events(told):
    """Classes of the setting are background; most tones of a long recording are hit once."""
    model = load(told / "e.tkm")
    silent = model.events.thresholds == 0
    assert [c for c, s in zip(model.classes, silent, strict=True) if s] == ["noise", "other"]
    assert model.events.statement
    assert len(about(told / "e.tkm")["events"]["curve"]) == 10
    found = json_of("evaluate", told / "e.tkm", told / "long" / "day.wav")
    assert found["events"] == 15
    assert found["hits"] + found["misses"] == 15
    assert found["hits"] >= 12
    assert found["false_alarms"] <= 4
    assert len(found["cautions"]) == (found["false_alarms_an_hour"] > 60)
    assert found["double_counts"] <= 1
    assert 0 < found["delay_from_start"]["median"] < 2
    misses = [point["missed"] for point in found["curve"]]
    assert misses == sorted(misses)
    heard = json_of("predict", told / "e.tkm", "--stream", told / "long" / "day.wav")["decisions"]
    events = [row for row in heard if row["event"] is not None]
    assert found["hits"] <= len(events) <= found["hits"] + found["false_alarms"] + 1
    _, samples = wavfile.read(told / "long" / "day.wav")
    row = samples[:RATE].reshape(1, -1)
    result = verify(model, row, recordings=[samples[: 60 * RATE].reshape(-1, 1)])
    assert (result.differences, result.events > 0) == (0, True)


def test_a_threshold_of_the_table(told, tmp_path):
    """Another threshold promises its own rate; a wrong one, or a wrong background, is refused."""
    calibrate = ("calibrate", told / "m.tkm", told / "new", "--false-alarms", "60/h")
    chosen = json_of(*calibrate, "-o", tmp_path / "a.tkm")
    assert 0.5 < chosen["single_clips"] <= 1
    assert len(chosen["curve"]) == 10
    low = chosen["curve"][0]["threshold"]
    other = json_of(*calibrate, "--threshold", low, "-o", tmp_path / "b.tkm")
    assert [t for t in other["thresholds"] if t] == [low, low]
    assert other["false_alarms"] >= chosen["false_alarms"]
    assert other["hits"] >= chosen["hits"]
    rate = f"{other['promised_an_hour']:.3g} false alarms an hour"
    assert load(tmp_path / "b.tkm").events.statement.startswith(f"{rate}, on average: ")
    of_table = [[point["threshold"] for point in each["curve"]] for each in (chosen, other)]
    assert of_table[0] == of_table[1]
    assert [point["factor"] for point in other["curve"]].index(1.0) == 0
    background = ("--set", "background=noise,other,high", "-o", tmp_path / "c.tkm")
    silent = json_of(*calibrate, *background)["thresholds"]
    assert [t > 0 for t in silent] == [False, True, False, False]  # high, low, noise, other
    assert about(tmp_path / "c.tkm")["background"] == ["noise", "other", "high"]
    words = json_of(*calibrate, "--set", "background=noise", "-o", tmp_path / "d.tkm")["remarks"]
    advice = "other makes events; if it is background, give --set background=noise,other"
    assert advice in words
    out = ("-o", tmp_path / "x.tkm")
    for wrong, fault in (
        (("--set", "background=hum"), "'hum' is no class of the model: high, low"),
        (("--threshold", 2**31), "threshold: 2147483648; give a sum of the table"),
        (("--set", "hop=1s"), "not an option of this command"),
    ):
        assert fault in run(*calibrate, *wrong, *out).output
    alone = run("calibrate", told / "m.tkm", told / "new", "--threshold", 9, *out)
    assert alone.exit_code == 2
    assert "only with a rate of false alarms" in alone.output


def test_events_are_decided_often(told, tmp_path):
    """Clips give a hop of 0.08 s; the default of half a window becomes that hop with events."""
    how = ("--name", "{label}/{person}_*", "--test", "0", "--set", "n_kernels=16", "--quiet")
    train = ("train", told / "train", *how, "-o", tmp_path / "m.tkm")
    json_of(*train, "--window", "1s")
    assert load(tmp_path / "m.tkm").hop == RATE * 2 // 25
    # Clips are longer; the target has no time and no memory to fit.
    json_of(*train, "--window", "0.75s", "--target", "host")
    assert load(tmp_path / "m.tkm").hop == 750
    calibrate = ("calibrate", tmp_path / "m.tkm", told / "new", "--false-alarms", "1000/h")
    assert json_of(*calibrate, "-o", tmp_path / "e.tkm")["hop"] <= RATE // 10
    model = load(tmp_path / "e.tkm")
    rows = json_of("predict", tmp_path / "e.tkm", "--stream", told / "long" / "day.wav")
    assert len(rows["decisions"]) == (120 * RATE - 1500) // model.hop + 1
    assert json_of("evaluate", tmp_path / "e.tkm", told / "long")["events"] > 0
    failed("calibrate", tmp_path / "m.tkm", told / "train", *calibrate[3:], "-o", "x.tkm")
    windows = json_of("verify", tmp_path / "e.tkm", told / "new", "--target", "host")
    assert windows["differences"] == 0
    assert 0 <= windows["events"] < windows["hops"]


def test_a_stream_through_a_pipe(told, tmp_path, monkeypatch):
    """Standard input, with a header or raw, gives the decisions of the file, in whatever pieces."""
    _, samples = wavfile.read(told / "long" / "day.wav")
    stream = ("predict", told / "e.tkm", "--stream")
    expected = json_of(*stream, told / "long" / "day.wav")["decisions"]
    assert {row["true"] for row in expected} == {"low", "high", "other", "noise"}
    header = (told / "long" / "day.wav").read_bytes()[:44]
    endless = header[:40] + b"\xff\xff\xff\xff" + samples.tobytes()
    unknown = header[:40] + bytes(4) + samples.tobytes()
    more = header + samples.tobytes() + b"LIST" + (8000).to_bytes(4, "little") + bytes(8000)
    longer = header[:40] + (2**30).to_bytes(4, "little") + samples.tobytes()  # was interrupted
    for content in (samples.tobytes(), endless, unknown, more, longer):
        monkeypatch.setattr(streams, "sys", _pipe(content))
        rows = json_of(*stream, "-")["decisions"]
        keys = ("sample", "time", "label", "event")
        assert [[row[k] for k in keys] for row in rows] == [
            [row[k] for k in keys] for row in expected
        ]
    monkeypatch.setattr(streams, "sys", _pipe(samples.tobytes()))
    shown = run(*stream, "-").stdout.splitlines()
    n = sum(row["event"] is not None for row in expected)
    assert (shown[0].split(), len(shown), shown[-1]) == (
        ["time", "event"],
        n + 2,
        f"{n} events in {len(expected)} decisions",
    )
    other = header[:24] + (8000).to_bytes(4, "little") + header[28:]
    for content in (
        other + samples.tobytes(),
        b"RIFF1234WAVE",
        b"",
        b"time_ms,ax,ay\n" + b"0,8297,-1009\n" * 900,
        b"fLaC" + bytes(4000),
    ):
        monkeypatch.setattr(streams, "sys", _pipe(content))
        failed(*stream, "-")
    cut = about(told / "e.tkm")["recordings"] | {"short": "drop"}
    save(load(told / "e.tkm"), tmp_path / "drop.tkm", about(told / "e.tkm") | {"recordings": cut})
    monkeypatch.setattr(streams, "sys", _pipe(bytes(2 * RATE - 2)))
    failed("predict", tmp_path / "drop.tkm", "--stream", "-")


def _pipe(content: bytes) -> SimpleNamespace:
    """Standard input that gives a few bytes at a time, and cannot be wound back."""

    class Pipe(io.BytesIO):
        def read1(self, n: int | None = -1) -> bytes:
            return super().read(min(n or 0, 70001))

        def seekable(self) -> bool:
            return False

    return SimpleNamespace(stdin=SimpleNamespace(buffer=Pipe(content)))


def test_a_recording_is_the_sensor_of_a_board(told, tmp_path, require_tool):
    """The board takes samples in real time; the monitor has the events that predict finds."""
    require_tool("serial")
    rate, samples = wavfile.read(told / "long" / "day.wav")
    sound, log = tmp_path / "short.wav", tmp_path / "live.csv"
    wavfile.write(sound, rate, samples[9 * rate : 14 * rate])
    expected = json_of("predict", told / "e.tkm", "--stream", sound)["decisions"]
    assert any(row["event"] for row in expected)
    command = [sys.executable, "-m", "tinykernel", "emulate", told / "e.tkm", sound]
    with subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True) as emulator:
        try:
            port = emulator.stdout.readline().strip()
            count = ("--decisions", len(expected), "--log", log)
            shown = run("monitor", told / "e.tkm", "--port", port, *count)
        finally:
            emulator.kill()
    assert shown.exit_code == 0, shown.output
    rows = [line.split(",")[:3] for line in log.read_text().splitlines()]
    assert rows[0] == ["seconds", "label", "event"]
    assert [row[1:] for row in rows[1:]] == [[r["label"], r["event"] or ""] for r in expected]
    events = [row["event"] for row in expected if row["event"]]
    assert [line.split()[-1] for line in shown.stdout.splitlines()[: len(events)]] == events
    assert float(rows[-1][0]) >= 0.8 * len(expected) / 10  # as long as the recording
    failed("emulate", told / "e.tkm", tmp_path / "none.wav")
    failed("emulate", told / "e.tkm", "-", status=2)


@pytest.mark.slow
def test_long_recordings_take_little_memory(told, tmp_path):
    """Twenty minutes take little more memory than two; its events are those of the whole."""
    rate, samples = wavfile.read(told / "long" / "day.wav")
    wavfile.write(tmp_path / "longer.wav", rate, np.tile(samples, 10))
    program = (
        "import resource, sys; from tinykernel.face import app\n"
        "for sound in sys.argv[2:]:\n"
        "    app(['predict', sys.argv[1], '--stream', sound], standalone_mode=False)\n"
        "    print('peak', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    sounds = told / "long" / "day.wav", tmp_path / "longer.wav"
    command = [sys.executable, "-c", program, told / "e.tkm", *sounds]
    ended = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True)
    first, second, _ = re.split(r"^peak .*\n", ended.stdout, flags=re.MULTILINE)
    events = [len(part.splitlines()) - 2 for part in (first, second)]
    peaks = [int(peak) / 1024 for peak in re.findall(r"^peak (\d+)", ended.stdout, re.MULTILINE)]
    assert peaks[1] < peaks[0] + 20  # MB; the samples as windows have 48 MB
    assert 9 * events[0] <= events[1] <= 11 * events[0]


def test_other_files_of_labels(told, tmp_path):
    """Audacity's labels and JSON give the same figures; what is not a span is one clear line."""
    sound, rows = told / "long" / "day.wav", (told / "long" / "day.csv").read_text().split()[1:]
    (tmp_path / "day.wav").write_bytes(sound.read_bytes())
    text, keys = tmp_path / "day.txt", ("events", "hits", "false_alarms")
    text.write_text("\n".join(row.replace(",", "\t") for row in rows))
    parts = [json_of("evaluate", told / "e.tkm", f) for f in (tmp_path, sound)]
    text.unlink()
    names = ("start", "end", "label")
    held = [dict(zip(names, row.split(","), strict=True)) for row in rows]
    (tmp_path / "day.json").write_text(json.dumps(held))
    parts.append(json_of("evaluate", told / "e.tkm", tmp_path))
    assert len({tuple(part[key] for key in keys) for part in parts}) == 1
    (tmp_path / "day.json").write_text('[{"start": 5}]')
    failed("evaluate", told / "e.tkm", tmp_path)
    for lines in (
        "5\t4\tlow",
        "5\tinf\tlow",
        "a person says low",
        "5\t6\tlwo",
        "5\t6\tlow\n119\t121\tlow",
        "8\t9\tlow\n5\t8.5\thigh",
    ):
        text.write_text(lines)
        failed("evaluate", told / "e.tkm", tmp_path / "day.wav")


def test_background_of_a_long_recording_is_right(told, tmp_path):
    """Without events windows are judged by the labels along time; short events say what to do."""
    found = json_of("evaluate", told / "m.tkm", told / "long")
    assert found["accuracy"] > 0.9
    assert set(found["classes"]) == set(TONES)
    (tmp_path / "day.wav").write_bytes((told / "long" / "day.wav").read_bytes())
    failed("evaluate", told / "m.tkm", tmp_path / "day.wav")  # a name that says no label.
    (tmp_path / "day.txt").write_text("5.2\t5.7\tlow\n10.2\t10.7\thigh")
    advice = "'calibrate --false-alarms 1/h' makes a model of events"
    assert advice in run("evaluate", told / "m.tkm", tmp_path).stdout
    answers = Labels(("high", "low", "tone", "other"))
    model = replace(load(told / "m.tkm"), answers=answers)
    save(model, tmp_path / "m.tkm", about(told / "m.tkm") | {"background": None})
    failed("evaluate", tmp_path / "m.tkm", tmp_path / "day.wav")
    found = json_of("evaluate", tmp_path / "m.tkm", told / "long")
    assert (found["accuracy"], found["rows"]) == (1.0, 22)
    assert found["notes"]


def test_recordings_of_the_training_are_left_out(told, tmp_path):
    """Long recordings that were trained on promise nothing: the held-out one is judged alone."""
    rate, samples = wavfile.read(told / "long" / "day.wav")
    spans = (told / "long" / "day.csv").read_text().splitlines()
    for n in range(4):
        begin = 30 * n  # 30 seconds, and the six spans within them
        rows = [line.split(",") for line in spans[1:]]
        rows = [(int(a) - begin, int(b) - begin, label) for a, b, label in rows]
        lines = [",".join(map(str, row)) for row in rows if 0 <= row[0] < 30]
        part = samples[begin * rate : (begin + 30) * rate]
        (tmp_path / "days").mkdir(exist_ok=True)
        wavfile.write(tmp_path / "days" / f"{n}.wav", rate, part)
        (tmp_path / "days" / f"{n}.csv").write_text("\n".join([spans[0], *lines]))
    model, out = tmp_path / "m.tkm", ("-o", tmp_path / "e.tkm")
    how = ("--window", "0.5s", "--hop", "0.25s", "--set", "n_kernels=16", "--quiet")
    succeeded("train", tmp_path / "days", *how, "-o", model)
    calibrate = ("calibrate", model, tmp_path / "days", "--false-alarms")
    with patch.object(recordings, "read_recording", wraps=recordings.read_recording) as read:
        succeeded(*calibrate, "1000/h", *out)
    assert read.call_count == 4  # each file once
    assert load(tmp_path / "e.tkm").events.statement.endswith(
        "hours of recordings held out of days"
    )
    found = json_of("evaluate", tmp_path / "e.tkm", tmp_path / "days")
    assert found["hours"] == pytest.approx(30 / 3600)
    (tmp_path / "days").rename(tmp_path / "same")
    failed("calibrate", model, tmp_path / "same", "--false-alarms", "1000/h", *out)
    unused = run("evaluate", tmp_path / "e.tkm", tmp_path / "same", "--train", tmp_path / "days")
    assert unused.exit_code == 2
    assert "not for events of long recordings" in unused.output


def test_the_worst_of_a_recording_go_back_into_the_training(told, tmp_path):
    """Hits at three promises, and pieces of the worst mistakes that `train --also` takes."""
    worst, model = tmp_path / "worst", tmp_path / "e.tkm"
    long = ("calibrate", told / "m.tkm", told / "long", "--false-alarms", "600/h", "-o", model)
    found = json_of(*long, "--save-worst", worst)
    at = found["promises"]
    assert [each["false_alarms_an_hour"] for each in at] == [150, 600, 2400]
    assert all(each["hits"] + each["misses"] == 15 for each in at)
    listed = (worst / "worst.csv").read_text().splitlines()
    assert len(listed) == 1 + len(found["worst"])
    kinds = [each["kind"] for each in found["worst"]]
    assert max(map(kinds.count, ("miss", "false alarm"))) <= 5
    pieces = sorted(worst.rglob("*.wav"))
    assert len(pieces) == len(found["worst"])
    _, day = wavfile.read(told / "long" / "day.wav")
    for piece, mistake in zip(sorted(pieces, key=lambda p: p.name), found["worst"], strict=True):
        _, samples = wavfile.read(piece)
        assert len(samples) >= RATE
        assert samples.tobytes() in day.tobytes()
        label = mistake["class"] if mistake["kind"] == "miss" else "noise"
        assert piece.parent.name == label
    assert "promised" in run(*long).stdout
    how = ("--name", "{label}/{person}_*", "--window", "1s", "--hop", "0.1s", "--test", "0")
    again = ("train", told / "train", *how, "--set", "n_kernels=16", "-o", tmp_path / "again.tkm")
    if pieces:
        assert "are trained on, too" in " ".join(succeeded(*again, "--also", worst).stdout.split())
    clips = ("calibrate", told / "m.tkm", told / "new", "--false-alarms", "60/h", "-o", model)
    failed(*clips, "--save-worst", tmp_path / "none", status=2)
