"""Texts and missing values of a table as C constants."""

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.convolutions import convolution_model
from tests.random_models import random_model
from tests.refusals import refused
from tinykernel.base.coding import Coding
from tinykernel.base.errors import OptionError, RangeError
from tinykernel.compile.enums import constants_of
from tinykernel.compile.projects import exported_files
from tinykernel.compile.sources import render_sources
from tinykernel.model.answers import Labels
from tinykernel.model.file import about, load
from tinykernel.run.program import write_sources

pytestmark = pytest.mark.usefixtures("page")

HOSTILE = (
    *("*/ int x; /*", "*//*", "/*/", 'a"b', "back\\", "back\\\n#error", "??/", "größe", "grosse"),
    *("日本", "\u202eevil", "", " ", "int", "INT", "a_b", "a b", "2", "<0", ">=0", "words", "h"),
    *("\x00\x1b[31m", "%s{{ name }}{% raw %}", "long " * 40, "long " * 41),
)
_COLUMNS = ("scratch", "*/ #error", "größe\\", "m", "table")


def _hostile(dtype="float32"):
    """Return a model of five columns of hostile texts, all with gaps."""
    names = _COLUMNS
    model = random_model(1, n_features=len(names), n_blocks=1, raw_dtype=dtype)
    coding = Coding(dict.fromkeys(names, HOSTILE), dict.fromkeys(names, -1.0))
    return replace(model, feature_names=names), coding


