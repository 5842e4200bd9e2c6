"""C against Python on this computer."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.random_models import random_model, random_quantized, random_raw
from tests.refusals import refused
from tinykernel.base.errors import ToolError
from tinykernel.compile import sources
from tinykernel.model.answers import Labels
from tinykernel.run.parity import compare, verify


def test_counts_and_accuracy(require_tool) -> None:
    """The result says how much was compared, and the accuracy is that of the C."""
    require_tool("gcc")
    model = dataclasses.replace(random_model(1, n_classes=4), answers=Labels(("a", "b", "c", "d")))
    X = random_raw(model, 1, 30)
    y = model.predict(X)
    y[:3] = "z"
    result = verify(model, X, y)
    assert result.ok
    assert (result.rows, result.scores, result.differences) == (30, 120, 0)
    assert result.accuracy == pytest.approx(0.9)
    assert "gcc" in result.compiler.lower() or "clang" in result.compiler.lower()


@pytest.mark.parametrize("table", ["tk_weights", "tk_windows", "tk_diagonal"])
def test_one_wrong_bit_is_found(monkeypatch, require_tool, table) -> None:
    """The comparison bites: one flipped bit of a table shows as a difference."""
    require_tool("gcc")
    model = random_model(1, n_classes=4, zero_weights=False)
    true_pack = sources.pack

    def wrong_pack(given: Any) -> Any:
        packed = true_pack(given)
        tables = []
        for one in packed.tables:
            values = one.values.copy()
            if one.name == table:
                # A bit that many rows feel: of a weight, a start, a factor.
                values[1 if table == "tk_windows" else 0] ^= np.uint32(0x40)
            tables.append(dataclasses.replace(one, values=values))
        return dataclasses.replace(packed, tables=tuple(tables))

    monkeypatch.setattr(sources, "pack", wrong_pack)
    result = verify(model, random_raw(model, 1, 60))
    assert not result.ok
    assert "score of class" in str(result.first_difference)


def test_no_compiler(monkeypatch, tmp_path) -> None:
    """Without any compiler the message says how to get one."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    refused(ToolError, verify, random_model(1), np.zeros((2, 20), np.uint8))


@pytest.mark.parametrize("entry", ["raw", "quantized", "quantize"])
def test_every_entry_is_compared(entry) -> None:
    """One wrong value of any entry is found, and named by its row and column."""
    model = random_model(1)
    quantized = random_quantized(model, 1, 8)
    scores = model.quantized_scores(quantized)
    results = np.column_stack([scores, scores.argmax(axis=1)])
    values = {"raw": results, "quantized": results, "quantize": quantized}
    outputs = {name: array.copy() for name, array in values.items()}
    assert compare(model, values, outputs, None).ok
    outputs[entry][5, 1] ^= 1
    found = compare(model, values, outputs, None)
    assert found.differences == 1
    what = "input 1" if entry == "quantize" else "score of class 1"
    assert f"row 5, {entry} inputs, {what}:" in str(found.first_difference)
