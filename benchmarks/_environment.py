"""Where a benchmark ran: one line for the top of its page."""

import datetime
import os
import platform
from pathlib import Path

import numba
import numpy as np
import sklearn


def processor() -> str:
    """Return the name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def describe_machine() -> str:
    """Return date, processor and versions."""
    return (
        f"{datetime.date.today().isoformat()}, {os.cpu_count()} cores of {processor()}, "
        f"Python {platform.python_version()}, numpy {np.__version__}, numba {numba.__version__}, "
        f"scikit-learn {sklearn.__version__}"
    )
