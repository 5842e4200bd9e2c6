"""What turns scores into a decision: confidence, and thresholds below which there is none."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tinykernel.elementary import exps
from tinykernel.errors import ModelError
from tinykernel.model.readouts.prototypes import LARGEST_MARGIN_LINE, check_distances, most_steps
from tinykernel.model.record import Matrix, Record, limits

#: The label of "I do not know".
UNKNOWN = -1
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
                "the model has no threshold of novelty; calibrate it with a rate of false_alarms"
            )
        return np.asarray(novelty > self.novelty_threshold)

    def probabilities(self, decisions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities of all classes; `decisions` has one column a class."""
        return softmax(decisions, self.temperature)
