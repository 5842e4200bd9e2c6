"""Ensembles of several models whose sums, shares of leaves or votes add up."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import ConvertError
from tinykernel.conversion.ensemble import Ensemble, ForeignTree, votes_of

KINDS = (
    *("AdaBoostClassifier", "BaggingClassifier", "BaggingRegressor", "MultiOutputRegressor"),
    *("OneVsRestClassifier", "VotingClassifier", "VotingRegressor"),
)

_STEP = "binary:hinge"  # of XGBoost, whose probabilities are 0 and 1


def ensemble_of(model: Any, of: Callable[[Any], Ensemble]) -> Ensemble:
    """Return the trees of all members of a fitted model; `of` returns those of a member."""
    kind = type(model).__name__
    if any(
        getattr(member, "voting", "") == "hard" or getattr(member, "objective", "") == _STEP
        for member in model.estimators_
    ):
        raise ConvertError(
            f"convert: members of the {kind} have no probabilities, only labels; take members "
            "with voting='soft', or an objective such as 'binary:logistic'"
        )
    parts = [_of_columns(model, i, of(member)) for i, member in enumerate(model.estimators_)]
    if any(part.curve for part in parts):
        raise ConvertError(f"convert: a {kind} of models with a link adds up no sums of leaves")
    if kind in ("OneVsRestClassifier", "MultiOutputRegressor"):
        return _one_each(model, parts)
    if kind.endswith("Regressor"):
        weights = _weights(model) / _weights(model).sum()
        return _joined(parts, [part.times(w) for part, w in zip(parts, weights, strict=True)], None)
    return _of_shares(model, parts)


def _weights(model: Any) -> NDArray[np.float64]:
    """Return what each member counts."""
    weights = np.ones(len(model.estimators_))
    if getattr(model, "estimator_weights_", None) is not None:
        weights = np.asarray(model.estimator_weights_, dtype=np.float64)[: weights.size]
    elif getattr(model, "weights", None) is not None:
        weights = np.asarray(model._weights_not_none, dtype=np.float64)
    return weights


def _of_columns(model: Any, number: int, part: Ensemble) -> Ensemble:
    """Return a member that names columns of the whole model."""
    if not hasattr(model, "estimators_features_"):
        return part
    columns = np.asarray(model.estimators_features_[number], dtype=np.int64)
    return replace(part, trees=[replace(t, column=columns[t.column]) for t in part.trees])


def _joined(parts: Sequence[Ensemble], scaled: Sequence[Ensemble], classes: Any) -> Ensemble:
    """Return the sum of members, which have to compare alike."""
    first = parts[0]
    if any(part.cast is not first.cast or part.below is not first.below for part in parts):
        raise ConvertError(
            "convert: members of several libraries compare inputs in several ways; take trees of "
            "one sort, or let it teach: tinykernel.train(X, y, teacher=...)"
        )
    trees = sorted((t for part in scaled for t in part.trees), key=lambda tree: tree.output)
    base = np.sum([part.base for part in scaled], axis=0)
    return replace(first, trees=trees, base=base, classes=classes, share_of="", ties_up=False)


def _one_each(model: Any, parts: Sequence[Ensemble]) -> Ensemble:
    """Return one sum a class or value, each of a member."""
    classes = getattr(model, "classes_", None)
    known = None if classes is None else tuple(np.asarray(classes).tolist())
    ones = [part.with_one_sum() for part in parts]
    if any(part.base.size != 1 for part in ones):
        raise ConvertError(f"convert: members of the {type(model).__name__} have several outputs")
    if len({part.size for part in ones}) > 1:
        ones = [part.times(1 / part.size) if part.size else part for part in ones]
    if known is not None and len(known) == 2:  # values of regressors are compared with one half
        base = ones[0].base - (0.5 if ones[0].classes is None else 0.0)
        return replace(ones[0], base=base, classes=known, ties_up=False)
    scaled = [
        replace(
            part,
            trees=[replace(tree, output=i) for tree in part.trees],
            base=part.base * (np.arange(len(ones)) == i),
        )
        for i, part in enumerate(ones)
    ]
    return replace(_joined(parts, scaled, known), size=0.0)


def _of_shares(model: Any, parts: Sequence[Ensemble]) -> Ensemble:
    """Return the trees of a vote: shares of classes, or of each tree its class."""
    kind, classes = type(model).__name__, tuple(np.asarray(model.classes_).tolist())
    is_hard = kind == "AdaBoostClassifier" or getattr(model, "voting", "") == "hard"
    if any(not part.size for part in parts):
        raise ConvertError(
            f"convert: the probabilities of a member of the {kind} are no shares of leaves; take "
            "trees or forests, or let it teach: tinykernel.train(X, y, teacher=...)"
        )
    if is_hard and any(part.size != 1 for part in parts):
        raise ConvertError(
            f"convert: votes of forests in a {kind} are no sums of leaves; take single trees, or "
            "voting='soft'"
        )
    weights, n, scaled = _weights(model), len(classes), list[Ensemble]()
    is_even = np.ptp(weights / [part.size for part in parts]) == 0  # whole numbers stay so
    if getattr(model, "voting", "") == "hard" and not is_even and np.any(weights % 2.0**-8):
        raise ConvertError(
            f"convert: votes of a {kind} with weights such as {weights[0]:.3g} tie by the last "
            "bits of their sums; give whole numbers as weights"
        )
    for member, part, weight in zip(model.estimators_, parts, weights, strict=True):
        at = list(member.classes_)
        if kind == "AdaBoostClassifier":  # which are labels here, and places of them elsewhere
            at = [classes.index(label) for label in np.asarray(member.classes_).tolist()]
        factor = 1.0 if is_even else weight / part.size
        trees = [_voting(tree, np.array(at, dtype=int), n, is_hard, factor) for tree in part.trees]
        scaled.append(replace(part, trees=trees, base=np.zeros(trees[0].value.shape[1])))
    size = float(sum(part.size for part in parts) if is_even else weights.sum())
    if kind == "AdaBoostClassifier":  # decisions add up to 1, those between two classes to 2
        return replace(_joined(parts, scaled, classes).times((1 + (n == 2)) / size), size=0.0)
    return replace(_joined(parts, scaled, classes), size=size)


def _voting(
    tree: ForeignTree, at: NDArray[np.intp], n: int, is_hard: bool, factor: float
) -> ForeignTree:
    """Return a tree whose leaves have shares of all classes, or of two their difference."""
    value = tree.value
    if value.shape[1] < at.size:  # of two classes the difference
        value = np.hstack([(1 - value) / 2, (1 + value) / 2])
    if is_hard:
        value = votes_of(value)
    shares = np.zeros((len(value), n))
    shares[:, at] = factor * value
    return replace(tree, value=np.diff(shares) if n == 2 else shares)
