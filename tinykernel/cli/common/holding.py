"""Which of all targets a model is run for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from tinykernel.model import IntegerModel


def those_that_hold(model: IntegerModel, names: Sequence[str], asked: Sequence[str]) -> list[str]:
    """Leave out targets that ``all`` named and whose emulated boards are too small, and say so.

    A target that the user names is tried, and refused with the linker's reason.
    """
    from tinykernel.build.program import has_memory_for
    from tinykernel.codegen.targets import find_target

    given = {name for value in asked for name in value.split(",")}
    kept = []
    for name in names:
        if "all" in given and name not in given and not has_memory_for(model, find_target(name)):
            typer.echo(f"{name}: left out, the model is too large for the chip", err=True)
        else:
            kept.append(name)
    return kept
