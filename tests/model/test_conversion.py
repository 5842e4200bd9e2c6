"""The scaler in whole numbers, and what counts as a model."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.random_models import make_model
from tests.refusals import refused
from tinykernel.base.errors import ModelError
from tinykernel.model.fixed import quantize_windows
from tinykernel.model.pipelines import as_integer_model, quantize
from tinykernel.model.scale import InputScaling, quantize_scaler

RAW = ["float32", "uint8", "int8", "uint16", "int16", "int32"]


def _inputs(scaling: InputScaling, raw_dtype: str, rows: int, seed: int) -> np.ndarray:
    """Return raw inputs in and a little outside of the range of a scaler, where the type goes."""
    rng = np.random.default_rng(seed)
    low = scaling.offset + scaling.low / scaling.scale
    high = scaling.offset + scaling.high / scaling.scale
    x = rng.uniform(low - (high - low) / 20, high + (high - low) / 20, (rows, low.size))
    if raw_dtype == "float32":
        return x.astype(np.float32)
    limits = np.iinfo(raw_dtype)
    return np.clip(np.rint(x), limits.min, limits.max).astype(raw_dtype)


@settings(max_examples=60)
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
    width = 10.0 ** rng.uniform(-1, 9 if raw_dtype == "int32" else 4, n)
    ends = np.full(n, limit)
    scaling = InputScaling(rng.uniform(-1, 1, n) * 100, limit / width, -ends, ends)
    quantized = quantize_scaler(scaling, raw_dtype, bits)
    X = _inputs(scaling, raw_dtype, 200, seed)
    q = quantized.scaler.quantize(X)
    varying = ~quantized.scaler.constant(n)
    stands_for = quantized.step * q * varying + quantized.centre
    scaled = np.clip((X - scaling.offset) * scaling.scale, scaling.low, scaling.high)
    error = np.abs(stands_for - scaled)
    # A level, parts of one for an 8-bit multiplier, and float32.
    rounding = quantized.step * (1.6 if bits == 8 else 3)
    near_end = limit - np.abs((X - scaling.offset) * scaling.scale) < limit / width
    is_float = raw_dtype == "float32"
    allowed = np.where(near_end & (not is_float), 0.6 * limit / width + rounding, rounding)
    # Of integers enough must be inside of their type, or the ends are too few levels apart.
    enough = np.full(n, True)
    if not is_float:
        limits = np.iinfo(raw_dtype)
        top = np.minimum(scaling.offset + width, limits.max)
        enough = top - np.maximum(scaling.offset - width, limits.min) > 8
    assert np.all((error <= allowed)[:, enough])


def _scaling(offset: float, scale: float, low: float = -1.0, high: float = 1.0) -> InputScaling:
    """Return a scaler of three inputs that are alike."""
    return InputScaling(*(np.full(3, value) for value in (offset, scale, low, high)))


def test_bytes_pass_through_unchanged() -> None:
    """uint8 inputs with one range for all, such as images, lose nothing and need no tables."""
    scaler = quantize_scaler(_scaling(127.5, 1 / 127.5), "uint8", 8).scaler
    expected = {"offset": [0], "multiplier": [1 << 16], "span": [255], "pre_shift": [0]}
    assert {name: array.tolist() for name, array in scaler.arrays.items()} == expected


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("raw_dtype", ["float32", "int16"])
def test_quantized_zero_stands_for_zero(raw_dtype: str, bits: int) -> None:
    """With the range [-1, 1 - 2 / 2**bits] the levels are whole multiples of 2 / 2**bits."""
    reach = 100.0 if raw_dtype == "float32" else 2.0 ** (bits - 1)
    step = 2.0 ** (1 - bits)
    inputs = quantize_scaler(_scaling(0, 1 / reach, high=1 - step), raw_dtype, bits)
    assert inputs.step == step
    assert np.abs(inputs.centre).max() < 1e-7  # the offset is a float32


def test_whole_levels_a_unit_stand_for_zero() -> None:
    """Integers 0..16 as 15 levels each: scale 15 / 128 loses nothing and leaves no offset."""
    inputs = quantize_scaler(_scaling(128 / 15, 15 / 128, high=112 / 128), "uint8", 8)
    assert inputs.step == 1 / 128
    assert np.abs(inputs.centre).max() < 1e-12
    assert inputs.scaler.multiplier.tolist() == [15 << 16]


@pytest.mark.parametrize(
    ("scaling", "raw_dtype", "raw", "expected"),
    [
        # The lowest and highest level stand for the limits: the background of images.
        (_scaling(100.0, 0.01), "float32", [-1e9, 1e9], [-1, 1]),
        # A standardised flag that saturates still tells 0 from 1.
        (_scaling(1e-4, 100.0, -4.0, 4.0), "uint8", [0, 1], [-0.01, 4]),
    ],
    ids=["saturated", "rare flag"],
)
def test_both_ends_of_the_levels(scaling, raw_dtype, raw, expected):
    """Values at and beyond the limits are exact."""
    inputs = quantize_scaler(scaling, raw_dtype, 8)
    q = inputs.scaler.quantize(np.repeat(np.array(raw, dtype=raw_dtype)[:, np.newaxis], 3, axis=1))
    tolerance = 0.02 if raw_dtype == "uint8" else 1e-6
    assert np.allclose((inputs.step * q + inputs.centre)[:, 0], expected, atol=tolerance)


def test_extreme_slopes() -> None:
    """A falling phase mirrors its window; whole turns a unit leave a component that never moves."""
    slope = np.array([[0.1, 0.9, 1.0, 3.1]])
    windows = quantize_windows(np.full((1, 4), 0.3), np.full((1, 4), 0.5), slope)
    assert windows.scale[0].tolist() == [205, 205, 0, 205]
    assert windows.start[0].tolist() == [77, 51, 77, 77]
    assert windows.constant[0].tolist() == [0, 0, 1, 0]


def test_what_counts_as_a_model() -> None:
    """Models and whatever has a `quantize` method are accepted, anything else refused."""
    model = make_model(1)

    class Fitted:
        def quantize(self) -> object:
            return model

    assert as_integer_model(model) is as_integer_model(Fitted()) is model
    names = tuple(f"input {i}" for i in range(model.n_inputs))
    assert quantize(Fitted(), names).feature_names == names
    refused(ModelError, as_integer_model, "model")
