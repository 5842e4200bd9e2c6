"""The generated C on this computer: random models, all variants, sanitisers, several models."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.firmware.image import differences
from tests.fuzz.kernels import any_model, any_rows
from tests.random_models import random_model, random_quantized
from tinykernel.run.parity import run_rows, verify
from tinykernel.run.program import Platform, build_model, host_toolchain

# Not optimised, for which a compiler takes three times as long under sanitizers, but with the
# kernels of an optimised build.
SANITISERS = (
    *("-O0", "-g1", "-DTK_FORCE_RADIX=8"),
    *("-fsanitize=undefined,address", "-fno-sanitize-recover=all"),
)


# A build for each example: shrinking would take minutes.
@pytest.mark.slow
@settings(
    max_examples=8,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**32 - 1))
def test_random_models(require_tool: Callable[[str], str], seed: int) -> None:
    """Whatever the kind of model, C and Python agree, at every hop of a stream too."""
    require_tool("gcc")
    rng = np.random.default_rng(seed)
    model = any_model(rng)
    assert verify(model, any_rows(model, rng, 20), flags=["-O1"]).first_difference is None


def test_extreme_quantized_inputs(require_tool: Callable[[str], str], tmp_path: Path) -> None:
    """All inputs at the ends of their type reach the proved limits and do not exceed them."""
    gcc = require_tool("gcc")
    for seed, bits in enumerate((8, 16)):
        model = random_model(seed, n_features=128, bits=bits, n_blocks=2)
        rows = random_quantized(model, seed, 200)
        program = build_model(model, Platform(host_toolchain([gcc])), tmp_path, SANITISERS)
        got, _ = run_rows(program, model, {"quantized": rows})
        assert np.array_equal(got["quantized"][:, :-1], model.quantized_scores(rows))


@pytest.mark.parametrize(
    ("flags", "lengths"),
    [
        (("-O2", "-DTK_FORCE_RADIX=2"), (30, 4000)),  # a pass for each step, whatever the length
        (("-O2", "-DTK_FORCE_RADIX=4"), (30, 60, 2000, 4000)),
        (("-O3", "-DTK_FORCE_PORTABLE=1"), (30, 60, 120, 250, 500, 1000)),
    ],
    ids=str,
)
def test_variants_cut_each_length_alike(require_platforms, tmp_path, flags, lengths):
    """Passes of a radix, or portable ones, give the bits of Python, whatever the length leaves."""
    models = {}
    for n in lengths:
        kind = "int4" if n % 20 else "int8"
        models[str(n)] = random_model(6, n_features=n, n_blocks=1, n_classes=2, diagonal_kind=kind)
    assert differences(models, require_platforms("host")[0], tmp_path, flags) == {}
