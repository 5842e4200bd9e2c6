"""Classifiers of the source papers, to compare with."""

from __future__ import annotations

from tinykernel.papers.classifiers.compact_maps import CirculantMapClassifier, CompactMapClassifier
from tinykernel.papers.classifiers.kernel_approximation import LearnedKernelFeatures
from tinykernel.papers.classifiers.kernel_svm import KernelSVC
from tinykernel.papers.classifiers.least_squares import (
    FourierLeastSquaresClassifier,
    KernelLeastSquaresClassifier,
    LeastSquaresClassifier,
)
from tinykernel.papers.classifiers.pegasos import PegasosClassifier

__all__ = [
    "CirculantMapClassifier",
    "CompactMapClassifier",
    "FourierLeastSquaresClassifier",
    "KernelLeastSquaresClassifier",
    "KernelSVC",
    "LearnedKernelFeatures",
    "LeastSquaresClassifier",
    "PegasosClassifier",
]
