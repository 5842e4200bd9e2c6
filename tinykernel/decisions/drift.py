"""Whether what a device counted differs from what held-out rows gave."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.decisions.counters import Counters, saturated
from tinykernel.errors import TinykernelError
from tinykernel.model import IntegerModel, as_integer_model
from tinykernel.model.answers.decision import margins

#: Independent decisions that a comparison needs.
LEAST_DECISIONS = 20
# The approximation by chi-square wants that many in a cell.
_LEAST_IN_CELL = 5.0
_TESTS = 3


@dataclass(frozen=True)
class Expected:
    """What a model made of held-out rows.

    Parameters
    ----------
    rows : int
    labels : tuple of int
        Decisions for each class.
    refusals : int
    margin, margin_deviation : float
        Mean and standard deviation of the margins.
    saturated, saturated_deviation : float
        The same of the number of saturated values of an input.
    """

    rows: int
    labels: tuple[int, ...]
    refusals: int
    margin: float
    margin_deviation: float
    saturated: float
    saturated_deviation: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return asdict(self) | {"labels": list(self.labels)}

    @classmethod
    def from_dict(cls, given: Any, n_classes: int) -> Expected | None:
        """Read what `to_dict` gave; None where it is something else."""
        names = cls.__dataclass_fields__
        if not isinstance(given, dict) or given.keys() != names.keys():
            return None
        labels = given["labels"]
        numbers = [given[name] for name in names if name != "labels"]
        if not isinstance(labels, list | tuple) or len(labels) != n_classes:
            return None
        if any(type(n) not in (int, float) or not 0 <= n < 1e30 for n in (*numbers, *labels)):
            return None
        found = cls(**given | {"labels": tuple(labels)})
        return found if found.rows == sum(labels) + found.refusals >= 1 else None


def expected_counts(model: object, X: ArrayLike) -> Expected:
    """Return what a model makes of rows that it was not trained on.

    Parameters
    ----------
    model : IntegerModel, KernelMachine or fitted classifier
    X : array-like
        At least one row, as for `IntegerModel.as_raw`, drawn as the inputs of the device should be.
    """
    integer = as_integer_model(model)
    if integer.is_regressor:
        raise TinykernelError("drift is found in decisions; the model predicts values")
    scores = integer.scores(X)
    if not len(scores):
        raise TinykernelError("drift: the data have no rows")
    answers, margin = _decisions(integer, scores)
    counts = saturated(integer, X)
    return Expected(
        rows=len(answers),
        labels=tuple(np.bincount(answers[answers >= 0], minlength=integer.n_classes).tolist()),
        refusals=int(np.sum(answers < 0)),
        margin=float(margin.mean()),
        margin_deviation=float(margin.std()),
        saturated=float(counts.mean()),
        saturated_deviation=float(counts.std()),
    )


def _decisions(
    model: IntegerModel, scores: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Return label or -1, and margin, of each row."""
    labels, margin = margins(scores)
    if model.decision is not None:
        return model.decision.decide(scores), margin
    return labels.astype(np.int64), margin


@dataclass(frozen=True)
class Drift:
    """What the comparison of a device with held-out rows says.

    Parameters
    ----------
    decisions : int
        Of the device.
    independent : float
        As how many independent ones they count.
    chi_square : float
        Of the shares of labels and refusals, and `degrees` of freedom.
    degrees : int
    p_labels, p_margin, p_saturated : float
        How likely a difference as large as this one is without drift: of the shares, the mean
        margin and the mean number of saturated values.
    shares, shares_expected : tuple of float
        Of the decisions: of each class, then refusals.
    margin, margin_expected, saturated, saturated_expected : float
        Means.
    false_alarm : float
        The risk of saying that there is a difference where there is none.
    """

    decisions: int
    independent: float
    chi_square: float
    degrees: int
    p_labels: float
    p_margin: float
    p_saturated: float
    shares: tuple[float, ...]
    shares_expected: tuple[float, ...]
    margin: float
    margin_expected: float
    saturated: float
    saturated_expected: float
    false_alarm: float

    @property
    def enough(self) -> bool:
        """Whether there are decisions enough to say anything."""
        return self.independent >= LEAST_DECISIONS

    @property
    def differs(self) -> tuple[str, ...]:
        """What differs: ``"labels"``, ``"margin"``, ``"saturated"``. Empty without enough."""
        found = {"labels": self.p_labels, "margin": self.p_margin, "saturated": self.p_saturated}
        level = self.false_alarm / _TESTS
        return tuple(name for name, p in found.items() if self.enough and p < level)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return asdict(self) | {"enough": self.enough, "differs": list(self.differs)}


