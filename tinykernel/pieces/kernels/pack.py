"""Storage of kernels, and the memory that they need.

Kernels are sorted by dilation and mixed channel, as those that read the same values
follow each other. Without components the machine is sorted with them; else a table holds the order.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.pieces.grid import Grid
from tinykernel.pieces.kernels.spec import Kernels
from tinykernel.pieces.packing import Code, Facts, Packed, Place, Proof, Work
from tinykernel.pieces.tables import declared_number, smallest_c_type

_PART = 48  # kernels that a sample of a stream counts, about, where there is time


def _counts(stage: Kernels, place: Place) -> Grid:
    """Return the counts that the machine takes."""
    made, following = stage.gives(place.grid), place.following
    if following is not None and following.GIVES == stage.GIVES:  # it joins more
        return following.gives(made)
    return made


def _count_words(stage: Kernels, place: Place, n_counts: int) -> int:
    return -(-n_counts * (2 if _counts(stage, place).dtype == "uint16" else 1) // 4)


def pack(stage: Kernels, place: Place) -> Packed:
    """Sort the kernels and fill their tables."""
    grid, order = place.grid, stage.firmware_order
    stage = stage.reorder(order)
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


def _proof(stage: Kernels, place: Place) -> Proof:
    """Return the limit of a count in the type of all."""
    return {"count": {"limit_high": int(np.iinfo(_counts(stage, place).dtype).max)}}, []


CODE = Code({"tk_kernels_signal.h": "local"}, pack, _work, _proof)
