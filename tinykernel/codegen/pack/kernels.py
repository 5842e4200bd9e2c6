"""Storage of the kernels of images and signals, and the memory that they need.

The formats are those of ``tk_kernels_image.h`` and ``tk_kernels_signal.h``. Kernels of signals are
sorted by dilation and mixed channel, so that those that look at the same values follow each other.
Without components the machine does not mind the order of its inputs, and is sorted with them; else
a table says where each count is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.codegen.pack import levels
from tinykernel.codegen.tables import Parts, Struct, Table, smallest_type
from tinykernel.errors import TinykernelError
from tinykernel.model import IntegerModel, Scale, changed
from tinykernel.model.compat import WIDEST_CELL, LocalStage

_TRITS = 5  # taps a byte
_MOST_WORDS = (2, 4, 7)  # of a row that the firmware computes together, by its radix
_OWN = 0xFFFF  # TK_OWN
_AGES = 7  # TK_STATE_AGES


@dataclass(frozen=True)
class PackedKernels:
    """What kernels add to a source, and to scratch.

    Parameters
    ----------
    parts : list of Table and Struct
    first_words : int
        Words that the machine can use afterwards.
    words : int
        Words beside those of the machine.
    state_words : int
        Words of a stream, of the levels too; a window of a signal needs a stream of its own.
    """

    parts: Parts
    first_words: int
    words: int
    state_words: int


def pack_kernels(stage: LocalStage) -> PackedKernels:
    """Choose the formats of kernels and fill their tables."""
    return _pack_signal(stage) if stage.is_signal else _pack_image(stage)


def _count_words(stage: LocalStage, n_counts: int) -> int:
    return -(-n_counts * (2 if stage.count_dtype == "uint16" else 1) // 4)


# -- images -----------------------------------------------------------------------------------


def _pack_image(stage: LocalStage) -> PackedKernels:
    lanes, strip = _lanes(stage), stage.cell_columns
    halo = int((stage.taps.shape[2] // 2) * stage.dilation.max())
    n_taps = stage.taps.shape[1] * stage.taps.shape[2]
    plane = (stage.rows + 2 * stage.padding) * (strip + 2 * halo)
    parts = [-(-strip // most) for most in _MOST_WORDS]
    comment = "Kernels: threshold and taps, see tk_kernels_image.h."
    codes = _image_kernels(stage, lanes).ravel()
    return PackedKernels(
        [
            Table("tk_kernels_1_codes", "uint8_t", codes, "transform", comment),
            Struct.of(
                "tk_kernels_1",
                "tk_image",
                rows=stage.rows,
                columns=stage.columns,
                channels=stage.mix.shape[0],
                padding=stage.padding,
                halo=halo,
                lanes=lanes,
                strip=strip,
                full=stage.columns // strip,
                rest=stage.columns % strip,
                groups=[-(-strip // n) for n in parts],
                parts=parts,
                tap_rows=stage.taps.shape[1],
                tap_columns=stage.taps.shape[2],
                kernels=stage.n_kernels,
                channel=_common(stage.channel),
                dilation=_common(stage.dilation),
                cells=stage.cells[0],
                codes="tk_kernels_1_codes",
            ),
        ],
        # The last words of a row are read together with some behind it.
        stage.mix.shape[0] * plane + max(n_taps, _MOST_WORDS[-1]),
        _count_words(stage, stage.n_counts),
        0,
    )


def _common(values: NDArray[np.uint8]) -> int:
    """Return the value that all kernels share, if they do."""
    return int(values[0]) if np.all(values == values[0]) else _OWN


def _lanes(stage: LocalStage) -> int:
    """Return how many columns a word holds, which are the cells across."""
    if stage.cell_columns <= WIDEST_CELL:
        if stage.cells[1] == 4 and stage.lane_bits == 8:
            return 4
        if stage.cells[1] == 2:
            return 2
    raise TinykernelError(
        f"local stage: no C for {stage.cells[1]} cells across of {stage.cell_columns} columns with "
        f"responses of {stage.lane_bits} bits; there is for 4 with 8 bits and for 2, up to "
        f"{WIDEST_CELL} columns"
    )


def _image_kernels(stage: LocalStage, lanes: int) -> NDArray[np.uint8]:
    """Return the bytes of each kernel, shape (n_kernels, bytes)."""
    columns: list[NDArray[Any]] = [
        values for values in (stage.channel, stage.dilation) if not np.all(values == values[0])
    ]
    bias = (1 << (7 if lanes == 4 else 15)) - 1 - stage.threshold.astype(np.int64)
    columns += [bias & 255] if lanes == 4 else [bias & 255, bias >> 8]
    flat = stage.taps.reshape(stage.n_kernels, -1)
    trits = np.zeros((stage.n_kernels, -(-flat.shape[1] // _TRITS) * _TRITS), dtype=np.int64)
    trits[:, : flat.shape[1]] = np.where(flat < 0, 2, flat)
    weights = 3 ** np.arange(_TRITS)[::-1]
    numbers = (trits.reshape(stage.n_kernels, -1, _TRITS) * weights).sum(axis=2)
    codes = (numbers * 256 + 242) // 243
    return np.column_stack([*columns, codes]).astype(np.uint8)


# -- signals ----------------------------------------------------------------------------------


def _kernel_order(stage: LocalStage) -> NDArray[np.int64]:
    """Return the kernels of a signal by dilation, then mixed channel."""
    order: NDArray[np.int64] = np.lexsort((stage.channel, stage.dilation)).astype(np.int64)
    return order


def _count_order(stage: LocalStage) -> NDArray[np.int64]:
    """Return which counts of a stage follow each other when its kernels are sorted."""
    cells = stage.cells[0] * stage.cells[1]
    order: NDArray[np.int64] = (_kernel_order(stage)[:, None] * cells + np.arange(cells)).ravel()
    return order


def _sorted_stage(stage: LocalStage) -> LocalStage:
    order = _kernel_order(stage)
    return replace(
        stage,
        taps=stage.taps[order],
        dilation=stage.dilation[order],
        channel=stage.channel[order],
        threshold=stage.threshold[order],
    )


def sort_kernels(model: IntegerModel) -> IntegerModel:
    """Return a model of the same scores whose kernels are sorted, if it has no components."""
    stage = model.local
    if stage is None or not stage.is_signal or model.n_blocks:
        return model
    order = _count_order(stage)
    if np.array_equal(order, np.arange(order.size)):
        return model
    scaler = model.scaler

    def ordered(array: NDArray[Any]) -> NDArray[Any]:
        return array if array.size == 1 else array[order]

    fields = {name: ordered(array) for name, array in scaler.arrays.items()}
    decision = model.decision
    if decision is not None and decision.prototypes is not None:
        decision = replace(decision, prototypes=decision.prototypes[:, order])
    linear, prototypes = (
        None if array is None else array[:, order] for array in (model.linear, model.prototypes)
    )
    return changed(
        model,
        local=_sorted_stage(stage),
        sign=model.sign[order],
        decision=decision,
        linear=linear,
        prototypes=prototypes,
        scaler=Scale(scaler.raw_dtype, scaler.bits, **fields),
    )


def _pack_signal(stage: LocalStage) -> PackedKernels:
    order = _count_order(stage)
    stage = _sorted_stage(stage)
    windows = n_windows(stage)
    kept = int(stage.spans().max()) + 1
    dilations = np.unique(stage.dilation)
    codes, kinds = _signal_kernels(stage)
    tables = {
        "dilation": _dilation_table(stage, dilations),
        "group": _group_table(stage, dilations),
    }
    if not np.array_equal(order, np.arange(order.size)):
        places, comment = np.argsort(order), "Where the counts are that the machine takes."
        tables["order"] = Table(
            "tk_kernels_1_order", smallest_type(places), places, "transform", comment
        )
    ring = _AGES + windows
    running = ring + -(-kept * stage.mix.shape[0] // 2)
    counts = running + _count_words(stage, stage.n_kernels)
    window = _count_words(stage, stage.n_counts)
    comment = "Kernels: threshold and the three values that count thrice."
    return PackedKernels(
        [
            *tables.values(),
            Table("tk_kernels_1_codes", "uint32_t", codes, "transform", comment),
            Struct.of(
                "tk_kernels_1",
                "tk_signal",
                rows=stage.rows,
                channels=stage.mix.shape[0],
                kernels=stage.n_kernels,
                cells=stage.cells[0],
                hop=(stage.hop or stage.height) // stage.average,
                windows=windows,
                kept=kept,
                distances=dilations.size,
                split=-(-dilations.size // stage.average),
                kinds=int(kinds),
                ring=ring,
                running=running,
                counts=counts,
                window=window,
                **{
                    f"{name}_bytes": tables[name].item_bytes if name in tables else 0
                    for name in ("dilation", "group", "order")
                },
                dilations=tables["dilation"].name,
                groups=tables["group"].name,
                codes="tk_kernels_1_codes",
                order=tables["order"].name if "order" in tables else None,
            ),
        ],
        0,
        window if "order" in tables else 0,
        levels.state_words(stage) + counts + windows * window,
    )


def n_windows(stage: LocalStage) -> int:
    """Return how many windows of a stream are under way at a time."""
    hop = (stage.hop or stage.height) // stage.average
    return -(-stage.rows // hop)


def _dilation_table(stage: LocalStage, dilations: NDArray[np.uint8]) -> Table:
    """Return dilation, kernels, and the rows at which cells begin, for each dilation."""
    rows = []
    for dilation in dilations.astype(int).tolist():
        span = 8 * dilation
        positions = stage.rows - span
        begins = [-(-cell * positions // stage.cells[0]) for cell in range(stage.cells[0])]
        rows.append(
            [dilation, int(np.sum(stage.dilation == dilation)), *(span + row for row in begins)]
        )
    values = np.array(rows)
    return Table(
        "tk_kernels_1_dilations",
        smallest_type(values),
        values.ravel(),
        "transform",
        "Dilations: rows between taps, kernels, rows of a window where cells begin.",
        per_row=values.shape[1],
    )


def _group_table(stage: LocalStage, dilations: NDArray[np.uint8]) -> Table:
    """Return how many kernels there are of each dilation and mixed channel."""
    channels = np.arange(stage.mix.shape[0])
    same = (stage.dilation == dilations[:, None, None]) & (stage.channel == channels[:, None])
    values = same.sum(axis=2)
    return Table(
        "tk_kernels_1_groups",
        smallest_type(values),
        values.ravel(),
        "transform",
        "Kernels of each dilation and mixed channel.",
        per_row=values.shape[1],
    )


def _signal_kernels(stage: LocalStage) -> tuple[NDArray[np.uint32], bool]:
    """Return the word of each kernel, and whether there are others than MiniRocket's."""
    words, kinds = [], False
    for taps, threshold in zip(stage.taps[:, :, 0], stage.threshold.tolist(), strict=True):
        thrice = np.flatnonzero(taps == 2).tolist()
        if not thrice:
            thrice, kinds = ([9, 11, 11] if np.all(taps == 1) else [10, 11, 11]), True
        code = sum(place << 4 * i for i, place in enumerate(thrice))
        words.append(code | (threshold & 0xFFFF) << 16)
    return np.array(words, dtype=np.uint32), kinds
