"""Words of held-out speakers in streams: hits, and false alarms an hour against those promised.

python benchmarks/events.py --data DIR [--folds 1] [--hours 3] [--model kernels]
    --write docs/results/events.md

DIR holds ``google12.zip``. Each fold trains on clips of other speakers, chooses thresholds on one
half of the held-out speakers, and counts events in a stream of the other half: a word in ten
seconds at a random gain, over silence of at most a tenth of its loudness, which is as loud as
recorded between words. ``--work FOLDER`` keeps models and scores.
"""

import argparse
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _page import page_arguments, print_page, rendered
from sounds import RATE, WINDOW, load

from tinykernel import IntegerModel, train, verify
from tinykernel.compile.targets import find_target
from tinykernel.data.clips import Recordings, join_clips
from tinykernel.data.labels import Span
from tinykernel.data.reading import Recording
from tinykernel.judge.event_rules import choose_events, judge
from tinykernel.judge.events import evaluate_events, streams_of
from tinykernel.run.program import find_toolchain

BACKGROUND = ("silence", "unknown")
RATES_PROMISED = (1.0, 0.2)
WAKE_WORD = "yes"
HOURS_TO_CHOOSE = 5.0
SECOND, LENGTH = round(RATE["google12"]), WINDOW["google12"]
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]


def clips_of(data: Arrays, rows: np.ndarray) -> Recordings:
    """Return clips as recordings of one label and one speaker each."""
    X, y, group = data
    each = [
        Recording(str(at), X[at], (Span(0, LENGTH, y[at]),), (Span(0, LENGTH, group[at]),))
        for at in rows.tolist()
    ]
    return Recordings(tuple(each), float(SECOND), "google12", False)


def remembered(work: Path | None, name: str, make: Callable[[], Any]) -> Any:
    """Return what `make` gives, or gave before."""
    file = None if work is None else work / f"{name}.pkl"
    if file is not None and file.exists():
        return pickle.loads(file.read_bytes())
    print(name, file=sys.stderr, flush=True)
    made = make()
    if file is not None:
        file.write_bytes(pickle.dumps(made))
    return made


