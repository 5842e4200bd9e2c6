"""Planes of spectra."""

from collections.abc import Iterator

from tinykernel.pieces.piece import Sample
from tinykernel.pieces.plane.spec import Plane
from tinykernel.pieces.separable.sample import random_separable
from tinykernel.pieces.spectrum.sample import spectral


def samples(seed: int) -> Iterator[Sample]:
    """Yield planes before convolutions of whole windows, and of a stream."""
    for row_strides in (None, (2, 1)):
        raw, spectrum, hop = spectral(seed)
        plane = Plane().gives(spectrum.gives(raw))
        separable = random_separable(seed, plane, (4, 5), (1, 2), row_strides)
        yield Sample(raw, (spectrum, Plane(), separable), hop=hop)
