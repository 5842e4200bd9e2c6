"""Many models in one program: one link and one start of the emulator compare all of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.firmware.compiling import program
from tests.random_models import random_raw
from tinykernel.base import files as resources
from tinykernel.compile.sources import render_sources
from tinykernel.model.integer import IntegerModel
from tinykernel.run import program as programs
from tinykernel.run.parity import compare, entry_rows, expected_values, run_rows, write_rows


class _Part(programs.Program):
    """A model of an image, which ran with it; its files are in its folder."""

    def run(self) -> None:
        """Do nothing."""


def differences(
    models: Mapping[str, IntegerModel],
    platform: programs.Platform,
    folder: Path,
    flags: Sequence[str],
    rows: Mapping[str, NDArray[Any]] | None = None,
    *,
    stack: bool = True,
) -> dict[str, str]:
    """Return by name of a model where C and Python differ; empty if all are equal, as they must.

    `rows` are raw inputs by name, by default a few. On boards the stack of an inference
    from raw inputs must be at most 320 bytes, of float inputs 512, unless `stack` is False.
    """
    root, boards = Path(folder), resources.source_folder("firmware") / "boards"
    paint = [] if platform.machine is None else ["-DPAINT_STACK=1"]
    flags = [*programs.WARNING_FLAGS, *flags, *paint]
    parts, sources = {}, []
    for number, (name, model) in enumerate(models.items()):
        own = f"m{number}"
        include = [boards, *programs.write_sources(root / own, render_sources(model, own))]
        # The C of a model and its harness in one unit: the compiler starts half as often. What
        # the header lacks has no prototype there.
        unit, model_file = root / own / "unit.c", f'#include "src/{own}.c"\n'
        unit.write_text(model_file + program("unit").replace("OWN", own))
        sources.append(root / own / "unit.o")
        options = [*flags, "-Wmissing-prototypes", *programs.harness_flags(model, own)]
        platform.chain.compile(unit, sources[-1], include=include, flags=options)
        # Decisions are compared on the rows whose margins `deciding` takes thresholds from, too.
        many = 40 if model.input.is_table else 4
        few = with_extremes(model, many) if model.decision is None else random_raw(model, 1, 40)
        raw = few if rows is None else rows[name]
        entries = entry_rows(model, raw)
        part = _Part(root / own / "program", platform)
        write_rows(part, model, entries)
        parts[name] = (part, entries)
    calls = [f"m{number}_main" for number in range(len(models))]
    declared = "".join(f"int {call}(void);\n" for call in calls)
    returned = " ".join(f"status |= {call}();" for call in calls)
    main = root / "main.c"
    main.write_text(f"{declared}int main(void) {{ int status = 0; {returned} return status; }}\n")
    programs.build(platform, [main], root, flags=flags, objects=sources).run()
    wrong = {}
    for name, (part, entries) in parts.items():
        model = models[name]
        values, used = run_rows(part, model, entries)
        found = compare(model, expected_values(model, entries), values, None).first_difference
        if found is not None:
            wrong[name] = str(found)
        most = 512 if model.raw_dtype == "float32" else 320
        if stack and platform.machine is not None and not 0 < used["raw"] <= most:
            wrong[name] = f"{used['raw']} bytes of stack"
    return wrong


def with_extremes(model: IntegerModel, n_rows: int = 4) -> NDArray[Any]:
    """Return random raw inputs, and four rows with all, or every other value, at an end."""
    dtype = np.dtype(model.raw_dtype)
    low, high = (-3e38, 3e38) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    rows = np.full((4, model.n_inputs), low, dtype=dtype)
    rows[1], rows[2, ::2], rows[3, 1::2] = high, high, high
    return np.concatenate([random_raw(model, 3, n_rows), rows])
