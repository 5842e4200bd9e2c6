"""Intervals, errors, false alarms and events an hour that are promised, where the truth is known.

Each draw has groups that differ in ways that are drawn, too. What is said with 95 % confidence must
hold as often: of all draws of a kind too many broken ones are a finding. What is promised on
average must hold on average of all draws.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, ttest_1samp

from tests.firmware.local_models import SIGNALS
from tests.fuzz.batch import Batch
from tinykernel.base.errors import TinykernelError
from tinykernel.judge.event_rules import Stream, choose_events, hours_of, judge
from tinykernel.judge.figures import accuracy_interval, rmse_interval
from tinykernel.learn.confidence import Ranking, effective_rows
from tinykernel.learn.novelty import alarms

_RISK, _CHANCE = 0.05, 1e-4


def _sizes(n_groups: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the group of each row: 5 to 60 rows each, equal or log-normal."""
    spread = rng.choice([0.0, 0.5, 1.0]) * rng.normal(size=n_groups)
    return np.repeat(
        np.arange(n_groups), np.rint(rng.integers(5, 60) * np.exp(spread) + 1).astype(int)
    )


def interval_of_an_accuracy(rng: np.random.Generator) -> bool:
    group = _sizes(int(rng.integers(12, 60)), rng)
    mean, correlation = rng.uniform(0.6, 0.93), rng.choice([0.001, 0.03, 0.1])
    rate = rng.beta(*np.array([mean, 1 - mean]) * (1 / correlation - 1), group[-1] + 1)
    found = accuracy_interval(rng.random(len(group)) < rate[group], group)
    return found is not None and found[0] <= mean <= found[1]


def interval_of_an_rmse(rng: np.random.Generator) -> bool:
    group = _sizes(int(rng.integers(20, 60)), rng)
    spread = rng.choice([0.0, 0.1, 0.2])
    size = np.exp(spread * rng.normal(size=group[-1] + 1))
    found = rmse_interval(size[group] * rng.normal(size=len(group)), group)
    return found is not None and found[0] <= np.exp(spread**2) <= found[1]


def error_of_new_groups(rng: np.random.Generator) -> bool | None:
    """A share of all groups is wrong in half of the rows; sure rows are right more often."""
    group = _sizes(int(rng.integers(5, 200)), rng)
    bad = rng.choice([0.0, 0.02, 0.05, 0.1, 0.3])
    good, most = rng.uniform(0, 0.03), rng.uniform(0.02, 0.1)
    error = np.where(rng.random(group[-1] + 1) < bad, 0.5, good)[group]
    right = rng.random(len(group)) >= error
    share = effective_rows(right.astype(np.float64), group, 1 - _RISK) / len(right)
    margin = rng.permutation(len(group)).astype(np.uint32)
    chosen, _ = Ranking(margin, right, share, group).by_error(most, _RISK)
    return None if chosen is None else bool(bad * 0.5 + (1 - bad) * good <= most)


def error_of_new_rows(rng: np.random.Generator) -> bool | None:
    """The error falls with the margin, a uniform number; thresholds are a choice of many."""
    n, most = int(rng.integers(50, 3000)), rng.uniform(0.01, 0.2)
    margin, slope = rng.integers(0, 1 << 20, n), rng.uniform(0, 0.8)
    right = rng.random(n) >= slope * (1 - margin / 2**20)
    chosen, _ = Ranking(margin.astype(np.uint32), right).by_error(most, _RISK)
    return None if chosen is None else bool(slope * (1 - chosen.threshold / 2**20) / 2 <= most)


def alarms_of_new_rows(rng: np.random.Generator) -> bool | None:
    n, most = int(rng.integers(20, 3000)), rng.uniform(0.005, 0.2)
    novelty = rng.integers(0, 1 << 20, n).astype(np.int32)
    try:
        threshold = alarms(novelty, None, most, _RISK).threshold
    except TinykernelError:
        return None
    return bool(1 - threshold / 2**20 <= most)


