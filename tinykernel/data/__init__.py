"""Data sets from files."""

from __future__ import annotations

from tinykernel.data.load import Dataset, Rows, find_data, load_data, load_rows, split_data

__all__ = ["Dataset", "Rows", "find_data", "load_data", "load_rows", "split_data"]
