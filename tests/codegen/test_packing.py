"""The formats of the tables against a slow reading of them, as their description says."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.random_models import changed, random_model
from tinykernel.codegen.plan import PackedModel, pack
from tinykernel.model.integer import IntegerModel
from tinykernel.model.readouts.ternary import Ternary
from tinykernel.model.stages.components import Components


def _table(packed: PackedModel, name: str) -> NDArray[Any]:
    return next(table.values for table in packed.tables if table.name == name)


def _macros(packed: PackedModel) -> dict[str, str]:
    return {definition.name: definition.value for definition in packed.definitions}


def _rows_in_order(model: IntegerModel, packed: PackedModel) -> list[list[int]]:
    """Return, for each stored block, the component at each place of its words, -1 for none."""
    own = model.find(Components)
    number = np.full(own.row_kept.shape, -1)
    number[own.row_kept] = np.arange(own.n_components)
    blocks = np.flatnonzero(own.row_kept.any(axis=1))
    places = []
    for block, n_words in zip(blocks, packed.n_words, strict=True):
        row = list(number[block])
        if _macros(packed)["TK_KEPT"] == "1":
            row = [component for component in row if component >= 0]
        row += [-1] * (32 * int(n_words))
        places.append(row[: 32 * int(n_words)])
    return places


def _for_block(packed: PackedModel, macro: str, block: int) -> int:
    """Return the value of a macro for a block: a literal, a choice for the last one, or a table."""
    text = _macros(packed).get(macro, "0u")
    if "[" in text:
        return int(_table(packed, text.split(")")[1].split("[")[0])[block])
    numbers = [int(number) for number in re.findall(r"\b(\d+)u", text.replace("1u ?", "?"))]
    return numbers[0] if len(numbers) == 1 or block == len(packed.n_words) - 1 else numbers[-1]


def _bit_of_place(place: int) -> tuple[int, int, int]:
    """Return group, byte and bit of a place in a word, written as in tk_windows.h."""
    word_of_v, high = divmod(place, 2)
    group = word_of_v % 8
    byte = 2 * high + (1 if word_of_v < 8 else 0)
    return group, byte, 8 * byte + 7 - group


def _planes_of_words(model: IntegerModel, packed: PackedModel) -> list[list[list[int]]]:
    """Return, for each word of 32 components, the planes of each output."""
    macros = _macros(packed)
    weights = iter(_table(packed, "tk_weights").tolist())
    room, full = (int(macros[f"TK_BITS_{which}"].rstrip("u")) for which in ("WORDS", "FULL"))
    planes: list[list[list[int]]] = []
    waiting = 0
    for block, n_words in enumerate(packed.n_words.tolist()):
        waiting += n_words
        assert waiting <= room or room == 0
        if waiting > full or block + 1 == len(packed.n_words):
            group = [
                [[next(weights) for _ in range(int(macros["TK_PLANES"]))] for _ in range(waiting)]
                for _ in range(model.n_outputs)
            ]
            planes += [[output[word] for output in group] for word in range(waiting)]
            waiting = 0
    assert next(weights, None) is None
    return planes


MODELS: list[dict[str, Any]] = [
    {"n_features": 40},
    {"n_features": 40, "kept": "some", "n_blocks": 3},
    {"n_features": 100, "kept": "few", "n_classes": 5, "n_blocks": 4},
    {"n_features": 40, "kept": "tail", "one_scale": True, "zero_weights": False, "n_classes": 2},
    {"n_features": 40, "kept": "few", "zero_weights": False, "n_blocks": 5},
    *(
        {"n_features": 90, "windows": windows, "zero_weights": False, "one_scale": True, **more}
        for windows in ("phases", "one width", "two starts", "half turns", "constant")
        for more in ({}, {"kept": "tail"}, {"kept": "some"}, {"kept": "few", "n_blocks": 6})
    ),
    {"n_features": 90, "windows": "half turns", "kept": "some", "n_classes": 2},
    {"n_features": 90, "windows": "two starts", "kept": "tail"},
]


@pytest.mark.parametrize("options", MODELS)
def test_windows_and_weights(options: dict[str, Any]) -> None:
    """Every component is stored once, at the byte and bit that the kernels read."""
    model = random_model(11, **options)
    components, weights = model.find(Components), model.find(Ternary).weights
    packed = pack(model)
    macros = _macros(packed)
    fields = [
        values
        for macro, values in (
            ("TK_SCALE(block)", components.scale),
            ("TK_EVEN_START", components.start),
            ("TK_WIDTH", components.width),
        )
        if macro not in macros
    ]
    windows = np.zeros((int(packed.n_words.sum()), 8, 0, 4), dtype=np.uint8)
    if fields:
        windows = _table(packed, "tk_windows").astype("<u4").view(np.uint8)
        windows = windows.reshape(-1, 8, len(fields), 4)
    n_planes = int(macros["TK_PLANES"])
    planes_of = _planes_of_words(model, packed)
    word = 0
    seen = []
    for block, places in enumerate(_rows_in_order(model, packed)):
        n_words = len(places) // 32
        tail = _for_block(packed, "TK_TAIL(block)", block)
        for position, component in enumerate(places):
            group, byte, bit = _bit_of_place(position % 32)
            stored = windows[word + position // 32, group, :, byte]
            weighed = [
                [plane >> bit & 1 for plane in planes_of[word + position // 32][output]]
                for output in range(model.n_outputs)
            ]
            if component < 0:
                # Its bit is 1: through a width of 0, or set; or else masked.
                is_set = position // 32 == n_words - 1 and tail >> bit & 1
                assert n_planes == 2 or is_set or ("TK_WIDTH" not in macros and stored[-1] == 0)
                assert all(bits == [1] if n_planes == 1 else bits[1] == 0 for bits in weighed)
                continue
            seen.append(component)
            assert position // 32 < n_words - 1 or not tail >> bit & 1
            if "TK_EVEN_START" in macros:
                start = macros["TK_ODD_START" if position % 2 else "TK_EVEN_START"]
                assert start == f"{components.start[component]}u"
            assert stored.tolist() == [values[component] for values in fields]
            for output, bits in enumerate(weighed):
                weight = weights[output, component]
                assert bits[0] == (weight > 0)
                assert n_planes == 1 or bits[1] == (weight != 0)
        word += n_words
    assert sorted(seen) == list(range(components.n_components))
    assert word == len(windows) == len(planes_of)


def test_gains_and_biases_are_the_scores() -> None:
    """Counting agreeing components gives the scores of the specification."""
    model = random_model(3, n_features=60, n_classes=4)
    packed = pack(model)
    part = model.find(Ternary)
    z = np.random.default_rng(0).choice([-1, 1], part.weights.shape[1])
    agreeing = np.count_nonzero(part.weights * z == 1, axis=1)
    got = _table(packed, "tk_gains") * agreeing.astype(np.int32) + _table(packed, "tk_biases")
    assert np.array_equal(got, part.multiplier * (part.weights @ z) + model.readout.offset)


def test_dropped_rows_cost_nothing_when_they_are_many() -> None:
    """A model with few kept rows stores a bitmap of them in place of their parameters."""
    all_rows = pack(random_model(5, n_features=200, n_blocks=8)).table_bytes()
    few = pack(random_model(5, n_features=200, n_blocks=8, kept="few")).table_bytes()
    assert few["windows"] + few["weights"] < 0.3 * (all_rows["windows"] + all_rows["weights"])


def test_one_literal_for_equal_scaler_values() -> None:
    """Equal values of all features that vary take no table."""
    packed = pack(random_model(2, n_features=50, shared_scaler=True))
    assert not [table for table in packed.tables if table.name in ("tk_offsets", "tk_spans")]
    assert packed.table_bytes()["scaler"] == 8  # one bit of sign for each of 50 inputs


def test_compact_format_is_a_byte_and_a_half_a_row() -> None:
    """4-bit factors, a scale a block, windows without numbers: what is left are the weights."""
    options = {
        "n_features": 200,
        "n_blocks": 4,
        "n_classes": 8,
        "diagonal_kind": "int4",
        "one_scale": True,
        "zero_weights": False,
    }
    packed = pack(random_model(5, windows="half turns", **options))
    sizes = packed.table_bytes()
    assert sizes["transform"] == 1024 // 2
    assert sizes["weights"] == 1024 + 2 * 4 * 8
    assert sizes["windows"] == 4
    assert pack(random_model(5, windows="phases", **options)).table_bytes()["windows"] == 1024 + 4


def test_a_shared_width_keeps_its_table_where_that_is_smaller() -> None:
    """Masks of many outputs for a few dropped rows would be larger than a table of widths."""
    options = {
        "n_features": 20,
        "n_blocks": 1,
        "zero_weights": False,
        "windows": "phases",
        "one_scale": True,
    }
    model = random_model(5, n_classes=40, **options)
    components, ternary = model.find(Components), model.find(Ternary)
    kept = components.row_kept.copy()
    kept[0, 5] = False
    number = np.flatnonzero(kept[0])
    changes = {name: getattr(components, name)[number] for name in ("scale", "start", "width")}
    model = changed(
        model,
        replace(components, row_kept=kept, **changes),
        replace(ternary, weights=ternary.weights[:, number]),
    )
    macros = _macros(pack(model))
    assert macros["TK_PLANES"] == "1"
    assert "TK_WIDTH" not in macros


def test_diagonal_of_levels_takes_four_bits_a_row() -> None:
    """4-bit factors are stored in pairs: even row from bit 28 down, odd row from bit 12 down."""
    model = random_model(2, n_features=40, diagonal_kind="int4", n_blocks=2)
    words, diagonal = _table(pack(model), "tk_diagonal"), model.find(Components).diagonal
    assert words.size == diagonal.size // 8
    for row, level in enumerate(diagonal.ravel()):
        bit = (28 if row % 2 == 0 else 12) - 4 * (row % 8 // 2)
        assert (int(words[row // 8]) >> bit & 15) == level % 16


def test_diagonal_of_signs_takes_a_bit_a_row() -> None:
    """A diagonal of signs is stored as bits, in pairs: even row high, odd row low."""
    model = random_model(2, n_features=40, diagonal_kind="sign", n_blocks=2)
    words, diagonal = _table(pack(model), "tk_diagonal"), model.find(Components).diagonal
    assert words.size == diagonal.size // 32
    for row, sign in enumerate(diagonal.ravel()):
        pair = row % 32 // 2
        bit = 31 - pair if row % 2 == 0 else 15 - pair
        assert (int(words[row // 32]) >> bit & 1) == (sign < 0)
