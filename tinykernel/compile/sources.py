"""The C sources of a model: what every project format contains."""

import json
import re
import tempfile
import textwrap
import zlib
from collections import Counter
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.coding import Coding
from tinykernel.base.errors import DataError, ToolError
from tinykernel.base.files import source_folder, template_engine
from tinykernel.base.text import join
from tinykernel.compile.compilers import Toolchain, zig_command
from tinykernel.compile.enums import check_macros, constants_of, made_of
from tinykernel.compile.plan import PackedModel, pack
from tinykernel.model.answers import Decision, Events, Labels, Values, margins
from tinykernel.model.counters import COUNTERS_MAGIC, counters_bytes
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces import tables as literals
from tinykernel.pieces.catalogue import FOLDERS, PARTS, STAGES, code_of
from tinykernel.pieces.prototypes.spec import Prototypes
from tinykernel.pieces.scale.spec import Scale

_C_TYPES = {
    "float32": "float",
    "uint8": "uint8_t",
    "int8": "int8_t",
    "uint16": "uint16_t",
    "int16": "int16_t",
    "int32": "int32_t",
}
# What templates call as the model does.
_OF_MODEL = (
    *("n_inputs", "input", "hop", "delay", "decision", "events", "n_classes", "n_scores"),
    "n_numbers",
)
_MOST_VECTORS = 256
_VECTORS, _VECTOR_BYTES = 8, 16384
# Freestanding as on a chip. Checks of undefined behaviour, which zig adds, are on no chip.
_FLAGS = ("-target", "wasm32-freestanding", "-fno-sanitize=all")
_LINK_FLAGS = ("-Wl,--no-entry", "-Wl,--strip-all")
_COMMENT_WIDTH, _FUNCTIONS_WIDTH = 95, 50
_INCLUDE = re.compile(rb'#include "(.+)"\n')
_SPDX = b"/* SPDX-License-Identifier: Apache-2.0 */\n"


def runtime_files() -> dict[str, bytes]:
    """Return the C runtime, the same for every model: content by path below ``lib/tinykernel``."""
    root = source_folder("firmware") / "tinykernel"
    files = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    for piece in FOLDERS.values():
        files |= {f"src/{path.name}": path for path in piece.glob("*.h")}
    return {f"lib/tinykernel/{name}": files[name].read_bytes() for name in sorted(files)}


def render_sources(
    model: IntegerModel, name: str, *, coding: Coding | None = None, version: str | None = None
) -> dict[str, bytes]:
    """Render the C of a model, with the runtime that it includes: content by path.

    `name` is the prefix of everything public and the stem of the files. `coding` holds the numbers
    of text and missing values, which become constants of the header. The files are
    ``include/<name>.h``, ``src/<name>.c``, of classifiers ``include/<name>_field.h``, and
    ``lib/tinykernel/...``. Equal models with equal feature names and coding give equal bytes.
    """
    literals.check_name(name)
    packed = pack(model)
    for group in (packed.tables, packed.definitions):
        repeats = Counter(part.name for part in group)
        assert max(repeats.values(), default=1) == 1, f"names that are not unique: {repeats}"
    context = _context(model, packed, name)
    context["version"] = version
    context["constants"] = constants_of(coding, model, name)
    context["stack"] = []
    declared = declared_functions(_render("model.h", context), name)
    context["stack"] = _stack_lines(declared, name)
    files = {
        f"include/{name}.h": _render("model.h", context),
        f"src/{name}.c": _render("model.c", context),
    }
    check_macros(name, re.findall(r"#define (\w+)", files[f"include/{name}.h"].decode()))
    if isinstance(model.answers, Labels):
        files[f"include/{name}_field.h"] = _render("field.h", context | _field_context(model))
    return files | _include(files[f"src/{name}.c"], runtime_files(), _unread(model))


def declared_functions(header: bytes, name: str) -> list[str]:
    """List the functions that the header of a model declares."""
    text = re.sub(r"/\*.*?\*/", "", header.decode(), flags=re.DOTALL)
    return re.findall(rf"^(?:\w+ )+({name}_\w+)\(", text, re.MULTILINE)


def _stack_lines(declared: list[str], name: str) -> list[str]:
    """Return a table of the stack that functions take, for a comment; the script is stack.py."""
    table = json.loads(
        (source_folder("templates") / "model" / "stack.json").read_text(encoding="utf-8")
    )
    lines = ["".rjust(_FUNCTIONS_WIDTH) + "".join(f"{text:>10}" for text in table["columns"])]
    for row in table["rows"]:
        names = [end for end in row["functions"] if f"{name}_{end}" in declared]
        text = textwrap.wrap(", ".join(names), _FUNCTIONS_WIDTH)
        if text:
            sizes = "".join(f"{size:>10}" for size in row["bytes"])
            lines += [text[0].ljust(_FUNCTIONS_WIDTH) + sizes, *text[1:]]
    return lines