@pytest.mark.parametrize(("tool", "language"), [("gcc", "c99"), ("clang", "c99"), ("g++", "c++17")])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_hostile_texts_compile_and_have_their_codes(require_tool, tmp_path, tool, language, dtype):
    """No text ends a comment or runs into a macro; each constant is the code, trigraphs or not."""
    model, coding = _hostile(dtype)
    files = render_sources(model, "m", coding=coding)
    write_sources(tmp_path, files)
    checks = [
        f"int check_{one.name}[{one.name} == {code} ? 1 : -1];"
        for _, texts in constants_of(coding, model, "m").texts
        for code, one in enumerate(texts)
    ]
    assert len(checks) == len(_COLUMNS) * len(HOSTILE) == len(set(checks))
    field = '#include "m_field.h"\n' if language == "c99" else ""
    body = "m_input_t gap = M_MISSING, text = M_SCRATCH_WORDS_2;"
    source = tmp_path / "main.c"
    source.write_text("\n".join(['#include "m.h"', field, *checks, body]) + "\n")
    warnings = "-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -trigraphs"
    if language == "c99":
        warnings += " -Wno-missing-variable-declarations"
    command = [require_tool(tool), f"-std={language}", *warnings.split()]
    command += ["-x", "c++"] * (language != "c99")
    command += [f"-I{tmp_path / 'include'}", "-fsyntax-only", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_names_are_identifiers_that_no_macro_has() -> None:
    """Names are ASCII capitals of at most 63 characters, all different, and none is a macro."""
    model, coding = _hostile()
    header = render_sources(model, "m", coding=coding)["include/m.h"].decode("ascii")
    constants = constants_of(coding, model, "m")
    names = [one.name for _, texts in constants.texts for one in texts]
    assert len({*names, "M_MISSING"}) == len(names) + 1
    assert all(re.fullmatch(r"M_[A-Z0-9]+(_[A-Z0-9]+)*", name) for name in names)
    assert max(map(len, names)) <= 63
    macros = re.findall(r"#define (\w+)", header)
    assert not set(macros) & set(names)
    assert "M_SCRATCH_WORDS_2" in names  # M_SCRATCH_WORDS is a macro
    model = replace(model, feature_names=None)
    ((_, (two,)),) = constants_of(Coding({"pi": ("2",)}), model, "m").texts
    assert two.name == "M_PI_2_"  # M_PI_2 is one of math.h


def test_classes_and_inputs_are_named_without_a_cut_word() -> None:
    """Firmware compares labels by name; a long name ends with a whole word, and none is taken."""
    labels = ("stop", "unknown", "refused", "-1", "words " * 20)
    model = random_model(1, n_features=2, n_classes=5)
    model = replace(model, answers=Labels(labels), feature_names=("age", "AGE"))
    constants = constants_of(None, model, "kws")
    assert [(one.name, one.value) for one in constants.classes[:4]] == [
        ("KWS_STOP", "0"),
        ("KWS_UNKNOWN", "1"),
        ("KWS_REFUSED_2", "2"),  # KWS_REFUSED is what a model answers that does not know
        ("KWS_MINUS_1", "3"),
    ]
    assert re.fullmatch(r"KWS(_WORDS)+", constants.classes[4].name)
    assert [one.name for one in constants.inputs] == ["KWS_AGE", "KWS_AGE_2"]
    numbers = replace(model, answers=Labels(tuple(range(5))))
    assert not constants_of(None, numbers, "kws").classes


# Macros of Arduino, ESP-IDF and Zephyr: words, and calls.
_FRAMEWORKS = (
    "PI HALF_PI TWO_PI EULER DEG_TO_RAD RAD_TO_DEG HIGH LOW INPUT INPUT_PULLUP OUTPUT DEFAULT B1 "
    "B10 LED_BUILTIN PIN_A0 NOT_A_PIN SERIAL_8N1 SPI_MODE0 F_CPU ESP_OK ESP_FAIL ESP_IDF_VERSION "
    "GPIO_NUM_2 CONFIG_LOG IRAM_ATTR WIFI_MODE_STA LOG_ERR K_FOREVER K_NO_WAIT SYS_FOREVER_MS "
    "BITS_PER_LONG SENSOR_G EMPTY"
)
_CALLS = (
    "F abs min max round bit sq word constrain radians lowByte ROUND_UP ROUND_DOWN IS_ENABLED "
    "CLAMP ARRAY_SIZE LOG_INF K_MSEC DT_NODELABEL MIN MAX BIT_MASK KB LISTIFY FOR_EACH"
)
# Names of models with labels, one of which is a macro behind that name.
_CLASHES = {
    "m": ("PI", "E"),
    "fp": ("nan", "zero"),
    "seek": ("set", "end"),
    "dbl": ("max", "min"),
    "size": ("max", "b"),
    "int8": ("max", "min"),
    "sig": ("atomic max", "err"),
    "clocks": ("per sec", "b"),
    "half": ("PI", "F"),
    "input": ("pullup", "B1"),
    "led": ("builtin", "EOF"),
    "esp": ("ok", "fail"),
    "k": ("forever", "MSEC"),
    "round": ("up", "down"),
    "log": ("err", "INF"),
    "null": ("a" * 200, "b" * 200, "words " * 40),
}


@pytest.mark.parametrize(("tool", "language"), [("gcc", "c99"), ("g++", "c++17")])
def test_constants_compile_behind_headers_of_c_and_of_frameworks(
    require_tool, tmp_path, tool, language
) -> None:
    """Whatever labels and columns are called, a header compiles behind those of C and Arduino."""
    standard = "assert ctype errno float inttypes limits locale math setjmp signal stdarg stddef"
    standard += " stdio stdlib string time wchar"
    lines = [f"#include <{header}.h>" for header in standard.split()]
    lines += [f"#undef {macro}\n#define {macro} (-7)" for macro in _FRAMEWORKS.split()]
    lines += [f"#undef {macro}\n#define {macro}(x) ((x) + 7)" for macro in _CALLS.split()]
    for name, labels in _CLASHES.items():
        model = random_model(1, n_features=len(labels), n_classes=len(labels))
        model = replace(model, answers=Labels(labels), feature_names=labels[::-1])
        coding = Coding({labels[0]: labels}, {labels[0]: 7.0})
        write_sources(tmp_path, render_sources(model, name, coding=coding))
        lines.append(f'#include "{name}.h"')
        lines += [f'#include "{name}_field.h"'] * (language == "c99")
    source = tmp_path / "main.c"
    source.write_text("\n".join(lines) + "\n")
    command = [require_tool(tool), f"-std={language.replace('c', 'gnu', 1)}", "-Wall", "-Werror"]
    command += ["-x", "c++"] * (language != "c99")
    command += [f"-I{tmp_path / 'include'}", "-fsyntax-only", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_name_of_a_macro_gets_an_underscore_and_the_manifest_says_so() -> None:
    """Who looks for M_PI finds M_PI_ in the header, and in the manifest what became what."""
    model = replace(random_model(1, n_classes=2), answers=Labels(("PI", "walk")))
    constants = constants_of(None, model, "m")
    assert [one.name for one in constants.classes] == ["M_PI_", "M_WALK"]
    files = exported_files(model, None, name="m", format="single")
    assert json.loads(files["manifest.json"])["renamed"] == {"M_PI_": "M_PI"}
    other = exported_files(model, None, name="gesture", format="single")
    assert "renamed" not in json.loads(other["manifest.json"])
    long = replace(model, answers=Labels(("a" * 200, "walk")))
    (name, plain), *others = constants_of(None, long, "gesture").renamed.items()
    assert (name, plain, others) == ("GESTURE_" + 50 * "A", "GESTURE_" + 200 * "A", [])


def test_name_whose_own_macros_are_those_of_another_header_is_refused() -> None:
    """INT8_WIDTH is one of stdint.h: an image needs another name, a table need not."""
    image = convolution_model(1)
    refused(OptionError, render_sources, image, "int8")
    render_sources(random_model(1), "int8")


def test_missing_value_has_the_type_of_the_inputs() -> None:
    """One macro where all columns have one number, else one per column; none that does not fit."""
    floats, _ = _hostile()
    small, _ = _hostile("int8")
    one = Coding({}, {"m": -1.0, "table": -1.0})
    two = Coding({"m": ("missing", "x")}, {"m": -1.0, "table": -7.0})
    assert [(gap.name, gap.value) for gap in constants_of(one, floats, "t").gaps] == [
        ("T_MISSING", "(-1.0f)")
    ]
    assert [(gap.name, gap.value) for gap in constants_of(two, small, "t").gaps] == [
        ("T_M_MISSING_2", "(-1)"),
        ("T_TABLE_MISSING", "(-7)"),
    ]
    for value in (-129.0, 0.5):
        refused(RangeError, constants_of, Coding({}, {"m": value}), small, "t")


@pytest.mark.parametrize("form", ["single", "library", "platformio"])
def test_every_format_names_texts_and_gaps(form: str) -> None:
    """Header, README and Arduino's words have the constants, and their texts end nothing there."""
    model, coding = _hostile()
    target = "esp32" if form == "platformio" else None
    files = exported_files(model, target, name="m", format=form, about={"coding": coding.written()})
    header = next(data for path, data in files.items() if path.endswith("m.h"))
    assert b"M_M_H = " in header
    assert b"#define M_MISSING (-1.0f)" in header
    for path, data in files.items():
        if path.endswith("README.md"):
            assert b"`input[0] = M_SCRATCH_INT_X;`" in data
            assert b"`M_MISSING` stands for a missing value" in data
        if path.endswith("keywords.txt"):
            assert b"M_MISSING\tLITERAL1" in data
    plain = exported_files(model, target, name="m", format=form)
    assert not any(b"M_MISSING" in data for data in plain.values())


def test_workflow_generated_another_header(tmp_path: Path) -> None:
    """The model that is exported for CI knows the coding, so that its header is the same."""
    model, coding = _hostile()
    how = {"name": "m", "format": "library"}
    files = exported_files(model, None, **how, ci="github", about={"coding": coding.written()})
    (tmp_path / "m.tkm").write_bytes(files["ci/m.tkm"])
    again = exported_files(load(tmp_path / "m.tkm"), None, **how, about=about(tmp_path / "m.tkm"))
    assert again["src/m.h"] == files["src/m.h"]
    assert b"M_MISSING" in files["src/m.h"]
