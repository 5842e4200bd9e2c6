"""Options of the trainer of a regressor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

from tinykernel.errors import OptionError
from tinykernel.training.options.declarations import KERNELS, SEPARABLE, declared, option
from tinykernel.training.options.fields import TrainerOptions

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
