"""From recordings to a model and back: train, predict and verify on recordings."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.io import wavfile

from tests.cli.tools import failed, json_of, run, sets
from tinykernel import load, save
from tinykernel.model.answers.decision import Decision
from tinykernel.model.answers.labels import Labels
from tinykernel.modelfile import about

CUT = ("--window", "640ms", "--hop", "320ms", "--label", "motion")
QUICK = ("--set", "n_kernels=16", "--quiet")


def lines(seed, samples=400, rate=50):
    """Make samples of two channels: slow, then fast."""
    rng = np.random.default_rng(seed)
    time = np.arange(samples)
    fast = time >= samples // 2
    angle = np.cumsum(np.where(fast, 0.9, 0.2)) + rng.uniform(0, 6)
    a, b = 900 * np.sin(angle), 700 * np.cos(angle) + 40 * rng.normal(size=samples)
    return [
        f"{t * 1000 // rate},{round(x)},{round(y)},{'fast' if f else 'slow'}"
        for t, x, y, f in zip(time.tolist(), a, b, fast, strict=True)
    ]


def write(path, rows, header="time_ms,ax,ay,motion"):
    path.write_text("\n".join([header, *rows]) + "\n")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A folder with four recordings, and a model of them."""
    folder = tmp_path_factory.mktemp("sensor")
    (folder / "rec").mkdir()
    for number in range(4):
        write(folder / "rec" / f"p{number}.csv", lines(number))
    shown = json_of("train", folder / "rec", *CUT, "-o", folder / "m.tkm", *QUICK)
    (folder / "train.json").write_text(json.dumps(shown))
    return folder


def test_one_recording_is_enough_to_train(recorded, tmp_path):
    """The only group that was left once ended the training."""
    file = recorded / "rec" / "p0.csv"
    result = run("train", file, *CUT, "--test", 0, "-o", tmp_path / "m.tkm", *QUICK)
    assert result.exit_code == 0, result.output


def test_whole_recordings_are_kept_aside(recorded):
    """The output says which recordings were held out, the file how they were cut."""
    found = json.loads((recorded / "train.json").read_text())
    assert "1 of 4 recordings held out: p" in found["split"]
    assert "windows of 32 samples x 2 channels, hop 16, 50 Hz, from 4 files" in found["recordings"]
    assert (found["kernels"], found["local"], found["features"]) == (16, "signal", 64)
    assert found["test_accuracy"] > 0.8
    said = about(recorded / "m.tkm")["recordings"]
    cut = {"window": 32, "hop": 16, "rate": 50.0, "channels": ["ax", "ay"], "label": "motion"}
    assert said.items() >= (cut | {"mixed": "drop"}).items()
    assert load(recorded / "m.tkm").hop == 16


