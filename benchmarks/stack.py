"""Print the most stack that each function of models of every kind takes, by level.

Headers promise it with a margin: run it again whenever the runtime in firmware/ changes, and
compare the last line with templates/model/stack.json::

    python benchmarks/stack.py [--cores cortex-m0plus ...] [--levels s g 2 3 0]

It needs GCC for ARM, RISC-V and Xtensa, zig and their emulators, and takes ten minutes. Stack is
bounded from the machine code and, where that calls through pointers, painted around each call:
many models are in one image.
"""

import argparse
import itertools
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from _page import templates

from tests.firmware.local_models import ALL, with_events
from tests.random_models import TABLES, one_class, random_model, tree_model, with_linear
from tinykernel.base.errors import LinkError
from tinykernel.compile.plan import pack
from tinykernel.compile.sources import render_sources
from tinykernel.compile.targets import find_target
from tinykernel.model.answers import Decision, Values
from tinykernel.model.integer import IntegerModel
from tinykernel.run.footprint import stack_bounds
from tinykernel.run.program import Platform, build, find_platforms, find_toolchain, write_sources

CORES = ("cortex-m0plus", "cortex-m4", "esp32c3", "esp8266")
#: Columns of the table, with their levels; zig takes -Og for -O0.
LEVELS = {"s": ("-Os",), "g": ("-Og",), "2": ("-O1", "-O2"), "3": ("-O3",), "0": ("-O0",)}
#: Bytes below which paint tells nothing: the frames of the functions that paint and look.
SMALLEST = 48
# What stands for parameters of other names.
_PLACES = {"sample": "input", "samples": "input", "line": "input", "values": "labels"}
_PLACES |= {"margin": "&margin", "novelty": "&novelty"}
_BUFFERS = ("input", "numbers", "scratch", "state", "scores", "labels", "output")
_ANSWERS = ("labels", "novelty", "prototypes", "values")
#: Functions of a header, each with a cast and a name for every parameter.
_Functions: TypeAlias = dict[str, list[tuple[str, str]]]
_TABLES = {
    **{f"table, {name}": lambda how=how: random_model(1, **how) for name, how in TABLES.items()},
    "table, trees": lambda: tree_model(1, n_features=20),
    "table, trees and linear": lambda: tree_model(2, linear=True, raw_dtype="float32"),
    "table, one class": lambda: one_class(random_model(2, n_features=40, raw_dtype="int16"), 1),
    "table, float": lambda: with_linear(
        random_model(
            3,
            **{"n_features": 61, "raw_dtype": "float32", "kept": "few", "n_blocks": 5},
            **{"n_classes": 5, "permutation": "orbit", "phase_shift": 12},
        ),
        3,
        4,
    ),
}


def platform_of(core: str, kind: str) -> Platform:
    """Return what builds by a compiler, and runs programs with the most memory."""
    platform = find_platforms(find_target(core))[-1]
    chain = find_toolchain(platform.machine.target or core, kind)
    return replace(platform, chain=chain)


def answering() -> Iterator[tuple[str, IntegerModel]]:
    """Give models of every kind, by turns with every kind of answer."""
    for turn, (name, make) in enumerate((_TABLES | ALL).items()):
        model = make()
        answer = "one class" if model.is_one_class else _ANSWERS[turn % len(_ANSWERS)]
        if answer == "values" and model.events is None:
            names = tuple(map(str, range(model.n_outputs)))
            model = replace(model, answers=Values(names, 8))
        elif answer in ("novelty", "prototypes"):
            margins, bins = np.full(model.n_classes, 1000, np.uint32), np.arange(64, dtype=np.uint8)
            decision = Decision(margins, bins, 3, 1.0, novelty_threshold=5000)
            if answer == "prototypes":
                levels = np.random.default_rng(turn).integers(-8, 8, (2, model.n_features))
                more = {"prototypes": levels.astype(np.int8), "margin_line": (1000, 300, 2)}
                decision = replace(decision, **more)
            model = replace(model, decision=decision)
        if model.hop and not model.is_regressor:
            model = with_events(model)
        yield f"{name}: {answer}", model


