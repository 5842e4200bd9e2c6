"""Levels of float inputs: what C computes in integers, and by floats, is what Python computes."""

import subprocess

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.firmware.compiling import WARNINGS, program
from tinykernel.base import files as resources
from tinykernel.pieces.scale.spec import Scale

#: Floats of the compiler, integers with long products, and integers without.
VARIANTS = {
    "floats": (),
    "integers": ("-DTK_FORCE_SOFT_FLOAT=1",),
    "short products": ("-DTK_FORCE_SOFT_FLOAT=1", "-DTK_LONG_PRODUCT=0"),
}
_SIGN, _INFINITY, _EXPONENT = 0x80000000, 0x7F800000, 23
_SPECIAL = [0, _SIGN, _INFINITY, _INFINITY | _SIGN, 0x7FC00000, 0xFFC00000, 1]
_SPECIAL += [0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF]


def _finite(bits: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the same with a smaller exponent where the number is infinite or none."""
    return np.where((bits & _INFINITY) == _INFINITY, bits & ~np.uint32(0x00800000), bits)


def hard_rows(rng: np.random.Generator, n: int) -> NDArray[np.uint32]:
    """Return bits of raw value, offset and multiplier, and the top level.

    Any bits, and numbers of similar size that cancel, tie and round, at either end of the range of
    exponents; products near the levels.
    """
    raw, offset, factor = rng.integers(0, 2**32, (3, n), dtype=np.uint32)
    size = rng.integers(0, 255, n)
    near = np.clip(size + rng.integers(-27, 28, n), 0, 254)
    wanted = np.clip(254 - np.maximum(size, near) + rng.integers(-3, 24, n), 0, 254)
    close = rng.random(n) < 0.8
    for values, exponent in ((offset, size), (raw, near), (factor, wanted)):
        moved = (values & 0x807FFFFF) | (exponent << _EXPONENT).astype(np.uint32)
        values[close] = moved[close]
    # Few digits make ties; numbers that share their upper digits cancel.
    few = np.uint32(0xFFFFFFFF) << rng.integers(0, 24, (3, n)).astype(np.uint32)
    for values, mask in zip((raw, offset, factor), few, strict=True):
        chosen = rng.random(n) < 0.4
        values[chosen] &= mask[chosen]
    alike = rng.random(n) < 0.2
    mask = np.uint32(0xFFFFFFFF) >> rng.integers(9, 32, n).astype(np.uint32)
    raw[alike] = ((offset & ~mask) | (raw & mask))[alike]
    special = rng.choice(np.array(_SPECIAL), (3, n))
    for values, extreme in zip((raw, offset, factor), special, strict=True):
        chosen = rng.random(n) < 0.05
        values[chosen] = extreme[chosen]
    top = rng.choice(np.array([255, 65535], dtype=np.uint32), n)
    return np.stack([raw, _finite(offset), _finite(factor) & ~np.uint32(_SIGN), top], axis=1)


def levels(rows: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Compute the levels as `Scale` specifies them."""
    found = np.zeros(len(rows), dtype=np.int64)
    for bits in (8, 16):
        chosen = rows[:, 3] == 2**bits - 1
        raw, offset, factor = rows[chosen, :3].T.copy().view(np.float32)
        scaler = Scale("float32", bits, offset, factor)
        found[chosen] = scaler.quantize(raw[None])[0].astype(np.int64) + 2 ** (bits - 1)
    # A factor of 0 marks a constant input, whose level the C throws away.
    return np.where(rows[:, 2] == 0, 0, found)


@pytest.mark.parametrize("variant", VARIANTS)
def test_levels_of_floats_equal_those_of_python(variant, require_tool, tmp_path):
    """Rounding, cancellation, ties, subnormal numbers, overflow and NaN are those of IEEE 754."""
    gcc = require_tool("gcc")
    (tmp_path / "levels.c").write_text(program("float_levels"))
    include = resources.source_folder("firmware") / "tinykernel" / "src"
    command = [gcc, "-std=c99", *WARNINGS, "-O1", "-fsanitize=undefined", *VARIANTS[variant]]
    command += ["-fno-sanitize-recover=all", f"-I{include}", "levels.c", "-o", "levels"]
    subprocess.run(command, cwd=tmp_path, check=True)
    rows = hard_rows(np.random.default_rng(0), 400_000)
    expected = levels(rows)
    # Most rows would saturate if they were drawn without thought, and say nothing.
    assert np.mean((expected > 0) & (expected < rows[:, 3])) > 0.1
    finished = subprocess.run(
        [tmp_path / "levels"], input=rows.tobytes(), capture_output=True, check=True
    )
    assert np.array_equal(np.frombuffer(finished.stdout, dtype=np.uint32), expected)
