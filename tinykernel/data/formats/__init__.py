"""Read data files: `parts` is what they give, `reading` chooses the reader by the suffix."""

from __future__ import annotations

from tinykernel.data.formats.parts import Part, Parts
from tinykernel.data.formats.suffixes import FORMATS, names_in, read_parts, whole

__all__ = ["FORMATS", "Part", "Parts", "names_in", "read_parts", "whole"]
