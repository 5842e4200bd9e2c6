"""What ``NAME_open`` checks of the tables of a model as data: that no index and no shift leads out.

Everything else that a table can hold gives other numbers and nothing worse: sums wrap around, and
no value of an input or a weight is an address. `tests/fuzz/forged.py` looks for what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinykernel.codegen.pack.front import Limit
from tinykernel.codegen.plan import PackedModel
from tinykernel.model import IntegerModel
from tinykernel.model.stages.kernels import Kernels
from tinykernel.model.stages.levels import Levels

_SHIFTS = ("tk_pre_shifts", "tk_levels_pre_shifts", "tk_confidence_shift")


@dataclass(frozen=True)
class Part:
    """C of `i` that gives the entries of one group, which must add up to what `total` gives."""

    groups: int
    each: int
    value: str
    total: str


def limits(model: IntegerModel, packed: PackedModel) -> list[Limit]:
    """List what is checked entry by entry."""
    sizes = {table.name: int(table.values.size) for table in packed.tables}
    found = [Limit(sizes[t], f"model->{t[3:]}[i]", 32) for t in _SHIFTS if t in sizes]
    if "tk_novelty_line" in sizes:
        found.append(Limit(1, "model->novelty_line[2]", 32))
    if "tk_permutation" in sizes:
        found.append(
            Limit(sizes["tk_permutation"], "model->permutation[i]", sizes["tk_permutation"])
        )
    if "tk_orbit" in sizes:
        # 4 k + 1, and odd: then even and odd places take turns, and each comes once.
        found.append(Limit(1, "(model->orbit[0] & 3u) ^ 1u", 1))
        found.append(Limit(1, "(model->orbit[1] & 1u) ^ 1u", 1))
    found += packed.limits
    levels, stage = model.find(Levels), model.find(Kernels)
    if levels is None or stage is None:
        return found
    members = {name: text for struct in packed.structs for name, text in struct.members.items()}
    if "tk_levels_0_mix" in sizes:
        size, given = sizes["tk_levels_0_mix"], model.grids()[model.stages.index(levels)]
        found.append(Limit(size, "model->levels_0_mix[i] & 63u", given.channels))
    codes = sizes["tk_kernels_1_codes"]
    if model.input.is_signal:
        top = 12 if members["kinds"] == "1u" else 9
        for shifted in ("", " >> 4", " >> 8"):
            found.append(Limit(codes, f"model->kernels_1_codes[i]{shifted} & 15u", top))
        if "tk_kernels_1_order" in sizes:
            size = sizes["tk_kernels_1_order"]
            found.append(Limit(size, "model->kernels_1_order[i]", model.n_features))
        return found
    # Kernels of images begin with their channel and their dilation, unless all have the same.
    width, at = codes // stage.n_kernels, 0
    for values, limit in ((stage.channel, levels.mix.shape[0]), (stage.dilation, None)):
        if not np.all(values == values[0]):
            place = f"model->kernels_1_codes[i * {width}u + {at}u]"
            found.append(Limit(stage.n_kernels, place, limit or int(values.max()) + 1))
            at += 1
    return found


def parts(model: IntegerModel, packed: PackedModel) -> list[Part]:
    """List what must add up: the kernels of dilations, and of their channels."""
    levels, stage = model.find(Levels), model.find(Kernels)
    if levels is None or stage is None or not model.input.is_signal:
        return []
    mixed, row = levels.mix.shape[0], stage.cells[0] + 2
    sizes = {table.name: int(table.values.size) for table in packed.tables}
    dilations = sizes["tk_kernels_1_dilations"] // row
    kernels = f"model->kernels_1_dilations[i * {row}u + 1u]"
    groups = f"model->kernels_1_groups[i * {mixed}u + j]"
    return [
        Part(1, dilations, kernels.replace("[i ", "[j "), f"{stage.n_kernels}u"),
        Part(dilations, mixed, groups, kernels),
    ]


def words(packed: PackedModel) -> dict[str, int] | None:
    """Return what bounds the words of blocks, where a table holds these."""
    sizes = {table.name: int(table.values.size) for table in packed.tables}
    if "tk_words" not in sizes:
        return None
    names = {d.name: d.value.rstrip("u") for d in packed.definitions}
    return {
        "blocks": sizes["tk_words"],
        "most": 1 << (int(names["TK_LOG2_DIMENSION"]) - 5),
        "all": int(packed.n_words.sum()),
        "room": int(names["TK_BITS_WORDS"]),
        "full": int(names["TK_BITS_FULL"]),
    }
