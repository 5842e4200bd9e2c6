"""The proof that nothing overflows, as a file that ``firmware/check_proof.py`` checks against C."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tinykernel
from tinykernel.codegen.literals import table_rows
from tinykernel.codegen.pack.kernels import sort_kernels
from tinykernel.codegen.packing import PackedModel, pack
from tinykernel.errors import TinykernelError
from tinykernel.model import changed
from tinykernel.model.bounds import Values, exact_stages
from tinykernel.model.diagonals import SHIFTS
from tinykernel.model.integer import IntegerModel
from tinykernel.model.proof import Range, bound_first, bound_second

_INT32 = 2**31 - 1


def certificate(model: IntegerModel) -> bytes:
    """Write bounds of all stages, and inputs that reach them, of the C that a model generates.

    Parameters
    ----------
    model : IntegerModel

    Returns
    -------
    bytes
        JSON text. ``bounds`` are those of the C: where it does not know which places of its tables
        are components they are wider than `IntegerModel.ranges`. ``witnesses`` are inputs of all
        highest (+) and lowest (-) values that reach the bound of a value: exactly in the first
        transform and the products, in the second transform within what rounding can do. ``source``
        is the text of all macros and the SHA-256 of all tables.

    Raises
    ------
    TinykernelError
        If these bounds are too wide for 32 bits.
    """
    own = sort_kernels(model)
    used = own.row_kept.any(axis=1)
    own = changed(own, diagonal=own.diagonal[used], row_kept=own.row_kept[used])
    packed = pack(own)
    witnesses: list[dict[str, Any]] = []
    last = _witness_transforms(own, witnesses) if own.n_blocks else None
    content = {
        "format": "tinykernel-proof",
        "version": 1,
        "tool": f"tinykernel {tinykernel.__version__}",
        "fingerprint": model.fingerprint(),
        "source": _source(packed),
        "bounds": [vars(stage) for stage in _bounds(own, packed, last)],
        "witnesses": witnesses,
    }
    return (json.dumps(content, indent=1) + "\n").encode()


def _source(packed: PackedModel) -> dict[str, str]:
    """Return the text of macros and the digests of tables, without blanks."""
    found = {item.name.partition("(")[0]: item.value for item in packed.definitions}
    found |= {struct.name: re.sub(r"\s", "", struct.text) for struct in packed.structs}
    for table in packed.tables:
        text = re.sub(r"\s", "", "".join(table_rows(table.values, table.c_type)))
        found[table.name] = hashlib.sha256(text.encode()).hexdigest()
    return found


def _bounds(model: IntegerModel, packed: PackedModel, last: Values | None) -> list[Range]:
    """Return the bounds as the C allows them."""
    members = {name: text for s in packed.structs for name, text in s.members.items()}
    bits = 8 if members.get("lanes") == "4u" else 16
    counts = np.count_nonzero(model.weights, axis=1)
    places = 32 * int(packed.n_words.sum())
    found = {stage.stage: stage for stage in model.ranges()}
    changed: dict[str, tuple[int, int]] = {}
    if last is not None:
        changed["scale times row"] = (255 * int(last.low.min()), 255 * int(last.high.max()))
        changed["sum"] = (-places, places)
        # A place that is no component may agree: as many more, in the sense of the gain.
        more = 2 * model.multiplier.astype(np.int64) * (places - counts)
        score = _score(model, np.minimum(more, 0), np.maximum(more, 0))
        changed["score"] = score
    for name, (low, high) in changed.items():
        found[name] = replace(found[name], low=low, high=high)
        if not (low >= -_INT32 and high <= _INT32):
            raise TinykernelError(f"proof: {name} of the C can reach {low}..{high}")
    if model.local is not None:
        found["level"] = replace(found["level"], limit_high=(1 << bits) - 1)
        found["response less threshold"] = replace(
            found["response less threshold"],
            limit_low=-(1 << (bits - 1)),
            limit_high=(1 << (bits - 1)) - 1,
        )
    return list(found.values())


def _score(model: IntegerModel, less: NDArray[Any], more: NDArray[Any]) -> tuple[int, int]:
    """Return the range of the scores, where each output can be that much less and more."""
    half = 1 << (model.scaler.bits - 1)
    radius = np.abs(model.multiplier.astype(np.int64)) * np.count_nonzero(model.weights, axis=1)
    low, high = model.offset - radius + less, model.offset + radius + more
    if model.linear is not None and model.linear_multiplier is not None:
        positive = np.maximum(model.linear, 0).sum(axis=1, dtype=np.int64)
        negative = np.minimum(model.linear, 0).sum(axis=1, dtype=np.int64)
        dots = [(half - 1) * negative - half * positive, (half - 1) * positive - half * negative]
        ends = np.sort(model.linear_multiplier.astype(np.int64) * np.stack(dots), axis=0)
        low, high = low + ends[0], high + ends[1]
    if model.n_outputs == 1:
        low, high = np.minimum(low, -high), np.maximum(high, -low)
    return int(low.min()), int(high.max())


# -- witnesses --------------------------------------------------------------------------------


def _witness_transforms(model: IntegerModel, witnesses: list[dict[str, Any]]) -> Values:
    """Add the inputs of the extremes of each stage; return the bounds of the last one."""
    first = bound_first(model.sign, model.scaler.bits, model.halve_first)
    second = bound_second(
        first, model.permutation, model.diagonal, model.diagonal_kind, model.halve_second
    )
    gather = model.permutation.indices(model.dimension).astype(np.int64)
    d = model.dimension

    def row_before(row: int, stage: int) -> NDArray[np.int64]:
        """Return the coefficients of value `row` after so many stages."""
        unit = np.zeros(d, dtype=np.int64)
        unit[row] = 1
        row_of: NDArray[np.int64] = exact_stages(unit)[stage]  # butterflies are symmetric
        return row_of

    def through_both(index: int, stage: int) -> NDArray[np.int64]:
        block, row = divmod(index, d)
        spread = np.zeros(d, dtype=np.int64)
        spread[gather] = row_before(row, stage) * model.diagonal[block]
        of_inputs: NDArray[np.int64] = exact_stages(spread)[-1]
        return of_inputs

    def add(name: str, values: Values, coefficients: Any) -> None:
        ends = (("low", int(values.low.argmin())), ("high", int(values.high.argmax())))
        for end, index in ends:
            q = model.sign * coefficients(index)[: model.n_features]
            plus = (q > 0) if end == "high" else (q < 0)
            witnesses.append(
                {
                    "stage": name,
                    "end": end,
                    "row": index,
                    "inputs": "".join("-+"[int(sign)] for sign in plus),
                }
            )

    add("input of the first transform", first.inputs, lambda index: row_before(index, 0))
    for k, values in enumerate(first.stages):
        name = f"first transform, stage {k}{' (halved)' * model.halve_first[k]}"
        add(name, values, lambda index, k=k: row_before(index, k + 1))
    add("product", second.product, lambda index: through_both(index, 0))
    for k, values in enumerate(second.stages):
        name = f"second transform, stage {k}{' (halved)' * model.halve_second[k]}"
        add(name, values, lambda index, k=k: through_both(index, k + 1))
    _reach(model, witnesses)
    return second.stages[-1]


def _reach(model: IntegerModel, witnesses: list[dict[str, Any]]) -> None:
    """Add the values that the witnesses lead to."""
    limits = np.iinfo(model.input_dtype)
    for witness in witnesses:
        signs = np.array([sign == "+" for sign in witness["inputs"]])
        q = np.where(signs, limits.max, limits.min).astype(np.int64)
        values = _value(model, q, witness["stage"])
        witness["value"] = int(values.flat[witness["row"]])


def _value(model: IntegerModel, q: NDArray[np.int64], stage: str) -> NDArray[np.int64]:
    """Run the transforms up to a stage, in 64 bits."""
    u = np.zeros(model.dimension, dtype=np.int64)
    u[: model.n_features] = model.sign * np.maximum(q, -32767)
    if stage.startswith("input"):
        return u
    number = int(found[1]) if (found := re.search(r"stage (\d+)", stage)) else -1
    if stage.startswith("first"):
        return _halving_stages(u, model.halve_first[: number + 1])
    u = _halving_stages(u, model.halve_first)
    mixed = u[model.permutation.indices(model.dimension)]
    v = (model.diagonal.astype(np.int64) * mixed) >> SHIFTS[model.diagonal_kind]
    return _halving_stages(v, model.halve_second[: number + 1])


def _halving_stages(values: NDArray[np.int64], halve: tuple[bool, ...]) -> NDArray[np.int64]:
    for k, halved in enumerate(halve):
        a, b = np.moveaxis(values.reshape(*values.shape[:-1], -1, 2, 1 << k), -2, 0)
        values = np.stack([a + b, a - b], axis=-2).reshape(values.shape) >> int(halved)
    return values
