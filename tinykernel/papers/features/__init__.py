"""Random feature maps of the source papers as scikit-learn transformers."""

from __future__ import annotations

from tinykernel.papers.features.base import neighbour_distance
from tinykernel.papers.features.fastfood import RMBCSIK, Fastfood
from tinykernel.papers.features.fourier import BCSIK, RandomFourierFeatures

__all__ = ["BCSIK", "RMBCSIK", "Fastfood", "RandomFourierFeatures", "neighbour_distance"]
