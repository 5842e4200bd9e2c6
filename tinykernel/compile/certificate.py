"""The proof that nothing overflows, as a file that ``firmware/check_proof.py`` checks against C."""

import hashlib
import json
import re
from dataclasses import replace
from typing import Any

from tinykernel.base.errors import RangeError
from tinykernel.base.files import package_version
from tinykernel.compile.plan import PackedModel, pack, sort_kernels
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.catalogue import code_of
from tinykernel.pieces.proof import Range
from tinykernel.pieces.readouts import score_range

_INT32 = 2**31 - 1


def certificate(model: IntegerModel) -> bytes:
    """Write the bounds of all stages of the generated C, and inputs that reach them.

    The JSON has the ``bounds`` of the C: where it cannot tell which places of its tables are
    components they are wider than `IntegerModel.ranges`. Its ``witnesses`` are inputs of all
    highest (+) and lowest (-) values that reach the bound of a value: exactly in the first
    transform and the products, in the second within the rounding. ``source`` has the text of all
    macros and the SHA-256 of all tables, ``memory`` the words of scratch and state.
    """
    stored = sort_kernels(model)
    stored = replace(stored, stages=tuple(stage.stored() for stage in stored.stages))
    packed, witnesses = pack(stored), list[dict[str, Any]]()
    memory = {"scratch": packed.scratch_words}  # words, as the header says
    if stored.hop or stored.camera is not None:
        memory["stream_scratch"] = packed.stream_words
        memory |= {"state": packed.state_words} if packed.state_words else {}
    content = {
        "format": "tinykernel-proof",
        "version": 3,
        "tool": f"tinykernel {package_version()}",
        "fingerprint": model.fingerprint(),
        "source": _source(packed),
        "memory": memory,
        "bounds": [vars(stage) for stage in _bounds(stored, packed, witnesses)],
        "witnesses": witnesses,
    }
    return (json.dumps(content, indent=1) + "\n").encode()


def _source(packed: PackedModel) -> dict[str, str]:
    """Return the text of macros and the digests of tables, without blanks."""
    source = {item.name.partition("(")[0]: item.value for item in packed.definitions}
    source |= {struct.name: re.sub(r"\s", "", struct.text) for struct in packed.structs}
    for table in packed.tables:
        text = re.sub(r"\s", "", "".join(table.lines))
        source[table.name] = hashlib.sha256(text.encode()).hexdigest()
    return source


def _bounds(
    model: IntegerModel, packed: PackedModel, witnesses: list[dict[str, Any]]
) -> list[Range]:
    """Return the bounds as the C allows them; add the inputs that reach them."""
    changes, reaches = dict[str, dict[str, int]](), []
    for piece, place in packed.places_of:
        code = code_of(piece.KIND)
        if code.proof is not None:
            changed, reaching = code.proof(piece, place)
            changes |= changed
            witnesses += reaching
        if piece in model.readout.parts:
            reach = piece.reach(place.grid) if code.reach is None else code.reach(piece, place)
            reaches.append(reach)
    changes["score"] = vars(score_range(model.readout.offset, reaches))
    bounds = [Range(**(vars(b) | changes.get(b.stage, {}))) for b in model.ranges()]
    for b in bounds:
        if b.stage in changes and not (b.low >= -_INT32 and b.high <= _INT32):
            raise RangeError(f"proof: {b.stage} of the C can reach {b.low}..{b.high}")
    return bounds
