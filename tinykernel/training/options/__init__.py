"""What a user can tell the trainer (`fields`, `values`); `recipe` is what it works by."""

from __future__ import annotations

from tinykernel.training.options.fields import (
    AUGMENTATIONS,
    EFFORTS,
    IMAGE_AUGMENTATIONS,
    MOST_COMPONENTS,
    SIGNAL_AUGMENTATIONS,
    TrainerOptions,
    declared,
)
from tinykernel.training.options.forms import LINEAR_BITS, form_of, parts_of

__all__ = [
    "AUGMENTATIONS",
    "EFFORTS",
    "IMAGE_AUGMENTATIONS",
    "LINEAR_BITS",
    "MOST_COMPONENTS",
    "SIGNAL_AUGMENTATIONS",
    "TrainerOptions",
    "declared",
    "form_of",
    "parts_of",
]
