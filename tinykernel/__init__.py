"""A deployment compiler for microcontrollers: kernel machines as C99 firmware, bit for bit.

Public names are imported on first use, so that ``tinykernel --help`` and shell completion need
not wait for scikit-learn and numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinykernel.budget import train
    from tinykernel.build.parity import verify
    from tinykernel.codegen import export
    from tinykernel.data.recordings import windows
    from tinykernel.decisions import Counters, calibrate
    from tinykernel.errors import TinykernelError
    from tinykernel.estimator import (
        TernaryKernelClassifier,
        TernaryKernelNovelty,
        TernaryKernelRegressor,
    )
    from tinykernel.evaluation import evaluate
    from tinykernel.measure.bench import bench
    from tinykernel.measure.report import report
    from tinykernel.model import IntegerModel, quantize
    from tinykernel.modelfile import load, save
    from tinykernel.reporting import report_page
    from tinykernel.tuning import tune

    __version__: str

__all__ = [
    "Counters",
    "IntegerModel",
    "TernaryKernelClassifier",
    "TernaryKernelNovelty",
    "TernaryKernelRegressor",
    "TinykernelError",
    "__version__",
    "bench",
    "calibrate",
    "evaluate",
    "export",
    "load",
    "quantize",
    "report",
    "report_page",
    "save",
    "train",
    "tune",
    "verify",
    "windows",
]

_HOME = {
    "Counters": "tinykernel.decisions",
    "IntegerModel": "tinykernel.model",
    "TernaryKernelClassifier": "tinykernel.estimator",
    "TernaryKernelNovelty": "tinykernel.estimator",
    "TernaryKernelRegressor": "tinykernel.estimator",
    "TinykernelError": "tinykernel.errors",
    "bench": "tinykernel.measure.bench",
    "calibrate": "tinykernel.decisions",
    "evaluate": "tinykernel.evaluation",
    "export": "tinykernel.codegen",
    "load": "tinykernel.modelfile",
    "quantize": "tinykernel.model",
    "report": "tinykernel.measure.report",
    "report_page": "tinykernel.reporting",
    "save": "tinykernel.modelfile",
    "train": "tinykernel.budget",
    "tune": "tinykernel.tuning",
    "verify": "tinykernel.build.parity",
    "windows": "tinykernel.data.recordings",
}


def _version() -> str:
    """Return the version in ``pyproject.toml``, the only place where it is written."""
    from tinykernel.resources import checkout

    root = checkout()
    if root is None:
        from importlib.metadata import version

        return version("tinykernel")
    # In a checkout the metadata may be outdated or missing.
    for line in (root / "pyproject.toml").read_text(encoding="utf-8").splitlines():
        if line.startswith("version = "):
            return line.split('"')[1]
    raise RuntimeError("pyproject.toml states no version")


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562)."""
    if name == "__version__":
        value: Any = _version()
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module 'tinykernel' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(globals().keys() | set(__all__))
