"""A model as data: it replaces another one of its shape, and nothing else is opened."""

from __future__ import annotations

import hmac
import itertools
import json
import subprocess
import zlib
from collections.abc import Callable
from ctypes.util import find_library
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.codegen.kinds import EVERY
from tests.fuzz.batch import Batch
from tests.fuzz.forged import try_kind
from tests.random_fronts import local_model, random_signal_stage, random_stage
from tests.random_models import changed, random_model, random_raw, with_linear
from tests.sessions import ROOT, blocks
from tests.spectra import spectral_model
from tinykernel.build.harness import run_rows
from tinykernel.build.program import (
    WARNING_FLAGS,
    Platform,
    build,
    build_model,
    find_platforms,
    write_sources,
)
from tinykernel.build.toolchains import host_toolchain
from tinykernel.codegen.blobs.blob import blob_bytes, render_blob
from tinykernel.codegen.blobs.layout import difference, pack_as_data, tables_of
from tinykernel.codegen.comparison import compare
from tinykernel.codegen.literals import table_rows
from tinykernel.codegen.projects import export
from tinykernel.codegen.sources import render_sources
from tinykernel.codegen.targets import find_target
from tinykernel.errors import TinykernelError
from tinykernel.model.answers.decision import Decision
from tinykernel.model.integer import IntegerModel
from tinykernel.model.stages.components import Components


def compact(seed: int, n_blocks: int = 3) -> IntegerModel:
    """Return what training makes by default."""
    model = random_model(
        seed,
        n_features=40,
        diagonal_kind="int4",
        windows="half turns",
        one_scale=True,
        zero_weights=False,
        n_blocks=n_blocks,
        n_classes=3,
        permutation="orbit",
        raw_dtype="int16",
    )
    components = model.find(Components)
    starts = np.where(np.nonzero(components.row_kept)[1] % 2 == 0, 64, 128)
    return changed(model, replace(components, start=starts))


def decided(seed: int) -> IntegerModel:
    """Return a model with margins by label, prototypes and a linear part."""
    model = random_model(seed, n_features=30, n_classes=3, shared_scaler=True, kept="tail")
    least = np.array([seed, 100 * seed, 7], np.uint32)
    decision = Decision(
        least,
        np.arange(64, dtype=np.uint8),
        5 + seed % 3,
        1.0,
        np.zeros(1, np.uint32),
        np.full(1, 0.5),
        novelty_threshold=400 * seed,
        prototypes=np.random.default_rng(seed).integers(-8, 8, (2, 30)).astype(np.int8),
        margin_line=(1000 * seed, 3, seed % 32),
    )
    return replace(with_linear(model, seed, 4), decision=decision)


def signal(seed: int) -> IntegerModel:
    """Return a model of windows of a signal, which also streams."""
    return local_model(random_signal_stage(seed, hop=16), seed, weight_bits=4)


def image(seed: int) -> IntegerModel:
    """Return a model of images."""
    stage = random_stage(
        seed,
        height=8,
        width=8,
        average=1,
        size=(3, 3),
        padding=1,
        n_kernels=8,
        cells=(2, 4),
        level_bits=3,
    )
    return local_model(stage, seed, weight_bits=4, n_classes=3)


def sound(seed: int) -> IntegerModel:
    """Return a model of sounds; another seed gives other edges of bands, and weights."""
    model = spectral_model(1)
    spectrum, (part,) = model.stages[0], model.readout.parts
    edges = spectrum.edges + (np.arange(6) == 2) * (seed - 1) % 3
    weights = np.roll(part.weights, seed, axis=1)
    return replace(
        model,
        stages=(replace(spectrum, edges=edges.astype(np.uint16)), *model.stages[1:]),
        readout=replace(model.readout, parts=(replace(part, weights=weights),)),
    )


KINDS: dict[str, Callable[[int], IntegerModel]] = {
    "compact": compact,
    "decided": decided,
    "signal": signal,
    "image": image,
    "sound": sound,
}


def pair(kind: str) -> tuple[IntegerModel, IntegerModel]:
    """Return two models of the same shape, which hold different numbers."""
    first = KINDS[kind](1)
    others = (KINDS[kind](seed) for seed in itertools.count(2))
    second = next(model for model in itertools.islice(others, 60) if not difference(first, model))
    assert blob_bytes(first)[24:] != blob_bytes(second)[24:]
    return first, second


