"""The recipe that the trainer works by: options, and what is searched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from tinykernel.checks import check_choice, check_count, thread_count
from tinykernel.errors import TinykernelError
from tinykernel.training.layouts import LAYOUTS
from tinykernel.training.options.fields import TrainerOptions
from tinykernel.training.options.forms import DEFAULT_LAYOUT, form_of, parts_of

_WORD = 32


@dataclass(frozen=True)
class Recipe:
    """How one model is trained: what follows from the options, and what is searched.

    Parameters
    ----------
    layout : str
    n_components : int
        p.
    epochs : int
    batch_rows : int
        Rows of a mini-batch, a multiple of 32.
    sigma : float or None
        Kernel width at the start, in scaled inputs; None takes it from `sigma_multiple`.
    sigma_multiple : float
        sigma over the mean distance to the 50th neighbour.
    noise : float
        Gaussian noise is added to P H B x so that the phases of the first components vary by this
        deviation, in radians: the length of the noise vector is `noise` times sigma.
    peak_step : float
        Largest step of Adam, for the weights; one cycle.
    gain : float
        First value of a in ``logits = a / sqrt(p) (W z) + offset``.
    linear_bits : {2, 4, 8} or None
        Bits of the weights of a linear part; None without one.
    seed : int
    n_threads : int
        Changes nothing but the time.
    losses : tuple of float
        What each output of a regressor minimises: 0 for the squared error, or the level of a
        quantile. Empty for classes.
    """

    layout: str = DEFAULT_LAYOUT
    n_components: int = 4096
    epochs: int = 30
    batch_rows: int = 128
    sigma: float | None = None
    sigma_multiple: float = 1.0
    noise: float = 0.3
    peak_step: float = 1.5e-3
    gain: float = 2.0
    linear_bits: int | None = None
    seed: int = 0
    n_threads: int = 1
    losses: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot be trained."""
        check_choice("layout", self.layout, tuple(LAYOUTS))
        check_count("n_components", self.n_components, 0)
        for name in ("epochs", "n_threads"):
            check_count(name, getattr(self, name))
        if self.batch_rows % _WORD or self.batch_rows < _WORD:
            raise TinykernelError(f"batch_rows: {self.batch_rows}; give a multiple of {_WORD}")

    @property
    def form(self) -> str:
        """Name of layout and linear part, as in `TrainerOptions.capacity`."""
        return form_of(self.layout if self.n_components else None, self.linear_bits)

    def in_form(self, form: str, n_components: int) -> Recipe:
        """Return the same in another form, with so many components."""
        layout, bits = parts_of(form)
        return replace(
            self, layout=layout or self.layout, linear_bits=bits, n_components=n_components
        )


def recipe_for(options: TrainerOptions, n_rows: int, usual: Mapping[str, Any]) -> Recipe:
    """Return the recipe for so many rows before anything is searched; see `TrainSet.usual`."""
    capacity = options.capacity()
    form = next(iter(capacity))
    layout, linear_bits = parts_of(form)
    known: dict[str, Any] = {
        "layout": layout or DEFAULT_LAYOUT,
        "linear_bits": linear_bits,
        "n_components": capacity[form],
        "epochs": options.epochs or usual_epochs(n_rows),
        "batch_rows": 64 if n_rows < 4000 else 128 if n_rows < 200000 else 256,
        "seed": int(check_random_state(options.random_state).randint(2**31 - 1)),
        "n_threads": thread_count(options.n_jobs),
    }
    if options.sigma is not None:
        known |= {"sigma": float(options.sigma), "sigma_multiple": 1.0}
    if options.noise is not None:
        known["noise"] = float(options.noise)
    return Recipe(**known | dict(usual))


def usual_epochs(n_rows: int) -> int:
    """Return how often so many rows are learned from.

    >>> usual_epochs(60000), usual_epochs(1000)
    (30, 120)
    """
    return int(np.clip(round(30 * np.sqrt(60000 / n_rows)), 6, 120))