def drift(
    counters: Counters, expected: Expected, *, false_alarm: float = 0.01, independent: bool = False
) -> Drift:
    """Compare what a device counted with what held-out rows gave.

    Parameters
    ----------
    counters : Counters
    expected : Expected
        Of the same model.
    false_alarm : float, default=0.01
        Risk of a difference where there is none, above 0 and below 1; the three tests share it.
    independent : bool, default=False
        Whether each decision is about something new, as parts on a belt are. Otherwise decisions
        follow each other, as those of a stream, and count by how often they change.

    Returns
    -------
    Drift

    Raises
    ------
    TinykernelError
        If `false_alarm` is out of range, or nothing was counted.

    Notes
    -----
    Shares: chi-square test of two samples, classes that are rare in both together. Means: the
    normal approximation, with the deviation of the held-out rows. Decisions of a stream count as
    those of a chain that draws anew with probability r at every step, from the held-out shares, and
    else stays. It changes with probability ``r (1 - sum of squared shares)``, which gives r, and n
    of its steps tell as much of the shares as ``n r / (2 - r)`` independent ones. So a device
    that was in one state all the time has told next to nothing.
    """
    # Every command imports this module, and scipy.stats takes half a second.
    from scipy.special import chdtrc

    if not 0 < false_alarm < 1:
        raise TinykernelError(f"drift: the risk must be above 0 and below 1; got {false_alarm}")
    n = counters.decisions
    if n == 0:
        raise TinykernelError("drift: the device has counted no decision yet")
    here = np.array([*counters.labels, counters.refusals], dtype=np.float64)
    there = np.array([*expected.labels, expected.refusals], dtype=np.float64)
    count = float(n) if independent else _independent(counters, there / expected.rows)
    chi_square, degrees = _chi_square(here * (count / n), there)
    margin, saturated = counters.margin / n, counters.saturated / n
    error = np.sqrt(1 / count + 1 / expected.rows)
    return Drift(
        decisions=n,
        independent=count,
        chi_square=chi_square,
        degrees=degrees,
        p_labels=float(chdtrc(degrees, chi_square)) if degrees else 1.0,
        p_margin=_p_mean(margin - expected.margin, expected.margin_deviation * error),
        p_saturated=_p_mean(saturated - expected.saturated, expected.saturated_deviation * error),
        shares=tuple((here / n).tolist()),
        shares_expected=tuple((there / expected.rows).tolist()),
        margin=margin,
        margin_expected=expected.margin,
        saturated=saturated,
        saturated_expected=expected.saturated,
        false_alarm=false_alarm,
    )


def _independent(counters: Counters, shares: NDArray[np.float64]) -> float:
    """Return as how many independent decisions those of a stream count."""
    n = counters.decisions
    changes = 1 - float(np.sum(shares**2))
    if changes <= 0:  # only one kind of decision was ever seen, nothing can be said of its length
        return float(min(n, counters.transitions + 1))
    rate = min(1.0, (counters.transitions + 1) / n / changes)
    return n * rate / (2 - rate)


def _chi_square(here: NDArray[np.float64], there: NDArray[np.float64]) -> tuple[float, int]:
    """Return the statistic of two samples and its degrees of freedom."""
    total = np.sum(here), np.sum(there)
    expected = np.minimum(*total) * (here + there) / sum(total)
    rare = expected < _LEAST_IN_CELL
    here = np.append(here[~rare], np.sum(here[rare]))
    there = np.append(there[~rare], np.sum(there[rare]))
    kept = here + there > 0
    here, there = here[kept], there[kept]
    if len(here) < 2:
        return 0.0, 0
    ratio = np.sqrt(total[1] / total[0])
    parts = (here * ratio - there / ratio) ** 2 / (here + there)
    return float(np.sum(parts)), len(here) - 1


def _p_mean(difference: float, error: float) -> float:
    """Return how likely a difference of means is by chance."""
    if error == 0:
        return 1.0 if difference == 0 else 0.0
    return math.erfc(abs(difference) / error / math.sqrt(2))