def declared(header: str) -> _Functions:
    """List the functions that a header declares, each with casts and names of its parameters."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    found: _Functions = {}
    for match in re.finditer(r"^(?:\w+ )+(m\d+_\w+)\(([^)]*)\);", text, re.MULTILINE):
        parts = re.findall(r"\s*([^,]*?)(\w+)(\[\w*\])?(?:,|$)", match[2])
        found[match[1]] = [
            (f"({kind.strip()})(void *)" if kind.strip().endswith("*") else "", name)
            for kind, name, _ in parts
            if name != "void"
        ]
    return found


class Used(NamedTuple):
    """Bytes of stack of the functions of a model, by what follows their prefix."""

    painted: dict[str, int]  # the most that a call took
    bounds: dict[str, int]  # from the machine code; empty for code that is not optimised


def use_stacks(
    models: Sequence[IntegerModel], platform: Platform, folder: Path, level: str = "-Os"
) -> list[Used]:
    """Compile models at a level of optimisation, bound the stack of each function, and call it."""
    # All are in one image, or in several where the memory of the machine is too small.
    chain, empty = platform.chain, folder / "empty.o"
    folder.mkdir(parents=True)
    empty.with_suffix(".c").write_text("int main(void) { return 0; }\n")
    chain.compile(empty.with_suffix(".c"), empty)

    def compile_one(place: int, model: IntegerModel) -> _Compiled:
        name, files = f"m{place}", render_sources(model, f"m{place}")
        include = write_sources(folder / name, files)
        source, code = folder / name / "src" / f"{name}.c", folder / f"{name}.o"
        chain.compile(source, code, include=include, flags=(level, "-std=c99"))
        functions, bounds = declared(files[f"include/{name}.h"].decode()), {}
        # zig takes -Og for -O0, at which code calls through pointers.
        if level != "-O0" and (level, chain.kind) != ("-Og", "zig"):
            target = find_target(platform.machine.target or "cortex-m4")
            row = replace(target, family=platform.machine.family)
            found = stack_bounds([empty, code], list(functions), row, chain, folder / f"{name}.elf")
            bounds = {function: bound.bytes for function, bound in found.items()}
        return model, code, functions, bounds

    with ThreadPoolExecutor(2) as pool:
        compiled = list(pool.map(compile_one, range(len(models)), models))
    painted = _run(compiled, platform, folder)
    return [
        Used(*({name.partition("_")[2]: size for name, size in of.items()} for of in both))
        for both in zip(painted, (bounds for *_, bounds in compiled), strict=True)
    ]


_Compiled: TypeAlias = tuple[IntegerModel, Path, _Functions, dict[str, int]]


def _run(compiled: list[_Compiled], platform: Platform, folder: Path) -> list[dict[str, int]]:
    source, objects = folder / "painted.c", [code for _, code, *_ in compiled]
    source.write_text(_program(compiled))
    include = [folder / code.stem / "include" for code in objects]
    try:
        program = build(platform, [source], folder, include=include, objects=objects)
    except LinkError:
        if len(compiled) == 1:
            raise
        half = len(compiled) // 2
        return _run(compiled[:half], platform, folder) + _run(compiled[half:], platform, folder)
    program.run()
    used = iter(np.fromfile(folder / "out.bin", "<u4").tolist())
    return [{name: next(used) for name in functions} for _, _, functions, _ in compiled]


def is_small(model: IntegerModel) -> bool:
    """Say whether a call of a model, with its stream, fits 2 KB of RAM."""
    packed = pack(model)
    inputs = (model.n_inputs + model.delay) * np.dtype(model.raw_dtype).itemsize
    return 4 * (packed.scratch_words + packed.state_words) + 2 * inputs < 1100


def _program(compiled: list[_Compiled]) -> str:
    """Write the C that calls every function, in the order of its header: a stream begins first."""
    calls, sizes = list[tuple[str, str, int]](), dict.fromkeys(_BUFFERS, 1)
    for model, _, functions, _ in compiled:
        packed, channels = pack(model), model.input.channels
        samples = model.input.rows + model.delay if model.hop else 1
        inputs = (model.n_inputs + model.delay * channels) * np.dtype(model.raw_dtype).itemsize
        needed = {
            "input": inputs // 4 + 1,
            "numbers": model.n_numbers + 1,
            "scratch": max(packed.scratch_words, packed.stream_words),
            "state": packed.state_words + 1,
            "scores": model.n_scores,
            "labels": (samples // (model.hop or 1) + 1) * model.n_scores,
            "output": model.n_inputs // 2 + 1,
        }
        sizes = {name: max(size, needed[name]) for name, size in sizes.items()}
        for function, parameters in functions.items():
            arguments = [
                str(samples) if name == "n" else f"{kind}{_PLACES.get(name, name)}"
                for kind, name in parameters
            ]
            n_lines = model.grids()[0].rows if function.endswith("_line") else 1
            times = samples if function.endswith("_push") else n_lines
            calls.append((function, ", ".join(arguments), times))
    names, template = (
        [code.stem for _, code, *_ in compiled],
        templates().get_template("stack.c.j2"),
    )
    return template.render(names=names, sizes=sizes, calls=calls) + "\n"


def main() -> None:
    """Measure all cores, and print the largest of every function so far."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cores", nargs="+", default=CORES)
    parser.add_argument("--levels", choices=LEVELS, nargs="+", default=list(LEVELS))
    chosen = parser.parse_args()
    most: dict[str, dict[str, int]] = {}
    models = [model for _, model in answering()]
    for core, kind, column in itertools.product(chosen.cores, ("gcc", "zig"), chosen.levels):
        if (core, kind) == ("esp8266", "zig") or (column, kind) == ("g", "zig"):
            continue
        for level in LEVELS[column]:
            with tempfile.TemporaryDirectory() as name:
                found = use_stacks(models, platform_of(core, kind), Path(name) / "image", level)
            for used in found:
                for function, size in used.painted.items():
                    row = most.setdefault(function, {})
                    size = max(size, used.bounds.get(function, 0))
                    row[column] = max(row.get(column, 0), size)
            print(core, kind, level, json.dumps(most), flush=True)


if __name__ == "__main__":
    main()
