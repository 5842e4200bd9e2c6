"""Measured code sizes in bytes; written by benchmarks/code_size.py, do not edit."""

from __future__ import annotations

from typing import Any

CODE_SIZES: dict[str, Any] = {"version": 1, "targets": {}}