class Fold:
    """A model, and what it scores in the streams of two halves of other speakers."""

    def __init__(self, number: int, data: Arrays, outside: np.ndarray, given: argparse.Namespace):
        self.data, self.number, self.given = data, number, given
        inside = np.setdiff1d(np.arange(len(data[1])), outside)
        speakers = np.random.default_rng(number).permutation(np.unique(data[2][outside]))
        self.halves = [outside[np.isin(data[2][outside], speakers[part::2])] for part in (0, 1)]
        options = {"rate": float(SECOND), "hop": round(given.hop * SECOND), "random_state": 0}
        options |= {"budget": given.budget, "model": given.model}
        options |= {"streaming": given.streaming, "teachers": given.teachers}
        parts = [part.split(":") for part in given.augment.split(",") if part]
        options["augment"] = {kind: int(amount) for kind, amount in parts} or None
        self.model: IntegerModel = self.remember(
            "model",
            lambda: (
                train(data[0][inside], data[1][inside], groups=data[2][inside], **options).model
            ),
        )

    def remember(self, name: str, make: Callable[[], Any]) -> Any:
        """Return what `make` gives, or gave for this fold before."""
        return remembered(self.given.work, f"{name} {self.number}", make)

    def stream(self, rows: np.ndarray, hours: float, name: str) -> Any:
        """Return the scores of a stream of clips."""
        clips = clips_of(self.data, rows)
        joined = join_clips(clips, BACKGROUND, LENGTH, hours, self.number)
        return self.remember(name, lambda: streams_of(self.model, joined, BACKGROUND))

    def lines(self) -> Iterator[str]:
        """Yield a line for each rate, from choosing on one half and judging the other."""
        X, y, group = self.data
        first, second = self.halves
        words = second[~np.isin(y[second], BACKGROUND)]
        single = float((self.model.predict(X[words].reshape(len(words), -1)) == y[words]).mean())
        learned = self.stream(first, HOURS_TO_CHOOSE, "to choose")
        test = self.stream(second, self.given.hours, "to judge")
        speakers = f"{len(np.unique(group[first]))} and {len(np.unique(group[second]))}"
        calibrations = [
            choose_events(self.model, learned, BACKGROUND, rate, None) for rate in RATES_PROMISED
        ]
        results = [evaluate_events(chosen.model, test) for chosen in calibrations]
        self.model, self.curve = calibrations[0].model, results[0].curve
        self.shares, self.excess = list[float](), list[float]()
        for rate, chosen, result in zip(RATES_PROMISED, calibrations, results, strict=True):
            facts = result.to_dict()
            hits, alarms = facts["hits"] / facts["events"], facts["false_alarms_an_hour"]
            yield (
                f"| {self.number + 1} | {rate:g} | {speakers} | "
                f"{100 * single:.1f} | {100 * chosen.heard.hit.mean():.1f} | "
                f"{len(chosen.heard.alarms) / chosen.hours:.2f} | {100 * hits:.1f} | "
                f"{100 * hits / single:.0f} | {alarms:.2f} | "
                f"{100 * facts['confused'] / facts['events']:.1f} | "
                f"{(facts['delay_from_start'] or {'median': float('nan')})['median']:.2f} |"
            )
            self.shares.append(hits / single)
            self.excess.append(alarms / rate)

    def wake_word(self) -> str:
        """Return what one word is missed and falsely heard in 20 minutes, after MLPerf Tiny."""
        rows = self.halves[1]
        rows = rows[np.isin(self.data[1][rows], (WAKE_WORD, *BACKGROUND))]
        assert self.model.events is not None
        heard = judge(self.stream(rows, 1 / 3, "wake word"), self.model.events)
        label = self.model.classes.index(WAKE_WORD)
        return (
            f"{(~heard.hit).sum()} of {len(heard.hit)} missed, "
            f"{(heard.alarms == label).sum()} falsely heard"
        )

    def agreement(self) -> Iterator[str]:
        """Yield how many events of ten minutes differ between C and Python, target by target."""
        rows = self.halves[1]
        clips = clips_of(self.data, rows)
        stream = join_clips(clips, BACKGROUND, LENGTH, 1 / 6, self.number).recordings[0].X
        for target in ("host", "cortex-m4"):
            if find_toolchain(find_target(target)) is None:
                continue
            row = self.data[0][rows[:1]].reshape(1, -1)
            result = verify(self.model, row, target=target, recordings=[stream])
            yield (
                f"C and Python on {target}, {len(stream) / SECOND / 60:.0f} minutes: "
                f"{result.hops} decisions, {result.events} events, "
                f"{result.differences} differences."
            )


def page(given: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of the page."""
    *data, folds = load("google12", given.data)
    judged = [
        Fold(number, tuple(data), outside, given)
        for number, (_, outside) in enumerate(folds[: given.folds])
    ]
    yield from rendered(
        "events",
        given=given,
        rates=RATES_PROMISED,
        hours=HOURS_TO_CHOOSE,
        lines=[line for fold in judged for line in fold.lines()],
        is_far=min(fold.shares[0] for fold in judged) < 0.85,
        is_broken=max(most for fold in judged for most in fold.excess) > 2,
        points=[f"{100 * missed:.0f} % at {rate:.3g}" for _, _, missed, rate in judged[-1].curve],
        wake_word=judged[-1].wake_word(),
        word=WAKE_WORD,
        agreement=judged[-1].agreement(),
    )


if __name__ == "__main__":
    parser = page_arguments(__doc__, sets="google12")
    parser.add_argument("--folds", type=int, default=3, help="how many of three folds")
    parser.add_argument("--hours", type=float, default=3.0, help="hours to judge, each fold")
    parser.add_argument("--hop", type=float, default=0.2, help="seconds between decisions")
    parser.add_argument("--budget", default="16KB", help="flash on Cortex-M4")
    parser.add_argument("--model", default="separable", help="as --set model")
    parser.add_argument("--streaming", default="off", help="as --set streaming")
    parser.add_argument("--teachers", type=int, default=0, help="as --set teachers")
    parser.add_argument("--augment", default="", help="as --augment; by default that of training")
    parser.add_argument("--work", type=Path, help="folder to keep models and scores in")
    given = parser.parse_args()
    print_page(page(given), given.write)