def _unread(model: IntegerModel) -> set[str]:
    """Return the headers of the runtime for stages and parts that a model lacks."""
    # If one were wrong, the model would not compile.
    needed = {piece.KIND for piece in (*model.stages, *model.readout.parts)}
    if model.decision is not None and model.decision.n_prototypes:
        needed.add(Prototypes.KIND)
    kinds = {kind.KIND for kind in (*STAGES, *PARTS)}
    return {header for kind in kinds - needed for header in code_of(kind).headers}


def _include(text: bytes, runtime: dict[str, bytes], left_out: set[str]) -> dict[str, bytes]:
    """Return the files of the runtime that a source includes, without some headers."""
    places = {PurePosixPath(path).name: path for path in runtime}
    headers, waiting = set[str](), [text]
    while waiting:
        named = {match.decode() for match in _INCLUDE.findall(waiting.pop())}
        new = (named & places.keys()) - headers - left_out
        headers |= new
        waiting += [runtime[places[name]] for name in new]
    used = (path for name, path in places.items() if name in headers or not name.endswith(".h"))
    return {path: runtime[path] for path in used}


def render_vectors(model: IntegerModel, name: str, X: ArrayLike) -> dict[str, bytes]:
    """Render test vectors, ``include/<name>_vectors.h``: inputs and the expected outputs."""
    # `X` has 1 to 256 rows of raw inputs, shape (n_rows, n_features), all finite
    # but for missing values of a model that takes these.
    literals.check_name(name)
    raw = model.as_raw(X)
    scores = model.scores(raw)
    if not 1 <= raw.shape[0] <= _MOST_VECTORS:
        raise DataError(
            f"test vectors: {raw.shape[0]} rows; give 1 to {_MOST_VECTORS}, as they take flash"
        )
    gaps = np.isnan(raw)
    if not np.all(np.isfinite(raw) | (gaps & model.takes_gaps)):
        raise DataError("test vectors: a value is not finite; choose other rows")
    decided, decision = list[NDArray[Any]](), model.decision
    if decision is not None:
        margin = margins(scores)[1].view(np.int32)
        decided = [decision.decide(scores), margin, decision.confidence(scores)]
        decided += [] if decision.novelty_threshold is None else [model.novelty(raw)]
    rows = np.column_stack(decided) if decided else np.zeros((0, 0), dtype=np.int32)
    context = {
        "n_rows": raw.shape[0],
        "gaps": bool(gaps.any()),
        "input_rows": _indent(raw, _C_TYPES[model.raw_dtype]),
        "score_rows": _indent(scores, "int32_t"),
        "label_lines": list(literals.table_rows(scores.argmax(axis=1), "int32_t")),
        "decision_rows": _indent(rows, "int32_t"),
        "decision_columns": len(decided),
    }
    return {f"include/{name}_vectors.h": _render("vectors.h", _by_name(model, name) | context)}


def _indent(rows: NDArray[Any], c_type: str) -> list[list[str]]:
    return [list(literals.table_rows(row, c_type, indent=8)) for row in rows]


def render_selftest(model: IntegerModel, name: str, X: ArrayLike) -> dict[str, bytes]:
    """Render a self-test: test vectors, and the C of a function that compares them."""
    decision = model.decision
    context = _by_name(model, name) | {
        "streams": model.hop > 0,
        "decides": decision is not None,
        "novelty": decision is not None and decision.novelty_threshold is not None,
    }
    return {
        **render_vectors(model, name, X),
        f"include/{name}_selftest.h": _render("selftest.h", context),
        f"src/{name}_selftest.c": _render("selftest.c", context),
    }


def render_web(model: IntegerModel, name: str) -> dict[str, bytes]:
    """Render what a WebAssembly module adds to the C of a model: ``web/<name>_web.c``."""
    decision = model.decision
    context = _by_name(model, name) | {key: getattr(model, key) for key in _OF_MODEL}
    context["fingerprint"] = model.fingerprint()[:8]
    context["has_novelty"] = decision is not None and decision.novelty_threshold is not None
    return {f"web/{name}_web.c": _render("web.c", context)}


def render_single(files: dict[str, bytes], name: str) -> dict[str, bytes]:
    """Put the runtime into the C source of a model, whose files are those of `render_sources`."""
    # The one file, ``single/<name>.c``, includes ``<name>.h`` and headers of C only.
    headers = {
        PurePosixPath(path).name: data
        for path, data in files.items()
        if path.startswith("lib/tinykernel/src/")
    }
    return {f"single/{name}.c": _inline(files[f"src/{name}.c"], headers, set())}


