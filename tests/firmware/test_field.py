"""Counters and offsets of the generated C, on this computer and on emulated cores, step by step."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.firmware.compiling import WARNINGS
from tests.firmware.local_models import IMAGES, SIGNALS
from tests.firmware.test_emulators import ARM_TOOLS, TOOLS
from tests.firmware.test_host import SANITISERS
from tests.random_models import balanced, changed, random_model, random_raw
from tinykernel.build.program import WARNING_FLAGS, Platform, build, find_platforms, write_sources
from tinykernel.codegen.sources import render_sources
from tinykernel.codegen.targets import find_target
from tinykernel.decisions.adaptation import Adaptation
from tinykernel.decisions.counters import Counters, saturated
from tinykernel.model.answers.decision import margins
from tinykernel.model.integer import IntegerModel

PROGRAM = """
#include "semihost.h"
#include "gesture_field.h"

static struct { int32_t label; gesture_input_t values[GESTURE_FEATURES]; } row;
static gesture_scratch_t scratch;
static gesture_counters_t counters;
static gesture_offsets_t offsets, other;
static uint8_t saved[GESTURE_ADAPT_BYTES];
static int32_t scores[GESTURE_CLASSES];
QUANTIZED

static int32_t restored(void)
{
    const int32_t found = gesture_adapt_restore(&other, saved);
    int32_t moved = other.updates != 0u;
    int i;
    for (i = 0; i < GESTURE_CLASSES; i++) {
        moved |= other.offsets[i] != 0;
    }
    return 16 * moved + found;
}

int main(void)
{
    const int32_t input = tk_open("in.bin", 0);
    const int32_t output = tk_open("out.bin", 1);
    int32_t found[6];
    uint32_t margin, adapted;
    int label;

    gesture_counters_reset(&counters);
    gesture_adapt_reset(&offsets);
    gesture_adapt_reset(&other);
    while (tk_read(input, &row, (uint32_t)sizeof row) == 0u) {
        gesture_scores(row.values, scratch, scores);
        label = gesture_label(scores, &margin);
        gesture_counters_update(&counters, (margin & 3u) == 0u ? -1 : label, margin, SATURATED);
        found[0] = gesture_adapt(&offsets, row.values, (int)row.label, scratch);
        found[1] = gesture_adapted_predict(&offsets, row.values, scratch, &adapted);
        found[2] = (int32_t)adapted;
        gesture_adapt_save(&offsets, saved);
        found[3] = (int32_t)gesture_get_word(saved, GESTURE_ADAPT_WORDS - 1);
        found[4] = (int32_t)counters.check;
        found[5] = gesture_counters_valid(&counters);
        if (tk_write(output, found, (uint32_t)sizeof found) != 0u) {
            return 2;
        }
    }
    saved[17] ^= 4u;
    found[0] = restored();
    saved[17] ^= 4u;
    saved[9] ^= 1u;
    found[1] = restored();
    saved[9] ^= 1u;
    saved[0] ^= 1u;
    found[2] = restored();
    saved[0] ^= 1u;
    found[3] = restored();
    counters.labels[0] ^= 1u;
    found[4] = gesture_counters_valid(&counters);
    counters.labels[0] ^= 1u;
    found[5] = 0;
    return tk_write(output, found, (uint32_t)sizeof found) != 0u ||
           tk_write(output, &counters, (uint32_t)sizeof counters) != 0u ||
           tk_write(output, saved, (uint32_t)sizeof saved) != 0u;
}
"""


def tight(model: IntegerModel) -> IntegerModel:
    """Return the model with scores near the end of int32: offsets may hardly move."""
    scores = model.ranges()[-1]
    room = 2**31 - 1000 - max(abs(scores.low), abs(scores.high))
    return changed(model, offset=model.readout.offset + room)


CASES: dict[str, Callable[[], IntegerModel]] = {
    "two classes": lambda: balanced(random_model(2, n_classes=2, raw_dtype="float32")),
    "five classes": lambda: balanced(random_model(3, n_classes=5, bits=16, raw_dtype="int32")),
    "hardly any room": lambda: tight(random_model(4, n_classes=4, raw_dtype="int32")),
    "image": IMAGES["28 x 28"],
    "signal": SIGNALS["components"],
}


def sequence_in_c(
    model: IntegerModel,
    X: np.ndarray,
    labels: np.ndarray,
    platform: Platform,
    folder: Path,
    flags: tuple[str, ...],
) -> tuple[np.ndarray, bytes, bytes]:
    """Return what every step gave, and the counters and offsets at the end."""
    include = write_sources(folder, render_sources(model, "gesture"))
    text = PROGRAM.replace(
        "QUANTIZED",
        "static gesture_quantized_t quantized[GESTURE_FEATURES];" if model.input.is_table else "",
    )
    text = text.replace(
        "SATURATED",
        "(gesture_quantize(row.values, quantized), gesture_saturated(quantized))"
        if model.input.is_table
        else "gesture_saturated(row.values)",
    )
    (folder / "main.c").write_text(text)
    program = build(
        platform,
        [folder / "main.c", folder / "src" / "gesture.c"],
        folder,
        include=include,
        flags=[*WARNING_FLAGS, *flags],
    )
    size = -(-X.itemsize * X.shape[1] // 4) * 4
    kind = np.dtype(
        {
            "names": ["label", "values"],
            "formats": ["<i4", (X.dtype, X.shape[1])],
            "offsets": [0, 4],
            "itemsize": 4 + size,
        }
    )
    rows = np.zeros(len(X), kind)
    rows["label"], rows["values"] = labels, X
    (folder / "in.bin").write_bytes(rows.tobytes())
    program.run()
    data = (folder / "out.bin").read_bytes()
    split = 24 * (len(X) + 1)
    end = split + 4 * (13 + model.n_classes)
    steps = np.frombuffer(data[:split], "<i4").reshape(-1, 6)
    return steps, data[split:end], data[end:]


def sequence_in_python(
    model: IntegerModel, X: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, bytes, bytes]:
    """Return the same from the twins."""
    counters, adaptation = Counters(model), Adaptation(model)
    scores, counts = model.scores(X), saturated(model, X).tolist()
    found, margin = (values.tolist() for values in margins(scores))
    steps = []
    for at, row in enumerate(scores.tolist()):
        counters.update(-1 if margin[at] % 4 == 0 else found[at], margin[at], counts[at])
        before = adaptation.adapt_scores(row, int(labels[at]))
        offsets = np.array(adaptation.offsets)
        after, left = margins((np.array([row]) + offsets).astype(np.int32))
        crc, check = adaptation.to_bytes()[-4:], counters.to_bytes()[16:20]
        words = [int.from_bytes(word, "little", signed=True) for word in (crc, check)]
        steps.append([before, after[0], left.view(np.int32)[0], *words, 1])
    steps.append([1, 2, 1, 16, 0, 0])
    return np.array(steps), counters.to_bytes(), adaptation.to_bytes()


def assert_equal_sequences(
    model: IntegerModel, n: int, platform: Platform, folder: Path, flags: tuple[str, ...]
) -> None:
    """Compare every step, and what the bytes at the end say."""
    X = random_raw(model, 1, n)
    rng = np.random.default_rng(0)
    # Some labels are no class, and must change nothing.
    labels = rng.integers(-1, model.n_classes + 1, n)
    expected = sequence_in_python(model, X, labels)
    got = sequence_in_c(model, X, labels, platform, folder, flags)
    assert np.array_equal(got[0], expected[0])
    assert got[1:] == expected[1:]
    assert Counters.from_bytes(model, got[1]).decisions == n
    assert Adaptation.from_bytes(model, got[2]).updates > n / 10


@pytest.mark.parametrize("kind", CASES)
def test_ten_thousand_steps_on_this_computer(
    require_tool: Callable[[str], str], tmp_path: Path, kind: str
) -> None:
    """Each step of counters and offsets is Python's; damaged and foreign bytes change nothing."""
    require_tool("gcc")
    model = CASES[kind]()
    platform = find_platforms(find_target("host"))[0]
    n = 10000 if model.input.is_table else 100
    assert_equal_sequences(model, n, platform, tmp_path, SANITISERS)


