"""From recordings to a model and back: train, predict and verify on recordings."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.io import wavfile

from tests.cli.tools import failed, json_of, run, succeeded
from tinykernel import load, save
from tinykernel.model.answers import Decision, Events
from tinykernel.model.file import about

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
    succeeded("train", file, *CUT, "--test", 0, "-o", tmp_path / "m.tkm", *QUICK)


def test_whole_recordings_are_kept_aside(recorded):
    """The output says which recordings were held out, the file how they were cut."""
    found = json.loads((recorded / "train.json").read_text())
    assert "1 of 4 recordings held out: p" in found["split"]
    assert found["model_kind"].startswith("16 kernels on windows of 32 x 2")
    assert found["features"] == 64
    assert found["test_accuracy"] > 0.8
    said = about(recorded / "m.tkm")["recordings"]
    cut = {"window": 32, "hop": 16, "rate": 50.0, "channels": ["ax", "ay"], "label": "motion"}
    assert said.items() >= (cut | {"mixed": "drop"}).items()
    assert load(recorded / "m.tkm").hop == 16


def test_the_stream_is_compared_at_every_hop(recorded, tmp_path):
    """Windows of several labels are no rows, but the stream goes through them, and around gaps."""
    found = json_of("verify", recorded / "m.tkm", recorded / "rec")
    assert found["hops"] == 1 + (400 - 32) // 16 > found["rows"]
    assert len(found["notes"]) == 1
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


def test_a_hop_that_is_not_the_model_s_is_damage(recorded, tmp_path):
    """What a file says of its recordings must go with its model."""
    said = about(recorded / "m.tkm")
    said["recordings"]["hop"] = 8
    save(load(recorded / "m.tkm"), tmp_path / "m.tkm", said)
    failed("predict", tmp_path / "m.tkm", "--stream", recorded / "rec" / "p0.csv")


def test_a_missing_value_after_a_gap_is_found_by_its_line(recorded, tmp_path):
    """The place was counted from the gap, where no value was missing: StopIteration."""
    rows = lines(7)
    del rows[100]
    cells = rows[300].split(",")
    rows[300] = ",".join([cells[0], "nan", *cells[2:]])
    write(tmp_path / "gaps.csv", rows)
    result = run("predict", recorded / "m.tkm", "--stream", tmp_path / "gaps.csv")
    assert result.exit_code == 1
    assert "row 301 (line 302), column 'ax': the value is missing" in result.stderr


@pytest.mark.parametrize("answers", ["labels", "events", "decisions"])
def test_predict_a_stream(answers, recorded, tmp_path):
    """Every hop has the time of its last sample, its label, and what the model says besides."""
    model, sure = load(recorded / "m.tkm"), 2**32 - 1
    events = Events(np.array([0, 1], np.uint32), 0, 3)  # of the second class, at its first decision
    levels = np.full(64, 9, np.uint8)
    never = Decision(np.full(1, sure, np.uint32), levels, 0, 1.0)
    more = {"labels": {}, "events": {"events": events}, "decisions": {"decision": never}}[answers]
    file, output = tmp_path / "m.tkm", tmp_path / "s.csv"
    save(replace(model, **more), file, about(recorded / "m.tkm"))
    stream = ("predict", file, "--stream", recorded / "rec" / "p1.csv")
    rows = json_of(*stream)["decisions"]
    assert len(rows) == 1 + (400 - 32) // 16
    assert [row["time"] for row in rows[:2]] == [0.62, 0.94]
    succeeded(*stream, "-o", output)
    columns = {"labels": "", "events": "event,", "decisions": "decision,confidence,"}[answers]
    assert output.read_text().splitlines()[0] == f"time,label,{columns}true"
    if answers == "events":
        first = next(row["time"] for row in rows if row["label"] == model.classes[1])
        told = [row for row in rows if row["event"] is not None]
        assert told[0]["time"] == first
        assert {row["event"] for row in told} == {model.classes[1]}
    if answers == "decisions":
        assert {(row["decision"], row["confidence"]) for row in rows} == {(None, 9)}
        assert output.read_text().splitlines()[1].split(",")[2:4] == ["refused", "9"]


def test_a_stream_without_labels(recorded, tmp_path):
    """The column of labels may be missing."""
    rows = [line.rsplit(",", 1)[0] for line in lines(9)]
    write(tmp_path / "new.csv", rows, "time_ms,ax,ay")
    result = succeeded("predict", recorded / "m.tkm", "--stream", tmp_path / "new.csv")
    assert "true" not in result.stdout


def test_windows_in_an_array(recorded, tmp_path):
    """Ready windows need their shape, and the same model takes them; a hop is given in samples."""
    rng = np.random.default_rng(0)
    X = rng.integers(-900, 900, (60, 32, 2)).astype(np.int16)
    X[::2] //= 8
    file = tmp_path / "w.npz"
    np.savez(file, X=X, y=np.arange(60) % 2, who=np.arange(60) // 10)
    given = ("--window-shape", "32x2", "--groups", "who", "--hop", 16)
    succeeded("train", file, *given, "-o", tmp_path / "w.tkm", *QUICK)
    assert load(tmp_path / "w.tkm").input.shape == (32, 2)
    succeeded("predict", tmp_path / "w.tkm", file)


def test_recordings_may_have_an_official_test_part(recorded, tmp_path):
    """--test takes a folder of other recordings, as a file of rows; predict names files."""
    (tmp_path / "other").mkdir()
    write(tmp_path / "other" / "late.csv", lines(9))
    how = (*CUT, "-o", tmp_path / "m.tkm", *QUICK)
    found = json_of("train", recorded / "rec", "--test", tmp_path / "other", *how)
    assert "test windows (all of other)" in found["split"]
    judged = json_of("evaluate", tmp_path / "m.tkm", tmp_path / "other")
    assert judged["accuracy"] == found["test_accuracy"]
    table = tmp_path / "p.csv"
    succeeded("predict", tmp_path / "m.tkm", tmp_path / "other", "-o", table)
    names = [line.split(",")[0] for line in table.read_text().splitlines()[:3]]
    assert names == ["window", "late.csv:0", "late.csv:16"]


def test_what_has_no_label_is_background_in_a_stream(recorded, tmp_path) -> None:
    """Stretches without a label are decided, too, and never called by a keyword."""
    path = tmp_path / "long.csv"
    rows = [row if 100 <= i < 300 else row[: row.rindex(",") + 1] for i, row in enumerate(lines(7))]
    write(path, rows)
    decisions = json_of("predict", recorded / "m.tkm", "--stream", path)["decisions"]
    assert len(decisions) == (400 - 32) // 16 + 1
    true = [row["true"] for row in decisions]
    assert true[0] == true[-1] == "background"
    assert {"slow", "fast"} < set(true)
    still = tmp_path / "still.tkm"
    run("train", recorded / "rec", *CUT, "-o", still, "--set", "background=slow", *QUICK)
    decisions = json_of("predict", still, "--stream", path)["decisions"]
    assert {row["true"] for row in decisions} == {"slow", "fast"}


def test_what_has_no_label_is_background_in_training_and_judging(recorded, tmp_path) -> None:
    """A gap in the labels takes the label of background: by its words, or the one that is named."""
    (tmp_path / "rec").mkdir()
    for at in range(4):
        text = [row.replace("fast", "fast" if at < 3 else "noise") for row in lines(at)]
        gap = range(100, 300) if at < 2 else ()
        rows = [row[: row.rindex(",") + 1] if i in gap else row for i, row in enumerate(text)]
        write(tmp_path / "rec" / f"{at}.csv", rows)
    train = ("train", tmp_path / "rec", *CUT, *QUICK, "-o")
    found = json_of(*train, tmp_path / "noise.tkm")
    assert set(found["evaluation"]["classes"]) == {"fast", "noise", "slow"}
    json_of(*train, tmp_path / "slow.tkm", "--set", "background=slow")
    for model, still in (("noise", "noise"), ("slow", "slow")):
        judged = json_of("evaluate", tmp_path / f"{model}.tkm", tmp_path / "rec" / "0.csv")
        before = np.array(judged["confusion"]).sum(axis=1)
        assert before[judged["classes"].index(still)] >= 10
    write(tmp_path / "rec" / "3.csv", lines(3))  # no label is background any more
    failed(*train, tmp_path / "x.tkm")
    decisions = json_of("predict", recorded / "m.tkm", "--stream", tmp_path / "rec" / "0.csv")
    assert "background" in {row["true"] for row in decisions["decisions"]}


def test_sounds_without_background_have_a_note(tmp_path) -> None:
    """Silence becomes a word: with the two ways out. A folder of silence is one of them."""
    note = "no class is background, so silence and noise become one of the words"
    for label in ("up", "down", "silence"):
        for number in range(6):
            angle = np.arange(4000) * (0.2 if label == "up" else 0.7)
            samples = 9000 * np.sin(angle + number) * (label != "silence")
            path = tmp_path / "words" / label / f"{number}.wav"
            path.parent.mkdir(parents=True, exist_ok=True)
            noise = np.random.default_rng(number).normal(0, 30, 4000)
            wavfile.write(path, 8000, (samples + noise).astype(np.int16))
        if label != "up":
            out = tmp_path / f"{label}.tkm"
            arguments = ("train", tmp_path / "words", "--window", "0.5s", *QUICK, "-o", out)
            notes = json_of(*arguments, "--effort", "quick")["notes"]
            assert any(line.startswith(note) for line in notes) == (label == "down")
