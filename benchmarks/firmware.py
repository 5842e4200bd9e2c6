"""Cost of the firmware on every core: instructions per component, flash by part, RAM.

Run it with ``python benchmarks/firmware.py [--data DIR]``. Instructions are
counted exactly in an emulator and sizes come from the linked program, so that the figures do not
depend on how busy the computer is. Ends with status 1 when a figure misses its limit.

With ``--data``, a folder with mnist.npz (uint8 ``X_train`` and ``X_test`` of 784 columns,
``y_train``, ``y_test``), a small model is trained and measured too, about two minutes of two
processors. Its size was chosen on 10000 training rows held out, after 40 epochs: 768 components
93.7 %, 896 94.2 %, 1024 94.7 %.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from tinykernel.base.hadamard import padded_dimension
from tinykernel.compile.targets import TARGETS
from tinykernel.kinds.kind import Problem
from tinykernel.kinds.pace import Pace
from tinykernel.learn.components.kind import ComponentsKind
from tinykernel.learn.inputs import fit_level_scaling
from tinykernel.learn.options import TrainerOptions
from tinykernel.learn.trainset import prepare
from tinykernel.model.fixed import QuantizedWindows, Stored, Sums, kernel_model
from tinykernel.model.integer import IntegerModel
from tinykernel.model.scale import quantize_scaler
from tinykernel.pieces.components.spec import Components
from tinykernel.pieces.fastfood import Permutation
from tinykernel.pieces.proof import choose_schedules
from tinykernel.run.bench import BenchResult, bench
from tinykernel.run.parity import verify
from tinykernel.run.report import Report, report

# Most instructions per component at p = 4096, d = 1024, 10 classes: what must hold, and the goal.
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
# A model of MNIST on cortex-m4: test accuracy (at least), linked flash, instructions.
ACCURACY_LIMIT = 93.2  # percent
FLASH_LIMIT, FLASH_GOAL = 6144, 5120  # bytes
INSTRUCTIONS_LIMIT, INSTRUCTIONS_GOAL = 50000, 40000
MNIST_COMPONENTS, MNIST_EPOCHS = 1024, 40
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
    bound: dict[str, float]

    @property
    def per_component(self) -> float:
        """Instructions per component."""
        return self.bench.instructions / self.bench.components


def sample(n_features: int, n_components: int, raw_dtype: str = "uint8") -> IntegerModel:
    """Return a model that uses everything: int8 G, windows of each row, ternary weights.

    Parameters are random, but the shift schedules are those that are proved to suffice.
    """
    rng, d = np.random.default_rng(0), padded_dimension(n_features)
    shape = (-(-n_components // d), d)
    # Ranges differ from input to input, so that each has a scaler of its own.
    ranges = np.stack([rng.integers(0, 40, n_features), rng.integers(200, 256, n_features)])
    scaling = fit_level_scaling(ranges.astype(raw_dtype), 8, "feature")
    sign = rng.choice(np.array([-1, 1], dtype=np.int8), n_features)
    mixing = Permutation(
        "orbit", 8 * int(rng.integers(d // 8)) + 5, 2 * int(rng.integers(d // 2)) + 1
    )
    levels = np.clip(np.rint(40 * rng.standard_normal(shape)), -127, 127).astype(np.int8)
    windows = QuantizedWindows(
        scale=rng.integers(128, 256, shape),
        start=rng.integers(0, 256, shape),
        width=rng.integers(1, 256, shape),
        phase_shift=16,
        constant=np.zeros(shape, dtype=np.int64),
    )
    halve = choose_schedules(sign, 8, mixing, levels, "int8")
    stored = Stored(sign, mixing, levels, "int8", halve, windows)
    weights = rng.integers(-1, 2, (10, *shape)).astype(np.int8)
    components, ternary, _ = stored.components(weights)
    sums = Sums(np.ones(10), np.zeros(10))
    scaler = quantize_scaler(scaling, raw_dtype, 8).scaler
    return kernel_model(scaler, components, ternary, sums, tuple(range(10)))


PACKED = ("cortex-m4", "cortex-m7", "cortex-m33")


def lower_bound(model: IntegerModel, target: str) -> dict[str, float]:
    """Count the instructions that the stages cannot do without; return them per component.

    Counted are additions, loads, stores, multiplications, tests and population counts of a model
    with all tables and 8-bit inputs; loop control, addresses and moves between registers are not.
    docs/performance.md explains every number.
    """
    own = model.find(Components)
    packed, d, m = target in PACKED, own.dimension, own.n_blocks
    n, p, n_outputs = model.n_features, own.n_components, model.n_outputs
    words, stages = d / 2, d.bit_length() - 1

    def additions(halve: tuple[bool, ...]) -> float:
        return float(sum(1 if packed or not halved else 4 for halved in halve))

    at_once = 2 if target.startswith("cortex-m0") else 3  # stages a pass
    passes = -(-(stages - 1) // at_once)
    first = words * (additions(own.halve_first[1:]) + 2 * passes)
    # A value of P: its load, index and address; half a merge and half a store.
    permutation = d * 3.5
    # A word of G u: factors, products, alignment; then stage 0 in it.
    product = 5.5 if packed else 7.0
    stage_0 = 1.0 if packed else 3.0 + 2 * own.halve_second[0]
    block = words * (product + stage_0 + additions(own.halve_second[1:]) + 2 * passes)
    window = 21 / 4 if packed else 11.0
    count = 1 + 2 + 2 + 7 * 5 / 8 + 12 / 8
    value = 12.5 if packed else 16.0
    found = {
        "scale": n * value,
        "transform": first + permutation + m * block,
        "windows": p * window + p / 32,
        "scores": p / 32 * n_outputs * count,
    }
    return {stage: instructions / p for stage, instructions in found.items()}


def measure() -> list[Row]:
    """Measure all shapes on all emulated cores."""
    rows = []
    for n_features, n_components in SHAPES:
        model = sample(n_features, n_components)
        for target in (row for row in TARGETS.values() if row.machines):
            other = target.emulated_as and target.name not in LIMITS
            if other or target.name == "atmega328p":  # with the RAM of the smallest shape only
                continue
            result = bench(model, target)
            found = report(model, target)
            bound = lower_bound(model, target.name)
            rows.append(Row(target.name, model.find(Components).dimension, result, found, bound))
            print(f"{target.name}, d = {model.find(Components).dimension}: done", file=sys.stderr)
    return rows


def tables(rows: list[Row]) -> str:
    """Write the figures as Markdown."""
    lines = [
        "| core | d | p | instructions | per component | " + " | ".join(STAGES) + " | bound |",
        "|---|---:|---:|---:|---:|" + "---:|" * (len(STAGES) + 1),
    ]
    for row in rows:
        result = row.bench
        stages = " | ".join(f"{result.stages[s] / result.components:.1f}" for s in STAGES)
        lines.append(
            f"| {row.target} | {row.dimension} | {result.components} | {result.instructions} "
            f"| {row.per_component:.1f} | {stages} | {sum(row.bound.values()):.1f} |"
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


@dataclass(frozen=True)
class Check:
    """A figure and its limits."""

    what: str
    value: float
    must: float
    goal: float
    at_least: bool = False

    @property
    def held(self) -> bool:
        """Whether the limit that must hold does."""
        return self.value >= self.must if self.at_least else self.value <= self.must

    def line(self) -> str:
        """Write a row of a Markdown table."""
        reached = self.value >= self.goal if self.at_least else self.value <= self.goal
        verdict = "goal met" if reached else "met" if self.held else "MISSED"
        return f"| {self.what} | {self.value:.1f} | {self.must} | {self.goal} | {verdict} |"


def limits(rows: list[Row]) -> list[Check]:
    """Compare the largest model with its limits."""
    checks = []
    for row in rows:
        if row.dimension != 1024:
            continue
        if row.target in LIMITS:
            must, goal = LIMITS[row.target]
            checks.append(
                Check(f"{row.target}: instructions per component", row.per_component, must, goal)
            )
        if row.target == "cortex-m4":
            flash = row.report.parts["flash"]
            code = flash["code"] + flash.get("library", 0)
            checks.append(Check("cortex-m4: bytes of code", code, CODE_LIMIT, CODE_GOAL))
            checks.append(Check("cortex-m4: bytes of RAM", row.report.ram, RAM_LIMIT, RAM_GOAL))
    return checks


def mnist(folder: Path) -> list[Check]:
    """Train a small model of MNIST on its training part and measure it on cortex-m4."""
    with np.load(folder / "mnist.npz", allow_pickle=False) as data:
        X, y, X_test, y_test = (data[k] for k in ("X_train", "y_train", "X_test", "y_test"))
    options = TrainerOptions(
        n_components=MNIST_COMPONENTS, epochs=MNIST_EPOCHS, effort="quick", random_state=0
    )
    problem, kind = Problem(prepare(X, y)[1], options), ComponentsKind()
    found = kind.fit(kind.specs(problem)[0], problem, Pace(problem.effort))
    model = found.machine
    checked = verify(model, X_test, y_test, target="host")
    if not checked.ok or checked.accuracy is None:
        raise SystemExit(f"C and Python differ: {checked.first_difference}")
    flash = report(model, "cortex-m4").flash
    cost = bench(model, "cortex-m4", X=X_test[:3])
    print(
        f"MNIST: p = {model.find(Components).n_components}, "
        f"{checked.scores} scores equal to Python's; "
        + ", ".join(f"{stage} {count}" for stage, count in cost.stages.items()),
        file=sys.stderr,
    )
    return [
        Check(
            "MNIST model: test accuracy of the C in %",
            100 * checked.accuracy,
            ACCURACY_LIMIT,
            ACCURACY_LIMIT,
            at_least=True,
        ),
        Check("MNIST model, cortex-m4: bytes of flash", flash, FLASH_LIMIT, FLASH_GOAL),
        Check(
            "MNIST model, cortex-m4: instructions",
            cost.instructions,
            INSTRUCTIONS_LIMIT,
            INSTRUCTIONS_GOAL,
        ),
    ]


def main() -> int:
    """Print all tables."""
    parser = argparse.ArgumentParser(description="Cost of the firmware on every core.")
    parser.add_argument("--data", type=Path, help="folder with mnist.npz")
    arguments = parser.parse_args()
    rows = measure()
    checks = limits(rows)
    if arguments.data is not None:
        checks += mnist(arguments.data)
    titles = dict.fromkeys(f"{row.bench.compiler}, {row.bench.emulator}" for row in rows)
    Console(stderr=True).print("built with -Os: " + "; ".join(titles))
    print(f"{tables(rows)}\n\n| figure | measured | must | goal | |\n|---|---:|---:|---:|---|")
    print("\n".join(check.line() for check in checks))
    return 0 if all(check.held for check in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