MAIN = """\
#include <stdlib.h>
#include <string.h>
#include "first.h"
#include "second_blob.h"
#include "third_blob.h"
#define ROWS {rows}
static const first_input_t inputs[ROWS][FIRST_FEATURES] = {{
{inputs}
}};
static const int32_t built_in[ROWS][FIRST_CLASSES] = {{
{first}
}};
static const int32_t loaded[ROWS][FIRST_CLASSES] = {{
{second}
}};
static first_scratch_t scratch;
static int wrong(const first_model_t *model, const int32_t expected[][FIRST_CLASSES])
{{
    int32_t scores[FIRST_CLASSES];
    int row, count = 0;
    for (row = 0; row < ROWS; row++) {{
        first_scores_with(model, inputs[row], scratch, scores);
        count += memcmp(scores, expected[row], sizeof scores) != 0;
    }}
    return count;
}}
/* Open `size` bytes, of which not one more may be read. */
static int status(const void *bytes, uint32_t size)
{{
    const first_model_t *model = NULL;
    void *copy = malloc(size);
    int found;
    if (size != 0u) {{
        memcpy(copy, bytes, size);
    }}
    found = (int)first_open(&model, copy, size);
    if ((found == FIRST_OPENED) != (model != NULL)) {{
        exit(10);
    }}
    free(copy);
    return found;
}}
int main(void)
{{
    static uint32_t changed[SECOND_BLOB_BYTES / 4 + 1];
    unsigned char *const bytes = (unsigned char *)changed;
    const first_model_t *model = NULL;
    uint32_t i;
    if (first_open(&model, second_blob, SECOND_BLOB_BYTES + 4096u) != FIRST_OPENED) {{
        return 1;
    }}
    if (wrong(&first_builtin, built_in) != 0 || wrong(model, loaded) != 0) {{
        return 2;
    }}
    if (first_check() != 0 || first_fingerprint(model) == FIRST_FINGERPRINT) {{
        return 3;
    }}
    for (i = 0u; i < SECOND_BLOB_BYTES; i++) {{
        if (status(second_blob, i) != FIRST_TRUNCATED) {{
            return 4;
        }}
        memcpy(bytes, second_blob, SECOND_BLOB_BYTES);
        bytes[i] ^= (unsigned char)(1u << (i + i / 8u) % 8u);
        if (status(bytes, SECOND_BLOB_BYTES) == FIRST_OPENED) {{
            return 5;
        }}
    }}
    for (i = 1u; i < 4u; i++) {{
        memcpy(bytes + i, second_blob, SECOND_BLOB_BYTES);
        if (first_open(&model, bytes + i, SECOND_BLOB_BYTES) != FIRST_MISALIGNED) {{
            return 6;
        }}
    }}
    if (status(third_blob, THIRD_BLOB_BYTES) != FIRST_OTHER_SHAPE) {{
        return 7;
    }}
    memcpy(bytes, second_blob, SECOND_BLOB_BYTES);
    changed[1]++;
    return status(bytes, SECOND_BLOB_BYTES) == FIRST_OTHER_FORMAT ? 0 : 8;
}}
"""


def rows_of(values: Any, c_type: str) -> str:
    """Write rows as the initialiser of an array of arrays."""
    return ",\n".join("{" + "".join(table_rows(row, c_type)) + "}" for row in values)


