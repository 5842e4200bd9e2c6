"""Saving and loading models: ``.tkm``, which holds no code at all, and ``.pkl``."""

from __future__ import annotations

from tinykernel.storage.files import load, save

__all__ = ["load", "save"]