@pytest.mark.parametrize("core", ["cortex-m0", "cortex-m4", "esp32c3"])
def test_ten_thousand_steps_on_emulated_cores(
    require_tool: Callable[[str], str], tmp_path: Path, core: str
) -> None:
    """The same on cores with and without packed instructions."""
    for tool in TOOLS.get(core, ARM_TOOLS):
        require_tool(tool)
    model = balanced(random_model(6, n_features=20, n_classes=5, n_blocks=1, raw_dtype="int16"))
    platform = find_platforms(find_target(core))[0]
    assert_equal_sequences(model, 10000, platform, tmp_path, ("-Os",))


def test_the_bound_is_reached() -> None:
    """Offsets stop where a sum with a score could leave int32."""
    model = CASES["hardly any room"]()
    adaptation = Adaptation(model)
    assert 0 < adaptation.largest < 1100
    adaptation.adapt(random_raw(model, 1, 200), np.arange(200) // 50)
    assert max(map(abs, adaptation.offsets)) == adaptation.largest
    scores = model.ranges()[-1]
    assert max(abs(scores.low), abs(scores.high)) + adaptation.largest <= 2**31 - 1


@pytest.mark.parametrize(
    "compiler",
    [("gcc", "-std=c99"), ("clang", "-std=c99"), ("g++", "-xc++", "-std=c++17")],
    ids=" ".join,
)
def test_the_header_alone_costs_nothing(
    require_tool: Callable[[str], str], tmp_path: Path, compiler: tuple[str, ...]
) -> None:
    """Included without a call, it compiles without a warning and leaves no code behind."""
    program = [require_tool(compiler[0]), *compiler[1:]]
    write_sources(tmp_path, render_sources(SIGNALS["components"](), "gesture"))
    (tmp_path / "main.c").write_text('#include "gesture_field.h"\nint x;\n')
    done = subprocess.run(
        [
            *program,
            *WARNINGS,
            "-Os",
            f"-I{tmp_path / 'include'}",
            "-S",
            str(tmp_path / "main.c"),
            "-o",
            "-",
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "gesture" not in done.stdout
