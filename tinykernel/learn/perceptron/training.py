"""Hidden layers of a perceptron, trained in the integers of the stage *dense*.

With v the levels of the inputs, or the units of the layer before, unit o is::

    u_o = min(max(floor((s_o - mean of s_o) / 2^shift + 64 a_o + 1/2), 0), 255)
    s_o = sum over i of L_oi v_i,    L_oi = clip(round(W_oi / step))

The shadow W has the mean square 1 for each unit and the mean is that of the batch (Salimans &
Kingma 2016, weight normalization with mean-only batch normalization). So one shift serves all
units, and the mean folds into the bias. Rounding has straight-through gradients, which units at 0
and 255 do not pass (PACT, Choi et al. 2018). The last layer is the linear part of
`learn.linear.training`.

All matrices are whole numbers: levels are, and gradients are rounded to 26 bits. Their products are
exact in float64, so BLAS may add them up in any order.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from tinykernel.learn.convolutions.separable_passes import learn_features
from tinykernel.learn.inputs import choose_scaler
from tinykernel.learn.linear.training import LEVEL_STEPS, LinearLearner, LinearRecipe
from tinykernel.learn.loop import SLOTS
from tinykernel.pieces.dense.spec import Dense
from tinykernel.pieces.levels.spec import Levels

_TOP = 255.0  # of a level and of a unit
_UNIT = 64.0  # levels of one unit of `starts`
# Deviation of sums, in levels of units, to which the shift comes nearest; and of first starts.
_SPREAD, _START_SPREAD = 80.0, 0.3
_MOST_SHIFT, _LARGEST_BIAS = 30, 2**30
_GRADIENT_BITS = 26
_MEASURED_ROWS = 8192
# Of an input about its mean, beyond which levels saturate.
_DEVIATIONS = 3.0
_FINE_STEP = 4 / 127  # of weights of 8 bits

_one_blas_thread = threadpool_limits.wrap(limits=1, user_api="blas")

_Floats = NDArray[np.float32]
_Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class PerceptronRecipe(LinearRecipe):
    """The hidden layers, and how they are trained; units are dropped before each later layer."""

    widths: tuple[int, ...] = (64,)  # units of each hidden layer.
    layer_bits: tuple[int, ...] = (4,)  # {2, 4, 8}: of the weights of each hidden layer.
    input_dropout: float = 0.0  # share of inputs set to their mean, at random for each row.
    weight_step: float = 0.06  # largest step of Adam, for weights of mean square 1.
    start_step: float = 0.02  # the same for the starts a.


class _HiddenLayer(NamedTuple):
    """Where a layer has its weights (inputs, units) and its units."""

    bits: int
    shape: tuple[int, int]
    weights: slice
    units: slice


class _HiddenPass(NamedTuple):
    """What a batch left in a layer, for the way back."""

    inputs: _Doubles  # (k, inputs), whole numbers
    levels: _Doubles  # (inputs, units)
    open: NDArray[np.bool_]  # (k, units): neither clipped nor dropped
    worth: float  # of one of a sum, in levels of units


class PerceptronLearner(LinearLearner):
    """Hidden layers and a linear part on inputs of levels, uint8 (n, n_inputs)."""

    recipe: PerceptronRecipe

    def draw(self) -> None:
        """Draw all that is learned; inputs that never vary have no weights."""
        recipe, inputs = self.recipe, self.inputs
        total = inputs.sum(axis=0, dtype=np.int64)
        self._centre = np.rint(total / len(inputs))
        self._layers = _layers_of(inputs.shape[1], recipe)
        last = self._layers[-1]
        self.shadow = self.rng.standard_normal(last.weights.stop, dtype=np.float32)
        self.starts = np.float32(_START_SPREAD) * self.rng.standard_normal(
            last.units.stop, dtype=np.float32
        )
        first = self._layers[0]
        self._of(first)[inputs.min(axis=0) == inputs.max(axis=0)] = 0
        self._normalise()
        self._measured = np.sort(self.rng.permutation(len(inputs))[:_MEASURED_ROWS])
        self._shifts: list[int] = []
        self._folded: list[tuple[_Doubles, _Doubles]] | None = None
        self.measure(self.features(inputs[self._measured]))
        self.spread[:] = 1  # units that are constant at first may learn
        self.draw_linear()

    def steps(self) -> dict[str, float]:
        """Return the names of all learned parameters, each with its largest step."""
        recipe = self.recipe
        return super().steps() | {"shadow": recipe.weight_step, "starts": recipe.start_step}

    def _of(self, layer: _HiddenLayer, flat: _Floats | None = None) -> _Floats:
        """Return the shadow of a layer, or another array of its form, as (inputs, units)."""
        return (self.shadow if flat is None else flat)[layer.weights].reshape(layer.shape)

    def _normalise(self) -> None:
        """Give the weights of each unit the mean square 1."""
        for layer in self._layers:
            shadow = self._of(layer)
            square = np.square(shadow).sum(axis=0, dtype=np.float64) / layer.shape[0]
            shadow /= np.sqrt(np.maximum(square, 1e-12)).astype(np.float32)

    def _rounded(self, layer: _HiddenLayer) -> _Doubles:
        """Return the whole weights of a layer (inputs, units)."""
        most = 2 ** (layer.bits - 1) - 1
        levels = np.rint(self._of(layer) / np.float32(_step_of(layer.bits)))
        return np.asarray(np.clip(levels, -most, most), dtype=np.float64)

    @_one_blas_thread
    def _fold(self) -> list[tuple[_Doubles, _Doubles]]:
        """Fold the means of some training rows into biases; returns weights and biases of layers.

        The first time that chooses the shifts, by which units fill their range.
        """
        if self._folded is None:
            values, self._folded = self._centred(self.inputs[self._measured]), []
            for number, layer in enumerate(self._layers):
                levels = self._rounded(layer)
                sums = values @ levels
                if number == len(self._shifts):
                    self._shifts.append(_shift_for(np.var(sums, axis=0)))
                start = _UNIT * self.starts[layer.units].astype(np.float64) + 0.5
                bias = np.rint(start * 2.0 ** self._shifts[number] - sums.sum(axis=0) / len(sums))
                self._folded.append((levels, np.clip(bias, -_LARGEST_BIAS, _LARGEST_BIAS)))
                values = self._clipped(sums, number)
        return self._folded

    def _clipped(self, sums: _Doubles, number: int) -> _Doubles:
        """Return the units of a layer by its folded bias."""
        assert self._folded is not None
        biased = (sums + self._folded[number][1]) * 2.0 ** -self._shifts[number]
        return np.clip(np.floor(biased), 0, _TOP)

    def _centred(self, levels: NDArray[np.uint8]) -> _Doubles:
        """Return levels less their whole mean."""
        return np.asarray(levels - self._centre)

    @_one_blas_thread
    def features(self, rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Compute the last units, what the linear part sees plus 128; shape (n, units)."""
        folded, parts = self._fold(), []
        for first in range(0, len(rows), _MEASURED_ROWS):
            values = self._centred(rows[first : first + _MEASURED_ROWS])
            for number, (levels, _) in enumerate(folded):
                values = self._clipped(values @ levels, number)
            parts.append(values.astype(np.uint8))
        return np.concatenate(parts)

    @_one_blas_thread
    def epoch(self, number: int) -> float:
        """Go through all rows once; return the mean loss."""
        return super().epoch(number)

    def accumulate(self, rows: NDArray[np.int64]) -> None:
        """Compute the gradients of some rows."""
        self._folded = None
        batch = self.batch(rows)
        units, passed = self._forward(self._centred(self.inputs[rows]))
        features = units.astype(np.float32)
        d_features = np.empty_like(features)

        def part(slot: int) -> None:
            learn_features(slot, SLOTS, features, batch, self.room(slot), d_features)

        self._in_threads(part, self._n_slots)
        self._backward(passed, d_features.astype(np.float64))

    def _forward(self, values: _Doubles) -> tuple[_Doubles, list[_HiddenPass]]:
        """Run a batch with the means of its own; the linear part drops of the last units."""
        passed: list[_HiddenPass] = []
        for layer, shift in zip(self._layers, self._shifts, strict=True):
            levels, worth = self._rounded(layer), 2.0**-shift
            dropout = self.recipe.dropout if passed else self.recipe.input_dropout
            if dropout:
                stays = self.rng.random(values.shape, dtype=np.float32) >= dropout
                values, worth = values * stays, worth / (1 - dropout)
                if passed:
                    passed[-1].open[~stays] = False
            sums = values @ levels
            start = _UNIT * self.starts[layer.units].astype(np.float64)
            exact = (sums - sums.sum(axis=0) / len(sums)) * worth + start
            passed.append(_HiddenPass(values, levels, (exact > 0) & (exact < _TOP), worth))
            values = np.clip(np.rint(exact), 0, _TOP)
        return values, passed

    def _backward(self, passed: list[_HiddenPass], d: _Doubles) -> None:
        """Store the gradients of shadows and starts, given that of the last units."""
        for layer, left in zip(self._layers[::-1], passed[::-1], strict=True):
            d, unit = _whole(d * left.open)
            total = d.sum(axis=0)
            self.gradients["starts"][0, layer.units] = (_UNIT * unit) * total
            d = np.rint(d - total / len(d))  # the mean of the batch is taken off
            factor = unit * left.worth
            d_levels = left.inputs.T @ d
            self._of(layer, self.gradients["shadow"][0])[...] = (
                factor / _step_of(layer.bits) * d_levels
            )
            if layer.weights.start:
                d = (d @ left.levels.T) * factor

    def update(self, share: float, factor: np.float32) -> None:
        """Let Adam move every learned parameter."""
        super().update(share, factor)
        self._normalise()

    def restore(self, state: list[_Floats]) -> None:
        """Put back learned parameters."""
        super().restore(state)
        self._folded = None

    def layers(self) -> tuple[Dense, ...]:
        """Return the stages of the hidden layers."""
        stages = []
        for number, (levels, bias) in enumerate(self._fold()):
            if not number:  # levels come with their mean
                bias = np.clip(bias - self._centre @ levels, -_LARGEST_BIAS, _LARGEST_BIAS)
            whole = levels.T.astype(np.int8), bias.astype(np.int32)
            stages.append(Dense(*whole, self._shifts[number]))
        return tuple(stages)


