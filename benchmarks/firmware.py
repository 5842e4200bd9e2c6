"""Cost of the firmware on every core: instructions a feature, flash by part, RAM.

Run it with ``python benchmarks/firmware.py``. Instructions are counted exactly in an emulator and
sizes come from the linked program, so that the figures do not depend on how busy the computer is.
Ends with status 1 when a figure is above its limit.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from rich.console import Console

from tinykernel.codegen.targets import TARGETS
from tinykernel.features import RMBCSIK
from tinykernel.integer import IntegerModel, quantize
from tinykernel.measure.bench import BenchResult, bench
from tinykernel.measure.report import Report, report
from tinykernel.training.machine import KernelMachine

# Most instructions a feature at p = 4096, d = 1024, 10 classes: what must hold, and the goal.
LIMITS = {
    "cortex-m0": (75, 60),
    "cortex-m0plus": (75, 60),
    "cortex-m3": (55, 45),
    "cortex-m4": (36, 28),
    "cortex-m7": (36, 28),
    "cortex-m33": (36, 28),
    "esp32c3": (60, 48),
}
CODE_LIMIT, CODE_GOAL = 2560, 1536  # bytes of runtime on cortex-m4
RAM_LIMIT, RAM_GOAL = 5632, 4608  # bytes: static, scratch and stack
# Inputs, components: d = 64, 256, 1024.
SHAPES = ((64, 1024), (256, 2048), (784, 4096))
STAGES = ("scale", "transform", "windows", "scores", "other")


@dataclass(frozen=True)
class Row:
    """Figures of one model on one core."""

    target: str
    dimension: int
    bench: BenchResult
    report: Report

    @property
    def per_feature(self) -> float:
        """Instructions a feature."""
        return self.bench.instructions / self.bench.components


def sample(n_features: int, n_components: int) -> IntegerModel:
    """Return a model that uses everything: int8 G, windows of each row, ternary weights.

    Parameters are random, but the shift schedules are those that the quantiser proves to suffice.
    """
    rng = np.random.default_rng(0)
    features = RMBCSIK(
        n_components=n_components, sigma=10.0, diagonal="gaussian", row_scale="chi", random_state=0
    ).fit(rng.uniform(-1, 1, (2, n_features)))
    ones = np.ones(n_features)
    # Ranges differ from feature to feature, so that each has a scaler of its own.
    low, high = rng.integers(0, 40, n_features), rng.integers(200, 256, n_features)
    machine = KernelMachine(
        classes=tuple(range(10)), raw_dtype="uint8",
        input_offset=(low + high) / 2, input_scale=2 / (high - low),
        input_low=-ones, input_high=ones,
        sign=features.sign_, permutation=features.permutation_,
        diagonal=features.diagonal_, diagonal_kind="gaussian",
        row_scale=features.row_scale_, start=features.start_, width=features.width_,
        weights=rng.integers(-1, 2, (10, features.diagonal_.size)).astype(np.int8),
        output_scale=np.ones(10), output_offset=np.zeros(10),
    )  # fmt: skip
    return quantize(machine)


def measure() -> list[Row]:
    """Measure all shapes on all emulated cores."""
    rows = []
    for n_features, n_components in SHAPES:
        model = sample(n_features, n_components)
        for target in (row for row in TARGETS.values() if row.machines):
            if target.emulated_as and target.name not in LIMITS:
                continue
            result = bench(model, target)
            rows.append(Row(target.name, model.dimension, result, report(model, target)))
            print(f"{target.name}, d = {model.dimension}: done", file=sys.stderr)
    return rows


def tables(rows: list[Row]) -> str:
    """Write the figures as Markdown."""
    lines = [
        "| core | d | p | instructions | a feature | " + " | ".join(STAGES) + " |",
        "|---|---:|---:|---:|---:|" + "---:|" * len(STAGES),
    ]
    for row in rows:
        result = row.bench
        stages = " | ".join(f"{result.stages[s] / result.components:.1f}" for s in STAGES)
        lines.append(
            f"| {row.target} | {row.dimension} | {result.components} | {result.instructions} "
            f"| {row.per_feature:.1f} | {stages} |"
        )
    parts = list(dict.fromkeys(name for row in rows for name in row.report.parts["flash"]))
    lines += [
        "",
        "| core | d | flash | " + " | ".join(parts) + " | scratch | stack |",
        "|---|---:|---:|" + "---:|" * (len(parts) + 2),
    ]
    for row in rows:
        found = row.report
        flash = " | ".join(str(found.parts["flash"].get(name, 0)) for name in parts)
        lines.append(
            f"| {row.target} | {row.dimension} | {found.flash} | {flash} "
            f"| {found.scratch} | {found.stack} |"
        )
    return "\n".join(lines)


def limits(rows: list[Row]) -> tuple[str, bool]:
    """Compare the largest model with its limits; return Markdown and whether all hold."""
    checks: list[tuple[str, float, float, float]] = []
    for row in rows:
        if row.dimension != 1024:
            continue
        if row.target in LIMITS:
            must, goal = LIMITS[row.target]
            checks.append((f"{row.target}: instructions a feature", row.per_feature, must, goal))
        if row.target == "cortex-m4":
            flash = row.report.parts["flash"]
            code = flash["code"] + flash.get("library", 0)
            checks.append(("cortex-m4: bytes of code", code, CODE_LIMIT, CODE_GOAL))
            checks.append(("cortex-m4: bytes of RAM", row.report.ram, RAM_LIMIT, RAM_GOAL))
    lines = ["| figure | measured | must | goal | |", "|---|---:|---:|---:|---|"]
    for what, value, must, goal in checks:
        verdict = "goal met" if value <= goal else "met" if value <= must else "MISSED"
        lines.append(f"| {what} | {value:.1f} | {must} | {goal} | {verdict} |")
    return "\n".join(lines), all(value <= must for _, value, must, _ in checks)


def main() -> int:
    """Print all tables."""
    rows = measure()
    compared, held = limits(rows)
    titles = dict.fromkeys(f"{row.bench.compiler}, {row.bench.emulator}" for row in rows)
    Console(stderr=True).print("built with -Os: " + "; ".join(titles))
    print(f"{tables(rows)}\n\n{compared}")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
