"""Words in longer recordings: when they are taken for such, silence, and takes of one person."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.io import wavfile

from tests.cli.tools import failed, json_of, succeeded
from tests.refusals import refused
from tinykernel import load
from tinykernel.base.errors import DataError, OptionError, RowsError
from tinykernel.data.labels import Span
from tinykernel.data.reading import Reading, Recording
from tinykernel.data.recordings import RecordingSource
from tinykernel.data.takes import recordings_in_takes, takes_of
from tinykernel.face.dataset import _with_also
from tinykernel.model.file import about

RATE = 8000


def sound(person: int, rng: np.random.Generator, at: int) -> np.ndarray:
    """Return three seconds of somebody's room, with half a second of a tone at a place."""
    colour = rng.standard_normal(3 * RATE)
    if person % 2:
        colour = np.diff(colour, append=0)
    samples = colour / np.std(colour) * 40 * (1 + person)
    tone = 4000 * np.sin(2 * np.pi * 0.1 * np.arange(RATE // 2))
    samples[at : at + RATE // 2] += tone[: max(0, len(samples) - at)]
    return np.rint(samples).astype(np.int16)


@pytest.fixture
def folder(tmp_path):
    """Ten recordings of a word by five people, and ten of noise."""
    rng = np.random.default_rng(0)
    for label in ("word", "noise"):
        (tmp_path / label).mkdir()
        for i in range(10):
            at = int(rng.integers(0, 20000)) if label == "word" else 24000
            wavfile.write(tmp_path / label / f"{i}.wav", RATE, sound(i % 5, rng, at))
    return tmp_path


def read(folder, **options):
    """Return the rows of a training."""
    return RecordingSource(
        folder, Reading(**{"window": "1s", "clips": "auto"} | options)
    ).train_rows(0.2, 0)


def test_words_are_taken_whole(folder):
    """Protects what training sees: whole clips, the loudest windows, groups that stay together."""
    data = read(folder)
    assert data.words == ("word",)
    assert {len(samples) for samples, _, _ in data.clips} == {3 * RATE}
    assert {label for _, label, _ in data.clips} == {"word", "noise"}
    assert set(data.group_train).isdisjoint(data.group_test)
    names = [{name for _, _, name in each} for each in (data.clips, data.clips_test)]
    assert names[0].isdisjoint(names[1])
    assert sum(map(len, names)) == 20
    assert len(_with_also(str(folder), data).clips) == len(data.clips) + 20
    assert len({*data.group_train, *data.group_test}) <= 10
    rows = data.X_train[data.y_train == "word"]
    assert (np.abs(rows).max(axis=(1, 2)) > 3000).all()
    assert not read(folder, clips="windows").clips
    assert not read(folder, window="3s").clips
    # Else a class called "off" would make words of the others for the finished model.
    assert read(folder, window="3s").origin.recordings.clips == "windows"
    refused(OptionError, read, folder, match="clips", window="3s", clips="whole")


def test_silent_recordings_of_a_word_are_left_out(folder):
    """Protects words from digital silence: it is left out and said, or refused if all are."""
    silence = np.zeros(3 * RATE, np.int16)
    wavfile.write(folder / "word" / "0.wav", RATE, silence)
    data = read(folder)
    assert "1 recording of silence alone" in data.windows
    assert all(np.ptp(samples) for samples, _, _ in data.clips)
    for i in range(10):
        wavfile.write(folder / "word" / f"{i}.wav", RATE, silence)
    refused(DataError, read, folder, match="silent")


def test_clips_as_they_come(folder):
    """Protects words from short, few and stereo clips, other rates, no background: it is said."""
    clip = wavfile.read(folder / "word" / "0.wav")[1]
    wavfile.write(folder / "word" / "0.wav", RATE, clip[: RATE // 2])
    data = read(folder)
    assert (data.words, len(data.clips) + len(data.clips_test)) == (("word",), 20)
    assert "padded to a window: 1 recording" in data.windows
    assert "word: 8 recordings in the training" in data.notes[-1]
    wavfile.write(folder / "word" / "0.wav", 2 * RATE, np.repeat(clip, 2))
    refused(DataError, read, folder, match="rate=8000")
    assert read(folder, rate=8000.0).words == ("word",)
    for file in folder.rglob("*.wav"):
        wavfile.write(file, RATE, np.stack([wavfile.read(file)[1][: 3 * RATE]] * 2, axis=1))
    data = read(folder)
    assert not data.words
    assert any("channel 2" in note for note in data.notes)
    assert read(folder, drop=("channel 2",)).words == ("word",)
    for file in (folder / "word").glob("[1-9].wav"):
        file.unlink()
    assert read(folder, drop=("channel 2",)).words == ("word",)
    for file in (folder / "noise").glob("*.wav"):
        file.unlink()
    refused(RowsError, read, folder, match="examples/words.py", drop=("channel 2",))


@pytest.mark.slow
def test_words_are_counted_along_time(folder, tmp_path):
    """Training shows hits and alarms of clips held out, and where words are; so does calibrate."""
    more = ("--set", "epochs=3", "--set", "n_channels=8", "--target", "host", "--quiet")
    found = json_of("train", folder, "--window", "1s", *more, "-o", tmp_path / "m.tkm")
    along = found["along_time"]
    assert along["events"] == sum(label == "word" for _, label, _ in read(folder).clips_test)
    assert (along["is_extrapolated"], along["promised_an_hour"]) == (True, 1)
    assert along["false_alarms_interval"][1] > 100
    assert "needs 3 hours" in along["line"]
    places = about(tmp_path / "m.tkm")["places"]
    words = [name for _, label, name in read(folder).clips if label == "word"]
    assert set(places) == set(words)
    assert all(0 <= place <= 2 for place in places.values())
    shown = succeeded("inspect", tmp_path / "m.tkm").stdout
    assert all(name in shown for name in words)
    rate = ("--false-alarms", "1/h", "-o", tmp_path / "e.tkm")
    again = json_of("calibrate", tmp_path / "m.tkm", folder, *rate)
    same = ("hits", "events", "hours", "thresholds", "false_alarms")
    assert [again[name] for name in same] == [along[name] for name in same]
    refused_rate = ("--false-alarms", "1/h", "--confidence", "95%", "-o", tmp_path / "e.tkm")
    failed("calibrate", tmp_path / "m.tkm", folder, *refused_rate)
    (tmp_path / "new" / "word").mkdir(parents=True)
    new = sound(0, np.random.default_rng(9), 9000)
    wavfile.write(tmp_path / "new" / "word" / "1.wav", RATE, new)
    failed("calibrate", tmp_path / "m.tkm", tmp_path / "new", *rate)


def test_takes_of_one_room_are_one_group():
    """Protects the groups: rooms apart, takes together."""
    rng = np.random.default_rng(1)
    groups = takes_of([sound(i % 3, rng, 24000).reshape(-1, 1) for i in range(12)])
    assert all(len(set(groups[first::3].tolist())) == 1 for first in range(3))
    assert len(set(groups.tolist())) == 3


def test_takes_of_one_person_choose_a_threshold_together():
    """Protects the hits that `calibrate` says: no take of a person is in two folds."""
    rng = np.random.default_rng(1)
    heard = [sound(i % 3, rng, 24000).reshape(-1, 1) for i in range(12)]
    own = [
        Recording(f"{i}", X, (Span(0, len(X), "word"),), (Span(0, len(X), f"{i}"),))
        for i, X in enumerate(heard)
    ]
    groups = [each.groups[0].label for each in recordings_in_takes(own)]
    assert [len(set(groups[first::3])) for first in range(3)] == [1, 1, 1]
    assert len(set(groups)) == 3
    named = [*own[:-1], replace(own[-1], groups=own[0].groups)]
    assert recordings_in_takes(named) == tuple(named)


@pytest.mark.slow
def test_noise_from_a_folder(folder, tmp_path):
    """The command mixes in the user's noise, or none; without words in clips there is no place."""
    shape = ("--set", "epochs=1", "--set", "n_channels=8", "--target", "host", "--test", "0")
    command = ("train", folder, "--window", "1s", *shape, "-o", tmp_path / "m.tkm")
    models = []
    for noise in (folder / "noise", "off"):
        json_of(*command, "--noise", noise)
        models.append(load(tmp_path / "m.tkm"))
    assert models[0] != models[1]
    assert models[0].classes == ("noise", "word")
    failed(*command, "--noise", "off", "--set", "clips=windows", status=2)
