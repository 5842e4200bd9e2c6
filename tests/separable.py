"""Models with random separable convolutions."""

from typing import Any

from tests.random_fronts import model_behind
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.dense.sample import random_dense
from tinykernel.pieces.levels.sample import random_levels
from tinykernel.pieces.separable.sample import random_separable


def separable_model(
    seed: int,
    shape: tuple[int, int] = (9, 8),
    blocks: tuple[int, ...] = (4, 5),
    strides: tuple[int, ...] = (1, 2),
    *,
    weight_bits: int = 4,
    average: int = 1,
    n_classes: int = 3,
    layers_of: dict[str, Any] | None = None,
    units: int = 0,
    **front_fields: Any,
) -> IntegerModel:
    """Return a model whose linear part looks at the means of separable convolutions, or units."""
    sides = {"height": shape[0] * average, "width": shape[1] * average, "average": average}
    given, first = random_levels(seed, **sides, **front_fields)
    levels = first.gives(given)
    stages = [first, random_separable(seed, levels, blocks, strides, **layers_of or {})]
    if units:
        stages.append(random_dense(seed, stages[1].gives(levels), units, 8))
    options = {"weight_bits": weight_bits, "n_classes": n_classes}
    return model_behind(given, tuple(stages), seed, **options)
