"""Kernels that give levels, before kernels that count: Python against the obvious, and C."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.firmware.test_host import SANITISERS
from tests.firmware.test_local import PHASES, TOOLS
from tests.random_fronts import random_stage, random_taps
from tests.random_models import random_raw
from tinykernel.build.harness import run_rows
from tinykernel.build.parity import compare, entry_rows, expected_values, verify
from tinykernel.build.program import build_model, find_platforms
from tinykernel.codegen.certificate import certificate
from tinykernel.codegen.plan import pack
from tinykernel.codegen.targets import find_target
from tinykernel.errors import TinykernelError
from tinykernel.model import Scale
from tinykernel.model.answers.labels import Labels
from tinykernel.model.grid import Grid
from tinykernel.model.integer import IntegerModel
from tinykernel.model.readouts.linear import Linear
from tinykernel.model.readouts.readout import Readout
from tinykernel.model.stages.kernels import Kernels
from tinykernel.modelfile import load, save


def layers(
    seed: int,
    *,
    kernels: tuple[int, int] = (4, 5),
    cells: tuple[int, int] = (2, 4),
    shift: int = 1,
    level_bits: int = 3,
    pool: int = 2,
    **options: Any,
) -> IntegerModel:
    """Return a model of images with two stages of kernels; `options` are of `random_stage`."""
    rng = np.random.default_rng(seed)
    own = {"height": 16, "width": 16} | options
    one = random_stage(seed, n_kernels=kernels[0], **own)
    first = replace(
        one.kernels, cells=(1, 1), output="levels", shift=shift, level_bits=level_bits, pool=pool
    )
    made = first.gives(one.levels.gives(one.input))
    taps = random_taps(rng, False, kernels[1], (3, 3))
    flat = made.high * taps.reshape(kernels[1], -1).astype(int)
    ends = np.minimum(flat, 0).sum(1) // 2, np.maximum(flat, 0).sum(1) // 2 + 1
    channel, ones = rng.integers(0, kernels[0], kernels[1]), np.ones(kernels[1])
    second = Kernels(taps, ones, channel, rng.integers(*ends), cells, 1)
    counts = second.gives(made)
    factor = min(((1 << 24) - 1) // counts.high, 2**32 - 1)
    scale = Scale(counts.dtype, 8, [0], [factor], [counts.high])
    linear = Linear(rng.integers(-7, 8, (3, counts.size)), rng.integers(1, 300, 3))
    readout = Readout((linear,), rng.integers(-1000, 1000, 3))
    stages = (one.levels, first, second, scale)
    return IntegerModel(one.input, stages, readout, Labels(("a", "b", "c")))


def _obvious(stage: Kernels, image: NDArray[Any]) -> NDArray[np.int64]:
    """Return the levels of one image, position by position as the specification says."""
    rows, columns, _ = image.shape
    _, kh, kw = stage.taps.shape
    span, found = int(stage.spans()[0]), []

    def at(y: int, x: int, channel: int) -> int:
        inside = 0 <= y - stage.padding < rows and 0 <= x < columns
        return int(image[y - stage.padding, x, channel]) if inside else 0

    for k in range(stage.n_kernels):
        d = int(stage.dilation[k])
        plane = np.zeros((rows + 2 * stage.padding - span, columns), dtype=np.int64)
        for y, x in np.ndindex(*plane.shape):
            r = sum(
                int(stage.taps[k, i, j])
                * at(y + span - (kh - 1 - i) * d, x + (j - kw // 2) * d, int(stage.channel[k]))
                for i, j in np.ndindex(kh, kw)
            )
            above = (r - int(stage.threshold[k])) >> stage.shift
            plane[y, x] = min(max(above, 0), 2**stage.level_bits - 1)
        p = stage.pool
        made = [
            [plane[p * y : p * y + p, p * x : p * x + p].max() for x in range(columns // p)]
            for y in range(plane.shape[0] // p)
        ]
        found.append(made)
    return np.moveaxis(np.array(found), 0, -1)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), shift=st.integers(0, 3), pool=st.sampled_from([1, 2]))
def test_levels_are_those_of_the_specification(seed: int, shift: int, pool: int) -> None:
    """Responses, shifts, limits and pooling of Python are those that the docstring says."""
    rng = np.random.default_rng(seed)
    size = [(3, 3), (1, 5), (5, 1)][seed % 3]
    taps = random_taps(rng, False, 3, size)
    stage = Kernels(
        taps,
        np.full(3, 1 + seed % 2),
        rng.integers(0, 2, 3),
        rng.integers(-5, 5, 3),
        (1, 1),
        seed % 3,
        "levels",
        shift,
        1 + seed % 4,
        pool,
    )
    grid = Grid(9, 7, 2, "uint8", 0, 7)
    image = rng.integers(0, 8, (1, grid.size)).astype(np.uint8)
    found = stage.run(image, grid).reshape(*stage.gives(grid).shape[:2], 3)
    assert np.array_equal(found, _obvious(stage, image.reshape(9, 7, 2)))


@settings(
    max_examples=12,
    deadline=None,
    phases=PHASES,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_random_layers(require_tool: Callable[[str], str], data: st.DataObject) -> None:
    """Whatever images, kernels, shifts and pooling: C under sanitizers agrees, or is refused."""
    require_tool("gcc")
    draw = data.draw
    try:
        model = layers(
            draw(st.integers(0, 2**30)),
            height=draw(st.integers(9, 33)),
            width=draw(st.integers(8, 40)),
            channels=draw(st.sampled_from([1, 1, 3])),
            terms=draw(st.integers(0, 2)),
            size=draw(st.sampled_from([(3, 3), (5, 3), (1, 3), (5, 5)])),
            padding=draw(st.integers(0, 2)),
            kernels=(draw(st.integers(1, 6)), draw(st.integers(1, 8))),
            cells=(draw(st.integers(1, 3)), draw(st.sampled_from([2, 4]))),
            shift=draw(st.integers(0, 3)),
            level_bits=draw(st.integers(1, 4)),
            pool=draw(st.sampled_from([1, 2])),
        )
        pack(model)
    except TinykernelError:
        return
    assert verify(model, random_raw(model, 2, 4), flags=SANITISERS).first_difference is None


@pytest.mark.parametrize("core", TOOLS)
def test_layers_on_every_core(
    require_tool: Callable[[str], str], tmp_path: Path, core: str
) -> None:
    """Each core gives the scores of Python."""
    for tool in TOOLS[core]:
        require_tool(tool)
    model = layers(3)
    rows = entry_rows(model, random_raw(model, 3, 4))
    platforms = find_platforms(find_target(core), "qemu")
    program = build_model(model, platforms[-1 if core == "cortex-m0" else 0], tmp_path, ["-Os"])
    outputs = run_rows(program, model, rows)
    assert compare(model, expected_values(model, rows), outputs, None).first_difference is None


def test_layers_are_kept_in_files(tmp_path: Path) -> None:
    """A file of a model keeps what makes levels."""
    save(layers(2), tmp_path / "m.tkm")
    assert load(tmp_path / "m.tkm") == layers(2)


def test_layers_that_no_code_serves_are_refused() -> None:
    """Columns that the next lanes do not hold, and a proof end in one line."""
    with pytest.raises(TinykernelError, match="no C for levels of 25 columns"):
        pack(layers(1, width=25))
    with pytest.raises(TinykernelError, match="no file for a second stage"):
        certificate(layers(1))
