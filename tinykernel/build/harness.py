"""The files that programs built with harness.c of firmware/boards read and write."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.build.program import Program
from tinykernel.errors import ToolError
from tinykernel.model import IntegerModel

#: Entries of the generated C, in the order of the harness: scores and label from raw inputs, the
#: same from quantized ones, the quantization by itself, and samples of a stream.
ENTRIES = ("raw", "quantized", "quantize", "stream")
#: Inputs by entry: rows, or for streams also several, each of which starts anew.
Inputs = Mapping[str, NDArray[Any] | Sequence[NDArray[Any]]]


def run_rows(
    program: Program, model: IntegerModel, rows: Inputs
) -> tuple[dict[str, NDArray[Any]], dict[str, int]]:
    """Run the program of a model over rows of inputs, by entry; those of a stream are samples.

    Returned are, by entry, the values (n_rows, n) that the C made, and the bytes of stack that an
    inference really took, 0 where that is not measured. The values are scores and the label that
    the predict function gave, int32, and of a model that decides also decision, margin and
    confidence, with a threshold of novelty also novelty and whether it is novel; or the quantized
    inputs. Of a stream there is one row for each window that ended, and last what happened; of a
    regressor values, and whether a second call gave others.
    """
    write_rows(program, model, rows)
    program.run()
    data = (program.path.parent / "out.bin").read_bytes()
    written = []
    for entry, part in sections(model, rows):
        n_rows, n_values = len(part), model.n_scores + len(answers_of(model, entry))
        if entry == "stream":  # those of whole windows
            n_rows = max(0, (n_rows - model.delay - model.input.rows) // model.hop + 1)
        values_type: tuple[Any, ...] = ("<i4", (n_values,))
        if entry == "quantize":
            values_type = (model.input_dtype.newbyteorder("<"), (model.n_features,))
        written.append((entry, np.dtype([("values", *values_type)]), n_rows))
    size = sum(count * kind.itemsize + 4 for _, kind, count in written)
    if len(data) != size:
        raise ToolError(f"the program wrote {len(data)} bytes instead of {size}")
    values_of: dict[str, list[NDArray[Any]]] = {}
    stack, at = dict.fromkeys(rows, 0), 0
    for entry, kind, count in written:
        values = np.frombuffer(data, kind, count, at)["values"]
        at += count * kind.itemsize + 4
        stack[entry] = max(stack[entry], int.from_bytes(data[at - 4 : at], "little"))
        values_of.setdefault(entry, []).append(values.astype(values.dtype.newbyteorder("=")))
    return {entry: np.concatenate(parts) for entry, parts in values_of.items()}, stack


def sections(model: IntegerModel, rows: Inputs) -> Iterator[tuple[str, NDArray[Any]]]:
    """List the sections of the program's input by entry."""
    for entry, arrays in rows.items():
        for part in [arrays] if isinstance(arrays, np.ndarray) else arrays:
            if entry == "stream":
                # Samples behind the last window, until its decision is there with its numbers.
                samples, numbers = np.split(part, [model.input.channels], axis=1)
                samples = np.pad(samples, ((0, model.delay), (0, 0)))
                part = np.hstack([samples, np.pad(numbers, ((model.delay, 0), (0, 0)))])
            yield entry, part


def write_rows(program: Program, model: IntegerModel, rows: Inputs) -> None:
    """Write the file of inputs that the program reads."""
    with (program.path.parent / "in.bin").open("wb") as file:
        for entry, part in sections(model, rows):
            dtype = model.input_dtype if entry == "quantized" else np.dtype(model.raw_dtype)
            assert part.dtype == dtype
            file.write(np.array([ENTRIES.index(entry), len(part)], dtype="<u4").tobytes())
            file.write(part.astype(dtype.newbyteorder("<")).tobytes())


def answers_of(model: IntegerModel, entry: str) -> tuple[str, ...]:
    """Name what follows the scores of a row of an entry."""
    if model.is_regressor:
        return ("second call",)
    names, decision = ["label"], model.decision
    if decision is not None:
        names += ["decision", "margin", "confidence"]
        names += ["novelty", "whether it is novel"] * (decision.novelty_threshold is not None)
    return (*names, *(["event"] * (entry == "stream" and model.events is not None)))
