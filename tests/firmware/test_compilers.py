"""The generated C compiles without a word from any compiler, and stands up to static analysis."""

import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.firmware.compiling import COMPILERS, WARNINGS, check_statically, run_compiler
from tests.firmware.local_models import ALL
from tests.firmware.test_decisions import deciding
from tests.random_models import TABLES, random_model, random_raw
from tinykernel.compile.sources import render_sources, render_vectors
from tinykernel.run.program import write_sources

_KINDS = ("windows by row", "bitmap", "compact", "constant windows", "signs, two classes")
MODELS: dict[str, dict[str, Any]] = {
    **{kind: TABLES[kind] for kind in _KINDS},
    "phases": TABLES["phases"] | {"n_features": 20, "one_scale": True},
    "decisions": {"n_features": 20, "n_classes": 5},
    "decisions of two classes": {"n_features": 20, "n_classes": 2},
}
_LOCAL = (
    *("linear, 2 bits, components", "separable, averaged floats"),
    *("convolutions, components, signs of a hidden layer", "signal, components"),
    *("signal, averaged", "offset, numbers beside"),
)
USE_VECTORS = """
#include "gesture_vectors.h"
int gesture_use(int i);
int gesture_use(int i)
{
    return gesture_vector_labels[i] + (int)gesture_vector_scores[i][0]
        + (int)gesture_vector_inputs[i][0];
}
"""


def _project(root: Path, kind: str, name: str = "gesture") -> None:
    model = ALL[kind]() if kind in ALL else random_model(4, **MODELS[kind])
    if kind.startswith("decisions"):
        rows = random_raw(model, 1, 20)
        model = deciding(model, rows, per_class=model.n_classes > 2)
    X = np.nan_to_num(random_raw(model, 1, 2), posinf=9, neginf=-9)
    write_sources(root, render_sources(model, name) | render_vectors(model, name, X))
    (root / "src" / f"{name}_vectors.c").write_text(USE_VECTORS.replace("gesture", name))


