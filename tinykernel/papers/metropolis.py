"""Metropolis-Hastings: frequencies of a spectral density that has no sampler of its own (002)."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from tinykernel.checks import check_count
from tinykernel.errors import OptionError

LogDensity = Callable[[NDArray[np.float64]], NDArray[Any]]
_WALKS = 64


def metropolis_hastings(
    log_density: LogDensity,
    n_features: int,
    n_samples: int,
    *,
    burn_in: int = 500,
    thinning: int = 20,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[NDArray[np.float64], float]:
    """Draw from a density that is known up to a factor, by random walks from the origin (002).

    A walk proposes ``w' = w + step N(0, I)`` and goes there with probability
    ``min(1, p(w') / p(w))``. The step, ``2.38 / sqrt(n_features)``, is the best for a density of
    unit variance (Roberts, Gelman & Gilks 1997). Up to 64 walks run side by side, and every
    `thinning`-th position after `burn_in` steps is a sample.

    The code printed in 002 draws with replacement from the last 990 positions of one walk, so that
    samples repeat. Its Gaussian density is ``exp(-||w|| / 2)``, without the square, and its Cauchy
    density lacks the square of w too: it is negative for w < -1.

    Parameters
    ----------
    log_density : callable
        Takes positions (n, n_features), returns n natural logarithms; -infinity where p is 0.
    n_features, n_samples, burn_in, thinning : int
    random_state : int, RandomState or None

    Returns
    -------
    samples : ndarray, shape (n_samples, n_features)
    rate : float
        Share of the proposals after the burn-in that were accepted.

    Examples
    --------
    >>> samples, rate = metropolis_hastings(lambda w: -0.5 * (w**2).sum(axis=1), 2, 100)
    >>> samples.shape, 0.1 < rate < 0.6
    ((100, 2), True)
    """
    walks = min(_WALKS, check_count("n_samples", n_samples))
    rounds, d = -(-n_samples // walks), check_count("n_features", n_features)
    check_count("burn_in", burn_in, 0)
    n_steps = rounds * check_count("thinning", thinning)
    rng, here = check_random_state(random_state), np.zeros((walks, d))
    height = _heights(log_density, here)
    if np.isneginf(height).any():
        raise OptionError("log_density is -infinity at the origin, where the walks start")
    samples, accepted = np.empty((rounds, walks, d)), 0
    for turn in range(-burn_in, n_steps):
        proposal = here + 2.38 / np.sqrt(d) * rng.standard_normal(here.shape)
        proposed = _heights(log_density, proposal)
        accept = np.log(rng.uniform(size=walks)) < proposed - height
        here[accept], height[accept] = proposal[accept], proposed[accept]
        if turn >= 0:
            accepted += int(accept.sum())
            samples[turn // thinning] = here
    return samples.reshape(-1, d)[:n_samples], accepted / (n_steps * walks)


def _heights(log_density: LogDensity, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Call the user's function, and check what it returns."""
    values = np.asarray(log_density(points), dtype=np.float64)
    if values.shape != (len(points),) or np.isnan(values).any() or np.isposinf(values).any():
        raise OptionError(
            f"log_density must return {len(points)} numbers, finite or -infinity, for positions of "
            f"shape {points.shape}"
        )
    return values
