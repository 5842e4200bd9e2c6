"""Models that compete within a budget: binary components, a linear part, a local stage.

Each candidate is as large as the budget allows. Where there is a choice, each is trained for a
short time, and the one that labels most of the rows held out right is trained for long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_sample_weight

from tinykernel import progress
from tinykernel.model.quantize import as_integer_model
from tinykernel.training.folds import Fold, trial_folds
from tinykernel.training.options import LINEAR_BITS

__all__ = ["Candidate", "better", "choose", "linear_widths"]

#: Options that only components have: who gives one of them asks for components.
_OF_COMPONENTS = ("n_components", "layout", "sigma", "noise")
_MOST_TRIAL_COMPONENTS = 4096
_IMAGE_EPOCHS = 6

Fit = Callable[..., Any]


@dataclass(frozen=True)
class Candidate:
    """A kind of model that keeps to the budget.

    Parameters
    ----------
    words : str
        What it is.
    parameters : dict of str to object
        Options of the classifier.
    flash : int
        Bytes, about.
    """

    words: str
    parameters: dict[str, Any]
    flash: int


def linear_widths(given: Mapping[str, Any], shape: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the widths of weights that a linear part may have, widest first."""
    asked = given.get("linear", "auto")
    if asked != "auto":
        return () if asked == "off" else (int(asked),)
    if shape is not None:
        return (4, 2)
    return () if any(name in given for name in _OF_COMPONENTS) else LINEAR_BITS[::-1]


def choose(
    candidates: Sequence[Candidate], X: NDArray[Any], y: NDArray[Any], given: Mapping[str, Any],
    groups: ArrayLike | None, fit: Fit,
) -> tuple[Candidate, str]:  # fmt: skip
    """Return the candidate that does best on rows held out, and in words how all did.

    `fit` takes parameters, X and y. Without a search, or without rows to judge by, it is the first.
    """
    if len(candidates) == 1 or given.get("search") is False:
        return candidates[0], ""
    codes = np.unique(y, return_inverse=True)[1].astype(np.int64)
    seed = int(check_random_state(given.get("random_state")).randint(2**31 - 1))
    folds = trial_folds(codes, groups, seed)
    if not folds:
        return candidates[0], ""
    shares = []
    for number, candidate in enumerate(candidates, start=1):
        parameters = _short(given, candidate, min(fold.inside.size for fold in folds))
        shares.append(np.mean([_share(fit, parameters, X, y, fold) for fold in folds]))
        text = f"{candidate.words}: {100 * shares[-1]:.2f} % of rows held out"
        progress.report("choosing a model", number, len(candidates), text)
    best = better(shares, [candidate.flash for candidate in candidates])
    others = [
        f"{candidate.words} {100 * share:.1f} %"
        for candidate, share in zip(candidates, shares, strict=True)
        if candidate is not candidates[best]
    ]
    words = f"{100 * shares[best]:.1f} % of rows held out in a short training"
    return candidates[best], f"{words}; {', '.join(others)}"


def better(shares: Sequence[Any], flash: Sequence[int]) -> int:
    """Return which is most accurate, and of equals the smallest."""
    return max(range(len(shares)), key=lambda i: (round(float(shares[i]), 6), -flash[i]))


def _short(given: Mapping[str, Any], candidate: Candidate, n_rows: int) -> dict[str, Any]:
    """Return the parameters of a short training."""
    parameters = {**given, **candidate.parameters, "search": False, "verbose": 0}
    for name in ("validation_fraction", "patience", "teacher_share"):
        parameters.pop(name, None)
    numbers = parameters.get("n_components")
    if isinstance(numbers, Mapping):
        layout, number = next(iter(numbers.items()))
        parameters |= {"layout": layout, "n_components": min(number, _MOST_TRIAL_COMPONENTS)}
        epochs = int(np.clip(round(10 * np.sqrt(60000 / n_rows)), 6, 40))
        parameters["epochs"] = min(epochs, given.get("epochs") or epochs)
    elif parameters.get("n_kernels") and "image_shape" in parameters:
        parameters["epochs"] = min(_IMAGE_EPOCHS, given.get("epochs") or _IMAGE_EPOCHS)
    return parameters


def _share(
    fit: Fit, parameters: Mapping[str, Any], X: NDArray[Any], y: NDArray[Any], fold: Fold
) -> float:
    """Return the share of the rows outside of a fold that a short training labels right."""
    with progress.observing(None):
        classifier = fit(parameters, X[fold.inside], y[fold.inside])
    if classifier.interrupted_:
        raise KeyboardInterrupt
    right = as_integer_model(classifier).predict(X[fold.outside]) == y[fold.outside]
    weight = compute_sample_weight(parameters.get("class_weight"), y[fold.outside])
    return float(np.average(right, weights=weight))
