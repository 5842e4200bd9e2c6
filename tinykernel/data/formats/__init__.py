"""Read data files: `suffixes` chooses the reader, which returns parts of `tables`."""

from __future__ import annotations

from tinykernel.data.formats.suffixes import FORMATS, names_in, read_parts, whole
from tinykernel.data.formats.tables import Part, Parts

__all__ = ["FORMATS", "Part", "Parts", "names_in", "read_parts", "whole"]
