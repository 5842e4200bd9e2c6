"""A deployment compiler for microcontrollers: kernel machines as C99 firmware, bit for bit.

Public names are imported on first use, so that ``tinykernel --help`` and shell completion need
not wait for scikit-learn and numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinykernel.base.errors import TinykernelError as TinykernelError
    from tinykernel.compile.projects import export as export
    from tinykernel.conversion.models import convert as convert
    from tinykernel.data.recordings import windows as windows
    from tinykernel.face.pages.page import report_page as report_page
    from tinykernel.judge.drift import relative as relative
    from tinykernel.judge.models import evaluate as evaluate
    from tinykernel.kinds.estimators.oneclass import NoveltyDetector as NoveltyDetector
    from tinykernel.kinds.estimators.supervised import Classifier as Classifier
    from tinykernel.kinds.estimators.supervised import Regressor as Regressor
    from tinykernel.kinds.estimators.supervised import (
        TernaryKernelClassifier as TernaryKernelClassifier,
    )
    from tinykernel.kinds.estimators.supervised import (
        TernaryKernelRegressor as TernaryKernelRegressor,
    )
    from tinykernel.kinds.train.fitting import train as train
    from tinykernel.kinds.tune.tuner import tune as tune
    from tinykernel.learn.calibration import calibrate as calibrate
    from tinykernel.model.counters import Counters as Counters
    from tinykernel.model.file import load as load
    from tinykernel.model.file import save as save
    from tinykernel.model.integer import IntegerModel as IntegerModel
    from tinykernel.model.pipelines import quantize as quantize
    from tinykernel.run.bench import bench as bench
    from tinykernel.run.parity import verify as verify
    from tinykernel.run.report import report as report

    __version__: str

_HOME = {
    "Classifier": "tinykernel.kinds.estimators.supervised",
    "Counters": "tinykernel.model.counters",
    "IntegerModel": "tinykernel.model.integer",
    "NoveltyDetector": "tinykernel.kinds.estimators.oneclass",
    "Regressor": "tinykernel.kinds.estimators.supervised",
    "TernaryKernelClassifier": "tinykernel.kinds.estimators.supervised",
    "TernaryKernelRegressor": "tinykernel.kinds.estimators.supervised",
    "TinykernelError": "tinykernel.base.errors",
    "bench": "tinykernel.run.bench",
    "calibrate": "tinykernel.learn.calibration",
    "convert": "tinykernel.conversion.models",
    "evaluate": "tinykernel.judge.models",
    "export": "tinykernel.compile.projects",
    "load": "tinykernel.model.file",
    "quantize": "tinykernel.model.pipelines",
    "relative": "tinykernel.judge.drift",
    "report": "tinykernel.run.report",
    "report_page": "tinykernel.face.pages.page",
    "save": "tinykernel.model.file",
    "train": "tinykernel.kinds.train.fitting",
    "tune": "tinykernel.kinds.tune.tuner",
    "verify": "tinykernel.run.parity",
    "windows": "tinykernel.data.recordings",
}
#: They take a model of any library as their first argument, which is converted before.
_OF_ANY_LIBRARY = ("bench", "evaluate", "export", "report", "report_page", "save", "verify")
__all__ = sorted(["__version__", *_HOME])


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562)."""
    if name == "__version__":
        value: Any = import_module("tinykernel.base.files").package_version()
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        if name in _OF_ANY_LIBRARY:
            value = import_module("tinykernel.conversion.models").for_any_model(value)
    else:
        raise AttributeError(f"module 'tinykernel' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(globals().keys() | set(__all__))
