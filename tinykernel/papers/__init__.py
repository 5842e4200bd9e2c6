"""The source papers: 000 is Zhang 2022, 001 Lei & Lan 2021, 002 Qi 2020, 004 Yu et al. 2015.

003, Ganesh 2020, needs nothing but `SpectralFeatures` and scikit-learn.
"""

from tinykernel.papers.classifier import PaperClassifier
from tinykernel.papers.compact import CompactKernelMap, CompactMapClassifier
from tinykernel.papers.maps import (
    BinaryCodes,
    CirculantFeatures,
    Fastfood,
    KernelAlignment,
    SpectralFeatures,
    metropolis_hastings,
)
from tinykernel.papers.ternary import TernaryLinearClassifier

__all__ = [
    "BinaryCodes",
    "CirculantFeatures",
    "CompactKernelMap",
    "CompactMapClassifier",
    "Fastfood",
    "KernelAlignment",
    "PaperClassifier",
    "SpectralFeatures",
    "TernaryLinearClassifier",
    "metropolis_hastings",
]