def alarms_of_new_groups(rng: np.random.Generator) -> bool | None:
    """Half of the rows of a bad group are far from all others."""
    group = _sizes(int(rng.integers(5, 200)), rng)
    bad, most = rng.choice([0.0, 0.02, 0.05, 0.1, 0.3]), rng.uniform(0.02, 0.1)
    far = (rng.random(group[-1] + 1) < bad)[group] & (rng.random(len(group)) < 0.5)
    novelty = (rng.integers(0, 10_000, len(group)) + 10_000 * far).astype(np.int32)
    try:
        threshold = alarms(novelty, group, most, _RISK).threshold
    except TinykernelError:
        return None
    near, beyond = max(0, 9999 - threshold) / 10_000, min(1.0, (19_999 - threshold) / 10_000)
    return bool((1 - bad) * near + bad * 0.5 * (near + beyond) <= most)


def events_an_hour(rng: np.random.Generator) -> bool | None:
    found = _alarms_for_promised(rng, 1 - _RISK)
    return None if found is None else found <= 1


def events_an_hour_on_average(rng: np.random.Generator) -> float | None:
    return _alarms_for_promised(rng, None)


def _alarms_for_promised(rng: np.random.Generator, confidence: float | None) -> float | None:
    """Return the false alarms for one that is promised.

    Sounds come at some rate an hour, as loud as an exponential distribution says. The rate may
    differ between recordings. That of the chosen threshold is counted in 100 hours of others.
    """
    spread, rate = rng.choice([0.0, 0.3]), rng.uniform(2, 60)
    an_hour, n_groups = rng.uniform(0.3, 5), int(rng.integers(8, 20))
    learned = _recording(rng, n_groups, rng.uniform(2, 10) / n_groups, rate, spread)
    try:
        chosen = choose_events(SIGNALS["events"](), [learned], [0], an_hour, confidence)
    except TinykernelError:
        return None
    assert chosen.model.events is not None
    fresh = _recording(rng, 100, 1.0, rate, spread, every=10**6)
    return len(judge([fresh], chosen.model.events).alarms) / hours_of([fresh]) / an_hour


def _recording(
    rng: np.random.Generator,
    n_groups: int,
    hours: float,
    rate: float,
    spread: float,
    every: int = 600,
) -> Stream:
    """Return groups of some hours, with an event of any loudness `every` so many seconds."""
    each = int(3600 * hours)
    rates = rng.gamma(1 / spread, spread * rate, n_groups) if spread else np.full(n_groups, rate)
    n = each * n_groups
    loud = rng.random(n) < np.repeat(rates, each) / 3600
    scores = np.zeros((n, 3), np.int32)
    scores[:, 0] = 10
    scores[loud, rng.integers(1, 3, loud.sum())] = 30 + rng.exponential(60, loud.sum())
    first = np.arange(60, n - 60, every)
    scores[first, 1] = 30 + rng.exponential(120, len(first))
    spans = np.stack([first - 2, first + 2, np.ones_like(first)], axis=1)
    groups = np.stack([np.arange(0, n, each), np.arange(n_groups)], axis=1)
    return Stream(scores, np.arange(n), spans, groups, n, 1)


KINDS: tuple[Callable[[np.random.Generator], float | None], ...] = (
    interval_of_an_accuracy,
    interval_of_an_rmse,
    error_of_new_groups,
    error_of_new_rows,
    alarms_of_new_rows,
    alarms_of_new_groups,
    events_an_hour,
    events_an_hour_on_average,
)


def run(batch: Batch, size: int) -> None:
    """Make `size` promises of each kind, or refuse them, and count those that are broken."""
    for number, kind in enumerate(KINDS):
        draws = [kind(np.random.default_rng((batch.seed, index, number))) for index in range(size)]
        results = np.array([result for result in draws if result is not None])
        n, name = len(results), kind.__name__
        batch.counts["promises"] += n
        batch.counts["refused promises"] += size - n
        if results.dtype == bool:
            n_broken = int((~results).sum())
            if binom.sf(n_broken - 1, n, _RISK) < _CHANCE:
                batch.find("differences", f"{name}: {n_broken} of {n} promises are broken")
        elif n > 1 and ttest_1samp(results, 1.0, alternative="greater").pvalue < _CHANCE:
            batch.find("differences", f"{name}: {results.mean():.3g} for 1 on average of {n}")
        if not n and size >= 50:
            batch.find("differences", f"{name}: nothing was promised in {size} draws")
