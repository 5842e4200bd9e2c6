"""Feature maps of the source papers as scikit-learn transformers, one family a file."""

from __future__ import annotations

from tinykernel.papers.features.alignment import KernelAlignment
from tinykernel.papers.features.alignment_dual import (
    AlignedDistribution,
    alignment_scores,
    maximise_alignment,
)
from tinykernel.papers.features.binary import BCSIK, BinaryJohnsonLindenstrauss
from tinykernel.papers.features.circulant import (
    CirculantFeatures,
    circulant_gradient,
    circulant_projection,
)
from tinykernel.papers.features.fastfood import RMBCSIK, Fastfood
from tinykernel.papers.features.fourier import RandomFourierFeatures
from tinykernel.papers.features.kernels import (
    cauchy_kernel,
    expected_hamming,
    exponential_kernel,
    gaussian_kernel,
    hamming_bounds,
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
    "alignment_scores",
    "cauchy_kernel",
    "circulant_gradient",
    "circulant_projection",
    "expected_hamming",
    "exponential_kernel",
    "gaussian_kernel",
    "hamming_bounds",
    "laplacian_kernel",
    "maximise_alignment",
    "metropolis_hastings",
    "neighbour_distance",
]
