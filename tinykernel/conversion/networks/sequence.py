"""A network of any library in floats: sums with ReLU and pooling between them."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.conversion.columns import lacking_rows
from tinykernel.conversion.networks.steps import Steps
from tinykernel.conversion.networks.windows import Shape, Step, Window
from tinykernel.errors import ConvertError, DataError, OptionError, ShapeError

_AT_ONCE = 1 << 20  # values


class FloatNetwork(Steps):
    """Steps, and what their outputs are; what `convert` takes.

    With a softmax or a sigmoid at the end it is a classifier of the classes 0, 1 and so on, or of
    the labels of a file. Else `ready` is given what it is; one output alone is a value. Rows are
    images with channels first, as the libraries have them, until `rows_of` puts channels last.
    """

    def __init__(
        self, read: Callable[["FloatNetwork"], None], sizes: Sequence[int] | None = None
    ) -> None:
        super().__init__()
        self._read, self._sizes = read, sizes
        self.shape: Shape  # of a row

    def ready(self, X: ArrayLike | None, task: str | None) -> "FloatNetwork":
        """Read it for rows of the shape of `X` and a task, of None what its end says."""
        self._open(X)
        return self._for_task(task)

    def usual_task(self, X: ArrayLike | None) -> str | None:
        """Return "classes" if nothing says what several outputs are, else None."""
        self._open(X)
        return "classes" if self.n_outputs_ > 1 and not self.end else None

    def _open(self, X: ArrayLike | None) -> None:
        if not self.layers:
            if X is None:
                raise lacking_rows("network")
            sizes = self._sizes or np.asarray(X).shape[1:]
            if len(sizes) not in (1, 2, 3):
                raise ShapeError(f"convert: X has rows of the shape {sizes}")
            rows, columns = [*sizes[1:], 1, 1][:2]
            self.shape = self._now = rows, columns, sizes[0]
            self.n_features_in_ = prod(sizes)
            self._read(self)
            if not self.layers or self.layers[-1].bends or self.layers[-1].pools:
                raise ConvertError("convert: the network ends without weights after its last ReLU")
            if not self.is_table:
                raise ConvertError("convert: the network ends with an image, without Linear")
            self.n_outputs_ = self._now[2]

    def _for_task(self, task: str | None) -> "FloatNetwork":
        n = self.n_outputs_
        if task == "values" and self.end:
            raise OptionError(f"task: the network ends with {self.end}, so it tells classes apart")
        if task is None and not self.end and n > 1:
            raise OptionError(
                f"task: the network has {n} outputs and no softmax; in Python, say what they are: "
                'convert(..., task="classes") or task="values"'
            )
        if (self.end or task == "classes") and not hasattr(self, "classes_"):
            labels = np.arange(max(2, n)) if self.labels is None else self.labels
            if len(labels) != max(2, n):
                raise ConvertError(f"convert: the network has {n} outputs for {len(labels)} labels")
            self.classes_ = labels
            if n == 2:  # the difference decides
                kernel = np.array([-1.0, 1.0]).reshape(1, 1, 1, 2)
                self.layers.append(Step("the end", Window(kernel, np.zeros(1))))
                self.n_outputs_ = 1
        return self

    def rows_of(self, X: ArrayLike) -> NDArray[Any]:
        """Return inputs with channels first as rows with channels last."""
        values = np.asarray(X)
        n = len(values) if values.ndim else 0
        if not n:
            raise ShapeError("convert: X has no rows")
        if values.ndim < 2 or values.size != n * self.n_features_in_:
            n_columns, wanted = values.size // n, self.n_features_in_
            raise ShapeError(f"convert: X has {n_columns} columns, but the model {wanted} inputs")
        rows, columns, channels = self.shape
        by_place = values.reshape(n, channels, rows, columns).transpose(0, 2, 3, 1)
        return np.asarray(by_place.reshape(n, -1))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict labels or values in floats."""
        rows = self.rows_of(X)
        widest = max(step.window.kernel.size for step in self.layers) * prod(self.shape[:2])
        at_once, parts = max(1, _AT_ONCE // widest), []
        for first in range(0, len(rows), at_once):
            x = rows[first : first + at_once].astype(np.float64).reshape(-1, *self.shape)
            for step in self.layers:
                x = step.of(x)
            parts.append(x.reshape(len(x), -1))
        x = np.concatenate(parts)
        if not hasattr(self, "classes_"):
            return np.asarray(x[:, 0] if self.n_outputs_ == 1 else x)
        place = x.argmax(axis=1) if self.n_outputs_ > 1 else (x[:, 0] > 0).astype(int)
        return np.asarray(self.classes_[place])


def numbers_of(tensor: Any) -> NDArray[np.float64]:
    """Return the numbers of a tensor; of None, 0."""
    values = tensor.detach().cpu().numpy() if hasattr(tensor, "detach") else tensor
    numbers = np.asarray(0.0 if values is None else values, dtype=np.float64)
    if not np.all(np.isfinite(numbers)):
        raise DataError("convert: a weight is not a finite number")
    return numbers
