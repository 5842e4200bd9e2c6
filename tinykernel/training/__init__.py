"""Trainers: what learns a classifier, and the float result that is quantised.

The names are imported when they are first used, so that code which needs one trainer does not wait
for the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinykernel.training.circulant import CirculantMapClassifier
    from tinykernel.training.compact_maps import CompactMapClassifier
    from tinykernel.training.kernel_approximation import LearnedKernelFeatures
    from tinykernel.training.kernel_svm import KernelSVC
    from tinykernel.training.least_squares import (
        FourierLeastSquaresClassifier,
        KernelLeastSquaresClassifier,
        LeastSquaresClassifier,
    )
    from tinykernel.training.machine import KernelMachine
    from tinykernel.training.pegasos import PegasosClassifier

__all__ = [
    "CirculantMapClassifier",
    "CompactMapClassifier",
    "FourierLeastSquaresClassifier",
    "KernelLeastSquaresClassifier",
    "KernelMachine",
    "KernelSVC",
    "LearnedKernelFeatures",
    "LeastSquaresClassifier",
    "PegasosClassifier",
]

_HOME = {
    "CirculantMapClassifier": "circulant",
    "CompactMapClassifier": "compact_maps",
    "FourierLeastSquaresClassifier": "least_squares",
    "KernelLeastSquaresClassifier": "least_squares",
    "KernelMachine": "machine",
    "KernelSVC": "kernel_svm",
    "LearnedKernelFeatures": "kernel_approximation",
    "LeastSquaresClassifier": "least_squares",
    "PegasosClassifier": "pegasos",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'tinykernel.training' has no attribute {name!r}")
    value = getattr(import_module(f"tinykernel.training.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(globals().keys() | set(__all__))
