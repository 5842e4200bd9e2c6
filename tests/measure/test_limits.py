"""Budgets of several limits: how they are read, and the estimate of instructions."""

import pytest

from tests.convolutions import convolution_model
from tests.frames import frame_model
from tests.random_fronts import offset_model
from tests.random_models import one_class, random_model, tree_model
from tests.refusals import refused
from tests.separable import separable_model
from tests.spectra import plane_model, spectral_model
from tinykernel import report, train
from tinykernel.base.errors import TargetError
from tinykernel.compile.targets import TARGETS
from tinykernel.run.bench import bench
from tinykernel.run.estimate import (
    check_counted,
    estimate_instructions,
    instruction_margin,
    work_of,
)
from tinykernel.run.limits import Limits, parse_limits


@pytest.fixture
def require_gcc(require_toolchain, require_platforms):
    """Return a function that asks for the compiler whose instructions the estimates count."""

    def require(target):
        require_toolchain(target, "gcc")
        require_platforms(target)

    return require


def test_limits_are_read():
    """Every limit with its unit, in any order; a plain size is flash."""
    text = "time=2ms@80MHz, flash=30KB,ram=8KB ,stack=512B"
    found = parse_limits(text)
    assert found == Limits(flash=30720, ram=8192, stack=512, time=0.002, clock=80e6)
    assert found.most_instructions(2.0) == 80000
    assert parse_limits("instructions=200k").most_instructions(2.0) == 200000
    assert parse_limits("instructions=50k,time=2ms@80MHz").most_instructions(1.0) == 50000
    assert parse_limits("8KB") == parse_limits(8192) == Limits(flash=8192)
    assert not parse_limits("flash=8KB").beside_flash
    for limits in (found, parse_limits("instructions=1.5M"), parse_limits("8KB")):
        assert parse_limits(str(limits)) == limits


def test_a_report_names_every_limit_that_is_exceeded():
    """Each one in a line of its own, with the excess."""
    model = random_model(1, n_features=64, n_blocks=4, n_classes=4, raw_dtype="uint8")
    budget = "flash=100KB,ram=400B,stack=64B,instructions=1k,time=10us@80MHz"
    found = report(model, "cortex-m4", budget, compiler="none")
    begins = [line.split(" is ")[0].split(" are ")[0] for line in found.problems]
    assert begins == ["RAM", "stack", "instructions", "time"]
    assert found.to_dict()["instructions"] == found.instructions
    assert report(model, "cortex-m4", "flash=100KB,time=1s@80MHz", compiler="none").fits


@pytest.mark.parametrize("target", [name for name, row in TARGETS.items() if row.family != "host"])
def test_limits_of_time_hold_on_every_target(target) -> None:
    """Instructions were counted for every core, and a report names what is over."""
    model = random_model(1, n_features=64, n_blocks=4, n_classes=4, raw_dtype="uint8")
    budget = "flash=100KB,instructions=1k,time=10us@80MHz"
    frames = () if target == "atmega328p" else (frame_model(2, 8, 8, layers=1),)  # too large
    for each in (model, spectral_model(1), offset_model(1), *frames):
        over = report(each, target, budget, compiler="none").problems
        found = {line.split(" is ")[0].split(" are ")[0] for line in over}
        assert found >= {"instructions", "time"}


def test_a_limit_of_time_for_a_core_without_counts(monkeypatch) -> None:
    """It is refused in one line, by a training before it begins."""
    monkeypatch.setattr("tinykernel.run.estimate._measurements", dict)
    budget = "flash=100KB,instructions=1k"
    refused(TargetError, report, random_model(1), "esp32", budget, compiler="none")
    monkeypatch.setattr("tinykernel.kinds.train.fitting.select", None)
    with pytest.raises(TargetError):
        train([[0.0], [1.0]], [0, 1], budget=budget, target="esp32", n_components=32)


@pytest.mark.parametrize("kind", ["components", "chains", "mixed", "plane", "one class", "trees"])
def test_the_estimate_of_instructions_is_near(kind, require_gcc):
    """What is counted does not exceed the estimate, of trees that of their farthest leaves."""
    require_gcc("cortex-m4")
    if kind == "trees":
        model = tree_model(4, n_features=6, n_classes=3, raw_dtype="int16", most=(30, 30))
    elif kind == "mixed":
        model = separable_model(3, (12, 10), (8, 12, 16), (1, 2, 1))
    elif kind == "plane":
        model = plane_model(3, (8, 12, 16), (2, 1, 2), frames=40, bands=20)
    elif kind == "chains":
        model = convolution_model(
            3, (16, 16), (0, 1, 1), channels=16, units=32, unit_bits=2, padding=1
        )
    else:
        model = random_model(
            5, n_features=60, n_blocks=3, n_classes=5, raw_dtype="uint8", windows="phases"
        )
    if kind == "one class":
        model = one_class(model, 1, 20)
    estimate = estimate_instructions(model, "cortex-m4")
    most = estimate * (1 + instruction_margin("cortex-m4"))
    least = 0.3 * most if kind == "trees" else estimate / 1.25
    assert least <= bench(model, "cortex-m4").instructions <= most


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "make"),
    [
        *((name, spectral_model) for name in ("cortex-m3", "esp32c3", "esp8266", "atmega328p")),
        *((name, plane_model) for name in ("cortex-m0", "cortex-m3", "esp32c3", "esp8266")),
    ],
)
def test_the_estimate_of_a_sound_is_near(target, make, require_gcc):
    """A spectrum has prices of each core that runs other instructions than another."""
    require_gcc(target)
    small = {"cells": (1, 1), "n_kernels": 8, "dilations": (1,), "hop": 0}
    frames = 10 if make is spectral_model else 20
    model = make(40, frames=frames, dtype="uint8", **small)
    found, work = bench(model, target), work_of(model)
    for line in {"spectrum", "plane"} & work.keys():
        prices = check_counted(target)[line]
        own = sum(prices[piece] * times for piece, times in work[line].items())
        assert own / 1.25 <= found.stages[line] <= own * (1 + instruction_margin(target))
    most = estimate_instructions(model, target) * (1 + instruction_margin(target))
    assert found.instructions <= most


def test_float_inputs_with_an_fpu() -> None:
    """A core that computes floats itself is not priced with the library of one that does not."""
    floats, integers = (
        random_model(7, n_features=256, raw_dtype=raw) for raw in ("float32", "int16")
    )
    without, with_fpu = (estimate_instructions(floats, t) for t in ("cortex-m4", "cortex-m4f"))
    assert with_fpu < 0.5 * without
    without, with_fpu = (estimate_instructions(integers, t) for t in ("cortex-m4", "cortex-m4f"))
    assert with_fpu == pytest.approx(without, rel=0.02)