def with_blobs(folder: Path, first: IntegerModel, *others: IntegerModel) -> list[Path]:
    """Write the C of a model as data, and others beside it; return the folders of headers."""
    files = render_sources(first, "first", as_data=True)
    for name, model in zip(("second", "third"), others, strict=False):
        files |= render_blob(model, name)
    return [*write_sources(folder, files), folder / "src"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_opened_and_what_is_refused(
    kind: str, tmp_path: Path, require_tool: Callable[[str], str]
) -> None:
    """A model of the same shape gives its scores; no byte less, no bit else, no other shape is."""
    first, second = pair(kind)
    third = random_model(1, n_features=20)
    include = with_blobs(tmp_path, first, second, third)
    raw = random_raw(first, 1, 5)
    types = {"float32": "float", "uint8": "uint8_t", "int16": "int16_t", "int32": "int32_t"}
    text = MAIN.format(
        rows=len(raw),
        inputs=rows_of(raw, types[first.raw_dtype]),
        first=rows_of(first.scores(raw), "int32_t"),
        second=rows_of(second.scores(raw), "int32_t"),
    )
    (tmp_path / "main.c").write_text(text)
    sources = [tmp_path / "main.c", tmp_path / "src" / "first.c"]
    sources += [tmp_path / "blob" / f"{name}_blob.c" for name in ("second", "third")]
    program = build(
        Platform(host_toolchain([require_tool("gcc")])),
        sources,
        tmp_path,
        include=include,
        flags=["-std=c99", "-O1", "-g", "-fsanitize=address,undefined"],
    )
    assert subprocess.run([str(program.path)]).returncode == 0


@pytest.mark.parametrize(
    ("core", "kind"), [("cortex-m0", "compact"), ("cortex-m4", "signal"), ("esp32c3", "decided")]
)
def test_scores_on_cores(
    core: str, kind: str, tmp_path: Path, require_tool: Callable[[str], Any]
) -> None:
    """Behind a pointer the tables are the same: every core gives the scores of Python."""
    arm = core.startswith("cortex")
    for tool in (
        ("arm-none-eabi-gcc", "qemu-system-arm")
        if arm
        else ("riscv64-unknown-elf-gcc", "qemu-system-riscv32")
    ):
        require_tool(tool)
    model = KINDS[kind](1)
    platform = find_platforms(find_target(core), "qemu")[0]
    raw = random_raw(model, 1, 6)
    got = run_rows(build_model(model, platform, tmp_path, as_data=True), model, {"raw": raw})
    assert np.array_equal(got["raw"].scores, model.scores(raw))


def test_a_second_model_shares_the_code(tmp_path: Path, require_tool: Callable[[str], str]) -> None:
    """On Cortex-M4 another model of the shape costs its own bytes and a call or two."""
    gcc = require_tool("arm-none-eabi-gcc")
    first, second = pair("compact")
    include = with_blobs(tmp_path, first, second)
    main = """
        #include "first.h"
        #include "second_blob.h"
        static first_scratch_t scratch;
        static first_input_t input[FIRST_FEATURES];
        volatile int label;
        int main(void)
        {
            const first_model_t *model = &first_builtin;
            label = first_predict_with(model, input, scratch);
        #ifdef TWO
            if (first_open(&model, second_blob, SECOND_BLOB_BYTES) == FIRST_OPENED) {
                label = first_predict_with(model, input, scratch);
            }
        #else
            (void)first_open(&model, (const void *)scratch, sizeof scratch);
        #endif
            return 0;
        }
    """
    (tmp_path / "main.c").write_text(main)
    sizes = []
    for name in ("ONE", "TWO"):
        elf = tmp_path / f"{name}.elf"
        command = [
            gcc,
            "-mcpu=cortex-m4",
            "-mthumb",
            "-Os",
            "-std=c99",
            f"-D{name}",
            "-ffunction-sections",
            "-fdata-sections",
            "-Wl,--gc-sections",
            "-nostartfiles",
            "-Wl,-e,main",
            "--specs=nosys.specs",
        ]
        command += [f"-I{path}" for path in include]
        command += [
            str(tmp_path / path) for path in ("main.c", "src/first.c", "blob/second_blob.c")
        ]
        subprocess.run([*command, "-o", str(elf)], check=True)
        said = subprocess.run(
            [gcc.replace("gcc", "size"), str(elf)], check=True, capture_output=True, text=True
        ).stdout
        sizes.append(int(said.splitlines()[1].split()[0]))
    assert 0 <= sizes[1] - sizes[0] - len(blob_bytes(second)) <= 100


def test_is_valid_cpp_without_warnings(tmp_path: Path, require_tool: Callable[[str], str]) -> None:
    """The C of a model as data keeps the rules of all generated C."""
    include = with_blobs(tmp_path, *pair("decided"))
    flags = [f"-I{path}" for path in include] + ["-c", "-o", str(tmp_path / "o.o")]
    for source in ("src/first.c", "blob/second_blob.c"):
        path = str(tmp_path / source)
        subprocess.run([require_tool("gcc"), *WARNING_FLAGS, *flags, path], check=True)
        plain = [flag for flag in WARNING_FLAGS if not flag.startswith("-std")]
        subprocess.run(
            [require_tool("g++"), "-std=c++17", "-x", "c++", *plain, *flags, path], check=True
        )


#: Tables that lead somewhere, and values that lead out of it.
LEADING = {
    "tk_pre_shifts": 32,
    "tk_levels_pre_shifts": 255,
    "tk_confidence_shift": 32,
    "tk_permutation": 32767,
    "tk_orbit": 2,
    "tk_words": 255,
    "tk_levels_0_mix": 63,
    "tk_kernels_1_codes": 0xFFFF,
    "tk_kernels_1_dilations": 200,
    "tk_kernels_1_groups": 200,
    "tk_kernels_1_order": 255,
    "tk_spectrum_0_edges": 0xFFFF,
    "tk_spectrum_0_cosines": 0xFFFF,
}


def test_forged_tables_wrote_outside_of_memory(require_tool: Callable[[str], str]) -> None:
    """With the right CRC: no entry of a table that leads somewhere can lead out of it."""
    require_tool("gcc")
    seen = set()
    kinds = ("bitmap", "compact", "words by block", "calibrated: known")
    local = ("signal, components only, many windows", "image, channels mixed", "spectrum, int16")
    for kind in (*(f"table, {kind}" for kind in kinds), *local):
        model, blobs, at = EVERY[kind](), [], 24
        for table in tables_of(pack_as_data(model)):
            width = table.n_bytes // table.values.size
            if table.name in LEADING:
                data = bytearray(blob_bytes(model))
                value = LEADING[table.name] % 2 ** (8 * width)
                # Of a dilation the number of kernels leads somewhere, not the dilation.
                place = at + width * (table.name == "tk_kernels_1_dilations")
                data[place : place + width] = value.to_bytes(width, "little")
                data[20:24] = zlib.crc32(bytes(data[:20] + data[24:])).to_bytes(4, "little")
                blobs.append(bytes(data))
                seen.add(table.name)
            at += table.n_bytes
        batch = Batch("forged", 0)
        good = blob_bytes(model)
        assert try_kind(batch, kind, "gcc", [good, *blobs, good]) == 2, batch.notes
    assert seen == set(LEADING)


SIGNED = """
#include <stdio.h>
#include <string.h>
{example}
const void *EVP_sha256(void);
unsigned char *HMAC(const void *, const void *, int, const void *, size_t, void *, unsigned *);
int hmac_sha256(const uint8_t key[32], const void *bytes, size_t size, uint8_t code[32])
{{
    unsigned length = 32;
    return HMAC(EVP_sha256(), key, 32, bytes, size, code, &length) == NULL;
}}
int main(void)
{{
    static uint32_t bytes[GESTURE_MODEL_BYTES / 4 + 8];
    const gesture_model_t *model = NULL;
    unsigned size = (unsigned)fread(bytes, 1, sizeof bytes, stdin);
    return (int)open_update(&model, bytes, size);
}}
"""


def test_a_model_that_is_not_signed_is_refused(
    tmp_path: Path, require_tool: Callable[[str], str], tool_missing: Callable[[str, str], None]
) -> None:
    """The example of the documentation, with the HMAC of OpenSSL, takes the code of Python's."""
    library = find_library("crypto")
    if library is None:
        tool_missing("libcrypto", "apt-get install libssl3")
    assert library is not None
    model = compact(1)
    (block,) = [b for b in blocks(ROOT / "docs/building.md") if "verify" in b.text]
    folders = write_sources(tmp_path, render_sources(model, "gesture", as_data=True))
    (tmp_path / "main.c").write_text(SIGNED.format(example=block.text))
    sources = [str(tmp_path / "main.c"), str(tmp_path / "src" / "gesture.c")]
    command = [require_tool("gcc"), "-std=c99", *(f"-I{folder}" for folder in folders), *sources]
    program = str(tmp_path / "program")
    subprocess.run([*command, f"-l:{library}", "-o", program], check=True)
    data = blob_bytes(model)
    code = hmac.digest(bytes(32), data, "sha256")
    forged = data[:40] + bytes([data[40] ^ 1]) + data[41:]
    for sent, status in ((data + code, 0), (data + code[::-1], 8), (forged + code, 8), (data, 2)):
        assert subprocess.run([program], input=sent).returncode == status


def test_the_difference_has_a_name() -> None:
    """Whoever retrained a model must see which property changed."""
    first = compact(1)
    assert difference(first, first) == ""
    assert difference(first, compact(1, n_blocks=4)) == "TK_BLOCKS is 4u, was 3u"


def test_an_export_as_data(tmp_path: Path) -> None:
    """The manifest remembers the switch, so that a check renders the same C; so with a blob."""
    model = compact(1)
    export(model, None, tmp_path / "lib", name="first", format="library", as_data=True)
    export(model, None, tmp_path / "blob", name="first", format="blob")
    assert (tmp_path / "blob" / "first.bin").read_bytes() == blob_bytes(model)
    assert json.loads((tmp_path / "lib" / "manifest.json").read_text())["as_data"] is True
    for folder in ("lib", "blob"):
        assert compare([tmp_path / folder], model).n_differing == 0
        assert compare([tmp_path / folder], compact(2)).changed
    for options, message in (
        ({"as_data": True}, "leave as_data out"),
        ({"ci": "github"}, "leave ci out"),
        ({"vectors": np.zeros((1, 40))}, "leave rows"),
    ):
        with pytest.raises(TinykernelError, match=message):
            export(model, None, tmp_path / "no", name="first", format="blob", **options)
    assert not (tmp_path / "no").exists()