@pytest.fixture(scope="module")
def every_kind(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the sources of all kinds, called m<number>."""
    folder = tmp_path_factory.mktemp("kinds")
    for number, kind in enumerate([*MODELS, *_LOCAL]):
        _project(folder, kind, f"m{number}")
    return folder


# A compiler of this computer and one with an int of 16 bits take all kinds, the others a third.
_ALL_KINDS = ("gcc -std=c99", "avr-gcc -std=gnu99 -mmcu=atmega328p")


@pytest.mark.parametrize("compiler", COMPILERS, ids=" ".join)
def test_no_warning(require_compiler, every_kind, tmp_path, compiler):
    """C99 and C++17 compilers for every core take models and vectors without a warning."""
    command = [*require_compiler(*compiler), *WARNINGS, "-Os", "-c"]
    command += [f"-I{every_kind / place}" for place in ("include", "lib/tinykernel/src")]
    kinds = range(len([*MODELS, *_LOCAL]))
    if " ".join(compiler) not in _ALL_KINDS:
        kinds = kinds[COMPILERS.index(compiler) % 3 :: 3]
    sources = [every_kind / "src" / f"m{k}{end}.c" for k in kinds for end in ("", "_vectors")]
    finished = subprocess.run([*command, *sources], cwd=tmp_path, capture_output=True, text=True)
    assert (finished.returncode, finished.stderr) == (0, "")


@pytest.mark.parametrize(
    ("compiler", "flag"),
    [
        *(("gcc", "-ffast-math"), ("gcc", "-funsafe-math-optimizations")),
        *(("gcc", "-ffinite-math-only"), ("clang", "-Ofast"), ("clang", "-ffinite-math-only")),
    ],
)
def test_arithmetic_of_other_rules_is_refused(require_tool, tmp_path, compiler, flag):
    """Options that lose NaN or reorder float operations stop the build, and say which it is."""
    _project(tmp_path, "windows by row")
    command = require_tool(compiler), "-std=c99", flag, "-fsyntax-only"
    finished = run_compiler(tmp_path, *command, to_object=False)
    assert finished.returncode == 1
    assert "compile the model without -ffast-math" in finished.stderr


@pytest.mark.parametrize("name", ["FINGERPRINT", "SCRATCH_WORDS", "STREAM_SCRATCH_WORDS"])
def test_header_of_another_export_is_refused(require_tool, tmp_path, name):
    """An old NAME.h beside a new NAME.c would name another model, or give it too little memory."""
    write_sources(tmp_path, render_sources(ALL["signal, averaged"](), "gesture"))
    gcc, header = (require_tool("gcc"), "-std=c99"), tmp_path / "include" / "gesture.h"
    assert run_compiler(tmp_path, *gcc).returncode == 0
    text, n = re.subn(rf"(#define GESTURE_{name}) .*", r"\1 7", header.read_text())
    header.write_text(text)
    assert n == 1
    assert "are of different exports" in run_compiler(tmp_path, *gcc).stderr


def test_unity_build_is_refused(require_tool, tmp_path):
    """The macros of a model stay defined, so that a second one would take them for its own."""
    for name in ("gesture", "other"):
        write_sources(tmp_path, render_sources(ALL["signal, averaged"](), name))
    both = tmp_path / "src" / "both.c"
    both.write_text('#include "gesture.c"\n#include "other.c"\n')
    finished = run_compiler(tmp_path, require_tool("gcc"), "-std=c99", source="both.c")
    assert "outside a unity build" in finished.stderr


def test_assertions_of_arguments_are_the_caller_s(require_tool, tmp_path):
    """TK_ASSERT_ARG sees every pointer, and scratch that is not aligned for its words."""
    main = """
    #include "m.h"
    int main(int n, char **words)
    {
        static uint32_t words_[M_SCRATCH_WORDS + 1];
        static m_input_t input[M_FEATURES];
        uint32_t *scratch = (uint32_t *)((char *)words_ + (n > 1 ? 1 : 0));
        (void)words;
        return m_predict(n > 2 ? 0 : input, scratch) < -1;
    }
    """
    include = [
        f"-I{path}"
        for path in write_sources(
            tmp_path, render_sources(random_model(4, **MODELS["bitmap"]), "m")
        )
    ]
    (tmp_path / "main.c").write_text(main)
    command = [require_tool("gcc"), *include, "-std=c99", "-DTK_ASSERT_ARG(c)=assert(c)"]
    sources = [tmp_path / "main.c", tmp_path / "src" / "m.c"]
    subprocess.run([*command, "-include", "assert.h", *sources, "-o", tmp_path / "run"], check=True)
    ends = [subprocess.run([tmp_path / "run", *["x"] * n], capture_output=True) for n in range(3)]
    assert [end.returncode for end in ends] == [0, -signal.SIGABRT, -signal.SIGABRT]
    assert b"scratch & 3u" in ends[1].stderr
    assert b"input != 0" in ends[2].stderr


def test_integers_take_fast_math(require_tool, tmp_path):
    """A model of integers has no float that another arithmetic could change."""
    write_sources(tmp_path, render_sources(ALL["linear, 4 bits, few inputs"](), "gesture"))
    gcc = (require_tool("gcc"), "-std=c99", "-ffast-math")
    assert run_compiler(tmp_path, *gcc).returncode == 0


def test_aliases_are_refused_where_a_compiler_may_not_know_them(require_tool, tmp_path):
    """Bytes are read as words: a compiler without the attribute must be told not to mind."""
    _project(tmp_path, "windows by row")
    plain = (require_tool("gcc"), "-std=c99", "-fno-strict-aliasing", "-U__GNUC__")
    refused = run_compiler(tmp_path, *plain)
    assert refused.returncode != 0
    assert "-DTK_ALIAS=" in refused.stderr
    assert run_compiler(tmp_path, *plain, "-DTK_ALIAS=").returncode == 0


@pytest.mark.parametrize(
    ("kind", "header", "field"),
    [
        ("separable, one block", "tk_separable_rows.h", "    uint32_t units;\n} tk_block_t"),
        ("signal, averaged", "tk_kernels_signal.h", "    TK_STATE_AGES "),
    ],
)
def test_memory_grows_only_with_its_number(require_tool, tmp_path, kind, header, field):
    """A word more in a structure of the scratch does not compile until its number is another."""
    write_sources(tmp_path, render_sources(ALL[kind](), "gesture"))
    gcc = (require_tool("gcc"), "-std=c99")
    assert run_compiler(tmp_path, *gcc).returncode == 0
    path = tmp_path / "lib" / "tinykernel" / "src" / header
    text = path.read_text()
    assert text.count(field) == 1
    more = "    TK_STATE_MORE,\n" if "AGES" in field else "    uint32_t more;\n"
    path.write_text(text.replace(field, more + field))
    assert "tk_assert_" in run_compiler(tmp_path, *gcc).stderr


@pytest.mark.parametrize("kind", [*MODELS, *ALL])
def test_cppcheck(require_tool: Callable[[str], str], tmp_path: Path, kind: str) -> None:
    """Static analysis of the generated C finds nothing."""
    cppcheck = require_tool("cppcheck")
    _project(tmp_path, kind)
    check_statically(cppcheck, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["windows by row", "bitmap", "compact", "decisions"])
def test_gcc_analyzer(require_tool: Callable[[str], str], tmp_path: Path, kind: str) -> None:
    """GCC follows the paths through the generated C and finds no access that could go wrong."""
    gcc = require_tool("gcc")
    _project(tmp_path, kind)
    finished = run_compiler(tmp_path, gcc, "-std=c99", "-O2", "-fanalyzer", *WARNINGS)
    assert finished.returncode == 0, finished.stderr


def _tidied(program: str, tmp_path: Path, checks: str) -> str:
    command = [program, "--quiet", "--header-filter=.*", f"--checks={checks}"]
    command += ["--warnings-as-errors=*", tmp_path / "src" / "gesture.c", "--", "-std=c99"]
    command += [f"-I{tmp_path / place}" for place in ("include", "lib/tinykernel/src")]
    finished = subprocess.run(command, capture_output=True, text=True)
    return finished.stdout if finished.returncode else ""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["windows by row", "bitmap", "phases"])
def test_clang_tidy(require_tool: Callable[[str], str], tmp_path: Path, kind: str) -> None:
    """The checks bugprone and cert find nothing but what docs/c-rules.md explains."""
    program = require_tool("clang-tidy")
    _project(tmp_path, kind)
    text = (Path(__file__).parents[2] / "docs" / "c-rules.md").read_text(encoding="utf-8")
    explained = re.findall(
        r"^\| `((?:bugprone|cert|clang-analyzer)-[\w.-]+)` \|", text, re.MULTILINE
    )
    assert explained
    checks = ["-*", "bugprone-*", "cert-*", "clang-analyzer-*", *(f"-{name}" for name in explained)]
    assert _tidied(program, tmp_path, ",".join(checks)) == ""
    assert "bugprone-" in _tidied(program, tmp_path, "-*,bugprone-*")  # the headers are read
