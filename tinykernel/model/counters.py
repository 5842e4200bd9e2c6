"""Counters of the decisions of a device: `<name>_counters_t` of the C code."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.errors import FormatError, ModelError
from tinykernel.model.integer import IntegerModel
from tinykernel.model.pipelines import as_integer_model

#: The first and the second word.
COUNTERS_MAGIC, FORMAT = int.from_bytes(b"tkcn", "little"), 1
_FULL = 2**32 - 1
_REFUSED, _NONE = 2**32 - 1, 2**32 - 2
# Words before those of the classes; the fifth one is the check.
_WORDS, _CHECK = 13, 4


def counters_bytes(n_classes: int) -> int:
    """Return the size of the struct."""
    return 4 * (_WORDS + n_classes)


def as_classifier(model: object, name: str) -> IntegerModel:
    """Return the integers of a model of classes; refuse a regressor."""
    integer = as_integer_model(model)
    if integer.is_regressor:
        raise ModelError(f"{name}: the model predicts values, not classes; give a classifier")
    return integer


def fingerprint_word(model: IntegerModel) -> int:
    """Return ``<NAME>_FINGERPRINT``."""
    return int(model.fingerprint()[:8], 16)


def saturated(model: IntegerModel, X: ArrayLike) -> NDArray[np.int64]:
    """Count the values of each row at or beyond an end of their range: ``<name>_saturated``.

    The values are the quantized inputs, with a local stage the raw ones. Constant inputs and
    numbers beside a window do not count. X are rows as for `IntegerModel.as_raw`.
    """
    raw, scaler = model.as_raw(X), model.raw_scaler
    if model.takes_quantized:
        q, high = model.quantize_inputs(raw), model.quantized_grid.high
        ends = (q == ~high) | (q == high)
    else:
        raw = raw[:, : model.input.size].reshape(-1, model.input.channels)
        ends = scaler.multiplier > 0
        if scaler.span is None:
            level, last = scaler._float_level(raw), 2**scaler.bits - 1
        else:
            level, last = raw.astype(np.int64) - scaler.offset, scaler.span.astype(np.int64)
            ends = ends & (scaler.span > 0)
        ends = ((level <= 0) | (level >= last)) & ends
    return np.asarray(ends.reshape(-1, model.input.size).sum(axis=1), dtype=np.int64)


def _check(words: list[int]) -> int:
    """Return the check of all other words: rotate by one bit and add, word by word."""
    check = 0
    for word in words[:_CHECK] + words[_CHECK + 1 :]:
        check = (((check << 1) | (check >> 31)) + word) & _FULL
    return check


class Counters:
    """Counts of decisions, as ``<name>_counters_t`` keeps them, bit for bit.

    Parameters
    ----------
    model : IntegerModel or fitted classifier

    Attributes
    ----------
    labels : list of int
        Decisions for each class.
    refusals, transitions : int
        Decisions without a label, and decisions that differ from the one before.
    margin, saturated : int
        Sums over the decisions.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tinykernel import TernaryKernelClassifier
    >>> trained = TernaryKernelClassifier(n_components=32, effort="quick", epochs=2)
    >>> counters = Counters(trained.fit(*load_iris(return_X_y=True)))
    >>> for label in (0, 0, 2, -1):
    ...     counters.update(label, margin=10)
    >>> counters.labels, counters.refusals, counters.transitions, counters.margin
    ([2, 0, 1], 1, 2, 40)
    >>> len(counters.to_bytes())
    64
    """

    def __init__(self, model: object) -> None:
        """Start at zero."""
        self.model = as_classifier(model, "counters")
        self.reset()

    def reset(self) -> None:
        """Start at zero again: ``<name>_counters_reset``."""
        self.labels = [0] * self.model.n_classes
        self.refusals = self.transitions = self.margin = self.saturated = 0
        self._last = _NONE

    @property
    def decisions(self) -> int:
        """Number of decisions, refusals included."""
        return sum(self.labels) + self.refusals

    def update(self, label: int, margin: int, saturated: int = 0) -> None:
        """Count a decision: ``<name>_counters_update``.

        Parameters
        ----------
        label : int
            Position in `classes`; any other number is a refusal.
        margin, saturated : int
            For this decision, 0..2**32 - 1.
        """
        if self.decisions == _FULL:
            return
        if 0 <= label < len(self.labels):
            self.labels[label] += 1
            now = label
        else:
            self.refusals += 1
            now = _REFUSED
        self.transitions += self._last not in (_NONE, now)
        self._last = now
        self.margin += margin
        self.saturated += saturated

    def to_bytes(self) -> bytes:
        """Return the struct as it lies in the memory of a little-endian core."""
        totals = (self.margin, self.saturated)
        sums = [half for total in totals for half in divmod(total, 2**32)[::-1]]
        words = [
            *(COUNTERS_MAGIC, FORMAT, fingerprint_word(self.model), len(self.labels), 0),
            *(self.decisions, self.refusals, self.transitions, self._last),
            *sums,
            *self.labels,
        ]
        words[_CHECK] = _check(words)
        return np.array(words, dtype="<u4").tobytes()

    @classmethod
    def from_bytes(cls, model: object, data: bytes) -> "Counters":
        """Read the struct.

        Parameters
        ----------
        model : IntegerModel or fitted classifier
        data : bytes

        Returns
        -------
        Counters

        Raises
        ------
        TinykernelError
            If these are not counters, or are damaged, cut off or of another model.
        """
        counters = cls(model)
        words: list[int] = np.frombuffer(data[: len(data) // 4 * 4], dtype="<u4").tolist()
        if len(words) < _WORDS or words[0] != COUNTERS_MAGIC:
            raise FormatError("not counters; give the bytes of NAME_counters_t")
        if words[1] != FORMAT:
            raise FormatError(f"counters of format {words[1]}, but this version reads {FORMAT}")
        fingerprint = fingerprint_word(counters.model)
        size = counters_bytes(counters.model.n_classes)
        if words[2] != fingerprint:
            raise ModelError(
                f"counters of model {words[2]:08x}, but this one is {fingerprint:08x}; give its own"
            )
        if len(data) != size:
            raise FormatError(f"counters of {len(data)} bytes instead of {size}; read them again")
        if not counters._take(words):
            raise FormatError(
                "the counters are damaged, or were read while they were updated; read them again"
            )
        return counters

    def _take(self, words: list[int]) -> bool:
        """Read the counts; return whether they are intact."""
        n_classes, check, decisions, self.refusals, self.transitions, self._last = words[3:9]
        self.margin, self.saturated = (words[at] + (words[at + 1] << 32) for at in (9, 11))
        self.labels = words[_WORDS:]
        return (
            n_classes == len(self.labels) == self.model.n_classes
            and check == _check(words)
            and decisions == self.decisions
            and self.transitions <= max(0, decisions - 1)
            and max(self.margin, self.saturated) <= decisions * (2**32 - 1)
        )
