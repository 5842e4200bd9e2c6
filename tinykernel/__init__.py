"""A deployment compiler for microcontrollers: kernel machines as C99 firmware, bit for bit.

Public names are imported on first use, so that ``tinykernel --help`` and shell completion need
not wait for scikit-learn and numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinykernel.budget import train as train
    from tinykernel.build.parity import verify as verify
    from tinykernel.codegen.projects import export as export
    from tinykernel.conversion import convert as convert
    from tinykernel.data.recordings import windows as windows
    from tinykernel.decisions import Counters as Counters
    from tinykernel.decisions import calibrate as calibrate
    from tinykernel.decisions import relative as relative
    from tinykernel.errors import TinykernelError as TinykernelError
    from tinykernel.estimator import Classifier as Classifier
    from tinykernel.estimator import NoveltyDetector as NoveltyDetector
    from tinykernel.estimator import Regressor as Regressor
    from tinykernel.estimator import TernaryKernelClassifier as TernaryKernelClassifier
    from tinykernel.estimator import TernaryKernelRegressor as TernaryKernelRegressor
    from tinykernel.evaluation import evaluate as evaluate
    from tinykernel.measure.bench import bench as bench
    from tinykernel.measure.report import report as report
    from tinykernel.model import IntegerModel as IntegerModel
    from tinykernel.model import quantize as quantize
    from tinykernel.modelfile import load as load
    from tinykernel.modelfile import save as save
    from tinykernel.reporting import report_page as report_page
    from tinykernel.tuning import tune as tune

    __version__: str

_HOME = {
    "Classifier": "tinykernel.estimator",
    "Counters": "tinykernel.decisions",
    "IntegerModel": "tinykernel.model",
    "NoveltyDetector": "tinykernel.estimator",
    "Regressor": "tinykernel.estimator",
    "TernaryKernelClassifier": "tinykernel.estimator",
    "TernaryKernelRegressor": "tinykernel.estimator",
    "TinykernelError": "tinykernel.errors",
    "bench": "tinykernel.measure.bench",
    "calibrate": "tinykernel.decisions",
    "convert": "tinykernel.conversion",
    "evaluate": "tinykernel.evaluation",
    "export": "tinykernel.codegen.projects",
    "load": "tinykernel.modelfile",
    "quantize": "tinykernel.model",
    "relative": "tinykernel.decisions",
    "report": "tinykernel.measure.report",
    "report_page": "tinykernel.reporting",
    "save": "tinykernel.modelfile",
    "train": "tinykernel.budget",
    "tune": "tinykernel.tuning",
    "verify": "tinykernel.build.parity",
    "windows": "tinykernel.data.recordings",
}
__all__ = sorted(["__version__", *_HOME])


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
