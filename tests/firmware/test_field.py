"""Counters of the generated C, on this computer and on emulated cores, step by step."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.firmware.compiling import WARNINGS, program, run_compiler
from tests.firmware.local_models import CONVOLUTIONS, SIGNALS, SPECTRA
from tests.firmware.test_host import SANITISERS
from tests.random_models import balanced, random_model, random_raw
from tinykernel.compile.sources import render_sources
from tinykernel.model.answers import margins
from tinykernel.model.counters import Counters, saturated
from tinykernel.model.integer import IntegerModel
from tinykernel.run.program import WARNING_FLAGS, Platform, build, write_sources

CASES: dict[str, Callable[[], IntegerModel]] = {
    "two classes": lambda: balanced(random_model(2, n_classes=2, raw_dtype="float32")),
    "five classes": lambda: balanced(random_model(3, n_classes=5, bits=16, raw_dtype="int32")),
    "image": CONVOLUTIONS["4-bit taps"],
    "signal": SIGNALS["components"],
    "planes": SPECTRA["planes"],
}
SMALL = {"n_features": 20, "n_classes": 5, "n_blocks": 1, "raw_dtype": "int16"}


def sequence_in_c(
    model: IntegerModel, X: np.ndarray, platform: Platform, folder: Path, flags: tuple[str, ...]
) -> tuple[np.ndarray, bytes]:
    """Return what every step gave, and the counters at the end."""
    include = write_sources(folder, render_sources(model, "gesture"))
    (folder / "main.c").write_text(program("field"))
    flags = (*WARNING_FLAGS, *flags, f"-DTABLE={int(model.input.is_table)}")
    sources = [folder / "main.c", folder / "src" / "gesture.c"]
    (folder / "in.bin").write_bytes(X.tobytes())
    build(platform, sources, folder, include=include, flags=flags).run()
    data = (folder / "out.bin").read_bytes()
    return np.frombuffer(data[: 16 * len(X)], "<i4").reshape(-1, 4), data[16 * len(X) :]


def sequence_in_python(model: IntegerModel, X: np.ndarray) -> tuple[np.ndarray, bytes]:
    """Return the same from the twins."""
    counters, counts = Counters(model), saturated(model, X).tolist()
    labels, margin = margins(model.scores(X))
    steps = []
    for label, least, ends in zip(labels.tolist(), margin.tolist(), counts, strict=True):
        counters.update(-1 if least % 4 == 0 else label, least, ends)
        check = int.from_bytes(counters.to_bytes()[16:20], "little")
        steps.append([label, least, check, 1])
    return np.array(steps, dtype=np.uint32).view(np.int32), counters.to_bytes()


@pytest.mark.parametrize(
    ("core", "kind", "n"),
    [
        *(("host", kind, 10000 if "classes" in kind else 100) for kind in CASES),
        *((core, "int16", 10000) for core in ("cortex-m0", "cortex-m4", "esp32c3")),
    ],
)
def test_ten_thousand_steps(require_platforms, tmp_path, core, kind, n):
    """Each step of the counters is Python's, and a flipped bit is seen, on emulated cores too."""
    platform = require_platforms(core)[0]
    model = CASES[kind]() if kind in CASES else balanced(random_model(6, **SMALL))
    X = random_raw(model, 1, n)
    expected = sequence_in_python(model, X)
    flags = SANITISERS if core == "host" else ("-Os",)
    got = sequence_in_c(model, X, platform, tmp_path, flags)
    assert np.array_equal(got[0], expected[0])
    assert got[1] == expected[1]
    assert Counters.from_bytes(model, got[1]).decisions == n


@pytest.mark.parametrize(
    "compiler",
    [("gcc", "-std=c99"), ("clang", "-std=c99"), ("g++", "-xc++", "-std=c++17")],
    ids=" ".join,
)
def test_the_header_alone_costs_nothing(require_tool, tmp_path, compiler):
    """Included without a call, it compiles without a warning and leaves no code behind."""
    program = [require_tool(compiler[0]), *compiler[1:]]
    write_sources(tmp_path, render_sources(SIGNALS["components"](), "gesture"))
    (tmp_path / "src" / "main.c").write_text('#include "gesture_field.h"\nint x;\n')
    command = [*program, *WARNINGS, "-Os", "-S", "-o", "-"]
    done = run_compiler(tmp_path, *command, source="main.c", to_object=False)
    assert done.returncode == 0, done.stderr
    assert "gesture" not in done.stdout
