"""A wake word of few people, somewhere in its recordings: hits beside false alarms, in noise too.

python benchmarks/wake_word.py --data DIR [--journal FILE] --write docs/results/wake-word.md

DIR holds ``wake.zip`` and ``google12.zip``. *Whoever comes*: takes that are alike are one person,
who is in one half of one of three folds. *Own voice*: every third recording is held out. Run i
trains without fold i, with seed i. One half of what is held out chooses the threshold for one false
alarm an hour, the other half and the words of google12 judge it, and the other way round. A run of
the journal is not repeated; ``--runs 0`` writes the page of those that are done.
"""

import argparse
import io
import json
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from _page import page_arguments, print_page
from scipy.stats import t as student

from tinykernel import IntegerModel, train
from tinykernel.data.takes import takes_of
from tinykernel.judge.event_rules import interval_of
from tinykernel.judge.events import calibrate_held_out
from tinykernel.judge.figures import accuracy_interval
from tinykernel.learn.signals.clips import Clips
from tinykernel.model.answers import LARGEST_SUM, Events

RATE, WORD, FOLDS, SUMMED = 16000, "computer", 3, 6
WHO, PROMISED = ("whoever comes", "own voice"), 1.0
FEW = 0.6  # of the words are heard, at a higher threshold.
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


def others_of(data: Path) -> np.ndarray:
    """Return the clips of google12, one after the other: words and people never heard."""
    import soundfile

    with zipfile.ZipFile(data / "google12.zip") as archive:
        names = [name for name in sorted(archive.namelist()) if name.endswith(".flac")]
        order = np.random.default_rng(0).permutation(len(names)).tolist()
        files = [io.BytesIO(archive.read(names[at])) for at in order]
        parts = [soundfile.read(file, dtype="int16")[0] for file in files]
    return np.concatenate(parts).reshape(-1, 1)


def trained(
    sounds: dict[str, Sounds], held_out: dict[str, np.ndarray], mixes: bool, seed: int
) -> tuple[Any, float]:
    """Train on all that is not held out; return the result and the processor seconds."""
    samples, labels = [], []
    for label, each in sounds.items():
        for place in np.flatnonzero(~held_out[label]).tolist():
            samples.append(each[place])
            labels.append(WORD if label == WORD else "background")
    long = [at for at, sound in enumerate(samples) if len(sound) >= RATE]
    rows, y = np.stack([samples[at][:RATE] for at in long]), np.array(labels)[long]
    clips = Clips(samples, labels, frozenset({WORD}), () if mixes else None)
    options: dict[str, Any] = {"rate": float(RATE), "hop": 640, "random_state": seed, "n_jobs": 1}
    begun = time.process_time()
    result = train(rows, y, budget="30KB", clips=clips, link=False, **options)
    return result, time.process_time() - begun


def alarms_in(model: IntegerModel, events: Events, sounds: Sequence[np.ndarray]) -> int:
    """Count the events of recordings one after the other."""
    scores = model.stream_scores(np.concatenate(sounds))
    return int((events.follow(scores) >= 0).sum())


def alarms_at(
    share: float, model: IntegerModel, events: Events, words: Sounds, others: np.ndarray
) -> int:
    """Count the events of other scores with thresholds so high that a share of words is left."""
    scores, most = [model.stream_scores(word) for word in words], LARGEST_SUM >> events.shift
    for factor in np.geomspace(1, 64, 61):
        higher = np.minimum(events.thresholds * factor, most << events.shift).astype(np.uint32)
        rule = replace(events, thresholds=higher)
        if np.mean([(rule.follow(each) >= 0).any() for each in scores]) <= share:
            break
    return int((rule.follow(others) >= 0).sum())


