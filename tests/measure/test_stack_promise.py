"""The stack that report and the header promise, painted around every function of every kind."""

import json
import re
from pathlib import Path

import pytest

from tinykernel.base import files as resources
from tinykernel.compile.sources import render_sources


def promised(header: str, column: int) -> dict[str, int]:
    """Read the table of a header: bytes by function, at one of its columns of levels."""
    lines = header[header.index(" -O0\n") : header.index(" * No model takes more")].splitlines()
    table, sizes = dict[str, int](), list[str]()
    for line in lines[1:]:
        sizes = re.findall(r" (\d+)", line) or sizes
        table |= {name: int(sizes[column]) for name in re.findall(r"[a-z]\w*", line)}
    return table


# One core takes a third of the models, the others a tenth each: all models between them.
AVR = ("atmega328p", "gcc", "-Os")
A_TENTH = [
    *((core, "gcc", "-Os") for core in ("cortex-m0", "cortex-m3", "cortex-m33", "esp32c3")),
    *(AVR, ("cortex-m0", "gcc", "-O3")),
    *(("esp8266", "gcc", level) for level in ("-Os", "-O0")),
    *(("cortex-m4", "zig", level) for level in ("-Os", "-O0")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("core", "kind", "level"), [("cortex-m4", "gcc", "-Os"), *A_TENTH])
def test_no_function_takes_more_stack_than_promised(
    require_platforms, require_toolchain, import_benchmark, tmp_path: Path, core, kind, level
) -> None:
    """Every function keeps to its bound, of which `report` has the largest, and to its header."""
    require_platforms(core)
    require_toolchain(core, kind)
    stack = import_benchmark("stack")
    chosen, every = (core, kind, level), list(stack.answering())
    tenths = {other: every[n::10] for n, other in enumerate(A_TENTH)}
    of_avr = tenths[AVR]
    tenths[AVR] = [each for each in of_avr if stack.is_small(each[1])]  # 2 KB of RAM
    rest = [each for each in of_avr if not stack.is_small(each[1])]
    models = dict(tenths.get(chosen, [*every[::3], *rest]))
    column = {"-Os": 0, "-Og": 3 if kind == "zig" else 0, "-O3": 2, "-O0": 3}.get(level, 1)
    platform = stack.platform_of(core, kind)
    found = stack.use_stacks(list(models.values()), platform, tmp_path / "image", level)
    for (name, model), (painted, bounds) in zip(models.items(), found, strict=True):
        table = promised(render_sources(model, "m")["include/m.h"].decode(), column)
        assert painted.keys() == table.keys()
        # Paint tells nothing of the smallest functions.
        over = {f: s for f, s in painted.items() if s > max(bounds.get(f, s), stack.SMALLEST)}
        over |= {f: s for f, s in (painted | bounds).items() if s > table[f]}
        assert over == {}, name


def test_every_function_of_the_table_is_in_a_model(import_benchmark) -> None:
    """The models have each function that a header may promise the stack of."""
    models = [model for _, model in import_benchmark("stack").answering()]
    used = {f for m in models for f in promised(render_sources(m, "m")["include/m.h"].decode(), 0)}
    rows = json.loads((resources.source_folder("templates") / "model" / "stack.json").read_text())[
        "rows"
    ]
    assert used == {function for row in rows for function in row["functions"]}
