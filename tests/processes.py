"""Programs that tests run: what they print is text, and kept."""

import subprocess
from collections.abc import Sequence
from typing import Any


def captured(command: Sequence[Any], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command; `options` are those of `subprocess.run`."""
    return subprocess.run(command, capture_output=True, text=True, **options)
