"""A network of any library in floats: sums with ReLU and pooling between them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.errors import ConvertError, DataError, OptionError, ShapeError
from tinykernel.conversion.checks import first_line
from tinykernel.conversion.columns import lacking_rows
from tinykernel.conversion.networks.windows import CURVES, Quantum, Shape, Step, Window, with_means

_NOTHING = ("Identity", "Dropout", "Dropout1d", "Dropout2d", "Cast")
RECURRENT = ("GRU", "LSTM", "RNN")
ENDS = ("Softmax", "LogSoftmax", "Sigmoid", "ArgMax")
_AT_ONCE = 1 << 20  # values
_ASKED = 4  # rows that the library computes as well


class Mark(NamedTuple):
    """Values in a network that branches: their number in its steps, and their shape."""

    at: int
    now: Shape
    is_flat: bool
    rank: int
    is_turned: bool


class FloatNetwork:
    """Steps in their order; what `convert` takes.

    With a softmax or a sigmoid at the end it is a classifier of the classes 0, 1 and so on, or of
    the labels of a file. Else `ready` is given what it is; one output alone is a value. Rows are
    images with channels first, as the libraries have them, until `rows_of` puts channels last.
    """

    def __init__(
        self,
        read: Callable[["FloatNetwork"], None],
        sizes: Sequence[int] | None = None,
        answers: Callable[[NDArray[Any]], tuple[NDArray[Any], float] | None] | None = None,
    ) -> None:
        self.read, self._sizes, self._answers = read, sizes, answers
        self.layers: list[Step] = []
        self._at = 0  # the number of the values so far, as steps have it
        self._sealed: set[int] = set()  # those that others read, so that they stay
        self.shape: Shape  # of a row
        self._now: Shape  # after the layers so far
        self._is_flat = False
        self.rank: int  # of these values and the rows
        self.end = ""
        self.is_last = False  # whether the library has channels last
        self.is_turned = False  # whether these values have
        self.quantum: Quantum | None = None  # of rows, in a quantized file
        self.labels: NDArray[Any] | None = None

    def ready(self, X: ArrayLike | None, task: str | None) -> "FloatNetwork":
        """Read it for rows of the shape of `X` and a task, of None what its end says."""
        self._open(X)
        return self._for_task(task)

    def usual_task(self, X: ArrayLike | None) -> str | None:
        """Return "classes" if nothing says what several outputs are, else None."""
        self._open(X)
        return "classes" if self._is_open else None

    def _open(self, X: ArrayLike | None) -> None:
        if not self.layers:
            if X is None:
                raise lacking_rows("network")
            self.lay_out(self._sizes_of(np.shape(X)[1:]))
            self.n_features_in_ = prod(self.sizes)
            self.read(self)
            last = self._last
            if last is None or last.bends or last.pools or last.curve or last.branches:
                raise ConvertError(
                    "convert: the network ends without weights after its last ReLU or addition"
                )
            if self._at != len(self.layers):
                raise ConvertError("convert: the network has a branch that nothing reads")
            if not self.is_table:
                raise ConvertError("convert: the network ends with an image, without Linear")
            self.n_outputs_ = self._now[2]
            self._check_answers(np.asarray(X))

    def _sizes_of(self, lengths: tuple[int, ...]) -> tuple[int, ...]:
        """Return the lengths of the axes of a row, channels first, by those of X and of the file.

        Lengths of 0 are not known.
        """
        wanted = tuple(self._sizes or lengths)
        if len(wanted) not in (1, 2, 3):
            raise ShapeError(f"convert: X has rows of the shape {lengths}")
        if all(wanted):
            return wanted
        for sizes in (lengths, lengths[-1:] + lengths[:-1]):
            if len(sizes) == len(wanted) and all(
                want in (0, have) for want, have in zip(wanted, sizes, strict=True)
            ):
                return sizes
        raise self._unfit(lengths, wanted)

    @staticmethod
    def _unfit(lengths: Sequence[int], wanted: Sequence[int]) -> ShapeError:
        if len(wanted) == 1:
            n_columns = prod(lengths)
            return ShapeError(
                f"convert: X has {n_columns} columns, but the model {wanted[0]} inputs"
            )
        have, want = (" x ".join(str(size or "?") for size in sizes) for sizes in (lengths, wanted))
        return ShapeError(
            f"convert: rows of X have {have} values, but the network takes {want}, channels first"
        )

    def _check_answers(self, X: NDArray[Any]) -> None:
        """Compare a few rows with what the library computes of them, where it can be asked."""
        if self._answers is None or not len(X):
            return
        rows = self.rows_of(X[np.linspace(0, len(X) - 1, min(len(X), _ASKED)).astype(int)])
        if not np.all(np.isfinite(rows)):  # refused later, with its reason
            return
        rows = rows.reshape(-1, *self.shape).transpose(0, 3, 1, 2).reshape(-1, *self.sizes)
        try:
            answers = self._answers(rows)
        except Exception as error:  # each library has errors of its own
            raise ConvertError(
                f"convert: the library cannot run the network on X: {first_line(error)}"
            ) from None
        if answers is None:
            return
        theirs, eps = answers
        ours, theirs = self._values(self.rows_of(rows)), np.reshape(theirs, (len(rows), -1))
        limit = 4 * np.sqrt(eps) * max(1e-30, float(np.abs(theirs).max()))
        if self.quantum is not None:  # sums in floats fall on either side of a level
            limit = max(limit, 0.05 * float(np.ptp(theirs)))
        if ours.shape != theirs.shape or not float(np.abs(ours - theirs).max()) <= limit:
            raise ConvertError(
                "convert: the library computes other values of X than the layers that were read; "
                "something in the network is not read, and nothing is converted"
            )

    @property
    def axes(self) -> dict[str, Any]:
        """The fields of the `Grid` of the input that say how rows of several axes lie."""
        if len(self.sizes) < 2:
            return {}
        if self.shape[:2] == (1, 1) and prod(self.sizes[1:]) > 1:  # as they lie
            return {"axes": self.sizes}
        axes = (*self.sizes[1:], self.sizes[0])
        return {"axes": axes} if self.is_last else {"axes": axes, "channels_first": True}

    @property
    def _is_open(self) -> bool:
        """Whether nothing says what several outputs are: of sigmoids several may be at a time."""
        return self.n_outputs_ > 1 and self.end in ("", "Sigmoid")

    @property
    def n_values(self) -> int:
        """Number of values of a row after the layers so far."""
        return prod(self._now)

    @property
    def now(self) -> Shape:
        """Rows, columns and channels after the layers so far; signals have one row."""
        return self._now

    @property
    def has_levels(self) -> bool:
        """Whether it is of a quantized file."""
        return self.quantum is not None or any(step.quantum for step in self.layers)

    @property
    def _last(self) -> Step | None:
        """The layer of the values so far, if it may change."""
        is_own = self._at and self._at not in self._sealed
        return self.layers[self._at - 1] if is_own else None

    def _put(self, step: Step) -> None:
        """Replace that layer."""
        self.layers[self._at - 1] = step

    def _append(self, step: Step) -> None:
        reads = None if self._at == len(self.layers) else self._at
        self.layers.append(replace(step, reads=reads))
        self._at = len(self.layers)

    def mark(self, is_shared: bool) -> Mark:
        """Return where to go on from the values so far; others stay what they are if it is shared.

        The layer of shared values does not change any more.
        """
        if is_shared:
            self._sealed.add(self._at)
        return Mark(self._at, self._now, self._is_flat, self.rank, self.is_turned)

    def go_to(self, mark: Mark) -> None:
        """Go on from other values."""
        self._at, self._now, self._is_flat, self.rank, self.is_turned = mark

    def add_values(self, place: str, other: Mark) -> None:
        """Add values of the same shape, as residual networks do."""
        own = self.mark(is_shared=False)
        if own[1:] != other[1:] or own.is_turned:
            raise ConvertError(f"convert: {place} adds values of another shape")
        first, second = sorted((own, other))
        self.go_to(second)
        last = self._last
        if last is None or not last.is_sum or first.at == second.at:
            self._add_same(place)
        self._put(replace(self.layers[self._at - 1], adds=first.at))

    @property
    def is_table(self) -> bool:
        """Whether its values have no shape after the layers so far."""
        return self._now[:2] == (1, 1)

    @property
    def is_untouched(self) -> bool:
        """Whether its values are those of rows of one axis."""
        return len(self.sizes) == 1 and not self.layers

    def lay_out(self, sizes: tuple[int, ...]) -> None:
        """Take rows as those of axes of these lengths, channels first."""
        # A signal is an image of one row.
        rows, columns = [1, 1, *sizes[1:]][-2:]
        self.sizes, self.rank = sizes, len(sizes) + 1
        self.shape = self._now = rows, columns, sizes[0]

    def add(self, place: str, name: str) -> None:
        """Add the operation of a name of ONNX."""
        self._go_on(place)
        if name in ENDS:
            self.end, self._end_place = name, place
        elif name in CURVES:
            self.add_curve(place, name)
        elif name == "Flatten":
            self._is_flat, self.rank = True, 2
            if not self.layers:  # the order of the values stays
                self.shape = self._now = 1, 1, self.n_features_in_
        elif name == "Relu":
            self.add_clip(place)
        elif name in RECURRENT:
            raise ConvertError(
                f"convert: {place} remembers what came before, which no stage does; train Conv1d, "
                "BatchNorm1d, ReLU and a mean over time in its place, of windows of samples"
            )
        elif name not in _NOTHING:
            raise ConvertError(f"convert: {place} is not supported; train the network without it")

    def add_clip(self, place: str, low: float = 0.0, top: float = np.inf) -> None:
        """Add ``min(max(x, 0), top)``."""
        self._go_on(place)
        if low != 0 or top <= 0:
            raise ConvertError(f"convert: {place} clips at {low:g} and {top:g}, not from 0 up")
        if not self.layers:
            raise ConvertError(f"convert: {place} has no weights before it")
        last = self._last
        if last is None or last.curve:
            last = self._add_same(place)
        self._put(replace(last, bends=True, top=min(last.top, top)))

    def add_curve(self, place: str, name: str, slope: float = 0.0) -> None:
        """Add a function of each value, a name in `CURVES` or a leaky ReLU of a slope."""
        self._go_on(place)
        if not self.layers:
            raise ConvertError(f"convert: {place} has no weights before it")
        last = self._last
        # The largest value of a patch is that of rising functions, too.
        is_rising = name != "HardSwish" and slope >= 0
        if (
            last is None
            or last.curve
            or (last.bends and last.quantum is None)
            or (last.pools and not is_rising)
        ):
            last = self._add_same(place)
        self._put(replace(last, curve=name, slope=slope))

    def _add_same(self, place: str) -> Step:
        """Add a layer of the same values, behind which others can follow."""
        n = self._now[2]
        self._append(Step(place, Window.line(np.ones(n), np.zeros(n))))
        return self.layers[-1]

    def end_as_curve(self) -> None:
        """Take the sigmoid at the end as one between layers."""
        self.end = ""
        self.add_curve(self._end_place, "Sigmoid")

    def _go_on(self, place: str) -> None:
        if self.end == "Sigmoid":
            self.end_as_curve()
        if self.end:
            raise ConvertError(
                f"convert: {place} follows {self.end}, which is supported at the end only; "
                "between layers use ReLU"
            )

    def quantize(self, place: str, scale: float, zero: int) -> None:
        """Round values to levels, from which the next layer reads them."""
        self._go_on(place)
        quantum = Quantum(scale, zero)
        if not (np.isfinite(scale) and scale > 0 and 0 <= zero <= 255):
            raise DataError(
                f"convert: {place} has a scale of {scale:g}; quantize the network again"
            )
        have, last = self._levels, self._last
        if not self.layers and have is None:
            self.quantum = have = quantum
        if have == quantum:
            return
        # Levels that clip more than those behind them are a layer, such as a ReLU.
        is_sum = last is not None and not last.pools and not last.curve
        if last is None or (have and not (is_sum and have.holds(quantum, last.bends))):
            last = self._add_same(place)
        after = quantum if last.curve else None
        before = last.quantum if last.curve else quantum
        self._put(replace(last, quantum=before, of_curve=after))

    @property
    def _levels(self) -> Quantum | None:
        """The levels of the values so far."""
        return self.layers[self._at - 1].given if self._at else self.quantum

    def check_levels(self, place: str, scale: float, zero: int) -> None:
        """Refuse levels that are not those of the values so far."""
        have = self._levels
        if have is None:
            raise ConvertError(
                f"convert: {place} reads levels that nothing before it makes; keep the input of "
                "the network in floats"
            )
        if have != Quantum(scale, zero):
            raise ConvertError(f"convert: {place} has other levels than what it reads")

    def add_window(
        self, place: str, window: Window, scales: NDArray[np.float64] | None = None
    ) -> None:
        """Add sums; those of each channel alone become part of the sums beside them."""
        self._go_on(place)
        if self._is_flat and not self.is_table:
            raise ConvertError(f"convert: {place} behind Flatten is not supported")
        if not (np.all(np.isfinite(window.kernel)) and np.all(np.isfinite(window.bias))):
            raise DataError(f"convert: {place} makes weights that are not finite")
        scales = None if scales is None else scales + np.zeros(len(window.bias))
        step = Step(place, window, scales=scales)
        self._now, last = step.gives(self._now), self._last
        joined, gains = None, window.gains
        if last is not None and last.joins(window):
            joined = last.window.joined(window)
        if joined is None or last is None:
            self._append(step)
            return
        # Of the layer that has the sums.
        worth = scales
        if last.scales is not None and gains is not None:
            worth = last.scales * np.abs(gains)
        place = place if last.window.gains is not None else last.place
        self._put(Step(place, joined, scales=worth, reads=last.reads))

    def add_dense(
        self,
        place: str,
        weights: NDArray[np.float64],
        bias: ArrayLike,
        scales: NDArray[np.float64] | None = None,
    ) -> None:
        """Add sums of all values, in the order of channels first."""
        rows, columns, channels = self._now
        if weights.shape[1] != prod(self._now) or not (self.is_table or self._is_flat):
            raise ConvertError(f"convert: {place} takes values of another shape")
        self._is_flat = False
        kernel = weights.reshape(-1, channels, rows, columns).transpose(0, 2, 3, 1)
        if self.is_turned:  # in the order of channels last
            kernel, self.is_turned = weights.reshape(-1, rows, columns, channels), False
        self.add_window(place, Window(kernel, np.zeros(len(kernel)) + np.ravel(bias)), scales)

    def add_line(self, place: str, gain: ArrayLike, bias: ArrayLike) -> None:
        """Add a gain and an offset of each channel, or one of all."""
        n, gains, offsets = self._now[2], np.ravel(gain), np.ravel(bias)
        if {gains.size, offsets.size} - {1, n}:
            raise ConvertError(f"convert: {place} takes values of another shape")
        self.add_window(place, Window.line(gains + np.zeros(n), offsets + np.zeros(n)))

    def add_normalization(
        self, place: str, parts: Sequence[NDArray[np.float64]], eps: float
    ) -> None:
        """Add ``scale (x - mean) / sqrt(variance + eps) + bias``."""
        scale, bias, mean, variance = parts
        gain = scale / np.sqrt(variance + eps)
        self.add_line(place, gain, bias - gain * mean)

    def add_convolution(
        self,
        place: str,
        kernel: NDArray[np.float64],
        bias: ArrayLike,
        steps: Sequence[int],
        around: Sequence[int],
        groups: int,
        scales: NDArray[np.float64] | None = None,
    ) -> None:
        """Add a convolution of images or signals, channels first; signals are of one row."""
        if len(steps) == 1:
            kernel, steps, around = kernel[:, :, None], (1, *steps), (0, around[0], 0, around[1])
        n, of_group = kernel.shape[:2]
        is_whole = of_group * groups == self._now[2] and n and n % groups == 0
        if kernel.ndim != 4 or not is_whole or np.size(bias) not in (1, n):
            raise ConvertError(f"convert: {place} takes values of another shape")
        if min(*steps, *kernel.shape) < 1 or min(around) < 0:
            raise ConvertError(f"convert: {place} has no kernel, a stride of 0 or pads below 0")
        full = np.zeros((n, *kernel.shape[2:], of_group * groups))
        for o in range(n):
            first = o * groups // n * of_group
            full[o, :, :, first : first + of_group] = kernel[o].transpose(1, 2, 0)
        above, before, below, behind = around
        offsets, ends = np.zeros(n) + np.ravel(bias), (above, before, below, behind)
        self.add_window(place, Window(full, offsets, (steps[0], steps[1]), ends), scales)

    def add_pool(self, place: str, size: Sequence[int] | None, is_mean: bool) -> None:
        """Add means or largest values of patches side by side; of None, of all positions."""
        self._go_on(place)
        rows, columns, n = self._now
        high, wide = (rows, columns) if size is None else [1, *size][-2:]
        if not (1 <= high <= rows and 1 <= wide <= columns) or (
            self._is_flat and not self.is_table
        ):
            raise ConvertError(f"convert: {place} takes values of another shape")
        if (high, wide) == (1, 1):
            return
        if is_mean:
            self.add_window(place, Window.line(np.ones(n), np.zeros(n), (high, wide)))
            return
        last = self._last
        if last is None or last.pools:
            last = self._add_same(place)
        self._put(replace(last, pool=(high, wide), pooled_by=place))
        self._now = rows // high, columns // wide, n

    def _for_task(self, task: str | None) -> "FloatNetwork":
        n = self.n_outputs_
        if task == "values" and self.end:
            raise OptionError(f"task: the network ends with {self.end}, so it tells classes apart")
        if task is None and self._is_open:
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
        """Return inputs, channels first or, if they fit so alone, last, as rows with these last."""
        values = np.asarray(X)
        n, lengths = len(values) if values.ndim else 0, values.shape[1:]
        if not n:
            raise ShapeError("convert: X has no rows")
        rows, columns, channels = self.shape
        last = self.sizes[1:] + self.sizes[:1]
        if lengths == last and (lengths != self.sizes or self.is_last):
            values = np.moveaxis(values, -1, 1)
        elif self.is_last and lengths == (self.n_features_in_,):
            values = np.moveaxis(values.reshape(n, *last), -1, 1)
        elif lengths != self.sizes and lengths != (self.n_features_in_,):
            raise self._unfit(lengths, self.sizes)
        elif len(lengths) < len(self.sizes) and channels > 1 and rows * columns > 1:
            raise ShapeError(
                f"convert: X is flat, so that its channels may be first or last; give {channels} "
                "channels by an axis of their own, the first behind the rows"
            )
        by_place = values.reshape(n, channels, rows, columns).transpose(0, 2, 3, 1)
        return np.asarray(by_place.reshape(n, -1))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict labels or values in floats."""
        x = self._values(self.rows_of(X))
        if not hasattr(self, "classes_"):
            return np.asarray(x[:, 0] if self.n_outputs_ == 1 else x)
        place = x.argmax(axis=1) if self.n_outputs_ > 1 else (x[:, 0] > 0).astype(int)
        return np.asarray(self.classes_[place])

    def levels_of(self, rows: NDArray[Any]) -> list[tuple[str, NDArray[np.float64] | None]]:
        """Return the place of each layer of a quantized file but the last, and its levels."""
        values, found = [self._first(rows)], []
        for step in with_means(self.layers)[: -1 if self.layers[-1].scales is not None else -2]:
            values.append(step.of(values))
            levels = None if step.given is None else step.given.levels(values[-1])
            found.append((step.place, levels))
        return found

    def _first(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Return rows as images, of the levels of a quantized file."""
        x = rows.astype(np.float64).reshape(-1, *self.shape)
        return x if self.quantum is None else self.quantum.of(x)

    def _values(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Compute the outputs of rows with channels last."""
        widest = max(step.window.kernel.size for step in self.layers) * prod(self.shape[:2])
        at_once, parts = max(1, _AT_ONCE // widest), []
        for first in range(0, len(rows), at_once):
            values = [self._first(rows[first : first + at_once])]
            for step in self.layers:
                values.append(step.of(values))
            parts.append(values[-1].reshape(len(values[-1]), -1))
        return np.concatenate(parts)


def numbers_of(tensor: Any, place: str = "") -> NDArray[np.float64]:
    """Return the numbers of a tensor; of None, 0."""
    values = 0.0 if tensor is None else tensor
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.double().numpy() if values.is_floating_point() else values
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "fiub":
        raise ConvertError(f"convert: {place} holds values of type {numbers.dtype}, not floats")
    numbers = numbers.astype(np.float64)
    if not np.all(np.isfinite(numbers)):
        raise DataError(f"convert: {place} holds a number that is not finite")
    return numbers
