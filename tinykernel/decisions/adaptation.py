"""Class offsets that move on the device: `<name>_offsets_t` of the C code."""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.decisions.counters import FORMAT, fingerprint_word, words_of
from tinykernel.errors import TinykernelError
from tinykernel.model import IntegerModel, as_integer_model

OFFSETS_MAGIC = int.from_bytes(b"tkof", "little")
#: A wrong label moves two offsets by 2**-ADAPT_SHIFT of what they lack, and 1.
ADAPT_SHIFT = 3
_WORDS = 5
_INT32 = 2**31 - 1


def offset_largest(model: IntegerModel) -> int:
    """Return the bound of the offsets: their sum with any score fits int32.

    With R the largest magnitude that a score is proved to have, it is B = min(R, 2**31 - 1 - R). So
    ``|score + offset| <= R + B <= 2**31 - 1``, and 2 B < 2**31, so that no step of the update
    overflows either.
    """
    scores = model.ranges()[-1]
    largest = max(abs(scores.low), abs(scores.high))
    return max(0, min(largest, _INT32 - largest))


class Adaptation:
    """A model whose class offsets follow labelled inputs, as the firmware computes it.

    In integers, with B of `offset_largest`. For an input of class y::

        t_k = score_k + offset_k
        w   = the first index of the largest t
        if w != y:
            step      = ((t_w - t_y) >> 3) + 1
            offset_y += min(step, B - offset_y)
            offset_w -= min(step, B + offset_w)

    That is the passive-aggressive update (Crammer et al. 2006) of the offsets alone, without a
    margin and with a quarter of its step.

    Parameters
    ----------
    model : IntegerModel, KernelMachine or fitted classifier

    Attributes
    ----------
    offsets : list of int
        One a class, -B..B.
    updates : int
        Labelled inputs that moved them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tinykernel import TernaryKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> trained = TernaryKernelClassifier(n_components=32, effort="quick", epochs=2)
    >>> adaptation = Adaptation(trained.fit(X, y))
    >>> before = adaptation.adapt(X[:100], [2] * 100)
    >>> adaptation.updates > 0, bool(np.mean(adaptation.predict(X) == 2) > np.mean(before == 2))
    (True, True)
    >>> again = Adaptation.from_bytes(trained, adaptation.to_bytes())
    >>> again.offsets == adaptation.offsets
    True
    """

    def __init__(self, model: object) -> None:
        """Begin with the model as it was trained."""
        self.model = as_integer_model(model)
        if self.model.is_regressor:
            raise TinykernelError("class offsets are for classes; the model predicts values")
        self.largest = offset_largest(self.model)
        self.reset()

    def reset(self) -> None:
        """Back to the model as it was trained: ``<name>_adapt_reset``."""
        self.offsets = [0] * self.model.n_classes
        self.updates = 0

    def scores(self, X: ArrayLike) -> NDArray[np.int32]:
        """Return the scores with the offsets: ``<name>_adapted_scores``.

        Parameters
        ----------
        X : array-like
            As for `IntegerModel.as_raw`.

        Returns
        -------
        ndarray of int32, shape (n_rows, n_classes)
        """
        return self.model.scores(X) + np.array(self.offsets, dtype=np.int32)

    def predict(self, X: ArrayLike) -> NDArray[np.intp]:
        """Return labels, positions in `classes`: ``<name>_adapted_predict``.

        Parameters
        ----------
        X : array-like
            As for `IntegerModel.as_raw`.

        Returns
        -------
        ndarray of int, shape (n_rows,)
        """
        return np.asarray(self.scores(X).argmax(axis=1))

    def adapt(self, X: ArrayLike, labels: ArrayLike) -> NDArray[np.intp]:
        """Learn from labelled rows, one after the other: ``<name>_adapt``.

        Parameters
        ----------
        X : array-like
            As for `IntegerModel.as_raw`.
        labels : array-like of int, shape (n_rows,)
            Positions in `classes`; a row with any other number changes nothing.

        Returns
        -------
        ndarray of int, shape (n_rows,)
            The label of each row just before it was learned, -1 for those that changed nothing
            because their label is no class.
        """
        scores, given = self.model.scores(X), np.asarray(labels)
        if given.shape != (len(scores),) or given.dtype.kind not in "iu":
            raise TinykernelError(
                f"adapt: labels of shape {given.shape} and type {given.dtype} for {len(scores)} "
                "rows; give one position in classes a row"
            )
        pairs = zip(scores.tolist(), given.tolist(), strict=True)
        return np.array([self.adapt_scores(row, label) for row, label in pairs], dtype=np.intp)

    def adapt_scores(self, scores: list[int], label: int) -> int:
        """Learn from the scores of the model of one row: ``<name>_adapt_scores``.

        Parameters
        ----------
        scores : list of int
        label : int

        Returns
        -------
        int
            As for `adapt`.
        """
        if not 0 <= label < len(self.offsets):
            return -1
        adapted = [score + offset for score, offset in zip(scores, self.offsets, strict=True)]
        wrong = adapted.index(max(adapted))
        if wrong != label:
            step = ((adapted[wrong] - adapted[label]) >> ADAPT_SHIFT) + 1
            self.offsets[label] += min(step, self.largest - self.offsets[label])
            self.offsets[wrong] -= min(step, self.largest + self.offsets[wrong])
            self.updates = min(self.updates + 1, 2**32 - 1)
        return wrong

    def to_bytes(self) -> bytes:
        """Return the offsets as bytes that are tied to the model: ``<name>_adapt_save``."""
        head = [OFFSETS_MAGIC, FORMAT, fingerprint_word(self.model), len(self.offsets)]
        words = [*head, self.updates, *(offset % 2**32 for offset in self.offsets)]
        data = np.array(words, dtype="<u4").tobytes()
        return data + zlib.crc32(data).to_bytes(4, "little")

    @classmethod
    def from_bytes(cls, model: object, data: bytes) -> Adaptation:
        """Read what `to_bytes` or ``<name>_adapt_save`` wrote.

        Parameters
        ----------
        model : IntegerModel, KernelMachine or fitted classifier
        data : bytes

        Returns
        -------
        Adaptation

        Raises
        ------
        TinykernelError
            If they are no offsets, damaged, cut off, or of another model.
        """
        found = cls(model)
        n = found.model.n_classes
        words = words_of(
            found.model,
            data,
            "offsets",
            OFFSETS_MAGIC,
            _WORDS + 1,
            "the bytes that NAME_adapt_save wrote",
        )
        offsets = [word - (word >> 31 << 32) for word in words[_WORDS:-1]]
        whole = (
            len(data) == 4 * (_WORDS + n + 1)
            and words[3] == n
            and words[-1] == zlib.crc32(data[:-4])
        )
        if not whole or any(abs(offset) > found.largest for offset in offsets):
            raise TinykernelError("the offsets are damaged; restore an earlier copy, or reset them")
        found.updates, found.offsets = words[4], offsets
        return found
