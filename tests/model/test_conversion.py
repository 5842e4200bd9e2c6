"""Quantisation: the integer model computes what the float machine does."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tests.random_models import components_of, make_machine
from tinykernel.errors import TinykernelError
from tinykernel.model import as_integer_model, quantize, snap_windows
from tinykernel.model.quantization.machine import KernelMachine
from tinykernel.model.quantization.scale import QuantizedInputs, quantize_scaler
from tinykernel.model.readouts.ternary import Ternary
from tinykernel.model.stages.components import Components

RAW = ["float32", "uint8", "int8", "uint16", "int16", "int32"]


def _inputs(machine: KernelMachine, rows: int = 300, seed: int = 0) -> np.ndarray:
    """Return raw inputs in and a little outside of the range of the scaler, where the type goes."""
    rng = np.random.default_rng(seed)
    scale = np.where(machine.input_scale > 0, machine.input_scale, 1)
    low = machine.input_offset + machine.input_low / scale
    high = machine.input_offset + machine.input_high / scale
    x = rng.uniform(low - (high - low) / 20, high + (high - low) / 20, (rows, low.size))
    if machine.raw_dtype == "float32":
        return x.astype(np.float32)
    limits = np.iinfo(machine.raw_dtype)
    return np.clip(np.rint(x), limits.min, limits.max).astype(machine.raw_dtype)


def _flips(machine: KernelMachine, X: np.ndarray) -> float:
    """Return the share of the components that differ from the float machine."""
    model = quantize(machine)
    assert model.find(Components).n_blocks == machine.n_blocks
    kept = model.find(Components).row_kept.ravel()
    return float(
        np.mean(machine.features(X)[:, kept] != components_of(model, model.quantize_inputs(X)))
    )


@pytest.mark.parametrize("kind", ["gaussian", "sign"])
@pytest.mark.parametrize("raw_dtype", RAW)
def test_features_agree_with_the_float_machine(raw_dtype: str, kind: str) -> None:
    """Few features flip: about 0.2 % through the 8-bit windows, the rest through 8-bit numbers."""
    machine = make_machine(1, n_features=60, n_blocks=4, raw_dtype=raw_dtype, kind=kind)
    assert _flips(machine, _inputs(machine)) < 0.006


def test_falling_phases_are_mirrored() -> None:
    """A negative row_scale, which the firmware cannot hold, becomes a mirrored window."""
    machine = make_machine(3, n_features=60, n_blocks=4)
    signs = np.random.default_rng(0).choice([-1, 1], machine.row_scale.shape)
    assert (
        _flips(dataclasses.replace(machine, row_scale=machine.row_scale * signs), _inputs(machine))
        < 0.006
    )


@pytest.mark.parametrize("kind", ["gaussian", "sign"])
def test_equal_slopes_become_one_exact_scale(kind: str) -> None:
    """Where all rows have the same slope, it is met exactly, so one number a block is stored."""
    machine = make_machine(4, n_features=60, n_blocks=3, kind=kind)
    machine = dataclasses.replace(machine, row_scale=np.full(machine.row_scale.shape, 0.0123))
    model = quantize(machine)
    blocks, _ = np.nonzero(model.find(Components).row_kept)
    for block in range(3):
        assert np.unique(model.find(Components).scale[blocks == block]).size == 1


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_decisions_agree_with_the_float_machine(n_classes: int) -> None:
    """The scores times `decision_scale` follow the float decisions, labels with them."""
    machine = make_machine(5, n_features=60, n_blocks=8, n_classes=n_classes)
    model = quantize(machine)
    X = _inputs(machine)
    expected = machine.decision_function(X)
    actual = model.decision_function(X)
    # A flipped feature moves a decision by up to 2; about one in 300 of the 512 flips.
    assert np.sqrt(np.mean((actual - expected) ** 2)) < 0.2 * expected.std()
    labels = expected.argmax(axis=1) if n_classes > 2 else expected[:, 0] > 0
    assert np.mean(model.predict(X) == labels) > 0.9


def test_unweighed_and_constant_rows_are_dropped() -> None:
    """Rows without weight vanish; always-on and never-on rows move into the offset, exactly."""
    machine = make_machine(8, n_features=60, n_blocks=2)
    weights = machine.weights.copy().reshape(3, 2, 64)
    weights[:, 0, :10] = 0
    weights[:, 0, 10:12] = [[1, 1], [-1, 0], [0, 1]]
    width = machine.width.copy()
    width[0, 10], width[0, 11] = 2 * np.pi, -0.1
    machine = dataclasses.replace(
        machine,
        weights=weights.reshape(3, -1),
        width=width,
        output_scale=np.ones(3),
        output_offset=np.zeros(3),
    )
    model = quantize(machine)
    assert not model.find(Components).row_kept[0, :12].any()
    assert_array_equal(model.find(Ternary).multiplier, [1, 1, 1])
    # +1 and -1 by the always-on row, then the opposite by the never-on row.
    assert_array_equal(model.readout.offset, [0, -1, -1])
    assert model.decision_scale == 1


def test_blocks_without_components_are_dropped() -> None:
    """A block that nothing weighs costs no transform."""
    machine = make_machine(9, n_blocks=3)
    weights = machine.weights.copy().reshape(3, 3, 32)
    weights[:, 1] = 0
    whole, smaller = (
        dataclasses.replace(machine, weights=weights.reshape(3, -1)),
        dataclasses.replace(
            machine,
            weights=weights[:, [0, 2]].reshape(3, -1),
            **{
                name: getattr(machine, name)[[0, 2]]
                for name in ("diagonal", "row_scale", "start", "width")
            },
        ),
    )
    assert quantize(whole) == quantize(smaller)
    assert quantize(whole).find(Components).n_blocks == 2


def test_machine_without_any_weight_still_gives_a_model() -> None:
    """Only the offsets decide; the firmware gets its one component, without weight."""
    machine = make_machine(10)
    machine = dataclasses.replace(
        machine, weights=np.zeros_like(machine.weights), output_offset=np.array([0.1, 0.3, 0.2])
    )
    model = quantize(machine)
    assert model.find(Components).n_components == 1
    assert_array_equal(model.predict(_inputs(machine, 5)), [1] * 5)


@pytest.mark.parametrize("raw_dtype", RAW)
def test_constant_features(raw_dtype: str) -> None:
    """Constant features take no part; with all constant the model still gives the float scores."""
    machine = make_machine(11, n_features=10, raw_dtype=raw_dtype)
    scale = machine.input_scale.copy()
    scale[::2] = 0
    some = dataclasses.replace(machine, input_scale=scale)
    model = quantize(some)
    assert_array_equal(model.find(Components).sign == 0, scale == 0)
    assert _flips(some, _inputs(some)) < 0.02
    none = dataclasses.replace(machine, input_scale=0 * scale)
    model = quantize(none)
    X = _inputs(none, 3)
    assert np.allclose(model.decision_function(X), none.decision_function(X), atol=2.1)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(RAW),
    st.sampled_from([8, 16]),
    st.sampled_from([1.0, 4.0]),
    st.integers(0, 2**32 - 1),
)
def test_levels_stand_for_the_scaled_values(raw_dtype, bits, limit, seed):
    """For any scaler, the value that a level stands for is within a level of the scaled value.

    Less than one raw integer from saturation, which may begin between two, it is within that.
    """
    rng = np.random.default_rng(seed)
    n = 6
    machine = make_machine(seed, n_features=n, raw_dtype=raw_dtype, bits=bits)
    width = 10.0 ** rng.uniform(-1, 9 if raw_dtype == "int32" else 4, n)
    machine = dataclasses.replace(
        machine,
        input_scale=limit / width,
        input_offset=rng.uniform(-1, 1, n) * 100,
        input_low=np.full(n, -limit),
        input_high=np.full(n, limit),
    )
    quantized = quantize_scaler(machine.scaling, machine.raw_dtype, machine.input_bits)
    X = _inputs(machine, 200, seed)
    q = quantized.scaler.quantize(X)
    varying = ~quantized.scaler.constant(n)
    stands_for = quantized.step * q * varying + quantized.centre
    error = np.abs(stands_for - machine.scale_inputs(X))
    # A level, parts of one for an 8-bit multiplier, and float32.
    rounding = quantized.step * (1.6 if bits == 8 else 3)
    near_end = limit - np.abs((X - machine.input_offset) * machine.input_scale) < limit / width
    is_float = raw_dtype == "float32"
    allowed = np.where(near_end & (not is_float), 0.6 * limit / width + rounding, rounding)
    # Of integers enough must be inside of their type, or the ends are too few levels apart.
    enough = np.full(n, True)
    if not is_float:
        limits = np.iinfo(raw_dtype)
        top = np.minimum(machine.input_offset + width, limits.max)
        enough = top - np.maximum(machine.input_offset - width, limits.min) > 8
    assert np.all((error <= allowed)[:, enough])


def _scaler(machine: KernelMachine, stretch: float = 1.0, **fields: float) -> QuantizedInputs:
    """Quantize the scaler of a machine whose inputs have these fields alike."""
    n = machine.input_scale.size
    machine = dataclasses.replace(machine, **{k: np.full(n, v) for k, v in fields.items()})
    return quantize_scaler(machine.scaling, machine.raw_dtype, machine.input_bits, stretch=stretch)


def test_bytes_pass_through_unchanged() -> None:
    """uint8 inputs with one range for all, such as images, lose nothing and need no tables."""
    machine = make_machine(12, n_features=50, raw_dtype="uint8")
    scaler = _scaler(machine, 1.005, input_offset=127.5, input_scale=1 / 127.5).scaler
    expected = {"offset": [0], "multiplier": [1 << 16], "span": [255], "pre_shift": [0]}
    assert {name: array.tolist() for name, array in scaler.arrays.items()} == expected


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("raw_dtype", ["float32", "int16"])
def test_quantized_zero_stands_for_zero(raw_dtype: str, bits: int) -> None:
    """With the range [-1, 1 - 2 / 2**bits] the levels are whole multiples of 2 / 2**bits."""
    machine = make_machine(3, raw_dtype=raw_dtype, bits=bits)
    reach = 100.0 if raw_dtype == "float32" else 2.0 ** (bits - 1)
    step = 2.0 ** (1 - bits)
    inputs = _scaler(machine, input_offset=0, input_scale=1 / reach, input_high=1 - step)
    assert inputs.step == step
    assert np.abs(inputs.centre).max() < 1e-7  # the offset is a float32


def test_whole_levels_a_unit_stand_for_zero() -> None:
    """Integers 0..16 as 15 levels each: scale 15 / 128 loses nothing and leaves no offset."""
    fields = {"input_offset": 128 / 15, "input_scale": 15 / 128, "input_high": 112 / 128}
    inputs = _scaler(make_machine(4, raw_dtype="uint8"), **fields)
    assert inputs.step == 1 / 128
    assert np.abs(inputs.centre).max() < 1e-12
    assert inputs.scaler.multiplier.tolist() == [15 << 16]


@pytest.mark.parametrize(
    ("machine", "fields", "raw", "expected"),
    [
        # The lowest and highest level stand for the limits: the background of images.
        (make_machine(13, n_features=1), {}, [-1e9, 1e9], [-1, 1]),
        # A standardised flag that saturates in the float machine still tells 0 from 1.
        (
            make_machine(14, n_features=1, raw_dtype="uint8"),
            {"input_offset": 1e-4, "input_scale": 100.0, "input_low": -4.0, "input_high": 4.0},
            [0, 1],
            [-0.01, 4],
        ),
    ],
    ids=["saturated", "rare flag"],
)
def test_both_ends_of_the_levels(machine, fields, raw, expected):
    """Values at and beyond the limits are exact."""
    inputs = _scaler(machine, **fields)
    q = inputs.scaler.quantize(np.array(raw, dtype=machine.raw_dtype)[:, np.newaxis])
    tolerance = 0.02 if fields else 1e-6
    assert np.allclose((inputs.step * q + inputs.centre)[:, 0], expected, atol=tolerance)


def test_extreme_slopes() -> None:
    """Slopes of more than a turn a unit, and none at all, give a valid model."""
    machine = make_machine(15)
    for factor in (1e6, 1e-9, 0.0):
        model = quantize(dataclasses.replace(machine, row_scale=machine.row_scale * factor))
        assert model.find(Components).n_components >= 1
    assert model.find(Components).n_components == 1  # without slope every feature is constant


def test_huge_offset_keeps_scores_in_32_bits() -> None:
    """An output offset far above all sums decides, without overflow."""
    machine = make_machine(16)
    machine = dataclasses.replace(machine, output_offset=np.array([0.0, 1e12, -1e12]))
    assert set(quantize(machine).predict(_inputs(machine, 20))) == {1}


def test_machines_that_cannot_be_quantized_are_refused() -> None:
    """NaN from a failed training, and negative input scales, give a clear message."""
    machine = make_machine(17)
    with pytest.raises(TinykernelError, match="start holds a value that is not a finite"):
        dataclasses.replace(machine, start=machine.start * np.nan)
    with pytest.raises(TinykernelError, match="input_scale holds what it must not"):
        dataclasses.replace(machine, input_scale=-machine.input_scale)


@pytest.mark.parametrize("raw_dtype", ["float32", "uint8"])
@pytest.mark.parametrize("kind", ["gaussian", "sign"])
def test_snapped_windows_stay_where_they_are(raw_dtype: str, kind: str) -> None:
    """Windows that were snapped before training lose nothing more when they are quantized."""
    machine = make_machine(20, n_features=60, n_blocks=8, raw_dtype=raw_dtype, kind=kind, bits=16)
    signs = np.random.default_rng(0).choice([-1, 1], machine.row_scale.shape)
    machine = dataclasses.replace(machine, row_scale=machine.row_scale * signs)
    snapped = snap_windows(machine)
    for name in ("start", "width"):
        moved = getattr(snapped, name) - getattr(machine, name)
        moved = np.abs(np.mod(moved + np.pi, 2 * np.pi) - np.pi)
        assert moved.max() <= 2 * np.pi / 256 + 1e-9
    model, again = quantize(snapped), quantize(snap_windows(snapped))
    assert_array_equal(model.find(Components).start, again.find(Components).start)
    assert_array_equal(model.find(Components).width, again.find(Components).width)
    X = _inputs(machine, 1000)
    assert _flips(snapped, X) < (0.7 if kind == "gaussian" else 0.3) * _flips(machine, X)


def test_as_integer_model() -> None:
    """Machines, models and whatever has a `quantize` method are accepted, anything else refused."""
    machine = make_machine(18)
    model = quantize(machine)

    class Fitted:
        def quantize(self) -> object:
            return model

    assert as_integer_model(machine) == model
    assert as_integer_model(model) is model
    assert as_integer_model(Fitted()) is model
    with pytest.raises(TinykernelError, match="a str is no model"):
        as_integer_model("model")


@pytest.mark.parametrize("n_features", [1, 2, 31, 32, 33, 1000, 2048])
def test_all_sizes(n_features: int) -> None:
    """From 1 to 2048 inputs the model is made, proved and agrees with the machine."""
    machine = make_machine(19, n_features=n_features, n_blocks=1)
    # At d = 32 with one input, seven bits of the product are rounded away 32 times over.
    assert _flips(machine, _inputs(machine, 60)) < 0.012
