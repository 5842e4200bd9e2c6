"""Classifiers of scikit-learn that emlearn converts to C."""

import contextlib
import functools
import importlib
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _data import BALANCED, Data, accuracy
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from peers.building import Outcome, Sources, finished, flash_and_ram, header
from peers.rows import MOST_ROWS, TABLES, TRIAL_ROWS, balanced_rows, held_out

__all__ = ["emlearn_mlp", "emlearn_trees"]

_TREE_TRIES = 6


def _emlearn() -> Any:
    # Importing it sets numpy to raise on underflow, for everything that runs afterwards.
    with np.errstate():
        return importlib.import_module("emlearn")


@contextlib.contextmanager
def _in_folder() -> Iterator[None]:
    """Work in a folder of its own: emlearn writes and builds in the present one."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="tinykernel-") as name:
        os.chdir(name)
        try:
            yield
        finally:
            os.chdir(before)


def emlearn_sources(
    model: Any, call: str, raw: np.dtype[Any], n_inputs: int, **options: Any
) -> Sources:
    """Convert a scikit-learn classifier to C; `call` is the function of the generated code."""
    emlearn = _emlearn()
    with _in_folder():
        converted = emlearn.convert(model, **options)
        code = converted.save(name="net")
    text = '#include "peer.h"\n#include "model.h"\n'
    text += f"int32_t peer_predict(const peer_input_t *row)\n{{\n    return {call};\n}}\n"
    files = {"peer.h": header(raw, n_inputs), "model.h": code, "peer.c": text}
    return Sources(files, (Path(emlearn.includedir),))


def emlearn_mlp(name: str, part: Data, budget: int) -> Outcome | None:
    """Train perceptrons of float weights, which is what emlearn makes of them."""
    classes, codes = np.unique(part.y, return_inverse=True)
    n_inputs = part.X.shape[1]
    low, high = np.quantile(part.X[:TRIAL_ROWS].astype(np.float64), (0.001, 0.999))
    columns = name in TABLES and name not in ("har", "dna")
    mean = part.X.mean(axis=0, dtype=np.float64) if columns else (low + high) / 2
    spread = part.X.std(axis=0, dtype=np.float64) + 1e-9 if columns else (high - low) / 2
    X, X_test = (((given - mean) / spread).astype(np.float32) for given in (part.X, part.X_test))
    inside, outside = held_out(part)
    rows = np.random.default_rng(1).permutation(len(part.y))[:MOST_ROWS]

    def fit(rows: np.ndarray, n_hidden: int, penalty: float, epochs: int) -> MLPClassifier:
        drawn = rows[balanced_rows(part.y[rows])] if name in BALANCED else rows
        model = MLPClassifier((n_hidden,), alpha=penalty, max_iter=epochs, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(X[drawn], codes[drawn])

    convert = functools.partial(
        emlearn_sources,
        call=f"eml_net_predict(&net, row, {n_inputs})",
        raw=X.dtype,
        n_inputs=n_inputs,
        method="loadable",
    )
    n_outputs = 1 if len(classes) == 2 else len(classes)
    code, _ = flash_and_ram(convert(fit(inside[:500], 1, 0.0, 2)))
    n_hidden = 1 + (budget - code) // (4 * (n_inputs + 1 + n_outputs))
    if n_hidden < 1:
        return None
    shares = {}
    for penalty in (1e-4, 1e-2):
        labels = classes[fit(inside, n_hidden, penalty, 20).predict(X[outside])]
        shares[penalty] = accuracy(name, part.y[outside], labels)
    penalty = max(shares, key=lambda penalty: shares[penalty])
    epochs = int(np.clip(1_500_000 // len(rows), 20, 120))
    while True:
        sources = convert(fit(rows, n_hidden, penalty, epochs))
        flash, ram = flash_and_ram(sources)
        if flash <= budget:
            what = f"{n_hidden} hidden units, float"
            return finished(what, sources, flash, ram, X_test, classes)
        n_hidden -= 1


def emlearn_trees(name: str, part: Data, budget: int) -> Outcome | None:
    """Train random forests whose leaves fill the budget: how many trees is chosen."""
    classes, codes = np.unique(part.y, return_inverse=True)
    # emlearn's trees compare int16 and cut thresholds between whole numbers: values are spread out,
    # by the application.
    factor = 32000 / max(float(np.abs(part.X).max()), 1e-9)
    factor = max(1.0, np.floor(factor)) if part.X.dtype.kind != "f" else factor
    X, X_test = (
        np.clip(np.rint(given * factor), -32767, 32767).astype(np.int16)
        for given in (part.X, part.X_test)
    )
    weight = "balanced" if name in BALANCED else None
    inside, outside = held_out(part)
    rows = np.random.default_rng(1).permutation(len(part.y))[:MOST_ROWS]

    def fit(rows: np.ndarray, n_trees: int, n_leaves: int) -> RandomForestClassifier:
        model = RandomForestClassifier(
            n_trees,
            max_leaf_nodes=max(2, n_leaves),
            class_weight=weight,
            random_state=0,
            max_features=min(X.shape[1], max(16, int(2 * np.sqrt(X.shape[1])))),
        )
        return model.fit(X[rows], codes[rows])

    def smallest(model: RandomForestClassifier) -> tuple[int, int, Sources]:
        found = []
        for method in ("inline", "loadable")[: 2 if X.shape[1] <= 127 else 1]:
            for bits in (0, 4):
                sources = emlearn_sources(
                    model,
                    f"net_predict(row, {X.shape[1]})",
                    X.dtype,
                    X.shape[1],
                    method=method,
                    dtype="int16_t",
                    leaf_bits=bits,
                )
                found.append((bits, *flash_and_ram(sources), sources))
        # Shares in the leaves vote better than labels; where they cost much, the forest shrinks.
        bits, flash, ram, sources = min(found, key=lambda f: f[1] - 300 * (f[0] > 0))
        return flash, ram, sources

    tried = fit(inside, 4, 40)
    leaves = sum(tree.get_n_leaves() for tree in tried.estimators_)
    each = smallest(tried)[0] / leaves
    shares = {}
    for n_trees in (1, 3, 6, 10, 16, 30):
        n_leaves = int(budget / each / n_trees)
        if n_leaves >= 4:
            labels = classes[fit(inside, n_trees, n_leaves).predict(X[outside])]
            shares[n_trees] = accuracy(name, part.y[outside], labels)
    if not shares:
        return None
    n_trees = max(shares, key=lambda n: shares[n])
    n_leaves = int(budget / each / n_trees)
    largest = None
    for _ in range(_TREE_TRIES):  # up while there is room, down where there is none
        n_leaves = max(2, n_leaves)
        flash, ram, sources = smallest(fit(rows, n_trees, n_leaves))
        if flash <= budget and (largest is None or flash > largest[1]):
            largest = (f"{n_trees} trees of at most {n_leaves} leaves", flash, ram, sources)
        if 0.95 * budget <= flash <= budget:
            break
        n_leaves = int(n_leaves * 0.98 * budget / flash)
    if largest is None:
        return None
    what, flash, ram, sources = largest
    return finished(what, sources, flash, ram, X_test, classes)
