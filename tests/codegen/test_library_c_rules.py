"""docs/c-rules.md explains what the misra add-on of cppcheck reports on the generated C."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.headers import models
from tests.processes import captured
from tests.sessions import ROOT
from tinykernel.compile.projects import export

# cppcheck reads no headers of the system; a Cortex-M4 besides the plain C of the other cores.
COMMON = [
    *("--addon=misra", "--quiet", "--language=c", "--std=c99", "--platform=unix32"),
    *("-DINT_MAX=2147483647", "--suppress=missingIncludeSystem"),
]
_CORTEX_M4 = "__GNUC__=12 __OPTIMIZE__ __thumb__ __thumb2__ __ARM_FEATURE_SIMD32 __ARM_FEATURE_DSP"
CORES = [["-U__GNUC__", "-DTK_ALIAS="], [f"-D{name}" for name in _CORTEX_M4.split()]]


def reported(source: Path, *options: str) -> set[str]:
    """Return the rules that the add-on reports for a source."""
    done = captured(["cppcheck", *COMMON, *options, f"-I{source.parent}", str(source)], timeout=300)
    assert done.returncode == 0, done.stderr
    assert "#error" not in done.stderr, done.stderr
    return set(re.findall(r"\[misra-c2012-([\d.]+)\]", done.stderr))


@pytest.mark.slow
def test_misra_deviations_are_explained(tmp_path: Path, require_tool: Callable[[str], Any]) -> None:
    """Nobody finds a deviation that is not written down."""
    require_tool("cppcheck")
    text = (ROOT / "docs" / "c-rules.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d., ]+) \|", text, re.MULTILINE)
    explained = {rule for row in rows for rule in row.split(", ")}
    found: set[str] = set()
    for number, model in enumerate(models()):
        export(model, None, tmp_path / str(number), name="gesture", format="library")
        found |= reported(tmp_path / str(number) / "src" / "gesture.c", *CORES[number % 2])
    assert found
    assert found - explained == set()
