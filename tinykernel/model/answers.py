"""What scores mean: labels or values, decisions, and events of streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.compiled import njit
from tinykernel.base.elementary import exps
from tinykernel.base.errors import ModelError
from tinykernel.base.text import count, join
from tinykernel.pieces.proof import Range, range_of
from tinykernel.pieces.prototypes.spec import LARGEST_MARGIN_LINE, check_distances, most_steps
from tinykernel.pieces.record import Matrix, Record, limits


@dataclass(frozen=True)
class Labels(Record):
    """Answers of a classifier: one of its classes.

    With more than two classes there is one output a class and ``scores = total``. With two classes
    there is one output and ``scores = (-total_0, total_0)``. The label is the **first** index of
    the largest score, and ``classes[label]`` the prediction.

    >>> Labels(("off", "on")).scores(np.array([[-3]], dtype=np.int32)).tolist()
    [[3, -3]]
    """

    classes: tuple[Any, ...]  # at least two different str, int, float or bool

    def check(self) -> None:
        """Check that the labels differ."""
        if len(self.classes) < 2 or len(set(self.classes)) != len(self.classes):
            raise self.refuse("needs two or more different classes")

    @property
    def n_scores(self) -> int:
        """Number of scores: one per class."""
        return len(self.classes)

    @property
    def n_outputs(self) -> int:
        """Number of outputs: 1 for two classes, else one per class."""
        return 1 if self.n_scores == 2 else self.n_scores

    def scores(self, totals: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return one score a class, shape (n, n_scores)."""
        return np.hstack([-totals, totals]) if self.n_scores == 2 else totals

    def predict(self, scores: NDArray[np.int32]) -> NDArray[Any]:
        """Return the labels of rows of scores, shape (n,)."""
        return np.asarray(np.array(self.classes)[np.argmax(scores, axis=1)])


LARGEST_SHIFT = 200
#: The largest score.
_TOP = 2**31 - 1
#: What a fraction of an exponent of 2 is worth: ``2**15 * 2**(i / 64)`` less 2**15.
POWERS = np.rint(2.0**15 * (2.0 ** (np.arange(65) / 64) - 1)).astype(np.int64)


def numbered_values(n: int) -> tuple[str, ...]:
    """Name values that have no names: "value", or of several "value0", "value1" and so on."""
    return ("value",) if n == 1 else tuple(f"value{i}" for i in range(n))


