"""scikit-learn estimators: classifiers, regressors, and novelty detection."""

from tinykernel.estimator.classifier import Classifier, TernaryKernelClassifier
from tinykernel.estimator.oneclass import NoveltyDetector, calibrate_one_class
from tinykernel.estimator.regressor import Regressor, TernaryKernelRegressor
from tinykernel.kinds.prototypes import CLASSES

__all__ = [
    "CLASSES",
    "Classifier",
    "NoveltyDetector",
    "Regressor",
    "TernaryKernelClassifier",
    "TernaryKernelRegressor",
    "calibrate_one_class",
]
