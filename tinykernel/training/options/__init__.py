"""Options of the trainer (`fields`, `regression`), and the recipe that follows from them."""

from tinykernel.training.options.declarations import declared
from tinykernel.training.options.fields import TrainerOptions
from tinykernel.training.options.ranges import LINEAR_BITS, MOST_COMPONENTS

__all__ = ["LINEAR_BITS", "MOST_COMPONENTS", "TrainerOptions", "declared"]