def _inline(text: bytes, headers: dict[str, bytes], done: set[str], guard: bool = False) -> bytes:
    """Replace includes by headers that the compiler may not have seen before."""
    # A header within a condition counts as seen only there; the guard of a header is no condition.
    lines, scopes = [], [done]
    for line in text.splitlines(keepends=True):
        if line.startswith(b"#if"):
            scopes.append(scopes[-1] if guard else set(scopes[-1]))
            guard = False
        elif line.startswith(b"#el"):
            scopes[-1] = set(scopes[-2])
        elif line.startswith(b"#endif"):
            scopes.pop()
        include = _INCLUDE.match(line)
        header = include[1].decode() if include else ""
        if header not in headers:
            if not header.startswith("tk_"):  # others of the runtime are never read
                lines.append(line)
        elif header not in scopes[-1]:
            scopes[-1].add(header)
            inner = _inline(headers[header], headers, scopes[-1], True).replace(_SPDX, b"")
            lines.append(b"/* %s */\n%s\n" % (header.encode(), inner.strip()))
    return b"".join(lines)


def _render(template: str, context: dict[str, Any]) -> bytes:
    return template_engine().get_template(f"model/{template}.j2").render(context).encode("ascii")


def _by_name(model: IntegerModel, name: str) -> dict[str, Any]:
    """Return names for every template; a regressor has values instead of scores."""
    values = model.answers if isinstance(model.answers, Values) else None
    decision = model.decision
    call = "stream_predict" if decision is None else "stream_decide"
    call = call if model.events is None else "event"
    return {
        "name": name,
        "NAME": name.upper(),
        "model": model,
        "prototypes": decision is not None and decision.n_prototypes > 0,
        "values": values,
        "block": {
            "type": "int32_t" if values else "int",
            "out": "values" if values else "labels",
            "call": call,
            "margin": call == "stream_decide",
        },
        "scores": "predict" if values else "scores",
        "result": "values" if values else "scores",
        "count": "OUTPUTS" if values else "CLASSES",
    }


def _context(model: IntegerModel, packed: PackedModel, name: str) -> dict[str, Any]:
    ranges = model.ranges()[-1]
    quantized, taken = model.quantized_grid, model.grids()[1]
    threshold = None if model.decision is None else model.decision.novelty_threshold
    answers = model.answers.names if isinstance(model.answers, Values) else model.classes
    names = [literals.string_literal(str(label)) for label in answers]
    parts = sorted(model.readout.parts, key=lambda part: part.JOINS)
    column = max(len(definition.name) for definition in packed.definitions) + 1
    return {
        **_by_name(model, name),
        **{key: getattr(model, key) for key in _OF_MODEL},
        **vars(packed),
        "made": made_of(model),
        "readout": [next(iter(code_of(part.KIND).headers)) for part in parts],
        "grids": model.grids(),
        "kind": model.input.kind if packed.structs else "",
        "first": model.stages[0] if model.stages[0].GIVES == "rows" else None,
        "lines": model.camera is not None,
        "taken": taken,
        "taken_type": _C_TYPES[taken.dtype],
        "statement": _statement(model.decision),
        "promise": _statement(model.events),
        "novelty_threshold": "" if threshold is None else literals.integer_literal(threshold),
        "count_type": _C_TYPES[model.scaler.raw_dtype],
        "raw_type": _C_TYPES[model.raw_dtype],
        "raw_is_float": model.raw_dtype == "float32",
        "quantized_type": f"{quantized.dtype}_t",
        "quantized_low": literals.integer_literal(quantized.low),
        "quantized_high": quantized.high,
        "table_bytes": sum(packed.table_bytes().values()),
        "score_low": ranges.low,
        "score_high": ranges.high,
        "class_names": names,
        "class_comment": literals.in_comment(join(names) + "." * (len(names) <= 6)),
        "step": f"{model.answers.unit:.3g}" if isinstance(model.answers, Values) else "",
        "fingerprint": model.fingerprint()[:8],
        "small_code": any(piece.small_code for piece in model.pieces),
        "members": {struct.name: struct.members for struct in packed.structs},
        "numbers": f", const {name}_input_t *numbers" if model.n_numbers else "",
        "definitions": [
            f"#define {each.name.ljust(column)}{each.value}"
            + (f" /* {each.comment} */" if each.comment else "")
            for each in packed.definitions
        ],
        # As tk_check.h computes it.
        "checksum": f"0x{zlib.crc32(b''.join(table.data() for table in packed.tables)):08x}",
    }


