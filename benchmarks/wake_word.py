"""A wake word of few people, somewhere in its recordings: hits beside false alarms, in noise too.

python benchmarks/wake_word.py --data DIR [--folds 3] [--seeds 3] --write docs/results/wake-word.md

DIR holds ``wake.zip``. *Whoever comes*: takes that are alike are one person, who is in one of three
folds. *Own voice*: every third recording is held out. A threshold is that of the highest false
peaks of what is held out, so that the figures say how well words and others are apart.
"""

import argparse
import io
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from _page import page_arguments, print_page

from tinykernel import IntegerModel, train
from tinykernel.data.takes import takes_of
from tinykernel.learn.signals.clips import Clips

RATE, WORD, FOLDS, SUMMED = 16000, "computer", 3, 6
Sounds = list[np.ndarray]


def load(data: Any) -> dict[str, Sounds]:
    """Return the recordings (samples, 1) of each folder."""
    import soundfile

    sounds: dict[str, Sounds] = {}
    with zipfile.ZipFile(data / "wake.zip") as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".ogg"):
                samples, _ = soundfile.read(io.BytesIO(archive.read(name)), dtype="int16")
                sounds.setdefault(name.split("/")[0], []).append(samples.reshape(-1, 1))
    return sounds


def kitchen(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return a hum that falls with the frequency, and ringing blows, of a mean square of 1."""
    bins = np.fft.rfft(rng.standard_normal(n))
    noise = np.fft.irfft(bins / np.sqrt(np.maximum(np.fft.rfftfreq(n, 1 / RATE), 60)), n)
    noise /= noise.std()
    for _ in range(int(1.5 * n / RATE)):
        first = int(rng.integers(0, n))
        t = np.arange(min(n - first, int(rng.integers(400, 4000))))
        tones = sum(np.sin(2 * np.pi * f * t / RATE) for f in rng.uniform(800, 6000, 3))
        noise[first : first + t.size] += tones * np.exp(-t / rng.uniform(150, 900)) * 3
    return noise / noise.std()


def in_noise(samples: np.ndarray, rng: np.random.Generator, decibels: float = 10) -> np.ndarray:
    """Return a recording in noise so far below its loud parts."""
    power = np.cumsum(np.append(0, np.square(samples[:, 0].astype(float))))
    loud = np.percentile((power[1600:] - power[:-1600]) / 1600, 90)
    noise = kitchen(len(samples), rng) * np.sqrt(loud / 10 ** (decibels / 10))
    mixed = np.rint(samples[:, 0] + noise).clip(-32768, 32767)
    return mixed.astype(np.int16).reshape(-1, 1)


def peaks(model: IntegerModel, sounds: Sounds, places: np.ndarray, noisy: bool) -> np.ndarray:
    """Return the highest sum of six decisions for the word, less the other, of each recording."""
    rng, found = np.random.default_rng(0), []
    word = list(map(str, model.classes)).index(WORD)
    for place in places.tolist():
        samples = in_noise(sounds[place], rng) if noisy else sounds[place]
        scores = model.stream_scores(samples).astype(float)
        if len(scores) >= SUMMED:
            margin = scores[:, word] - np.delete(scores, word, axis=1).max(axis=1)
            found.append(np.convolve(margin, np.ones(SUMMED), "valid").max())
    return np.array(found)


@dataclass(frozen=True)
class Result:
    """Hits of one training in percent, clean and in noise, without and with one false alarm."""

    hits: tuple[float, ...]
    minutes: float
    events: int
    seconds: float
    flash: int


def result(
    sounds: dict[str, Sounds], fold: dict[str, np.ndarray], number: int, mixes: bool, seed: int
) -> Result:
    """Train on all but one fold, and judge that."""
    samples, labels = [], []
    for label, each in sounds.items():
        for place in np.flatnonzero(fold[label] != number).tolist():
            samples.append(each[place])
            labels.append(WORD if label == WORD else "background")
    long = [at for at, sound in enumerate(samples) if len(sound) >= RATE]
    rows, y = np.stack([samples[at][:RATE] for at in long]), np.array(labels)[long]
    clips = Clips(samples, labels, frozenset({WORD}), () if mixes else None)
    options = {"rate": float(RATE), "hop": 640, "random_state": seed, "n_jobs": 1}
    begun = time.process_time()
    trained = train(rows, y, budget="30KB", clips=clips, link=False, **options)
    seconds = time.process_time() - begun
    hits, events, length = [], 0, 0
    for noisy in (False, True):
        heard = {
            label: peaks(trained.model, each, np.flatnonzero(fold[label] == number), noisy)
            for label, each in sounds.items()
        }
        others = np.concatenate([heard[label] for label in heard if label != WORD])
        events = len(heard[WORD])
        for threshold in np.sort(others)[::-1][:2]:
            hits.append(100 * float(np.mean(heard[WORD] > threshold)))
    for label, each in sounds.items():
        held_out = np.flatnonzero(fold[label] == number).tolist()
        length += sum(len(each[place]) for place in held_out) * (label != WORD)
    flash = 0 if trained.memory is None else trained.memory.flash
    return Result(tuple(hits), length / RATE / 60, events, seconds, flash)


def folds_of(sounds: dict[str, Sounds], by_person: bool) -> dict[str, np.ndarray]:
    """Return the fold of each recording: of the person it seems to be by, or every third one."""
    folds = {}
    for label, each in sounds.items():
        take = takes_of(each) if by_person else np.arange(len(each))
        order = np.argsort(-np.bincount(take), kind="stable")
        fold_of_take, filled = np.zeros(len(order), int), np.zeros(FOLDS)
        for number in order.tolist():
            fold_of_take[number] = filled.argmin()
            filled[filled.argmin()] += np.sum(take == number)
        folds[label] = fold_of_take[take]
    return folds


def page(given: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of the page."""
    sounds = load(given.data)
    yield "# A wake word\n"
    yield (
        "Written by `benchmarks/wake_word.py` on `wake.zip`: 280 recordings of *computer*, 200 of\n"
        "two other words, 124 spoken sentences; `train` in 30 KB, one score each 0.04 s, noise\n"
        f"{given.noise}. Hits with a threshold above all, or all but one, of the false peaks\n"
        "of the minutes held out; noise is a hum with blows, 10 dB below the word.\n"
    )
    columns = "who is held out", "fold", "seed", "words", "minutes", "clean, %", "in noise, %"
    yield f"| {' | '.join((*columns, 'processor seconds', 'flash'))} |"
    yield "|---" * 9 + "|"
    for name in given.who.split(","):
        folds = folds_of(sounds, name == "whoever comes")
        for number in range(given.folds):
            for seed in range(given.seeds):
                each = result(sounds, folds, number, given.noise != "off", seed)
                clean, noisy = (
                    ", ".join(f"{hit:.1f}" for hit in each.hits[first : first + 2])
                    for first in (0, 2)
                )
                yield (
                    f"| {name} | {number + 1} | {seed} | {each.events} | {each.minutes:.1f} | "
                    f"{clean} | {noisy} | {each.seconds:.0f} | {each.flash} |"
                )


if __name__ == "__main__":
    parser = page_arguments(__doc__, sets="wake")
    parser.add_argument("--folds", type=int, default=FOLDS, help="how many of three folds")
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds")
    parser.add_argument("--who", default="whoever comes,own voice", help="who is held out")
    parser.add_argument("--noise", default="of its own", help="off: train without")
    given = parser.parse_args()
    print_page(page(given), given.write)
