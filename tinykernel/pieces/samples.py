"""Samples of pieces: random valid ones, with what they need in front of them."""

from typing import NamedTuple

from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Part, Stage


class Sample(NamedTuple):
    """A chain from raw inputs to a stage, or to a part that reads the last one.

    The function `samples` of each ``sample.py`` draws some by a seed. What follows, such as a
    scale, an offset and answers, is left to those who make a model of them.
    """

    input: Grid
    stages: tuple[Stage, ...]
    part: Part | None = None
    hop: int = 0  # samples of a stream from window to window.
