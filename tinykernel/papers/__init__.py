"""The classifier of Lei & Lan 2021, for comparison."""

from __future__ import annotations

from tinykernel.papers.classifier import PaperClassifier

__all__ = ["PaperClassifier"]
