"""The recipe of a training: options of classifiers and regressors, and what is searched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from tinykernel.base.checks import DEFAULT_LAYOUT, check_count, is_layout, thread_count
from tinykernel.base.errors import OptionError
from tinykernel.base.hadamard import LANES
from tinykernel.learn.options import TrainerOptions

# Rows times components that a training of classes goes through, about, but in so many epochs.
_WORK, _FEWEST_EPOCHS = 1.2e9, 30


@dataclass(frozen=True)
class Recipe:
    """How one model is trained."""

    layout: str = DEFAULT_LAYOUT
    n_components: int = 4096
    epochs: int = 30
    batch_rows: int = 128  # a multiple of 32.
    sigma: float | None = None  # first kernel width, in scaled inputs; None: `sigma_multiple`.
    sigma_multiple: float = 1.0  # sigma over the mean distance to the 50th neighbour.
    noise: float = 0.3  # length of the noise added to P H B x, over sigma: radians of the phase.
    peak_step: float = 1.5e-3  # largest step of Adam, for the weights; one cycle.
    gain: float = 2.0  # first value of a in ``logits = a / sqrt(p) (W z) + offset``.
    linear_bits: int | None = None  # {2, 4, 8}, or None without a linear part.
    lead: float = 1.0  # of the linear part: its steps are so many times larger, the gain smaller.
    seed: int = 0
    draw: int | None = None  # of B and P, by number; None: the first one.
    n_threads: int = 1  # does not change the result.
    # Loss of each output of a regressor: 0 for the squared error, or the level of a quantile.
    losses: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Refuse values that are not allowed."""
        if not is_layout(self.layout):
            raise OptionError(f"layout: {self.layout!r} is not a layout")
        check_count("n_components", self.n_components, 0)
        for name in ("epochs", "n_threads"):
            check_count(name, getattr(self, name))
        if self.batch_rows % LANES or self.batch_rows < LANES:
            raise OptionError(f"batch_rows: {self.batch_rows}; give a multiple of {LANES}")


def recipe_for(
    options: TrainerOptions, n_rows: int, losses: tuple[float, ...], **size: Any
) -> Recipe:
    """Return a recipe with usual values; `size` are its layout, components and linear part."""
    n_components = size["n_components"]
    values: dict[str, Any] = size | {
        "epochs": options.epochs or usual_epochs(n_rows, 0 if losses else n_components),
        "batch_rows": 64 if n_rows < 4000 else 128 if n_rows < 200000 else 256,
        "seed": seed_of(options),
        "n_threads": thread_count(options.n_jobs),
    }
    if options.sigma is not None:
        values |= {"sigma": float(options.sigma), "sigma_multiple": 1.0}
    if losses:
        values |= {"losses": losses, "gain": 0.5}
    return Recipe(**values)


def seed_of(options: TrainerOptions) -> int:
    """Return the seed of a training."""
    return int(check_random_state(options.random_state).randint(2**31 - 1))


def usual_epochs(n_rows: int, n_components: int = 0) -> int:
    """Return the epochs for a number of rows, fewer for very many components.

    3200 rows are learned as well by 31,520 components in 40 epochs as in 120.

    >>> usual_epochs(60000), usual_epochs(1000), usual_epochs(1000, 30000)
    (30, 120, 40)
    """
    usual = int(np.clip(round(30 * np.sqrt(60000 / n_rows)), 6, 120))
    enough = int(_WORK / (n_rows * max(n_components, 1)))
    return min(usual, max(enough, _FEWEST_EPOCHS))