def _layers_of(n_inputs: int, recipe: PerceptronRecipe) -> list[_HiddenLayer]:
    layers, weight, unit, before = list[_HiddenLayer](), 0, 0, n_inputs
    for width, bits in zip(recipe.widths, recipe.layer_bits, strict=True):
        weights = slice(weight, weight + before * width)
        layers.append(_HiddenLayer(bits, (before, width), weights, slice(unit, unit + width)))
        weight, unit, before = weights.stop, unit + width, width
    return layers


def _step_of(bits: int) -> float:
    """Return the step between levels of weights of mean square 1."""
    return LEVEL_STEPS.get(bits, _FINE_STEP)


def _shift_for(variances: _Doubles) -> int:
    """Return the shift by which sums of these variances come nearest to the usual deviation.

    >>> _shift_for(np.array([80.0**2 * 2**6])), _shift_for(np.zeros(3))
    (3, 0)
    """
    # The exponent of twice the square, halved: log2 rounded, without a logarithm.
    _, exponent = np.frexp(2 * variances.mean() / _SPREAD**2)
    return min(max((int(exponent) - 1) // 2, 0), _MOST_SHIFT)


def _whole(d: _Doubles) -> tuple[_Doubles, float]:
    """Return numbers as whole multiples of a power of two, and that.

    >>> _whole(np.array([0.75, -2.0]))
    (array([ 12582912., -33554432.]), 5.960464477539063e-08)
    """
    _, exponent = np.frexp(max(float(np.abs(d).max()), 1e-30))
    unit = 2.0 ** (int(exponent) - _GRADIENT_BITS)
    return np.rint(d / unit), unit


def levels_stage(rows: NDArray[Any], raw_dtype: str) -> Levels:
    """Return 256 levels of each input, over three deviations about its mean at most."""
    mean = rows.mean(axis=0, dtype=np.float64)
    away = _DEVIATIONS * rows.std(axis=0, dtype=np.float64)
    ends = [np.rint(end) if rows.dtype.kind != "f" else end for end in (mean - away, mean + away)]
    low, high = (end.astype(rows.dtype) for end in _inside(ends, rows))
    scaler = choose_scaler(np.clip(rows, low, high), raw_dtype, 8, "auto")
    # The stage takes no constant inputs; these have no weights.
    factor = np.where(scaler.multiplier == 0, 1, scaler.multiplier).astype(scaler.multiplier.dtype)
    return Levels(replace(scaler, multiplier=factor), 0, 1, np.eye(rows.shape[1], dtype=np.int8))


def _inside(ends: list[_Doubles], rows: NDArray[Any]) -> list[_Doubles]:
    """Return ends that no value of the rows is beyond."""
    return [np.clip(end, rows.min(axis=0), rows.max(axis=0)) for end in ends]