def _field_context(model: IntegerModel) -> dict[str, Any]:
    """Return the context of the field header: raw values of levels as tables."""
    ends, channels, top = list[tuple[str, str, NDArray[Any]]](), 1, 0
    if not model.takes_quantized:
        scaler, channels = model.raw_scaler, model.input.channels
        top = 2**scaler.bits - 1
        ends = [("low", "float", scaler.offset), ("slope", "float", scaler.multiplier)]
        if scaler.span is not None:
            span = np.where(scaler.multiplier > 0, scaler.span, 0).astype(np.uint32)
            ends = [("low", "int32_t", scaler.offset), ("span", "uint32_t", span)]
    return {
        "counters_magic": hex(COUNTERS_MAGIC),
        "counters_bytes": counters_bytes(model.n_classes),
        "ranges": [
            (name, c_type, literals.table_rows(np.broadcast_to(values, channels), c_type))
            for name, c_type, values in ends
        ],
        "range_size": channels,
        "range_top": top,
    }


def _statement(answer: Decision | Events | None) -> list[str]:
    """Return the lines of the promise about decisions or events."""
    text = "" if answer is None else answer.statement
    ascii_text = literals.in_comment(text).encode("ascii", "backslashreplace").decode()
    return textwrap.wrap(ascii_text, _COMMENT_WIDTH)


def generated_inputs(model: IntegerModel, n_rows: int = _VECTORS) -> NDArray[Any]:
    """Make inputs (n_rows, n_inputs) over the range of a model's scaler, always the same ones."""
    # The first row has the lowest values, the second the highest, the others uniform ones.
    # The legacy generator is frozen by NumPy, so the same bytes come out with every version.
    place = np.random.RandomState(0).random_sample((n_rows, model.n_inputs))
    place[:1], place[1:2] = 0.0, 1.0
    size = model.input.size
    inputs = _at(model.raw_scaler, place[:, :size].reshape(-1, model.input.channels))
    inputs = inputs.reshape(n_rows, size)
    if model.beside is None:
        return inputs
    entries = _at(model.beside.scaler, place[:, size:][:, model.beside.source])
    first = np.unique(model.beside.source, return_index=True)[1]
    return np.hstack([inputs, entries[:, first]])


def n_vectors(model: IntegerModel) -> int:
    """Return the number of test vectors of an export: up to 8, at least 1, in 16 KB of flash."""
    size = model.n_inputs * np.dtype(model.raw_dtype).itemsize
    return max(1, min(_VECTORS, _VECTOR_BYTES // size))


def _at(scaler: Scale, place: NDArray[np.float64]) -> NDArray[Any]:
    """Return raw values at places from 0 to 1 in the range of a scaler."""
    raw = scaler.offset.astype(np.float64) + place * scaler.width
    if scaler.span is None:
        return raw.astype(np.float32)
    limits = np.iinfo(scaler.raw_dtype)
    return np.clip(np.rint(raw), limits.min, limits.max).astype(scaler.raw_dtype)


def web_module(model: IntegerModel, name: str = "model") -> bytes:
    """Compile the C of a model with the entries of chip.js; TinykernelError without zig."""
    command = zig_command()
    if command is None:
        raise ToolError("a module for the web needs zig; run 'pip install ziglang'")
    chain = Toolchain("zig", "", "zig", (*command, "cc"), _FLAGS, _LINK_FLAGS)
    files = render_sources(model, name)
    files |= render_single(files, name) | render_web(model, name)
    with tempfile.TemporaryDirectory() as temporary:
        folder, objects = Path(temporary), []
        for path in (f"include/{name}.h", f"single/{name}.c", f"web/{name}_web.c"):
            source = folder / Path(path).name
            source.write_bytes(files[path])
            if source.suffix == ".c":
                objects.append(source.with_suffix(".o"))
                chain.compile(source, objects[-1], include=[folder])
        chain.link(objects, output := folder / f"{name}.wasm", flags=["-Os"])
        return output.read_bytes()


def module_facts(model: IntegerModel) -> dict[str, Any]:
    """Return what chip.js must know of a model, as types of JSON."""
    decision, answers = model.decision, model.answers
    return {
        "fingerprint": model.fingerprint()[:8],
        "type": model.raw_dtype,
        "inputs": model.n_inputs,
        "outputs": model.n_scores,
        "channels": model.input.channels,
        "hop": model.hop,
        "classes": [str(label) for label in model.classes] or None,
        "values": {"names": list(answers.names), "shift": answers.shift}
        if isinstance(answers, Values)
        else None,
        "decision": None if decision is None else {"novelty": decision.novelty_threshold},
        "events": model.events is not None,
    }


def as_script(facts: dict[str, Any]) -> str:
    """Write facts as JSON that ends no element of HTML; every number is finite."""
    return json.dumps(facts, allow_nan=False).replace("<", "\\u003c")
