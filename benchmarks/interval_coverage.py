"""How often intervals and promises by groups hold, where groups differ in ways nobody has seen.

Run with ``python benchmarks/interval_coverage.py [--repeats N] [--write FILE]``. Persons are drawn
of which a share is bad; models are nothing but the rate at which they are right for a person. No
data are needed.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from _page import page_arguments, print_page, rendered
from numpy.typing import NDArray

from tinykernel import NoveltyDetector
from tinykernel.base.errors import TinykernelError
from tinykernel.judge.figures import accuracy_interval, compare_values
from tinykernel.learn.confidence import Ranking, confidence_table, effective_rows, fit_temperature
from tinykernel.learn.novelty import alarms
from tinykernel.model.answers import margins, softmax

#: A figure, and its interval.
Covered = tuple[float, tuple[float, float] | None]


class Law(NamedTuple):
    """How good a model is for the persons: what is drawn for each, and the figure of all."""

    of: str
    truth: float
    draw: Callable[[int, np.random.Generator], NDArray[np.float64]]


def alike(mean: float, correlation: float) -> Law:
    """Rates of a beta distribution: the rows of a person have this correlation."""
    if not correlation:
        return Law("accuracy", mean, lambda n, rng: np.full(n, mean))
    a, b = np.array([mean, 1 - mean]) * (1 / correlation - 1)
    return Law("accuracy", mean, lambda n, rng: rng.beta(a, b, n))


def mixed(good: float, bad: float, share: float) -> Law:
    """Rates of good persons, and of a share of bad ones."""
    truth = good - share * (good - bad)
    return Law("accuracy", truth, lambda n, rng: np.where(rng.random(n) < share, bad, good))


def spread(deviation: float) -> Law:
    """Errors whose size by person is log-normal."""
    truth = float(np.exp(deviation**2))
    return Law("RMSE", truth, lambda n, rng: np.exp(deviation * rng.normal(size=n)))


LAWS = {
    "correlation 0 to 0.1": [alike(p, c) for p in (0.7, 0.8, 0.9, 0.95) for c in (0, 0.05, 0.1)],
    "correlation 0.2": [alike(p, 0.2) for p in (0.7, 0.8, 0.9, 0.95)],
    "5 to 25 % bad persons": [mixed(0.95, 0.5, q) for q in (0.05, 0.1, 0.25)],
    "RMSE": [spread(deviation) for deviation in (0.0, 0.15, 0.3)],
}
GROUPS = (8, 12, 20, 40)
BAD = (0.0, 0.05, 0.1, 0.25, 0.5)
ROWS = 40
PROMISED_GROUPS = (5, 8, 20, 40, 80, 160)
PROMISED = 0.05


def sizes(kind: str, groups: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the rows of each person: equal, drawn (log-normal), or half of all from one."""
    if kind == "equal":
        return np.full(groups, ROWS)
    if kind == "drawn":
        return np.maximum(2, np.rint(ROWS * np.exp(rng.normal(size=groups)))).astype(np.intp)
    return np.where(np.arange(groups) == 0, ROWS * (groups - 1), ROWS)