def test_the_stream_is_compared_at_every_hop(recorded, tmp_path):
    """Windows of several labels are no rows, but the stream goes through them, and around gaps."""
    found = json_of("verify", recorded / "m.tkm", recorded / "rec")
    assert found["hops"] == 1 + (400 - 32) // 16 > found["rows"]
    assert found["notes"][0].startswith("left out: ")
    rows = lines(7)
    del rows[100]  # a gap: 100 samples before it, 299 after it
    cells = rows[300].split(",")
    rows[300] = ",".join([cells[0], "nan", *cells[2:]])  # 200 samples before it, 98 after it
    write(tmp_path / "gaps.csv", rows)
    said = about(recorded / "m.tkm")
    said["recordings"]["missing"] = "drop"
    save(load(recorded / "m.tkm"), tmp_path / "m.tkm", said)
    found = json_of("verify", tmp_path / "m.tkm", tmp_path / "gaps.csv")
    assert found["hops"] == sum(1 + (samples - 32) // 16 for samples in (100, 200, 98))
    assert found["differences"] == 0
    assert "with missing values" in found["notes"][0]


def test_evaluate_takes_recordings(recorded):
    """The recordings that were held out, beside models trained on the others; groups are files."""
    model, data = recorded / "m.tkm", recorded / "rec"
    found = json_of("evaluate", model, data)
    assert "recordings held out" in found["part"]
    assert (found["groups"], found["seen_in_training"]) == (1, 0.0)
    assert "linear" in found["baselines"]
    judged = json_of("verify", model, data)["evaluation"]
    assert judged["groups"] == 1
    alone = run("evaluate", model, data / "p0.csv", "--train", data, "--json")
    assert json.loads(alone.stdout)["baselines"].keys() == {"majority", "linear", "tree"}


def test_labels_of_another_kind_are_an_error(recorded, tmp_path):
    """They were once dropped without a word, and with them the accuracy."""
    rows = [line.replace("slow", "walk").replace("fast", "run") for line in lines(0)]
    write(tmp_path / "other.csv", rows)
    for command in (("predict", "--stream"), ("verify",), ("evaluate",)):
        name, *option = command
        message = failed(name, recorded / "m.tkm", *option, tmp_path / "other.csv")
        assert "no label (run, walk) is a class of the model (fast, slow)" in message


def test_a_hop_that_is_not_the_model_s_is_damage(recorded, tmp_path):
    """What a file says of its recordings must go with its model."""
    said = about(recorded / "m.tkm")
    said["recordings"]["hop"] = 8
    save(load(recorded / "m.tkm"), tmp_path / "m.tkm", said)
    message = failed("predict", tmp_path / "m.tkm", "--stream", recorded / "rec" / "p0.csv")
    assert "settings of recordings do not fit its model" in message


def test_predict_a_stream(recorded, tmp_path):
    """A decision a hop with the time of its last sample, and the majority of the last ones."""
    model, file = recorded / "m.tkm", recorded / "rec" / "p1.csv"
    found = json_of("predict", model, "--stream", file, "--last", 3)
    rows = found["decisions"]
    assert len(rows) == 1 + (400 - 32) // 16
    assert [row["time"] for row in rows[:2]] == [0.62, 0.94]
    last = [row["label"] for row in rows[:3]]
    assert rows[2]["smoothed"] == max(last, key=lambda label: (last.count(label), label == last[2]))
    shown = run("predict", model, "--stream", file, "-o", tmp_path / "s.csv").stdout
    assert "smoothed right in" in shown
    assert (tmp_path / "s.csv").read_text().splitlines()[0] == "time,label,smoothed,true"


def test_a_stream_of_a_model_that_refuses(recorded, tmp_path):
    """Every hop has a decision of its own, or "unknown", and how sure the model is."""
    model, zero = load(recorded / "m.tkm"), np.zeros(1)
    never = Decision(
        np.full(1, 2**32 - 1, np.uint32),
        np.full(64, 9, np.uint8),
        0,
        1.0,
        zero.astype(np.uint32),
        zero + 0.5,
    )
    file, output = tmp_path / "m.tkm", tmp_path / "s.csv"
    save(replace(model, decision=never), file, about(recorded / "m.tkm"))
    stream = ("predict", file, "--stream", recorded / "rec" / "p1.csv")
    rows = json_of(*stream)["decisions"]
    assert {(row["decision"], row["confidence"]) for row in rows} == {(None, 9)}
    assert {row["label"] for row in rows} <= set(model.classes)
    assert run(*stream, "-o", output).exit_code == 0
    first, second = output.read_text().splitlines()[:2]
    assert first == "time,label,smoothed,decision,confidence,true"
    assert second.split(",")[3:5] == ["unknown", "9"]


def test_false_alarms_of_a_stream(tmp_path):
    """A folder of background counts alarms an hour, also one that has no name of a class."""
    rng, t = np.random.default_rng(0), np.arange(2000)
    noise, high = 900 * rng.normal(size=2000), 9000 * np.sin(t)
    sounds = {"noise": noise, "high": high, "low": 9000 * np.sin(t / 9)}
    files = [
        (tmp_path / "all" / label / f"{machine}_0.wav", samples)
        for label, samples in sounds.items()
        for machine in "abcd"
    ]
    elsewhere, other = tmp_path / "background noise" / "bg.wav", tmp_path / "recordings" / "0.wav"
    for file, samples in (*files, (elsewhere, noise), (other, high)):
        file.parent.mkdir(parents=True, exist_ok=True)
        wavfile.write(file, 100, samples.astype(np.int16))
    model, train = tmp_path / "m.tkm", ("--name", "{label}/{machine}_*", "--window", "1s", *QUICK)
    made = run("train", tmp_path / "all", *train, "-o", model)
    assert made.exit_code == 0, made.output
    wavfile.write(tmp_path / "all" / "noise" / "d_0.wav", 100, high.astype(np.int16))
    stream = ("predict", model, "--stream")
    alarms = json_of(*stream, tmp_path / "all" / "noise")["false_alarms"]["label"]
    assert alarms["count"] >= 1
    assert alarms["hours"] == pytest.approx(4 * 39 / 2 / 3600)
    assert alarms["an_hour"] == pytest.approx(alarms["count"] / alarms["hours"])
    shown = run(*stream, tmp_path / "all" / "noise").stdout
    assert "false alarms in 1.3 minutes of background" in shown
    assert json_of(*stream, other)["false_alarms"] is None
    found = json_of(*stream, elsewhere)
    assert found["false_alarms"]["label"]["hours"] == pytest.approx(39 / 2 / 3600)
    assert {row["true"] for row in found["decisions"]} == {"noise"}
    assert "label right in" in run(*stream, elsewhere).stdout
    renamed = replace(load(model), answers=Labels(("high", "low", "moo")))
    assert load(model).classes == ("high", "low", "noise")
    save(renamed, model, about(model))
    shown = run(*stream, elsewhere).stdout  # of background that is no class nothing is right
    assert "of background" in shown
    assert "right in" not in shown


def test_a_stream_without_labels(recorded, tmp_path):
    """The column of labels may be missing."""
    rows = [line.rsplit(",", 1)[0] for line in lines(9)]
    write(tmp_path / "new.csv", rows, "time_ms,ax,ay")
    result = run("predict", recorded / "m.tkm", "--stream", tmp_path / "new.csv")
    assert result.exit_code == 0, result.output
    assert "true" not in result.stdout


def test_other_recordings_are_refused(recorded, tmp_path):
    """Another rate or other channels than those of training are one clear line."""
    write(tmp_path / "slow.csv", lines(0, rate=25))
    assert "25" in failed("predict", recorded / "m.tkm", "--stream", tmp_path / "slow.csv")
    write(tmp_path / "other.csv", lines(0), "time_ms,ax,gz,motion")
    assert "'ay'" in failed("predict", recorded / "m.tkm", "--stream", tmp_path / "other.csv")


def test_windows_in_an_array(recorded, tmp_path):
    """Ready windows need their shape, and the same model takes them; a hop is given in samples."""
    rng = np.random.default_rng(0)
    X = rng.integers(-900, 900, (60, 32, 2)).astype(np.int16)
    X[::2] //= 8
    file = tmp_path / "w.npz"
    np.savez(file, X=X, y=np.arange(60) % 2, who=np.arange(60) // 10)
    given = ("--window-shape", "32x2", "--groups", "who", "--hop", 16)
    result = run("train", file, *given, "-o", tmp_path / "w.tkm", *QUICK)
    assert result.exit_code == 0, result.output
    assert load(tmp_path / "w.tkm").input.shape == (32, 2)
    assert run("predict", tmp_path / "w.tkm", file).exit_code == 0


@pytest.mark.parametrize(
    ("shape", "named", "hint"),
    [
        ((60, 4), {"group": np.arange(60) // 6}, "rows of one group are in both parts; name"),
        ((60, 64), {}, "rows look like images; --image-shape 8x8 would"),
        ((60, 32, 2), {}, "rows have a shape; --window-shape 32x2 (a signal)"),
    ],
)
def test_rows_of_one_group_were_in_both_parts_without_a_word(tmp_path, shape, named, hint):
    """A line says what would help: to name groups, or the shape of images and windows."""
    X = np.random.default_rng(0).integers(0, 255, shape).astype(np.uint8)
    np.savez(tmp_path / "a.npz", X=X, y=np.arange(60) % 2, **named)
    options = (*sets("n_components=32", "epochs=1"), "--effort", "quick")
    plain = run("train", tmp_path / "a.npz", "-o", tmp_path / "m.tkm", *options)
    assert f"hint: {hint}" in plain.stderr


@pytest.mark.parametrize(
    ("options", "expected", "status"),
    [
        (("--image-shape", "28x28"), "makes 784 values, but rows have 5 inputs", 1),
        (("--window-shape", "5"), "write SAMPLESxCHANNELS", 2),
        (("--augment", "turn:1"), "write KIND or KIND:AMOUNT", 2),
        (("--augment", "shift:0.5"), "write KIND or KIND:AMOUNT", 2),
        (("--set", "short=pad"), "for recordings: give --window", 2),
        (("--hop", "5"), "for recordings: give --window", 2),
        (("--set", "drop=a"), "only tables have columns", 1),
        (("--window", "1s", "--missing", "median"), "'median': write drop or error for windows", 2),
        (("--window", "1s", "--set", "input_type=int8"), "not for recordings", 2),
    ],
)
def test_bad_options(work, tmp_path, options, expected, status):
    """Options that do not fit to the data are refused before the training."""
    message = failed(
        "train", work / "data.npz", *options, "-o", tmp_path / "m.tkm", "-q", status=status
    )
    assert expected in message
    assert not (tmp_path / "m.tkm").exists()


def test_recordings_had_no_official_test_part(recorded, tmp_path):
    """--test takes a folder of other recordings, as a file of rows; predict names files."""
    (tmp_path / "other").mkdir()
    write(tmp_path / "other" / "late.csv", lines(9))
    how = (*CUT, "-o", tmp_path / "m.tkm", *QUICK)
    found = json_of("train", recorded / "rec", "--test", tmp_path / "other", *how)
    assert "4 files" in found["recordings"]
    assert "test windows (all of other)" in found["split"]
    judged = json_of("evaluate", tmp_path / "m.tkm", tmp_path / "other")
    assert judged["accuracy"] == found["test_accuracy"]
    table = tmp_path / "p.csv"
    assert run("predict", tmp_path / "m.tkm", tmp_path / "other", "-o", table).exit_code == 0
    names = [line.split(",")[0] for line in table.read_text().splitlines()[:3]]
    assert names == ["window", "late.csv:0", "late.csv:16"]