@dataclass(frozen=True)
class Values(Record):
    """Answers of a regressor: there is one output a value, and a value is ``score / 2**shift``.

    Scores are the totals. With `curve` they are a function of these, in 2**-shift, which ends at
    2**31 - 1 on both sides. With the table P of `POWERS` and ``f = curve_bits``:

    * *power*, of 2 to the power of ``total / 2**f``, f from 1 to 31, with a relative error of at
      most 2**-15 and half a unit more::

        part  = (total << (32 - f)) as uint32                       the fraction, in 32 bits
        i, t  = part >> 26, (part >> 10) & 65535
        power = ((P_i + 32768) << 15) + (((P_(i+1) - P_i) * t) >> 1)        2**30 to 2**31 - 1
        down  = 30 - shift - (total >> f)
        score = 2**31 - 1 if down < 0, 0 if down > 31, else (power + (1 << down >> 1)) >> down

    * *square*, with the sign of the total, ``|total|**2 >> f``, f from 0 to 62.

    >>> Values(("hours",), 8).unit
    0.00390625
    >>> Values(("hours",), 8, "power", 4).scores(np.array([[16], [-16], [99]], np.int32)).tolist()
    [[512], [128], [18658]]
    """

    names: tuple[str, ...]  # of each score
    shift: int = field(metadata=limits(-LARGEST_SHIFT, LARGEST_SHIFT))  # the same for all
    curve: str = field(default="", metadata={"later": True})  # "", "power" or "square"
    curve_bits: int = field(default=0, metadata={"later": True, **limits(0, 62)})

    def check(self) -> None:
        """Check the names, and the bits of a curve."""
        if not self.names or len(set(self.names)) != len(self.names):
            raise self.refuse("needs one or more values of different names")
        known = {"": range(1), "power": range(1, 32), "square": range(63)}
        if self.curve_bits not in known.get(self.curve, ()):
            raise self.refuse(f"no curve {self.curve!r} of {self.curve_bits} bits")

    @property
    def n_scores(self) -> int:
        """Number of scores: one a value."""
        return len(self.names)

    @property
    def n_outputs(self) -> int:
        """Number of outputs: one a value."""
        return len(self.names)

    def scores(self, totals: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the totals, or what the curve makes of them."""
        if not self.curve:
            return totals
        whole, bits = totals.astype(np.int64), self.curve_bits
        if self.curve == "square":
            size = np.minimum(whole * whole >> bits, _TOP)
            return np.asarray(np.sign(whole) * size, dtype=np.int32)
        part = whole << (32 - bits) & 0xFFFFFFFF
        place, rest = part >> 26, part >> 10 & 0xFFFF
        power = (POWERS[place] + 32768 << 15) + (np.diff(POWERS)[place] * rest >> 1)
        down = 30 - self.shift - (whole >> bits)
        steps = np.clip(down, 0, 32)
        rounded = power + ((1 << steps) >> 1) >> steps
        return np.where(down < 0, _TOP, np.where(down > 31, 0, rounded)).astype(np.int32)

    def ranges(self) -> tuple[Range, ...]:
        """Return the range of what the curve makes of any total."""
        if not self.curve:
            return ()
        least = 0 if self.curve == "power" else -_TOP
        return (range_of(self.curve, np.array(least), np.array(_TOP)),)

    def predict(self, scores: NDArray[np.int32]) -> NDArray[Any]:
        """Return float64 values, shape (n,), or (n, n_scores) of several."""
        values = np.asarray(scores * self.unit, dtype=np.float64)
        return values[:, 0] if self.n_scores == 1 else values

    @property
    def unit(self) -> float:
        """Value of a score of 1."""
        return 2.0**-self.shift


#: The label of "I do not know".
UNKNOWN = -1
_CLASSES_SHOWN = 12
#: Entries of the table of confidences.
CONFIDENCES = 64


def margins(scores: NDArray[np.int32]) -> tuple[NDArray[np.intp], NDArray[np.uint32]]:
    """Return the label of each row and by how much its score exceeds the second largest."""
    labels = scores.argmax(axis=1)
    # 64 bits: the difference of two int32 may need 33.
    two = np.partition(scores.astype(np.int64), -2, axis=1)[:, -2:]
    return labels, (two[:, 1] - two[:, 0]).astype(np.uint32)


def novelties(scores: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return -1 less the largest score of each row; the -1 keeps any score an int32."""
    return np.asarray(~scores.max(axis=1), dtype=np.int32)


def nearer(
    distance: NDArray[np.int32], margin: NDArray[np.uint32], line: tuple[int, int, int]
) -> NDArray[np.int32]:
    """Return the larger of a distance and of a margin as a distance; see `Decision`."""
    bias, gain, steps = line
    counted = np.minimum((margin >> np.uint32(steps)).astype(np.int64), most_steps(gain))
    return np.asarray(np.maximum(distance, bias - gain * counted), dtype=np.int32)


def softmax(decisions: NDArray[np.float64], temperature: float = 1.0) -> NDArray[np.float64]:
    """Return probabilities of classes."""
    powers = decisions / temperature
    powers = exps(powers - powers.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False, repr=False)
class Decision(Record):
    """How sure a model is of a label, and when it does not answer.

    The margin of a row is its largest score less the second largest, a uint32. The firmware
    computes, for the label of the largest score::

        decision   = label if margin >= thresholds[label] else -1
        confidence = table[min(margin >> shift, 63)]
        novel      = novelty > novelty_threshold
        novelty    = -1 - largest score                                       without prototypes
        novelty    = max(distance, bias - min(margin >> steps, top) * gain)   with prototypes

    where ``bias, gain, steps = margin_line``, ``top = (2**31 - 1) // gain``, and the distance is
    that to the nearest prototype, proved to fit int32::

        distance = min over k of sum over i of (b_i - (16 * prototypes_ki + 8))**2

    b_i is the quantized input: q_i of 8 bits, ``q_i >> 8`` of 16 bits, 0 of a constant input.
    ``thresholds[label]`` is ``thresholds[0]`` if there is one for all classes. A confidence c says
    that about c to c + 1 of 256 such answers are right. The other fields serve Python only.
    """

    OWNER = "decision"

    thresholds: NDArray[np.uint32]  # (1,) or (n_classes,): least margin of an answer; 0 for all
    table: NDArray[np.uint8] = field(metadata=limits(0, 255, CONFIDENCES))  # ascending confidences
    shift: int = field(metadata=limits(0, 31))
    temperature: float  # positive: ``softmax(decision / temperature)`` are probabilities
    statement: str = field(default="", compare=False)  # the promise and its rows; information only
    # the largest novelty that counts as a known class; None without such a threshold
    novelty_threshold: int | None = field(default=None, metadata=limits(-(2**31), 2**31 - 1))
    # (k, n_features): known rows of inputs; they go with a threshold of novelty and a margin line
    prototypes: Matrix[np.int8] | None = field(default=None, metadata=limits(-8, 7))
    # bias, gain from 1 up, and steps to 31: what a margin is worth as a distance
    margin_line: tuple[int, int, int] | None = field(
        default=None, metadata=limits(0, LARGEST_MARGIN_LINE)
    )

    def check(self) -> None:
        """Check relations between fields, and that tables rise."""
        line = self.margin_line
        if self.prototypes is not None:
            check_distances(self.prototypes)
        wrong = {
            "prototypes": (self.n_prototypes > 0) != (line is not None)
            or (self.n_prototypes > 0 and self.novelty_threshold is None),
            "margin_line": line is not None and not (len(line) == 3 and line[1] and line[2] < 32),
            "temperature": self.temperature <= 0,
            "table": bool(np.any(np.diff(self.table.astype(int)) < 0)),
        }
        for name in filter(wrong.get, wrong):
            raise self.refuse(f"{name} holds what it must not")

    @property
    def n_prototypes(self) -> int:
        """Number of prototypes; 0 where novelty is that of the scores."""
        return 0 if self.prototypes is None else len(self.prototypes)

    @property
    def rejects(self) -> bool:
        """Whether it ever refuses an answer."""
        return bool(np.any(self.thresholds))

    @property
    def least_margins(self) -> str:
        """Which margins an answer needs, in words."""
        if not self.rejects:
            return "none: every row is answered"
        return join(self.thresholds.tolist(), _CLASSES_SHOWN)

    def words(self) -> list[tuple[str, str]]:
        """Return thresholds, confidence and novelty as names and values."""
        novel = "" if self.novelty_threshold is None else str(self.novelty_threshold)
        if novel and self.n_prototypes:
            prototypes = count(self.n_prototypes, "prototype")
            novel += f", by the distance to {prototypes} and the margin"
        confidence = f"{self.table[0]} to {self.table[-1]}"
        return [
            ("least margin", self.least_margins),
            ("confidence", f"{confidence}, a step every {1 << self.shift} of the margin"),
            ("novel above", novel),
            ("promise", self.statement),
        ]

    def facts(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return {
            "thresholds": self.thresholds.tolist(),
            "confidences": self.table.tolist(),
            "confidence_shift": self.shift,
            "temperature": self.temperature,
            "statement": self.statement,
            "novelty_threshold": self.novelty_threshold,
            "prototypes": self.n_prototypes,
        }

    def decide(self, scores: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the label of each row, -1 where the margin is below the threshold."""
        labels, margin = margins(scores)
        thresholds = np.broadcast_to(self.thresholds, max(scores.shape[1], self.thresholds.size))
        return np.where(margin >= thresholds[labels], labels, UNKNOWN).astype(np.int64)

    def confidence(self, scores: NDArray[np.int32]) -> NDArray[np.uint8]:
        """Return the confidence of each row."""
        _, margin = margins(scores)
        return np.asarray(self.table[np.minimum(margin >> self.shift, CONFIDENCES - 1)])

    def is_novel(self, novelty: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return whether rows of this novelty look like no class."""
        if self.novelty_threshold is None:
            raise ModelError(
                "the model has no threshold of novelty; calibrate it with a rate of {false_alarms}",
                false_alarms=None,
            )
        return np.asarray(novelty > self.novelty_threshold)

    def probabilities(self, decisions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities of all classes; `decisions` has one column a class."""
        return softmax(decisions, self.temperature)


#: Stands for "no event" where a label is expected; a refusal is -1.
NO_EVENT = -2
#: The most that a sum holds: sums are uint32 in C and never reach half of that.
LARGEST_SUM = 2**31 - 1


@dataclass(frozen=True, eq=False, repr=False)
class Events(Record):
    """When a stream has enough evidence of a class; each event is reported once.

    The firmware keeps, of each class c, a sum in a uint32 that forgets: an exponential sum by
    shifts. It takes in by how much the score of the class exceeds those of the background, less
    a quarter of that of the best other class. With ``most = (2**31 - 1) >> shift``, all sums,
    `wait` and `held` 0 at the beginning::

        label     = that of the largest score
        rest      = largest score of background; without background, the second largest of all
        other_c   = largest score of the classes other than c
        gap_c     = score_c - rest - (max(other_c - rest, 0) >> 2)        for each class c
        sum_c     = sum_c - (sum_c >> shift) + min(max(gap_c, 0), most)
        held      = 0 if held > 0 and sum_(held - 1) < thresholds_(held - 1) >> 1
        event     = wait == 0, thresholds_label > 0, sum_label >= thresholds_label,
                    and held != label + 1
        wait      = pause if event, else max(wait - 1, 0)
        held      = label + 1 if event

    An event gives its label, all other decisions give `NO_EVENT`. So a class gives no second event
    before its sum fell below half its threshold, and no event follows another within `pause`
    decisions.

    No sum exceeds ``most << shift <= 2**31 - 1``: ``s - (s >> shift)`` does not fall as s rises, so
    a sum of at most ``most << shift`` loses at least what it is above ``(most << shift) - most``
    before it takes in at most `most`.

    >>> events = Events(np.array([0, 25], dtype=np.uint32), 1, 2)
    >>> scores = np.array([[0, 10], [0, 20], [0, 20], [9, 0], [9, 0], [9, 0], [0, 40]], np.int32)
    >>> events.follow(scores).tolist()
    [-2, 1, -2, -2, -2, -2, 1]
    """

    OWNER = "events"

    # (n_classes,): least sum of an event of each class; 0 of background, which never makes one
    thresholds: NDArray[np.uint32] = field(metadata=limits(0, LARGEST_SUM))
    shift: int = field(metadata=limits(0, 15))  # a sum remembers about ``2**shift`` decisions
    pause: int = field(metadata=limits(0, 65535))  # decisions without an event after one
    statement: str = field(default="", compare=False)  # the promise; information only

    def check(self) -> None:
        """Check that a class can make an event, and that sums can reach each threshold."""
        reached = LARGEST_SUM >> self.shift << self.shift
        if self.thresholds.max() > reached:
            raise self.refuse(f"thresholds holds more than {reached}, which no sum reaches")
        if not self.thresholds.any():
            raise self.refuse("every class is background, so nothing can happen")

    def follow(
        self, scores: NDArray[np.int32], state: EventState | None = None
    ) -> NDArray[np.int64]:
        """Return the event of each decision of a stream: a label or `NO_EVENT`.

        `scores` has one row a decision. They begin the stream, or go on from `state`, which then
        has what comes next. Sums are followed by `sums_over`.
        """
        state = EventState(scores.shape[1]) if state is None else state
        labels, sums = sums_over(scores, self.thresholds == 0, self.shift, state.sums)
        return self.of_sums(labels, sums, state)

    def of_sums(
        self, labels: NDArray[np.intp], sums: NDArray[np.int64], state: EventState | None = None
    ) -> NDArray[np.int64]:
        """Return the events of decisions whose labels and sums are known."""
        state = EventState(sums.shape[1]) if state is None else state
        thresholds, events = self.thresholds.astype(np.int64), np.full(len(labels), NO_EVENT)
        gathered = sums[np.arange(len(labels)), labels]
        least = thresholds[labels]
        wait_until, since = state.wait, 0
        for at in np.flatnonzero((least > 0) & (gathered >= least)).tolist():
            label = int(labels[at])
            state.let_fall(sums[since : at + 1], thresholds)
            since = at + 1
            if at >= wait_until and state.held != label:
                events[at], state.held, wait_until = label, label, at + 1 + self.pause
        state.let_fall(sums[since:], thresholds)
        state.wait = max(wait_until - len(labels), 0)
        return events.astype(np.int64)

    def facts(self) -> dict[str, Any]:
        """Return the fields, as JSON takes them."""
        return {field.name: getattr(self, field.name) for field in self.FIELDS} | {
            "thresholds": self.thresholds.tolist()
        }

    def in_words(self, classes: Sequence[object]) -> list[tuple[str, str]]:
        """Return names and values to print."""
        least = list(zip(classes, self.thresholds.tolist(), strict=True))
        length = f"about {1 << self.shift} decisions" if self.shift else "one decision"
        pause = f"; after an event none for {count(self.pause, 'decision')}" * (self.pause > 0)
        return [
            ("events", f"sums over {length}{pause}"),
            ("thresholds", ", ".join(f"{name} {limit}" for name, limit in least if limit)),
            ("background", ", ".join(str(name) for name, limit in least if not limit)),
            ("promise", self.statement),
        ]


class EventState:
    """Where a stream is, from one stretch of decisions to the next."""

    def __init__(self, n_classes: int) -> None:
        self.sums = np.zeros(n_classes, np.int64)
        self.wait, self.held = 0, -1

    def let_fall(self, sums: NDArray[np.int64], thresholds: NDArray[np.int64]) -> None:
        """Forget the class of the last event once its sum has fallen."""
        if self.held >= 0 and (sums[:, self.held] < thresholds[self.held] >> 1).any():
            self.held = -1


def sums_over(
    scores: NDArray[np.int32], silent: NDArray[np.bool_], shift: int, total: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return the label of each decision, and the sums of `Events` after it, (n, n_classes).

    `total` has the sums before the first decision, then those after the last one.
    """
    labels, margin = margins(scores)
    wide, largest = scores.astype(np.int64), scores.max(axis=1).astype(np.int64)
    second = largest - margin
    rest = (wide[:, silent].max(axis=1) if silent.any() else second)[:, np.newaxis]
    is_label = np.arange(wide.shape[1]) == labels[:, np.newaxis]
    other = np.where(is_label, second[:, np.newaxis], largest[:, np.newaxis])
    gaps = wide - rest - (np.maximum(other - rest, 0) >> 2)
    taken = np.clip(gaps, 0, LARGEST_SUM >> shift)
    sums = np.empty_like(taken)
    _gather(taken, shift, total, sums)
    return labels, sums


@njit(nogil=True)
def _gather(taken, shift, total, sums):  # type: ignore[no-untyped-def]
    """Write the sums after each decision; `total` is that before, and in the end the last one."""
    for at in range(taken.shape[0]):
        for label in range(total.size):
            total[label] += taken[at, label] - (total[label] >> shift)
            sums[at, label] = total[label]
