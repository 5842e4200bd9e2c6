"""Decisions that a device counted against held-out rows, and numbers over their own past."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.checks import as_groups, check_choice, check_count
from tinykernel.base.errors import DataError, OptionError, RowsError, ShapeError
from tinykernel.model.answers import margins
from tinykernel.model.counters import Counters, as_classifier, saturated

#: What `over` gives for a number that equals its past, and its largest result.
UNIT, MOST = 128, 1023
_LARGEST, _MOST_SHIFT = 65535, 8


def relative(
    numbers: ArrayLike, groups: ArrayLike | None = None, *, n: int = 32, how: str = "over"
) -> NDArray[np.int32]:
    """Return numbers relative to the mean of those before them, as the firmware computes them.

    A patient's pulse, the noise of a place or the wear of a machine moves all numbers of a stream;
    what matters is often how one differs from those before. With a sum s that starts at n times the
    first number x, and ``>>`` and ``//`` that round down, each number gives::

        mean = s >> log2(n)
        s = s + x - mean
        less: x - mean          over: min(128 * max(x, 0) // max(mean, 1), 1023)

    This is an exponential mean, whose weights fall by 1 - 1/n from one number to the next. The
    first result of a stream is 0 or 128.

    Parameters
    ----------
    numbers : array-like of int, shape (n_rows,) or (n_rows, n_numbers), -65535 to 65535
        In order of time; each column has a past of its own.
    groups : array-like, shape (n_rows,), optional
        Which stream each row belongs to; their rows may alternate. By default all rows are one.
    n : {2, 4, 8, ..., 256}
        How many numbers the mean remembers.
    how : {"over", "less"}
        A multiple of the mean, in units of 1/128, for numbers above 0; or the difference.

    Returns
    -------
    ndarray of int32, of the shape of `numbers`

    Raises
    ------
    TinykernelError
        If numbers are no integers or out of range, or `n` or `how` is none of these.

    Examples
    --------
    >>> relative([100, 100, 80, 120, 100], n=2).tolist()
    [128, 128, 102, 170, 121]
    >>> relative([100, 100, 80, 120, 100], [0, 1, 0, 1, 0], n=2, how="less").tolist()
    [0, 0, -20, 20, 10]
    """
    shift = check_count("n", n, 2).bit_length() - 1
    if shift > _MOST_SHIFT or n != 1 << shift:
        raise OptionError(f"n: {n}; give 2, 4, 8, ... or {1 << _MOST_SHIFT}")
    check_choice("how", how, ("over", "less"))
    try:
        x = np.asarray(numbers)
    except ValueError:
        raise ShapeError("numbers: rows of unequal lengths; give a row or rows") from None
    is_whole = x.ndim in (1, 2) and x.dtype.kind in "iu"
    if not is_whole or x.min(initial=0) < -_LARGEST or x.max(initial=0) > _LARGEST:
        raise ShapeError(
            f"numbers: {x.dtype} of shape {x.shape}; give a row or rows of integers, "
            f"{-_LARGEST} to {_LARGEST}"
        )
    x = x.astype(np.int64)
    mean, group = np.empty_like(x), as_groups(groups, len(x))
    streams = (
        np.zeros(len(x), np.intp) if group is None else np.unique(group, return_inverse=True)[1]
    )
    total = np.empty((streams.max(initial=-1) + 1, *x.shape[1:]), np.int64)
    total[streams[::-1]] = x[::-1] << shift  # the first row of each stream is stored last
    for row, stream in enumerate(streams.tolist()):
        mean[row] = total[stream] >> shift
        total[stream] += x[row] - mean[row]
    over = np.minimum(UNIT * np.maximum(x, 0) // np.maximum(mean, 1), MOST)
    return np.asarray(x - mean if how == "less" else over, dtype=np.int32)


#: The fewest independent decisions for a comparison.
LEAST_DECISIONS = 20
# The approximation by chi-square needs this many in a cell.
_LEAST_IN_CELL = 5.0


@dataclass(frozen=True)
class Expected:
    """The decisions of a model on held-out rows."""

    rows: int
    labels: tuple[int, ...]  # decisions for each class
    refusals: int
    margin: float  # mean
    margin_deviation: float  # standard deviation
    saturated: float  # mean number of saturated values in an input
    saturated_deviation: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return asdict(self) | {"labels": list(self.labels)}

    @classmethod
    def from_dict(cls, record: Any, n_classes: int) -> "Expected | None":
        """Read a result of `to_dict`; None for anything else."""
        if not isinstance(record, dict) or record.keys() != cls.__dataclass_fields__.keys():
            return None
        labels = record["labels"]
        if not isinstance(labels, list | tuple) or len(labels) != n_classes:
            return None
        numbers = [*labels, *(record[name] for name in record if name != "labels")]
        if any(type(n) not in (int, float) or not 0 <= n < 1e30 for n in numbers):
            return None
        expected = cls(**record | {"labels": tuple(labels)})
        return expected if expected.rows == sum(labels) + expected.refusals >= 1 else None


def expected_counts(model: object, X: ArrayLike) -> Expected:
    """Count the decisions of a model on rows that it was not trained on.

    X has at least one row, as for `IntegerModel.as_raw`, drawn as inputs of the device should be.
    """
    integer = as_classifier(model, "drift")
    scores = integer.scores(X)
    if not len(scores):
        raise DataError("drift: the data have no rows; give at least one")
    answers, margin = margins(scores)
    if integer.decision is not None:
        answers = integer.decision.decide(scores)
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


@dataclass(frozen=True)
class Drift:
    """The result of comparing a device with held-out rows."""

    decisions: int  # of the device
    independent: float  # decisions that they count as
    chi_square: float  # statistic for the shares of labels and refusals
    degrees: int  # of freedom
    # Probability of a difference at least this large without drift: for the shares, the mean
    # margin and the mean number of saturated values.
    p_labels: float
    p_margin: float
    p_saturated: float
    shares: tuple[float, ...]  # of the decisions: of each class, then refusals
    shares_expected: tuple[float, ...]
    margin: float  # means
    margin_expected: float
    saturated: float
    saturated_expected: float
    false_alarm: float  # risk of reporting a difference where there is none

    @property
    def enough(self) -> bool:
        """Whether there are enough decisions for a result."""
        return self.independent >= LEAST_DECISIONS

    @property
    def differs(self) -> tuple[str, ...]:
        """What differs: ``"labels"``, ``"margin"``, ``"saturated"``. Empty without enough."""
        p_values = {name: getattr(self, f"p_{name}") for name in ("labels", "margin", "saturated")}
        level = self.false_alarm / len(p_values)
        return tuple(name for name, p in p_values.items() if self.enough and p < level)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return asdict(self) | {"enough": self.enough, "differs": list(self.differs)}


def drift(
    counters: Counters, expected: Expected, *, false_alarm: float = 0.01, independent: bool = False
) -> Drift:
    """Compare the counters of a device with those of held-out rows.

    Parameters
    ----------
    counters : Counters
    expected : Expected
        Of the same model.
    false_alarm : float, default=0.01
        Risk of reporting a difference where there is none, above 0 and below 1, for all three tests
        together.
    independent : bool, default=False
        Whether each decision is about a new object, like parts on a belt. Otherwise decisions are
        those of a stream, and count by how often they change.

    Returns
    -------
    Drift

    Raises
    ------
    TinykernelError
        If `false_alarm` is out of range, or nothing was counted.

    Notes
    -----
    Shares: chi-square test of two samples; rare classes are merged. Means: the normal
    approximation, with the deviation of the held-out rows. Decisions of a stream are modelled as a
    chain that draws anew with probability r at every step, from the held-out shares, and otherwise
    stays. It changes with probability ``r (1 - sum of squared shares)``, which gives r, and n of
    its steps tell as much about the shares as ``n r / (2 - r)`` independent ones. A device that was
    always in one state therefore holds hardly any information.
    """
    # Every command imports this module, and scipy.stats takes half a second.
    from scipy.special import chdtrc

    if not 0 < false_alarm < 1:
        raise OptionError(f"drift: the risk must be above 0 and below 1; got {false_alarm}")
    n = counters.decisions
    if n == 0:
        raise RowsError("drift: the device has counted no decision yet; read it later")
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
    """Return how many independent decisions those of a stream count as."""
    n = counters.decisions
    changes = 1 - float(np.sum(shares**2))
    if changes <= 0:  # only one kind of decision was ever seen
        return float(min(n, counters.transitions + 1))
    rate = min(1.0, (counters.transitions + 1) / n / changes)
    return n * rate / (2 - rate)


def _chi_square(here: NDArray[np.float64], there: NDArray[np.float64]) -> tuple[float, int]:
    """Return the statistic of two samples and its degrees of freedom."""
    total = np.sum(here), np.sum(there)
    rare = np.minimum(*total) * (here + there) / sum(total) < _LEAST_IN_CELL
    here = np.append(here[~rare], np.sum(here[rare]))
    there = np.append(there[~rare], np.sum(there[rare]))
    seen = here + there > 0
    here, there = here[seen], there[seen]
    if len(here) < 2:
        return 0.0, 0
    ratio = np.sqrt(total[1] / total[0])
    parts = (here * ratio - there / ratio) ** 2 / (here + there)
    return float(np.sum(parts)), len(here) - 1


def _p_mean(difference: float, error: float) -> float:
    """Return the probability of a difference of means by chance."""
    if error == 0:
        return 1.0 if difference == 0 else 0.0
    return math.erfc(abs(difference) / error / math.sqrt(2))
