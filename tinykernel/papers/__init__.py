"""The methods of the source papers: feature maps, and the classifier of Lei & Lan 2021."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinykernel.papers.ternary.classifier import PaperClassifier

__all__ = ["PaperClassifier"]


def __getattr__(name: str) -> Any:
    """Import the classifier on first use (PEP 562): the feature maps need no training."""
    if name != "PaperClassifier":
        raise AttributeError(f"module 'tinykernel.papers' has no attribute {name!r}")
    from tinykernel.papers.ternary.classifier import PaperClassifier

    return PaperClassifier
