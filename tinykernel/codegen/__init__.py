"""From an `IntegerModel` to C: targets, packing, literals, sources and project formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinykernel.codegen.projects import export

__all__ = ["export"]


def __getattr__(name: str) -> Any:
    """Import on first use: the table of targets must not wait for numba and scipy."""
    if name == "export":
        from tinykernel.codegen.projects import export

        return export
    raise AttributeError(f"module 'tinykernel.codegen' has no attribute {name!r}")
