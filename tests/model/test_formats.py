"""Small layouts survive quantisation: levels of G, shared windows, shared scales."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tests.random_models import components_of, make_machine, make_model
from tinykernel.errors import TinykernelError
from tinykernel.model import quantize, snap_windows
from tinykernel.model.diagonals import levels_of
from tinykernel.model.quantization.machine import KernelMachine
from tinykernel.model.quantization.scale import quantize_scaler
from tinykernel.model.stages.components import Components

_TURN = 2 * np.pi


def _compact(seed: int, raw_dtype: str = "float32", n_blocks: int = 3, **changes) -> KernelMachine:
    """Return a machine of the smallest format: only levels of G and signs of W differ by row."""
    machine = make_machine(seed, n_features=60, n_blocks=n_blocks, raw_dtype=raw_dtype, kind="int4")
    rng = np.random.default_rng(seed)
    shape = machine.start.shape
    # Inputs of 0 to 255 as -1 to 127 / 128: quantized values stand for 128ths.
    fields = {
        "row_scale": machine.row_scale * rng.uniform(0.5, 1, (n_blocks, 1)),
        "start": np.resize([np.pi / 2, np.pi], shape),
        "width": np.full(shape, np.pi),
        "weights": rng.choice(np.array([-1, 1], dtype=np.int8), machine.weights.shape),
        "input_offset": np.full(60, 128.0),
        "input_scale": np.full(60, 1 / 128),
        "input_high": np.full(60, 127 / 128),
    }
    return dataclasses.replace(machine, **(fields | changes))


def _starts_by_parity(model: Components) -> list[list[int]]:
    """Return the different starts of even and of odd rows."""
    parity = np.nonzero(model.row_kept)[1] % 2
    return [np.unique(model.start[parity == odd]).tolist() for odd in (0, 1)]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.sampled_from([np.float32, np.float64]))
def test_levels_are_recovered_exactly(seed: int, top: int, dtype: type) -> None:
    """Levels times a constant, even in float32, give the levels and the constant back."""
    rng = np.random.default_rng(seed)
    levels = rng.integers(-top, top + 1, (3, 32))
    levels[:, :2] = [top, 1]  # without a common divisor
    unit = np.exp(rng.normal(size=(3, 1)) * 3)
    found, worth = levels_of((levels * unit.astype(dtype)).astype(np.float64))
    factor = 7 // top  # the largest levels that say the same
    assert_array_equal(found, levels * factor)
    assert np.allclose(worth * factor, unit, rtol=1e-6)


def test_other_diagonals_are_refused() -> None:
    """A diagonal that is not made of levels is named with its block; zeros are levels."""
    machine = make_machine(1, kind="int4")
    diagonal = machine.diagonal.copy()
    diagonal[1, 3] = 2.4 * np.abs(diagonal[1]).max() / 7
    with pytest.raises(TinykernelError, match="block 1 is no whole multiple"):
        quantize(dataclasses.replace(machine, diagonal=diagonal))
    assert not levels_of(np.zeros((1, 32)))[0].any()


def test_int4_models_hold_levels_only() -> None:
    """An integer model of 4-bit levels refuses others, also where the file says so."""
    models = (make_model(seed).find(Components) for seed in range(50))
    components = next(one for one in models if one.diagonal_kind == "int4")
    diagonal = components.diagonal.copy()
    for wrong in (8, -8):
        diagonal[0, 0] = wrong
        with pytest.raises(TinykernelError, match=f"diagonal holds {wrong}; -7..7 are allowed"):
            dataclasses.replace(components, diagonal=diagonal)


@pytest.mark.parametrize("raw_dtype", ["float32", "uint8", "int16"])
def test_compact_format_has_no_numbers_by_row(raw_dtype: str) -> None:
    """Starts by parity, equal widths, one scale a block and the levels arrive as they were."""
    machine = _compact(1, raw_dtype)
    model = quantize(machine)
    assert model.find(Components).diagonal_kind == "int4"
    assert_array_equal(model.find(Components).diagonal, levels_of(machine.diagonal)[0])
    assert _starts_by_parity(model.find(Components)) == [[64], [128]]
    assert np.unique(model.find(Components).width).tolist() == [128]
    scales = model.find(Components).scale.reshape(model.find(Components).n_blocks, -1)
    assert np.all(scales == scales[:, :1])


@pytest.mark.parametrize("raw_dtype", ["float32", "uint8"])
def test_compact_format_agrees_with_the_float_machine(raw_dtype: str) -> None:
    """What is left out changes few features: the scales have 8 bits, the rounding bias stays."""
    machine = _compact(2, raw_dtype, n_blocks=6)
    X = np.random.default_rng(0).integers(0, 256, (500, 60)).astype(raw_dtype)
    model = quantize(machine)
    expected = machine.features(X)
    assert np.mean(components_of(model, model.quantize_inputs(X)) != expected) < 0.004


def test_quantized_zero_stands_for_zero() -> None:
    """With the range [-1, 1 - 2 / 2**bits] the levels are whole multiples of 2 / 2**bits."""
    for bits in (8, 16):
        top = 1 - 2.0 ** (1 - bits)
        for raw_dtype, reach in (("float32", 100.0), ("int16", 2.0 ** (bits - 1))):
            machine = make_machine(3, raw_dtype=raw_dtype, bits=bits)
            machine = dataclasses.replace(
                machine,
                input_offset=0 * machine.input_offset,
                input_scale=np.full(20, 1 / reach),
                input_high=np.full(20, top),
            )
            inputs = quantize_scaler(machine.scaling, machine.raw_dtype, machine.input_bits)
            assert inputs.step == 2.0 ** (1 - bits)
            assert np.abs(inputs.centre).max() < 1e-7  # the offset is a float32


def test_whole_levels_a_unit_stand_for_zero() -> None:
    """Integers 0..16 as 15 levels each: scale 15 / 128 loses nothing and leaves no offset."""
    machine = make_machine(4, raw_dtype="uint8")
    machine = dataclasses.replace(
        machine,
        input_offset=np.full(20, 128 / 15),
        input_scale=np.full(20, 15 / 128),
        input_high=np.full(20, (15 * 16 - 128) / 128),
    )
    inputs = quantize_scaler(machine.scaling, machine.raw_dtype, machine.input_bits)
    assert inputs.step == 1 / 128
    assert np.abs(inputs.centre).max() < 1e-12
    assert inputs.scaler.multiplier.tolist() == [15 << 16]


def test_starts_take_up_an_offset_of_the_inputs() -> None:
    """Where the quantized 0 stands for something else, starts differ by row; widths stay equal."""
    machine = _compact(5, input_low=np.full(60, -1.0), input_high=np.full(60, 0.5))
    model = quantize(machine)
    assert len(_starts_by_parity(model.find(Components))[0]) > 10
    assert np.unique(model.find(Components).width).tolist() == [128]
    X = np.random.default_rng(0).integers(0, 192, (500, 60)).astype(np.float32)
    quantized = components_of(model, model.quantize_inputs(X))
    assert np.mean(quantized != machine.features(X)) < 0.006


def test_negative_slopes_are_mirrored() -> None:
    """A falling phase enters its window from the other side, so the two starts do not serve."""
    machine = _compact(6)
    row_scale = machine.row_scale.copy()
    row_scale[1] *= -1
    machine = dataclasses.replace(machine, row_scale=row_scale)
    model = quantize(machine)
    X = np.random.default_rng(0).integers(0, 256, (500, 60)).astype(np.float32)
    quantized = components_of(model, model.quantize_inputs(X))
    assert np.mean(quantized != machine.features(X)) < 0.006
    assert np.unique(model.find(Components).width).tolist() == [128]


def test_equal_widths_stay_equal() -> None:
    """Learned starts with one width, on the 8-bit grid or not, keep one width and their middle."""
    machine = _compact(7, n_blocks=4)
    start = np.random.default_rng(7).uniform(0, _TURN, machine.start.shape)
    for width in (np.pi, 2.0):
        learned = dataclasses.replace(machine, start=start, width=np.full(start.shape, width))
        model = quantize(learned)
        assert np.unique(model.find(Components).width).size == 1
        middle = (
            (model.find(Components).width / 2 - model.find(Components).start.astype(float)).reshape(
                4, -1
            )
            / 256
            * _TURN
        )
        away = np.mod(middle - (width / 2 - start) + np.pi, _TURN) - np.pi
        assert np.abs(away).mean() < _TURN / 256  # half a step, and the bias of rounding


def test_starts_of_unweighed_rows_do_not_matter() -> None:
    """Rows that no class weighs may hold anything without making tables of the others."""
    machine = _compact(8)
    weights = machine.weights.copy().reshape(3, 3, 64)
    weights[:, 2, 40:] = 0
    start, width = machine.start.copy(), machine.width.copy()
    start[2, 40:], width[2, 40:] = 0.3, 1.0
    machine = dataclasses.replace(machine, weights=weights.reshape(3, -1), start=start, width=width)
    model = quantize(machine)
    assert model.find(Components).n_components == 2 * 64 + 40
    assert _starts_by_parity(model.find(Components)) == [[64], [128]]


def test_snapping_leaves_shared_windows_alone() -> None:
    """Windows that are shared by design are representable as they are."""
    machine = _compact(9)
    snapped = snap_windows(machine)
    assert np.allclose(snapped.start, machine.start, atol=1e-12)
    assert np.allclose(snapped.width, machine.width, atol=1e-12)
