"""Options of the trainer (`fields`, `regression`), and the recipe that follows from them."""

from __future__ import annotations

from tinykernel.training.options.declarations import declared
from tinykernel.training.options.fields import TrainerOptions
from tinykernel.training.options.forms import LINEAR_BITS, OF_TREES, form_of, parts_of
from tinykernel.training.options.ranges import MOST_COMPONENTS

__all__ = [
    "LINEAR_BITS",
    "MOST_COMPONENTS",
    "OF_TREES",
    "TrainerOptions",
    "declared",
    "form_of",
    "parts_of",
]
