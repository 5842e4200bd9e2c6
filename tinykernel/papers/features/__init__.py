"""Feature maps of the source papers as scikit-learn transformers, one family a file."""

from __future__ import annotations

from tinykernel.papers.features.alignment import (
    AlignedDistribution,
    KernelAlignment,
    maximise_alignment,
)
from tinykernel.papers.features.binary import BCSIK, BinaryJohnsonLindenstrauss
from tinykernel.papers.features.circulant import CirculantFeatures
from tinykernel.papers.features.fastfood import RMBCSIK, Fastfood
from tinykernel.papers.features.fourier import RandomFourierFeatures
from tinykernel.papers.features.kernels import (
    cauchy_kernel,
    exponential_kernel,
    gaussian_kernel,
    laplacian_kernel,
    neighbour_distance,
)
from tinykernel.papers.features.metropolis import MetropolisSample, metropolis_hastings

__all__ = [
    "BCSIK",
    "RMBCSIK",
    "AlignedDistribution",
    "BinaryJohnsonLindenstrauss",
    "CirculantFeatures",
    "Fastfood",
    "KernelAlignment",
    "MetropolisSample",
    "RandomFourierFeatures",
    "cauchy_kernel",
    "exponential_kernel",
    "gaussian_kernel",
    "laplacian_kernel",
    "maximise_alignment",
    "metropolis_hastings",
    "neighbour_distance",
]
