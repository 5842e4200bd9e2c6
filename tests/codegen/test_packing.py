"""What the formats of the tables cost; that they hold the model is what the C shows."""

import numpy as np

from tests.random_models import random_model
from tinykernel.compile.plan import PackedModel, pack
from tinykernel.pieces.ternary.pack import FIVES, five_of


def _macros(packed: PackedModel) -> dict[str, str]:
    return {definition.name: definition.value for definition in packed.definitions}


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


def test_five_weights_take_a_byte() -> None:
    """Every five digits have a code that decodes to them; 160 weights take eight words."""
    digits = np.stack(np.unravel_index(np.arange(243), (3,) * 5))
    np.testing.assert_array_equal(five_of(FIVES[tuple(digits)]), digits)
    options = {"n_features": 64, "n_blocks": 5, "n_classes": 10, "windows": "phases"}
    sizes = {
        packed: pack(random_model(5, one_scale=True, packed=packed, **options)).table_bytes()
        for packed in (None, True)
    }
    gains = 2 * 4 * 10
    assert {each["weights"] - gains for each in sizes.values()} == {10 * 4 * 20, 10 * 4 * 16}
    # What is not worth the code is not packed.
    few = pack(random_model(5, n_classes=2, packed=True))
    assert _macros(few)["TK_PLANES"] == "2"


def test_starts_and_widths_of_four_bits_share_bytes() -> None:
    """A component takes a byte of both, or half a byte of the start alone."""
    options = {"n_features": 64, "n_blocks": 2, "one_scale": True}
    for windows, each in (("sixteenths", 1.0), ("starts of four bits", 0.5)):
        packed = pack(random_model(5, windows=windows, **options))
        assert packed.table_bytes()["windows"] == each * 128
        assert _macros(packed)["TK_WINDOW_BITS"] == "4"