def judged(
    model: IntegerModel,
    sounds: dict[str, Sounds],
    parts: dict[str, np.ndarray],
    fold: int,
    others: np.ndarray,
) -> dict[str, Any]:
    """Choose the threshold on each half of what is held out, and count on the other one."""
    halves = [
        {label: np.flatnonzero(part == fold + half).tolist() for label, part in parts.items()}
        for half in (0, FOLDS)
    ]
    found = {"words": 0, "clean": 0, "noisy": 0, "alarms": 0, "hours": 0.0}
    found |= {"other_alarms": 0, "other_hours": 2 * len(others) / RATE / 3600, "noisy_alarms": 0}
    found |= {"other_alarms_at_few": 0}
    others_scores, rng = model.stream_scores(others), np.random.default_rng(0)
    for own, other in (halves, halves[::-1]):
        clips = [
            (sounds[label][at], WORD if label == WORD else "background", f"{label}{at}")
            for label, places in own.items()
            for at in places
        ]
        chosen = calibrate_held_out(model, clips, float(RATE), ("background",), PROMISED)
        assert chosen is not None
        assert chosen.model.events is not None
        events = chosen.model.events
        words = [sounds[WORD][at] for at in other[WORD]]
        rest = [sounds[label][at] for label in sounds if label != WORD for at in other[label]]
        found["words"] += len(words)
        for name, heard in (("clean", words), ("noisy", [in_noise(w, rng) for w in words])):
            found[name] += sum(alarms_in(model, events, [word]) > 0 for word in heard)
        found["alarms"] += alarms_in(model, events, rest)
        found["noisy_alarms"] += alarms_in(model, events, [in_noise(each, rng) for each in rest])
        found["hours"] += sum(map(len, rest)) / RATE / 3600
        found["other_alarms"] += int((events.follow(others_scores) >= 0).sum())
        found["other_alarms_at_few"] += alarms_at(FEW, model, events, words, others_scores)
    return found


def apart(
    model: IntegerModel, sounds: dict[str, Sounds], held_out: dict[str, np.ndarray]
) -> list[float]:
    """Return hits in percent above all, and all but one, of the false peaks; clean, in noise."""
    hits = []
    for noisy in (False, True):
        heard = {
            label: peaks(model, each, np.flatnonzero(held_out[label]), noisy)
            for label, each in sounds.items()
        }
        others = np.concatenate([heard[label] for label in heard if label != WORD])
        hits += [100 * float(np.mean(heard[WORD] > least)) for least in np.sort(others)[::-1][:2]]
    return hits


def parts_of(sounds: dict[str, Sounds], by_person: bool) -> dict[str, np.ndarray]:
    """Return the part of each recording: of the person it seems to be by, or one after the other.

    Part p is in fold ``p % 3``.
    """
    parts = {}
    for label, each in sounds.items():
        take = takes_of(each) if by_person else np.arange(len(each))
        order = np.argsort(-np.bincount(take), kind="stable")
        part_of_take, filled = np.zeros(len(order), int), np.zeros(2 * FOLDS)
        for number in order.tolist():
            part_of_take[number] = filled.argmin()
            filled[filled.argmin()] += np.sum(take == number)
        parts[label] = part_of_take[take]
    return parts


