"""Boosted trees, whose bytes are estimated."""

from typing import Any

import numpy as np
from _data import BALANCED, Data, accuracy
from sklearn.ensemble import HistGradientBoostingClassifier

from peers.building import Outcome
from peers.rows import held_out

__all__ = ["boosted_trees"]

_BOOSTED_CODE = 300


def boosted_bytes(model: Any, value_bytes: int) -> int:
    """Estimate a compact layout: input, threshold and jump of each split, a byte a leaf, code."""
    splits = leaves = 0
    for trees in model._predictors:
        for tree in trees:
            n = int(tree.nodes["is_leaf"].sum())
            leaves, splits = leaves + n, splits + len(tree.nodes) - n
    wide = 2 if model.n_features_in_ > 256 else 1
    return _BOOSTED_CODE + splits * (wide + value_bytes + 1) + leaves


def boosted_trees(name: str, part: Data, budget: int) -> Outcome | None:
    """Boost trees that fill the budget by estimate: leaves and rate are chosen."""
    classes, codes = np.unique(part.y, return_inverse=True)
    value_bytes = 1 if part.X.dtype == np.uint8 else 2
    each = (2 if part.X.shape[1] > 256 else 1) + value_bytes + 2
    n_outputs = 1 if len(classes) == 2 else len(classes)
    inside, outside = held_out(part)
    weight = "balanced" if name in BALANCED else None

    def fit(rows: np.ndarray, n_leaves: int, rate: float, rounds: int) -> Any:
        return HistGradientBoostingClassifier(
            max_iter=rounds,
            max_leaf_nodes=n_leaves,
            learning_rate=rate,
            early_stopping=False,
            class_weight=weight,
            random_state=0,
        ).fit(part.X[rows], codes[rows])

    shares = {}
    for n_leaves in (4, 8, 16, 32, 64):
        rounds = (budget - _BOOSTED_CODE) // (n_outputs * each * n_leaves)
        if rounds < 2:
            continue
        for rate in (0.1, 0.25, 0.5):
            labels = classes[fit(inside, n_leaves, rate, rounds).predict(part.X[outside])]
            shares[n_leaves, rate, rounds] = accuracy(name, part.y[outside], labels)
    if not shares:
        return None
    chosen = max(shares, key=lambda key: shares[key])
    model = fit(np.arange(len(codes)), *chosen)
    what = f"{chosen[2] * n_outputs} trees of at most {chosen[0]} leaves"
    labels = classes[model.predict(part.X_test)]
    return Outcome(what, boosted_bytes(model, value_bytes), "estimate", labels)
