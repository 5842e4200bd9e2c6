"""Names, numbers and strings in C."""

import ast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refused
from tinykernel.base.errors import OptionError, RangeError
from tinykernel.pieces import tables

pytestmark = pytest.mark.usefixtures("page")


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_float_literal_reads_back_exactly(value: float) -> None:
    """A float32 constant in C is exactly the float32 of the model."""
    literal = tables.float_literal(value)
    assert literal.endswith("f")
    assert "." in literal or "e" in literal
    assert np.float32(literal[:-1]).tobytes() == np.float32(value).tobytes()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_float_literal_refuses_what_c_cannot_write(value: float) -> None:
    """No NaN or infinity slips into the source as an undeclared identifier."""
    refused(RangeError, tables.float_literal, value)


@pytest.mark.parametrize(
    ("value", "c_type", "expected"),
    [
        (-(2**31), "int32_t", "(-2147483647 - 1)"),
        (2**31 - 1, "int32_t", "2147483647"),
        (255, "uint8_t", "255u"),
        (-1, "int8_t", "-1"),
    ],
)
def test_integer_literal(value: int, c_type: str, expected: str) -> None:
    """The smallest int32 is written without a constant that does not fit."""
    assert tables.integer_literal(value, c_type) == expected


@given(st.text())
def test_string_literal_is_ascii_and_reads_back(text: str) -> None:
    """Any class name becomes one C string of its UTF-8 octets, without trigraphs."""
    literal = tables.string_literal(text)
    assert literal.isascii()
    assert "??" not in literal
    # Octal escapes of three digits mean the same in a bytes literal of Python.
    octets = ast.literal_eval("b" + literal.replace("\\?", "?"))
    assert octets == text.encode("utf-8", errors="surrogatepass")


@given(st.text())
def test_name_from_makes_valid_names(stem: str) -> None:
    """Whatever a file is called, its name proposes a C identifier."""
    assert tables.check_name(tables.name_from(stem)) == tables.name_from(stem)


@pytest.mark.parametrize(
    "name",
    [
        *("", "x" * 41, "a b", "7up", "a-b", "héllo", "_x", "tk_model", "TK_x"),
        *("string", "stdio", "Digits", "class", "int", "features", "wire", "stream", "nul"),
    ],
)
def test_check_name_refuses_and_proposes(name: str) -> None:
    """A bad name gives one line that proposes a good one."""
    refused(OptionError, tables.check_name, name)


@given(st.lists(st.integers(0, 2**32 - 1), max_size=60), st.integers(1, 12))
def test_table_rows_keep_values_and_width(values: list[int], per_row: int) -> None:
    """A table is wrapped without losing a value or exceeding the width."""
    lines = list(tables.table_rows(values, "uint32_t", per_row=per_row))
    read = [int(word.rstrip("u"), 16) for line in lines for word in line.replace(",", " ").split()]
    assert read == values
    assert all(len(line) <= 96 for line in lines)
    assert not lines or not lines[-1].endswith(",")
