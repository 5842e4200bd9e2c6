"""The files that a program built with firmware/boards/harness.c reads and writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.build.program import Program
from tinykernel.errors import TinykernelError
from tinykernel.model import IntegerModel

__all__ = ["ENTRIES", "Output", "run_rows", "write_rows"]

#: Entries of the generated C, in the order of the harness: scores and label from raw inputs, the
#: same from quantized ones, the quantization by itself, and samples of a stream.
ENTRIES = ("raw", "quantized", "quantize", "stream")


@dataclass(frozen=True)
class Output:
    """What the C made of the rows of one entry.

    Parameters
    ----------
    values : ndarray, shape (n_rows, n_scores + 1) or (n_rows, n_features)
        Scores and the label that the predict function gave, int32; or the quantized inputs. Of a
        stream one row for each window that ended. Of a regressor values, and whether a second call
        gave others.
    stack : int
        Bytes of stack that one inference really took; 0 where that is not measured.
    """

    values: NDArray[Any]
    stack: int

    @property
    def scores(self) -> NDArray[np.int32]:
        """The scores of all classes."""
        return self.values[:, :-1]

    @property
    def labels(self) -> NDArray[np.int32]:
        """What the predict function gave."""
        return self.values[:, -1]


def run_rows(
    program: Program, model: IntegerModel, rows: dict[str, NDArray[Any]]
) -> dict[str, Output]:
    """Run the program of a model over rows of inputs, by entry; those of a stream are samples."""
    write_rows(program, model, rows)
    program.run()
    data = (program.path.parent / "out.bin").read_bytes()
    kinds = {entry: _output_kind(model, entry) for entry in rows}
    counts = {entry: _output_rows(model, entry, len(given)) for entry, given in rows.items()}
    sizes = {entry: counts[entry] * kinds[entry].itemsize + 4 for entry in rows}
    if len(data) != sum(sizes.values()):
        raise TinykernelError(
            f"the program wrote {len(data)} bytes instead of {sum(sizes.values())}"
        )
    found, at = {}, 0
    for entry in rows:
        values = np.frombuffer(data, kinds[entry], counts[entry], at)["values"]
        at += sizes[entry]
        stack = int.from_bytes(data[at - 4 : at], "little")
        found[entry] = Output(values.astype(values.dtype.newbyteorder("=")), stack)
    return found


def write_rows(program: Program, model: IntegerModel, rows: dict[str, NDArray[Any]]) -> None:
    """Write the file of inputs that the program reads."""
    content = b""
    for entry, given in rows.items():
        dtype = model.input_dtype if entry == "quantized" else np.dtype(model.raw_dtype)
        width = model.n_inputs
        if entry == "stream" and model.local is not None:
            width = model.local.channels
        if given.ndim != 2 or given.shape[1] != width or given.dtype != dtype:
            raise TinykernelError(
                f"{entry} inputs: shape {given.shape} of {given.dtype}, but the model takes rows "
                f"of {width} of {dtype}"
            )
        section = np.array([ENTRIES.index(entry), len(given)], dtype="<u4")
        content += section.tobytes() + given.astype(dtype.newbyteorder("<")).tobytes()
    (program.path.parent / "in.bin").write_bytes(content)


def _output_kind(model: IntegerModel, entry: str) -> np.dtype[Any]:
    """Return the type of what the harness writes for one row."""
    if entry == "quantize":
        values = (model.input_dtype.newbyteorder("<"), (model.n_features,))
        return np.dtype([("values", *values)])
    return np.dtype([("values", "<i4", (model.n_scores + 1,))])


def _output_rows(model: IntegerModel, entry: str, n_rows: int) -> int:
    """Return how many rows the harness writes for these: of a stream those of whole windows."""
    if entry != "stream" or model.local is None:
        return n_rows
    return max(0, (n_rows - model.local.height) // model.local.hop + 1)
