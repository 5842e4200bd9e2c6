"""Metropolis-Hastings sampling of a spectral density that has no sampler of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from tinykernel.errors import TinykernelError

LogDensity = Callable[[NDArray[np.float64]], NDArray[np.float64]]

# Acceptance rate at which a random walk in many dimensions mixes fastest (Roberts, Gelman & Gilks
# 1997), and in one dimension.
_BEST_RATE, _BEST_RATE_1D = 0.234, 0.44
_CHAINS = 64


class MetropolisSample(NamedTuple):
    """What `metropolis_hastings` returns.

    Attributes
    ----------
    samples : ndarray of float64, shape (n_samples, n_features)
    acceptance_rate : float
        Share of accepted proposals after the burn-in, in [0, 1]. Near 0 the chains stand still,
        near 1 the steps are too short; 0.2 to 0.5 is good.
    step : float
        Standard deviation of the proposals after the burn-in.
    """

    samples: NDArray[np.float64]
    acceptance_rate: float
    step: float


def _evaluate(log_density: LogDensity, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Call the user's function and check what it returns."""
    values = np.asarray(log_density(points), dtype=np.float64)
    if values.shape != (points.shape[0],):
        raise TinykernelError(
            f"log_density must return one value a row: shape ({points.shape[0]},) for an argument "
            f"of shape {points.shape}, got shape {values.shape}"
        )
    if np.isnan(values).any() or np.isposinf(values).any():
        raise TinykernelError("log_density returned NaN or +infinity; -infinity means density 0")
    return values


def metropolis_hastings(
    log_density: LogDensity,
    n_features: int,
    n_samples: int,
    *,
    burn_in: int = 500,
    thinning: int = 20,
    step: float | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> MetropolisSample:
    """Draw from a density that is known up to a factor, by random walks (002).

    A walk proposes ``w' = w + step * N(0, I)`` and goes there with probability
    ``min(1, p(w') / p(w))``. Many walks run side by side from the origin; every `thinning`-th
    position after the burn-in is a sample. (The code printed in 002 draws with replacement from one
    walk of 1000 steps, after 10 of them: neighbouring samples are then strongly correlated. Its
    Gaussian density lacks the square of the norm and its Cauchy density the square of w.)

    Parameters
    ----------
    log_density : callable
        Takes positions of shape (n_chains, n_features), returns the natural logarithm of the
        density at each, up to a constant, shape (n_chains,); -infinity where the density is 0.
    n_features : int
    n_samples : int
    burn_in : int
        Steps that are thrown away; the step size is tuned in them when it is not given.
    thinning : int
        Steps from one sample of a walk to its next.
    step : float, optional
        Standard deviation of the proposals; tuned to the best acceptance rate when not given
        (0.44 in one dimension, 0.234 in more).
    random_state : int, RandomState or None

    Returns
    -------
    MetropolisSample

    Raises
    ------
    TinykernelError
        If a number is out of range, the density is 0 at the origin, or `log_density` returns
        something else than one finite or -infinite number a row.

    Examples
    --------
    >>> sample = metropolis_hastings(lambda w: -0.5 * (w**2).sum(axis=1), 2, 1000, random_state=0)
    >>> sample.samples.shape, 0.1 < sample.acceptance_rate < 0.5
    ((1000, 2), True)
    """
    if min(n_features, n_samples, thinning) < 1 or burn_in < 0:
        raise TinykernelError(
            "metropolis_hastings: n_features, n_samples and thinning start at 1, burn_in at 0"
        )
    if step is not None and not 0 < step < np.inf:
        raise TinykernelError(f"metropolis_hastings: step must be positive, got {step}")
    rng = check_random_state(random_state)
    n_chains = min(_CHAINS, n_samples)
    per_chain = -(-n_samples // n_chains)
    here = np.zeros((n_chains, n_features))
    height = _evaluate(log_density, here)
    if np.isneginf(height).any():
        raise TinykernelError("log_density is -infinity at the origin, where the walks start")
    size = 2.38 / np.sqrt(n_features) if step is None else float(step)
    target = _BEST_RATE_1D if n_features == 1 else _BEST_RATE
    kept = np.empty((per_chain, n_chains, n_features))
    accepted = 0
    for turn in range(burn_in + per_chain * thinning):
        proposal = here + size * rng.standard_normal(here.shape)
        proposed = _evaluate(log_density, proposal)
        accept = np.log(rng.uniform(size=n_chains)) < proposed - height
        here[accept] = proposal[accept]
        height[accept] = proposed[accept]
        if turn < burn_in:
            if step is None:
                # Robbins-Monro: smaller and smaller corrections towards the target rate.
                size *= np.exp((accept.mean() - target) / np.sqrt(1 + turn / 10))
            continue
        accepted += int(accept.sum())
        after = turn - burn_in + 1
        if after % thinning == 0:
            kept[after // thinning - 1] = here
    rate = accepted / (per_chain * thinning * n_chains)
    samples = kept.reshape(-1, n_features)[:n_samples]
    return MetropolisSample(samples, rate, float(size))
