"""C against Python, by the name that scripts of earlier versions import."""

from tinykernel.build.parity import VerifyResult, compare, entry_rows, expected_values, verify

__all__ = ["VerifyResult", "compare", "entry_rows", "expected_values", "verify"]
