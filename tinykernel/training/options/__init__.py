"""What a user can tell the trainer (`fields`), and the recipe that it works by (`recipe`)."""

from __future__ import annotations

from tinykernel.training.options.fields import (
    AUGMENTATIONS,
    EFFORTS,
    IMAGE_AUGMENTATIONS,
    MOST_COMPONENTS,
    SIGNAL_AUGMENTATIONS,
    TrainerOptions,
    documented,
)
from tinykernel.training.options.forms import LINEAR_BITS, form_of, parts_of
from tinykernel.training.options.recipe import Recipe, recipe_for

__all__ = [
    "AUGMENTATIONS",
    "EFFORTS",
    "IMAGE_AUGMENTATIONS",
    "LINEAR_BITS",
    "MOST_COMPONENTS",
    "SIGNAL_AUGMENTATIONS",
    "Recipe",
    "TrainerOptions",
    "documented",
    "form_of",
    "parts_of",
    "recipe_for",
]
