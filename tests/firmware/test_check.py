"""NAME_check: the CRC of the tables that a program holds, against that of the export."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.firmware.compiling import program
from tests.random_fronts import local_model, random_signal_stage
from tests.random_models import random_model
from tinykernel.compile.plan import pack
from tinykernel.compile.sources import render_sources
from tinykernel.model.integer import IntegerModel
from tinykernel.run.program import Platform, build, host_toolchain, write_sources

MAIN = '#include "gesture.h"\nint main(void)\n{\n    return gesture_check();\n}\n'
MODELS = {
    "floats": lambda: random_model(1, raw_dtype="float32", n_features=40, kept="few"),
    "integers": lambda: random_model(1, raw_dtype="int16", permutation="orbit", n_classes=2),
    "signal": lambda: local_model(random_signal_stage(1), 1),
}


def sources(model: IntegerModel, folder: Path) -> list[Path]:
    """Write the C of a model; return the folders of headers."""
    return [*write_sources(folder, render_sources(model, "gesture")), folder / "src"]


@pytest.mark.parametrize("kind", MODELS)
def test_every_table_counts(require_tool: Callable[[str], str], tmp_path: Path, kind: str) -> None:
    """A bit that flips in a table is noticed, from its first byte to its last."""
    gcc = require_tool("gcc")
    model = MODELS[kind]()
    include = sources(model, tmp_path)
    calls = [
        f"    count += missed((unsigned char *){t.name}, sizeof {t.name});"
        for t in pack(model).tables
    ]
    main = tmp_path / "main.c"
    main.write_text(program("check_flips").replace("CALLS", "\n".join(calls)))
    build(Platform(host_toolchain([gcc])), [main], tmp_path, include=include, flags=["-O2"]).run()


@pytest.mark.parametrize("core", ["cortex-m4", "atmega328p"])
def test_on_cores(require_platforms: Callable[[str], Any], tmp_path: Path, core: str) -> None:
    """The bytes in flash of a chip are those of Python, in an address space of its own, too."""
    platform = require_platforms(core)[0]
    include = sources(random_model(2, raw_dtype="float32"), tmp_path)
    (tmp_path / "main.c").write_text(MAIN)
    files = [tmp_path / "main.c", tmp_path / "src" / "gesture.c"]
    build(platform, files, tmp_path, include=include).run()  # a status but 0 is an error
