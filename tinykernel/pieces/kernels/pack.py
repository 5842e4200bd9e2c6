"""Storage of kernels, and the memory that they need.

Kernels are sorted by dilation and mixed channel, as those that read the same values
follow each other. Without components the machine is sorted with them; else a table holds the order.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.beside.spec import Beside
from tinykernel.pieces.components.spec import Components
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.kernels.spec import Kernels
from tinykernel.pieces.linear.spec import Linear
from tinykernel.pieces.packing import Code, Facts, Packed, Place, Work
from tinykernel.pieces.prototypes.spec import Prototypes
from tinykernel.pieces.readouts import Readout
from tinykernel.pieces.scale.spec import Scale
from tinykernel.pieces.tables import declared_number, smallest_c_type

_PART = 48  # kernels that a sample of a stream counts, about, where there is time


def _count_words(stage: Kernels, place: Place, n_counts: int) -> int:
    made = stage.gives(place.grid)
    if isinstance(place.following, Beside):
        made = place.following.gives(made)
    return -(-n_counts * (2 if made.dtype == "uint16" else 1) // 4)


def _kernel_order(stage: Kernels) -> NDArray[np.int64]:
    """Return the kernels of a signal by dilation, then mixed channel."""
    return np.lexsort((stage.channel, stage.dilation)).astype(np.int64)


def _count_order(stage: Kernels) -> NDArray[np.int64]:
    """Return which counts of a stage follow each other when its kernels are sorted."""
    cells = stage.cells[0]
    return np.ravel(_kernel_order(stage)[:, None] * cells + np.arange(cells))


def _sorted_stage(stage: Kernels) -> Kernels:
    order, names = _kernel_order(stage), ("taps", "dilation", "channel", "threshold")
    return replace(stage, **{name: getattr(stage, name)[order] for name in names})


def sort_kernels(model: IntegerModel) -> IntegerModel:
    """Return a model of the same scores whose kernels are sorted, if it has no components."""
    kernels = model.find(Kernels)
    if kernels is None or model.find(Components) is not None:
        return model
    order = _count_order(kernels)
    order = np.concatenate([order, np.arange(order.size, model.n_features)])
    if np.array_equal(order, np.arange(order.size)):
        return model
    decision = model.decision
    if decision is not None and decision.prototypes is not None:
        decision = replace(decision, prototypes=decision.prototypes[:, order])
    stages = tuple(_ordered(stage, order) for stage in model.stages)
    parts = tuple(_ordered(part, order) for part in model.readout.parts)
    readout = Readout(parts, model.readout.offset)
    return replace(model, stages=stages, readout=readout, decision=decision)


def _ordered(piece: Any, order: NDArray[np.int64]) -> Any:
    """Return a stage or part that gives or takes the counts in another order."""
    if isinstance(piece, Kernels):
        return _sorted_stage(piece)
    if isinstance(piece, Scale):
        arrays = {name: a if a.size == 1 else a[order] for name, a in piece.arrays.items()}
        return Scale(piece.raw_dtype, piece.bits, **arrays)
    if isinstance(piece, Linear):
        return replace(piece, weights=piece.weights[:, order])
    if isinstance(piece, Prototypes):
        return replace(piece, levels=piece.levels[:, order])
    return piece


def pack_kernels(stage: Kernels, place: Place) -> Packed:
    """Sort the kernels and fill their tables."""
    grid, order = place.grid, _count_order(stage)
    stage = _sorted_stage(stage)
    windows = -(-grid.rows // place.hop)
    ring_rows = int(stage.spans().max()) + 1
    dilations = np.unique(stage.dilation)
    codes, kinds = _signal_kernels(stage)
    turns = 1
    while 2 * turns * dilations.size <= place.calls and codes.size > turns * _PART * dilations.size:
        turns *= 2
    is_sorted = np.array_equal(order, np.arange(order.size))
    tables = _signal_tables(stage, grid, dilations, None if is_sorted else np.argsort(order))
    widths = {
        f"{key.rstrip('s')}_bytes": table[0].endswith("16_t") + 1 if table else 0
        for key, table in tables.items()
    }
    comment = "Kernels: threshold and the three values that count thrice."
    ring = declared_number("tk_kernels_signal.h", "TK_AGES_AT") + windows
    running = ring + -(-ring_rows * grid.channels // 2)
    counts = running + _count_words(stage, place, stage.n_kernels)
    window = _count_words(stage, place, stage.n_counts)
    return Packed(
        place.structure(
            "kernels",
            stage,
            tables | {"codes": ("uint32_t", codes, "kernels", comment)},
            "tk_signal",
            rows=grid.rows,
            channels=grid.channels,
            kernels=stage.n_kernels,
            cells=stage.cells[0],
            hop=place.hop,
            windows=windows,
            ring_rows=ring_rows,
            distances=dilations.size,
            turns=turns,
            split=-(-dilations.size * turns // place.calls),
            kinds=int(kinds),
            ring=ring,
            running=running,
            counts=counts,
            window=window,
            **widths,
        ),
        more_words=0 if is_sorted else window,
        state_words=counts + windows * window,
    )


def _signal_tables(
    stage: Kernels, grid: Grid, dilations: NDArray[np.uint8], order: NDArray[np.int64] | None
) -> dict[str, tuple[Any, ...] | None]:
    """Return the rows at which cells begin, how many kernels share values, and an order."""
    first = np.arange(stage.cells[0])
    rows = []
    for dilation in dilations.astype(int).tolist():
        span = 8 * dilation
        begins = span - (-first * (grid.rows - span) // stage.cells[0])
        rows.append([dilation, int(np.sum(stage.dilation == dilation)), *begins.tolist()])
    channels = np.arange(grid.channels)
    same = (stage.dilation == dilations[:, None, None]) & (stage.channel == channels[:, None])

    def table(values: NDArray[Any], comment: str, per_row: int | None) -> tuple[Any, ...]:
        return smallest_c_type(values), values.ravel(), "kernels", comment, per_row

    spans = "Dilations: rows between taps, kernels, rows of a window where cells begin."
    groups = "Kernels of each dilation and mixed channel."
    places = "Where the counts are that the machine takes."
    return {
        "dilations": table(np.array(rows), spans, 2 + stage.cells[0]),
        "groups": table(same.sum(axis=2), groups, grid.channels),
        "order": None if order is None else table(order, places, None),
    }


def _signal_kernels(stage: Kernels) -> tuple[NDArray[np.uint32], bool]:
    """Return the word of each kernel, and whether any is not one of MiniRocket's."""
    codes, kinds = [], False
    for taps, threshold in zip(stage.taps[:, :, 0], stage.threshold.tolist(), strict=True):
        thrice = np.flatnonzero(taps == 2).tolist()
        if not thrice:
            thrice, kinds = ([9, 11, 11] if np.all(taps == 1) else [10, 11, 11]), True
        code = sum(place << 4 * i for i, place in enumerate(thrice))
        codes.append(code | (threshold & 0xFFFF) << 16)
    return np.array(codes, dtype=np.uint32), kinds


def _work(stage: Kernels, grid: Grid, facts: Facts) -> Work:
    positions = float(grid.rows)
    # Kernels that look at the same values follow each other.
    looks = len(set(zip(stage.dilation.tolist(), stage.channel.tolist(), strict=True)))
    return {
        "local": {
            "signal, positions and looks": positions * looks,
            "signal, positions and kernels": positions * stage.n_kernels,
            "signal, positions and taps": positions * float((stage.taps != 0).sum()),
            "signal, kernels": float(stage.n_kernels),
            "signal, counts": float(stage.n_counts),
        }
    }


CODES = {"kernels": Code({"tk_kernels_signal.h": "local"}, _work, pack_kernels)}
