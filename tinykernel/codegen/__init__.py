"""From integers to C: targets, literals and packing, rendering, project formats."""

from __future__ import annotations

from tinykernel.codegen.projects import export
from tinykernel.codegen.targets import TARGETS, Target, find_target

__all__ = ["TARGETS", "Target", "export", "find_target"]
