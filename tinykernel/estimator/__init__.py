"""scikit-learn estimators: classifier, regressor, and novelty detection."""

from __future__ import annotations

from tinykernel.estimator.classifier import TernaryKernelClassifier
from tinykernel.estimator.oneclass import CLASSES, TernaryKernelNovelty, calibrate_one_class
from tinykernel.estimator.regressor import TernaryKernelRegressor

__all__ = [
    "CLASSES",
    "TernaryKernelClassifier",
    "TernaryKernelNovelty",
    "TernaryKernelRegressor",
    "calibrate_one_class",
]