def persons(
    kind: str, groups: int, bad: float, values: tuple[float, float], rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return what each row's person is like, and the person."""
    rows = np.repeat(np.arange(groups), sizes(kind, groups, rng))
    return np.where(rng.random(groups) < bad, values[1], values[0])[rows], rows


def judged_groups(kind: str, groups: int, law: Law, rng: np.random.Generator) -> Covered:
    """Return the share, or the RMSE of normal errors, of such groups, and its interval."""
    group = np.repeat(np.arange(groups), sizes(kind, groups, rng))
    if law.of == "accuracy":
        right = rng.random(len(group)) < law.draw(groups, rng)[group]
        return float(right.mean()), accuracy_interval(right, group)
    errors = law.draw(groups, rng)[group] * rng.normal(size=len(group))
    found = compare_values(np.zeros(len(group)), errors, group)
    return found.rmse, found.interval


def coverage(kind: str, groups: int, law: Law, repeats: int) -> tuple[float, float]:
    """Return how often the interval holds the truth, and its mean width over the ideal one.

    The ideal one is 2 * 1.96 times the standard deviation of the figure over all draws.
    """
    rng = np.random.default_rng(0)
    drawn = [judged_groups(kind, groups, law, rng) for _ in range(repeats)]
    low, high = np.array([interval for _, interval in drawn], dtype=np.float64).T
    ideal = 2 * 1.96 * np.std([figure for figure, _ in drawn])
    return float(np.mean((low <= law.truth) & (law.truth <= high))), float(
        np.mean(high - low) / ideal
    )


def promise(groups: int, bad: float, wrong: float, repeats: int) -> tuple[float, float]:
    """Return how often an error of 5 % is promised, and how often that breaks.

    Good persons have 0.1 % of errors, margins say nothing.
    """
    rng, made, broken = np.random.default_rng(0), 0, 0
    truth = 0.001 * (1 - bad) + wrong * bad
    for _ in range(repeats):
        error, group = persons("equal", groups, bad, (0.001, wrong), rng)
        right = rng.random(len(error)) >= error
        margin = rng.permutation(len(error)).astype(np.uint32)
        share = effective_rows(right.astype(np.float64), group, 0.95) / len(right)
        chosen, _ = Ranking(margin, right, share, group).by_error(PROMISED, 0.05)
        made += chosen is not None
        broken += chosen is not None and truth > PROMISED
    return made / repeats, broken / repeats


def alarm_promise(groups: int, bad: float, repeats: int) -> tuple[float, float]:
    """Return the same of false alarms: half of a bad person's rows are far from all others."""
    rng, made, broken = np.random.default_rng(0), 0, 0
    for _ in range(repeats):
        far, group = persons("equal", groups, bad, (0.0, 0.5), rng)
        novelty = rng.integers(0, 10_000, len(far)) + 10_000 * (rng.random(len(far)) < far)
        try:
            threshold = alarms(novelty.astype(np.int32), group, PROMISED, 0.05).threshold
        except TinykernelError:
            continue
        made += 1
        near, beyond = max(0, 9999 - threshold) / 10_000, min(1.0, (19_999 - threshold) / 10_000)
        rate = (1 - bad) * near + bad * 0.5 * (near + beyond)
        broken += rate > PROMISED
    return made / repeats, broken / repeats


def probability_errors(rows: int, repeats: int) -> tuple[float, float, float]:
    """Return the mean bias of confidences, and mean distances of them and of probabilities.

    From the probability that a label is right, which is known: labels are drawn from it. Half of
    the decision values that would give it are what the model says.
    """
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(20_000, 3)) * 1.5
    scores, true = np.rint(1000 * logits).astype(np.int32), softmax(logits)
    label, margin = margins(scores)
    right = true[np.arange(len(true)), label]
    found = []
    for _ in range(repeats):
        some = rng.choice(len(true), rows, replace=False)
        drawn = (rng.random((rows, 1)) > true[some].cumsum(axis=1)).sum(axis=1).clip(0, 2)
        table, shift = confidence_table(margin[some], drawn == label[some])
        confidence = (table[np.minimum(margin >> shift, len(table) - 1)] + 0.5) / 256
        probability = softmax(logits / 2, fit_temperature(logits[some] / 2, drawn)).max(axis=1)
        off = confidence - right
        found.append((off.mean(), np.abs(off).mean(), np.abs(probability - right).mean()))
    bias, confidences, probabilities = np.mean(found, axis=0)
    return float(bias), float(confidences), float(probabilities)


def one_class_promise(rows: int, repeats: int) -> tuple[float, float]:
    """Return how often a model of one class promises 5 % of false alarms, and breaks it."""
    mixed = np.random.default_rng(0).normal(size=(6, 6))
    fresh = np.random.default_rng(1).normal(size=(20_000, 6)) @ mixed
    made = broken = 0
    for seed in range(repeats):
        normal = np.random.default_rng(seed + 2).normal(size=(rows, 6)) @ mixed
        watch = NoveltyDetector(false_alarms=PROMISED, random_state=seed).fit(normal)
        made += watch.alarms_ is not None
        alarmed = float(np.mean(watch.predict(fresh) < 0))
        broken += watch.alarms_ is not None and alarmed > PROMISED
    return made / repeats, broken / repeats


def page(repeats: int) -> Iterator[str]:
    """Yield the lines of the page, each as soon as its cells are there."""
    return rendered(
        "interval_coverage",
        repeats=repeats,
        n_rows=ROWS,
        laws=LAWS,
        covered=_covered(repeats),
        promised=_promised(repeats),
        calibrated=_calibrated(min(repeats, 200)),
    )


def _covered(repeats: int) -> Iterator[list[str]]:
    for groups, kind in itertools.product(GROUPS, ("equal", "drawn", "half")):
        cells = [str(groups), kind]
        for laws in LAWS.values():
            found = [coverage(kind, groups, law, repeats) for law in laws]
            low, mean = min(found)[0], float(np.mean([held for held, _ in found]))
            wide = max(width for _, width in found)
            cells.append(f"{100 * low:.1f} %, {100 * mean:.1f} %, {wide:.2f}")
        yield cells


def _promised(repeats: int) -> Iterator[list[str]]:
    for groups in PROMISED_GROUPS:
        wrong = [promise(groups, bad, 0.5, repeats) for bad in BAD]
        false = [alarm_promise(groups, bad, repeats) for bad in BAD]
        shown = (share for f in (wrong, false) for share in (f[0][0], max(b for _, b in f)))
        yield [str(groups), *(f"{100 * share:.1f} %" for share in shown)]


def _calibrated(repeats: int) -> Iterator[list[str]]:
    for rows in (100, 400, 1000, 4000):
        shares = (f"{100 * share:.1f} %" for share in one_class_promise(rows, repeats))
        bias, near, likely = probability_errors(rows, repeats)
        yield [str(rows), *shares, f"{bias:+.4f}", f"{near:.4f}", f"{likely:.4f}"]


if __name__ == "__main__":
    parser = page_arguments(__doc__, "")
    parser.add_argument("--repeats", type=int, default=1000)
    arguments = parser.parse_args()
    print_page(page(arguments.repeats), arguments.write)
