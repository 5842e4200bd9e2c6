"""Float feature maps as scikit-learn transformers, one family a file.

The names are imported when they are first used, so that code which needs only the permutation does
not wait for scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    "gaussian_kernel",
    "hamming_bounds",
    "laplacian_kernel",
    "maximise_alignment",
    "metropolis_hastings",
    "neighbour_distance",
]

_HOME = {
    "AlignedDistribution": "alignment_dual",
    "BCSIK": "binary",
    "BinaryJohnsonLindenstrauss": "binary",
    "CirculantFeatures": "circulant",
    "Fastfood": "fastfood",
    "KernelAlignment": "alignment",
    "MetropolisSample": "metropolis",
    "RMBCSIK": "fastfood",
    "RandomFourierFeatures": "fourier",
    "alignment_scores": "alignment_dual",
    "cauchy_kernel": "kernels",
    "circulant_gradient": "circulant",
    "circulant_projection": "circulant",
    "expected_hamming": "kernels",
    "gaussian_kernel": "kernels",
    "hamming_bounds": "kernels",
    "laplacian_kernel": "kernels",
    "maximise_alignment": "alignment_dual",
    "metropolis_hastings": "metropolis",
    "neighbour_distance": "kernels",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'tinykernel.papers.features' has no attribute {name!r}")
    value = getattr(import_module(f"tinykernel.papers.features.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(globals().keys() | set(__all__))
