"""Settings of ``train``, ``tune`` and ``export``: options, ``--set``, ``tinykernel.toml``."""

from __future__ import annotations

from tinykernel.cli.settings.gathering import gather, has_settings
from tinykernel.cli.settings.table import SETTINGS, Setting

__all__ = ["SETTINGS", "Setting", "gather", "has_settings"]
