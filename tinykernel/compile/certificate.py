"""The proof that nothing overflows, as a file that ``firmware/check_proof.py`` checks against C."""

import hashlib
import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import RangeError
from tinykernel.base.files import package_version
from tinykernel.compile.plan import PackedModel, pack
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.components.spec import Components
from tinykernel.pieces.kernels.pack import sort_kernels
from tinykernel.pieces.proof import Bounds, Range, bound_first, bound_second, exact_stages
from tinykernel.pieces.ternary.spec import Ternary

_INT32 = 2**31 - 1


def certificate(model: IntegerModel) -> bytes:
    """Write the bounds of all stages of the generated C, and inputs that reach them.

    The JSON has the ``bounds`` of the C: where it cannot tell which places of its tables are
    components they are wider than `IntegerModel.ranges`. Its ``witnesses`` are inputs of all
    highest (+) and lowest (-) values that reach the bound of a value: exactly in the first
    transform and the products, in the second within the rounding. ``source`` has the text of all
    macros and the SHA-256 of all tables, ``memory`` the words of scratch and state.
    """
    stored, last = sort_kernels(model), None
    components, witnesses = stored.find(Components), list[dict[str, Any]]()
    if components is not None:  # without unused blocks
        used = components.row_kept.any(axis=1)
        diagonal, rows = components.diagonal[used], components.row_kept[used]
        fewer = replace(components, diagonal=diagonal, row_kept=rows)
        stages = tuple(fewer if stage is components else stage for stage in stored.stages)
        stored = replace(stored, stages=stages)
        last = _witness_transforms(stored, fewer, witnesses)
    packed = pack(stored)
    memory = {"scratch": packed.scratch_words}  # words, as the header says
    if stored.hop or stored.stages[0].GIVES == "image":
        memory["stream_scratch"] = packed.stream_words
        memory |= {"state": packed.state_words} if packed.state_words else {}
    content = {
        "format": "tinykernel-proof",
        "version": 3,
        "tool": f"tinykernel {package_version()}",
        "fingerprint": model.fingerprint(),
        "source": _source(packed),
        "memory": memory,
        "bounds": [vars(stage) for stage in _bounds(stored, packed, last)],
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


def _bounds(model: IntegerModel, packed: PackedModel, last: Bounds | None) -> list[Range]:
    """Return the bounds as the C allows them."""
    changes = dict[str, dict[str, int]]()
    if any(struct.kind == "tk_signal" for struct in packed.structs):
        changes = {"count": {"limit_high": int(np.iinfo(model.scaler.raw_dtype).max)}}
    if last is not None:
        changes |= {"scale times row": _ends(255 * last.low, 255 * last.high)}
        changes |= _of_ternary(model, packed)
    bounds = [Range(**(vars(b) | changes.get(b.stage, {}))) for b in model.ranges()]
    for b in bounds:
        if b.stage in changes and not (b.low >= -_INT32 and b.high <= _INT32):
            raise RangeError(f"proof: {b.stage} of the C can reach {b.low}..{b.high}")
    return bounds


def _ends(low: NDArray[Any], high: NDArray[Any]) -> dict[str, int]:
    return {"low": int(low.min()), "high": int(high.max())}


def _of_ternary(model: IntegerModel, packed: PackedModel) -> dict[str, dict[str, int]]:
    """Return the ranges of sums and scores where places without a component may agree."""
    ternary = model.find(Ternary)
    assert ternary is not None
    places = np.array([32 * int(packed.n_words.sum())])
    # As many more, in the sense of the gain.
    missing = places - np.count_nonzero(ternary.weights, axis=1)
    more = 2 * ternary.multiplier.astype(np.int64) * missing
    low = model.readout.offset + np.minimum(more, 0)
    high = model.readout.offset + np.maximum(more, 0)
    grids = dict(zip((stage.KIND for stage in model.stages), model.grids()[1:], strict=True))
    for part in model.readout.parts:
        least, most = part.reach(grids[part.READS])
        low, high = low + least, high + most
    if model.n_outputs == 1:
        low, high = np.minimum(low, -high), np.maximum(high, -low)
    return {"sum": _ends(-places, places), "score": _ends(low, high)}


def _witness_transforms(
    whole: IntegerModel, components: Components, witnesses: list[dict[str, Any]]
) -> Bounds:
    """Add the inputs of the extremes of each stage; return the bounds of the last one."""
    first = bound_first(components.sign, 8 * whole.input_dtype.itemsize, components.halve_first)
    mixing, kind = components.permutation, components.diagonal_kind
    second = bound_second(first, mixing, components.diagonal, kind, components.halve_second)
    gather = mixing.indices(components.dimension).astype(np.int64)
    d = components.dimension

    def row_before(row: int, stage: int) -> NDArray[np.int64]:
        """Return the coefficients of value `row` after so many stages."""
        unit = np.zeros(d, dtype=np.int64)
        unit[row] = 1
        return np.asarray(exact_stages(unit)[stage], np.int64)  # butterflies are symmetric

    def through_both(index: int, stage: int) -> NDArray[np.int64]:
        block, row = divmod(index, d)
        spread = np.zeros(d, dtype=np.int64)
        spread[gather] = row_before(row, stage) * components.diagonal[block]
        return np.asarray(exact_stages(spread)[-1], np.int64)

    def add(name: str, values: Bounds, coefficients: Any) -> None:
        for end, index in (("low", values.low.argmin()), ("high", values.high.argmax())):
            q = components.sign * coefficients(int(index))[: components.n_features]
            plus = (q > 0) if end == "high" else (q < 0)
            inputs = "".join("-+"[int(sign)] for sign in plus)
            witnesses.append({"stage": name, "end": end, "row": int(index), "inputs": inputs})

    add("input of the first transform", first.inputs, lambda index: row_before(index, 0))
    for k, values in enumerate(first.stages):
        name = f"first transform, stage {k}{' (halved)' * components.halve_first[k]}"
        add(name, values, lambda index, k=k: row_before(index, k + 1))
    add("product", second.inputs, lambda index: through_both(index, 0))
    for k, values in enumerate(second.stages):
        name = f"second transform, stage {k}{' (halved)' * components.halve_second[k]}"
        add(name, values, lambda index, k=k: through_both(index, k + 1))
    return second.stages[-1]
