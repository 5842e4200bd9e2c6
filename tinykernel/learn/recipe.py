"""The recipe of a training: options of classifiers and regressors, and what is searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from tinykernel.base.checks import DEFAULT_LAYOUT, check_count, is_layout, thread_count
from tinykernel.base.errors import OptionError
from tinykernel.base.hadamard import LANES
from tinykernel.base.options import KERNELS, SEPARABLE, declared, option
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


LOSSES = ("squared", "absolute")


def _loss(name: str, value: Any) -> None:
    if isinstance(value, str) and value in LOSSES:
        return
    is_list = hasattr(value, "__len__") and not isinstance(value, str)
    levels = list(value) if is_list else []
    good = all(isinstance(q, Real) and not isinstance(q, int) and 0 < float(q) < 1 for q in levels)
    if not levels or not good or sorted(set(levels)) != levels:
        raise OptionError(
            f"{name}: {value!r}; give {', '.join(LOSSES)}, or levels of quantiles above 0 and "
            "below 1, ascending, e.g. (0.1, 0.5, 0.9)"
        )


@dataclass(kw_only=True, eq=False, repr=False)
class ValueParameters:
    """The options of regressors alone."""

    loss: str | Sequence[float] = option(
        "squared",
        _loss,
        'Loss to minimise. "squared" predicts the mean; "absolute" the median, which outliers '
        "hardly change. Levels such as (0.1, 0.5, 0.9) predict quantiles, with an output for each: "
        "here an 80 % interval and the median.",
        kind='{"squared", "absolute"} or sequence of float',
    )


@declared
@dataclass(kw_only=True, eq=False, repr=False)
class RegressorOptions(ValueParameters, TrainerOptions):
    """All options of the trainer of a regressor.

    Parameters
    ----------
    {options}

    Examples
    --------
    >>> RegressorOptions(n_components=64, loss=(0.1, 0.9)).losses(1)
    (0.1, 0.9)
    """

    # Smooth values need learned starts and widths more than many components: docs/training.md.
    usual_layout: ClassVar[str] = "windows"
    by_gradients: ClassVar[tuple[str, ...]] = (KERNELS, SEPARABLE)
    bits_beside: ClassVar[int | None] = 8
    class_weight: ClassVar[None] = None  # type: ignore[misc]

    def width(self) -> int | str:
        """Return the bits of quantized inputs; 8 leave more of 32 to a linear part."""
        return "auto" if self.linear == "off" else 8

    def levels(self) -> tuple[float, ...]:
        """Return the losses of one value (`Recipe.losses`)."""
        if isinstance(self.loss, str):
            return (0.0,) if self.loss == "squared" else (0.5,)
        return tuple(map(float, self.loss))

    def losses(self, n_values: int) -> tuple[float, ...]:
        """Return the losses of all outputs, those of a value side by side."""
        return self.levels() * n_values

    def names(self, values: Sequence[str]) -> tuple[str, ...]:
        """Return the names of all outputs."""
        if isinstance(self.loss, str):
            return tuple(values)
        return tuple(f"{value} q{level:g}" for value in values for level in self.levels())