def run(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the entries of the journal, after some more runs."""
    journal = Path(given.journal)
    lines = journal.read_text(encoding="utf-8").splitlines() if journal.is_file() else []
    entries = [json.loads(line) for line in lines]
    done = {(each["who"], each["run"]) for each in entries}
    wanted = [(who, at) for at in range(given.runs // len(WHO)) for who in WHO]
    wanted = [each for each in wanted if each not in done]
    sounds, others = (load(given.data), others_of(given.data)) if wanted else ({}, None)
    for who, at in wanted:
        parts, fold = parts_of(sounds, who == WHO[0]), at % FOLDS
        held_out = {label: part % FOLDS == fold for label, part in parts.items()}
        result, seconds = trained(sounds, held_out, given.noise != "off", at)
        assert others is not None
        entry = {"who": who, "run": at, "seconds": round(seconds, 1)}
        entry |= {"flash": 0 if result.memory is None else result.memory.flash}
        entry |= {"apart": apart(result.model, sounds, held_out)}
        entries.append(entry | judged(result.model, sounds, parts, fold, others))
        journal.open("a", encoding="utf-8").write(json.dumps(entries[-1]) + "\n")
    return entries


def share(right: int, n: int) -> str:
    """Describe a share and its interval, in percent."""
    low, high = accuracy_interval([True] * right + [False] * (n - right)) or (0.0, 1.0)
    return f"{100 * right / n:.1f} ({100 * low:.0f} to {100 * high:.0f})"


def rate(count: int, hours: float) -> str:
    """Describe a rate an hour and its interval."""
    low, high = interval_of(count, hours)
    return f"{count / hours:.1f} ({low:.1f} to {high:.1f})"


def over_runs(values: list[float], most: float = np.inf) -> str:
    """Describe the mean of runs; of three or more its interval (Student), within its range."""
    mean, n = float(np.mean(values)), len(values)
    if n < 3:
        return f"{mean:.1f}"
    reach = float(student.ppf(0.975, n - 1)) * float(np.std(values, ddof=1)) / np.sqrt(n)
    return f"{mean:.1f} ({max(0.0, mean - reach):.1f} to {min(most, mean + reach):.1f})"


def means(runs: list[dict[str, Any]]) -> str:
    """Return a row of the means of runs."""
    shares = [[100 * each[name] / each["words"] for each in runs] for name in ("clean", "noisy")]
    counts = "alarms", "noisy_alarms", "other_alarms", "other_alarms_at_few"
    hours = ["other_hours" if name.startswith("other") else "hours" for name in counts]
    pairs = list(zip(counts, hours, strict=True))
    rates = [[each[count] / each[of] for each in runs] for count, of in pairs]
    parts = [over_runs(each, 100) for each in shares] + list(map(over_runs, rates))
    return f"| {runs[0]['who']} | {len(runs)} | {' | '.join(parts)} |"


def page(given: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of the page."""
    entries = run(given)
    yield "# A wake word\n"
    yield (
        "Written by `benchmarks/wake_word.py` on `wake.zip`: 280 recordings of *computer*, 200 of\n"
        "two other words, 124 spoken sentences; `train` in 30 KB, one score each 0.04 s, noise\n"
        f"{given.noise}. One half of what is held out chooses the threshold for one false alarm\n"
        "an hour, the other half judges it, and the other way round. Noise is a hum with blows,\n"
        "10 dB below the loud parts. *Other words* are the 1,828 clips of google12, one a second.\n"
        "Intervals are at 95 %, as if all recordings were independent, and so too narrow; those\n"
        "of means are over three runs or more, each with another fold and seed.\n"
    )
    columns = "who is held out", "run", "words", "clean, %", "in noise, %", "alarms/h, clean"
    rates = "in noise", "other words", f"these at {100 * FEW:.0f} % of the words"
    yield f"| {' | '.join((*columns, *rates, 'processor s', 'flash'))} |"
    yield "|---" * 11 + "|"
    for who in WHO:
        runs = [each for each in entries if each["who"] == who]
        names = [name for name in runs[0] if name not in ("who", "run", "apart")] if runs else []
        total = {name: sum(each[name] for each in runs) for name in names} | {"run": "all"}
        for each in [*runs, total] if len(runs) > 1 else runs:
            mean = len(runs) if each["run"] == "all" else 1
            yield (
                f"| {who} | {each['run']} | {each['words']} | "
                f"{share(each['clean'], each['words'])} | {share(each['noisy'], each['words'])} | "
                f"{rate(each['alarms'], each['hours'])} | "
                f"{rate(each['noisy_alarms'], each['hours'])} | "
                f"{rate(each['other_alarms'], each['other_hours'])} | "
                f"{rate(each['other_alarms_at_few'], each['other_hours'])} | "
                f"{each['seconds'] / mean:.0f} | {each['flash'] / mean:.0f} |"
            )
    yield "\nMeans of runs:\n"
    yield f"| who is held out | runs | {' | '.join((*columns[3:], *rates))} |"
    yield "|---" * 8 + "|"
    for who in WHO:
        runs = [each for each in entries if each["who"] == who]
        if runs:
            yield means(runs)
    yield "\nHow well words and others are apart, with sums of six decisions: hits with a threshold"
    yield "above all, or all but one, of the false peaks of the minutes that judge.\n"
    yield "| who is held out | run | clean, % | in noise, % |"
    yield "|---" * 4 + "|"
    for each in entries:
        hits = [f"{hit:.1f}" for hit in each["apart"]]
        pairs = ", ".join(hits[:2]), ", ".join(hits[2:])
        yield f"| {each['who']} | {each['run']} | {pairs[0]} | {pairs[1]} |"


if __name__ == "__main__":
    parser = page_arguments(__doc__, sets="wake")
    parser.add_argument("--journal", default="wake.jsonl", help="file of the runs that are done")
    parser.add_argument("--runs", type=int, default=6, help="how many runs, half of each sort")
    parser.add_argument("--noise", default="of its own", help="off: train without")
    given = parser.parse_args()
    print_page(page(given), given.write)
