"""The recipe that the trainer works by: options, what is searched, and constants."""

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
    """How one model is trained: what follows from the options, what is searched, and constants.

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
    slope : float
        k of the surrogate derivative.
    peak_step : float
        Largest step of Adam, for the weights; one cycle: a linear rise over `warm_up` of the
        training, then half a cosine down to 0.
    window_factor, diagonal_factor, frequency_factor, offset_factor : float
        Steps of start and width (radians), G (unit variance), S (times 1 / sigma), and the class
        offsets, as multiples of that.
    warm_up : float
        Share of the steps.
    gain : float
        First value of a in ``logits = a / sqrt(p) (W z) + offset``.
    threshold : float
        Ternary weights are 0 below this multiple of the mean magnitude of their output.
    weight_spread : float
        Deviation of the first shadow weights.
    quantize_from : float
        Share of the training after which the forward pass uses the integers that are exported.
    linear_bits : {2, 4, 8} or None
        Bits of the weights of a linear part; None without one.
    linear_factor : float
        Step of these weights, as a multiple of `peak_step`.
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
    slope: float = 2.0
    peak_step: float = 1.5e-3
    window_factor: float = 10.0
    diagonal_factor: float = 15.0
    frequency_factor: float = 0.5
    offset_factor: float = 1.0
    warm_up: float = 0.1
    gain: float = 2.0
    threshold: float = 0.7
    weight_spread: float = 0.01
    quantize_from: float = 0.7
    linear_bits: int | None = None
    linear_factor: float = 7.0
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
