"""The C of a model as a WebAssembly module: a browser runs the firmware itself."""

import json
import tempfile
from pathlib import Path
from typing import Any

from tinykernel.base.errors import ToolError
from tinykernel.compile.compilers import Toolchain, zig_command
from tinykernel.compile.sources import render_single, render_sources, render_web
from tinykernel.model.answers import Values
from tinykernel.model.integer import IntegerModel

# Freestanding as on a chip. Checks of undefined behaviour, which zig adds, are on no chip.
_FLAGS = ("-target", "wasm32-freestanding", "-fno-sanitize=all")
_LINK_FLAGS = ("-Wl,--no-entry", "-Wl,--strip-all")


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
