"""A model of every kind that there is C for: what each export, check and proof must serve."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

from tests.firmware.local_models import ALL, CONVOLUTIONS, LINEAR, SIGNALS
from tests.firmware.test_decisions import deciding
from tests.random_models import (
    EXACT,
    TABLES,
    changed,
    exact_trees,
    make_model,
    one_class,
    random_model,
    random_raw,
    tree_model,
)
from tinykernel.conversion.models import convert
from tinykernel.model.answers import Values
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.components.spec import Components

Maker = Callable[[], IntegerModel]


def regressor(model: IntegerModel) -> IntegerModel:
    """Return the model with values in place of labels."""
    names = tuple(f"value {i}" for i in range(model.n_outputs))
    return replace(model, answers=Values(names, 8))


def forest() -> IntegerModel:
    """Return trees that read bytes, and whose leaves have votes."""
    X, y = load_digits(return_X_y=True)
    model = RandomForestClassifier(3, max_depth=4, random_state=0).fit(X, y)
    return convert(model, X.astype(np.uint8))


def two_classes() -> IntegerModel:
    """Return squares, the second sum of which is taken from the first."""
    X, y = load_breast_cancer(return_X_y=True)
    return convert(GaussianNB().fit(X[:, :5], y), X[:, :5])


def curved(model: IntegerModel, curve: str, bits: int, shift: int = 8) -> IntegerModel:
    """Return a model whose values are a function of its totals."""
    names = regressor(model).answers.names
    return replace(model, answers=Values(names, shift, curve, bits))


def calibrated(make: Maker, answer: str) -> IntegerModel:
    """Return a model that answers always, with a margin, or with margins by label."""
    model = make()
    found = deciding(model, random_raw(model, 1, 40), answer == "known")
    decision = found.decision
    if answer == "always":
        none = np.zeros(1, np.uint32)
        decision = replace(decision, thresholds=none, novelty_threshold=None)
    if answer == "margin":
        decision = replace(decision, novelty_threshold=None)
    return replace(found, decision=decision)


def small_code(model: IntegerModel) -> IntegerModel:
    """Return the model with the transform that takes less flash."""
    return changed(model, replace(model.find(Components), small_code=True))


_ONE_OF_EACH: dict[str, Maker] = {
    "table": lambda: random_model(2, n_features=20, raw_dtype="float32"),
    "linear": LINEAR["4 bits, few inputs"],
    "image": CONVOLUTIONS["4-bit taps"],
    "float image": CONVOLUTIONS["float, odd sides, 4-bit levels"],
    "signal": SIGNALS["components"],
    "float signal": SIGNALS["16-bit counts, float"],
    "trees": lambda: tree_model(1),
}
EVERY: dict[str, Maker] = {
    **{
        f"table, {name}": lambda o=options: random_model(4, **o) for name, options in TABLES.items()
    },
    # Where no input varies, the checker of proofs once failed on rows that it did not have.
    "table, nothing varies": lambda: make_model(34, bits=8),
    "table, small code": lambda: small_code(random_model(4)),
    **ALL,
    **{
        f"{kind}, calibrated: {answer}": lambda make=make, answer=answer: calibrated(make, answer)
        for kind, make in _ONE_OF_EACH.items()
        for answer in ("always", "margin", "novelty", "known")
        if kind in ("table", "signal") or answer in ("novelty", "known")
    },
    **{
        f"one class, {k}": lambda make=make: one_class(make(), 3)
        for k, make in _ONE_OF_EACH.items()
    },
    **{f"values, {k}": lambda make=make: regressor(make()) for k, make in _ONE_OF_EACH.items()},
    "trees": lambda: tree_model(1),
    "trees of bytes, votes": forest,
    "squares, two classes": two_classes,
    "powers of 2": lambda: curved(tree_model(5), "power", 9),
    "powers of 2, wide": lambda: curved(LINEAR["4 bits, few inputs"](), "power", 26, 31),
    "squares": lambda: curved(tree_model(5), "square", 7),
    **{f"trees, {k}": lambda o=options: exact_trees(2, **o) for k, options in EXACT.items()},
    "trees beside a linear part": lambda: tree_model(2, linear=True),
    "trees of 8 bits": lambda: tree_model(4, bits=8),
    "trees, float32": lambda: tree_model(3, n_features=9, raw_dtype="float32"),
}
