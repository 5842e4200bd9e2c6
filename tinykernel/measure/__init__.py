"""Measuring on real compilers and emulators: footprint, parity, instruction counts."""

from __future__ import annotations

from tinykernel.measure.report import Report, report

__all__ = ["Report", "report"]
