"""Lossless layout of the local stage: tables of its kernels, and the memory that it needs.

The formats are those of ``tk_local.h``, ``tk_local_image.h`` and ``tk_local_signal.h``. Kernels of
signals are sorted by dilation and mixed channel, so that those that look at the same values follow
each other. Without components the machine does not mind the order of its inputs, and is sorted with
them; else a table says where each count is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.codegen.packing_inputs import pack_scaler
from tinykernel.codegen.tables import Definition, Parts, Table, flag, smallest_type
from tinykernel.errors import TinykernelError
from tinykernel.model import IntegerModel, Scale, changed
from tinykernel.model.compat import WIDEST_CELL, LocalStage

_NEGATIVE = 64  # in a byte of tk_channels
_TRITS = 5  # taps a byte
_MOST_GROUP = 7  # words of a row that the firmware computes together, at most


@dataclass(frozen=True)
class PackedLocal:
    """What a local stage adds to a source, and to scratch.

    Parameters
    ----------
    parts : list of Definition and Table
    first_words : int
        Words that the machine can use afterwards.
    words : int
        Words beside those of the machine.
    state_words : int
        Words of a stream; a window of a signal needs a stream of its own.
    """

    parts: Parts
    first_words: int
    words: int
    state_words: int


def pack_local(model: IntegerModel, stage: LocalStage) -> PackedLocal:
    """Choose the formats of a local stage and fill its tables."""
    parts: Parts = [
        Definition(
            "TK_LOCAL", "2" if stage.is_signal else "1", "signals" if stage.is_signal else "images"
        ),
        *pack_scaler(stage.scaler, np.ones(stage.channels, dtype=bool), "local_"),
        *_pack_levels(stage),
        Definition("TK_LOCAL_HEIGHT", f"{stage.height}u"),
        Definition("TK_LOCAL_WIDTH", f"{stage.width}u"),
        Definition("TK_LOCAL_ROWS", f"{stage.rows}u", "after averaging"),
        Definition("TK_LOCAL_KERNELS", f"{stage.n_kernels}u"),
        Definition("TK_LOCAL_CELLS", f"{stage.cells[0]}u", "one above the other"),
        flag("TK_LOCAL_WIDE_COUNTS", stage.count_dtype == "uint16"),
    ]
    packed = _pack_signal(model, stage) if stage.is_signal else _pack_image(stage)
    return replace(packed, parts=parts + packed.parts)


def _pack_levels(stage: LocalStage) -> Parts:
    terms = np.count_nonzero(stage.mix, axis=1)
    plain = stage.mix.shape[0] == stage.channels and np.array_equal(
        stage.mix, np.eye(stage.channels, dtype=np.int8)
    )
    n_terms = 0 if plain else int(terms.max())
    parts: Parts = [
        Definition("TK_LOCAL_CHANNELS", f"{stage.channels}u"),
        Definition("TK_LOCAL_BITS", str(stage.scaler.bits), "width of levels"),
        Definition("TK_LOCAL_SHIFT", str(stage.level_shift), "bits of these that are dropped"),
        Definition("TK_LOCAL_TOP", f"{stage.top}u", "largest level"),
        Definition("TK_LOCAL_AVERAGE", str(stage.average), "neighbours that are averaged"),
        Definition("TK_LOCAL_MIXED", f"{stage.mix.shape[0]}u", "mixed channels"),
        Definition("TK_LOCAL_TERMS", str(n_terms), "channels in each"),
    ]
    if n_terms:
        codes = []
        for row in stage.mix:
            used = [int(c) + (_NEGATIVE if row[c] < 0 else 0) for c in np.flatnonzero(row)]
            codes += (used * n_terms)[:n_terms]  # (f + f) >> 1 is f
        parts.append(
            Table(
                "tk_channels",
                "uint8_t",
                np.array(codes),
                "transform",
                "Mixed channels: the channels in each, plus 64 where top - level is meant.",
            )
        )
    return parts


# -- images -----------------------------------------------------------------------------------


def _pack_image(stage: LocalStage) -> PackedLocal:
    lanes = _lanes(stage)
    halo = int((stage.taps.shape[2] // 2) * stage.dilation.max())
    n_taps = stage.taps.shape[1] * stage.taps.shape[2]
    plane = (stage.rows + 2 * stage.padding) * (stage.cell_columns + 2 * halo)
    count_words = -(-stage.n_counts * (2 if stage.count_dtype == "uint16" else 1) // 4)
    parts: Parts = [
        Definition("TK_LOCAL_COLUMNS", f"{stage.columns}u", "after averaging"),
        Definition("TK_LOCAL_STRIP", f"{stage.cell_columns}u", "columns of a cell"),
        Definition("TK_LOCAL_HALO", f"{halo}u", "words beside a row that kernels reach"),
        Definition("TK_LOCAL_PADDING", f"{stage.padding}u", "rows of zeros above and below"),
        Definition("TK_LOCAL_LANES", str(lanes), "columns that are computed at once"),
        Definition("TK_LOCAL_TAP_ROWS", f"{stage.taps.shape[1]}u"),
        Definition("TK_LOCAL_TAP_COLUMNS", f"{stage.taps.shape[2]}u"),
    ]
    for macro, values in (("CHANNEL", stage.channel), ("DILATION", stage.dilation)):
        if np.all(values == values[0]):
            parts.append(Definition(f"TK_LOCAL_{macro}", f"{int(values[0])}u", "of all kernels"))
    # The last words of a row are read together with some behind it.
    image_words = stage.mix.shape[0] * plane + max(n_taps, _MOST_GROUP)
    parts += [
        Definition("TK_LOCAL_IMAGE_WORDS", f"{image_words}u", "of scratch"),
        Table(
            "tk_kernels",
            "uint8_t",
            _image_kernels(stage, lanes).ravel(),
            "transform",
            "Kernels: threshold and taps, see tk_local_image.h.",
        ),
    ]
    return PackedLocal(parts, image_words, count_words, 0)


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


def _pack_signal(model: IntegerModel, stage: LocalStage) -> PackedLocal:
    order = _count_order(stage)
    in_order = np.array_equal(order, np.arange(order.size))
    stage = _sorted_stage(stage)
    hop = (stage.hop or stage.height) // stage.average
    windows = -(-stage.rows // hop)
    ring = int(stage.spans().max()) + 1
    dilations = np.unique(stage.dilation)
    kernels, kinds = _signal_kernels(stage)
    parts: Parts = [
        Definition("TK_LOCAL_HOP", f"{hop}u", "rows from window to window"),
        Definition("TK_LOCAL_WINDOWS", f"{windows}u", "under way at a time"),
        Definition("TK_LOCAL_RING", f"{ring}u", "rows that are kept"),
        Definition("TK_LOCAL_DILATIONS", f"{dilations.size}u"),
        flag("TK_LOCAL_KINDS", kinds, "sums of nine, or newest values"),
        flag("TK_LOCAL_ORDER", not in_order, "counts have to be sorted"),
        _dilation_table(stage, dilations),
        _group_table(stage, dilations),
        Table(
            "tk_kernels",
            "uint32_t",
            kernels,
            "transform",
            "Kernels: threshold and the three values that count thrice.",
        ),
    ]
    size = 2 if stage.count_dtype == "uint16" else 1
    order_words = 0
    if not in_order:
        places = np.argsort(order)
        parts.append(
            Table(
                "tk_order",
                smallest_type(places),
                places,
                "transform",
                "Where the counts are that the machine takes.",
            )
        )
        order_words = -(-stage.n_counts * size // 4)
    state_words = (
        8
        + windows
        + -(-stage.channels // 2)
        + -(-ring * stage.mix.shape[0] // 2)
        + -(-stage.n_kernels * size // 4)
        + windows * -(-stage.n_counts * size // 4)
    )
    return PackedLocal(parts, 0, order_words, state_words)


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
        "tk_dilations",
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
        "tk_groups",
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
