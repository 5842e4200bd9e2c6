"""Trees and ensembles of trees of scikit-learn."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import ConvertError
from tinykernel.conversion.ensemble import Ensemble, ForeignTree, as_double, bounds_of


def ensemble_of(model: Any) -> Ensemble:
    """Return the trees of a fitted tree or ensemble."""
    name = type(model).__name__
    if not any(hasattr(model, part) for part in ("tree_", "estimators_", "_predictors")):
        raise ConvertError(f"convert: the {name} is not fitted")
    if name.startswith("HistGradient"):
        return _histograms(model)
    if name.startswith("GradientBoosting"):
        return _boosted(model)
    return _isolation(model) if name == "IsolationForest" else _averaged(model)


def _tree(estimator: Any, value: NDArray[np.float64], output: int = 0) -> ForeignTree:
    """Return a tree of scikit-learn with other values."""
    tree = estimator.tree_
    missing = getattr(tree, "missing_go_to_left", None)
    takes = missing is not None and bool(np.any(missing))
    takes |= bool(estimator.__sklearn_tags__().input_tags.allow_nan) and missing is not None
    return ForeignTree(
        tree.children_left.astype(np.int64),
        tree.children_right.astype(np.int64),
        np.maximum(tree.feature, 0).astype(np.int64),
        tree.threshold.astype(np.float64),
        np.asarray(missing, dtype=bool) if takes else None,
        value,
        output,
    )


def _averaged(model: Any) -> Ensemble:
    """Return a tree, or a forest: the mean of its trees."""
    trees = [model] if hasattr(model, "tree_") else list(model.estimators_)
    if model.n_outputs_ > 1 and hasattr(model, "classes_"):
        raise ConvertError("convert: a classifier of several labels a row is not supported")
    if not hasattr(model, "classes_"):
        values = [estimator.tree_.value[:, :, 0] / len(trees) for estimator in trees]
        base = np.zeros(model.n_outputs_)
        read = [_tree(t, v) for t, v in zip(trees, values, strict=True)]
        return Ensemble(read, base, None, share_of="mean")
    classes = tuple(np.asarray(model.classes_).tolist())
    shares = [t.tree_.value[:, 0, :] / t.tree_.value[:, 0, :].sum(axis=1)[:, None] for t in trees]
    if len(classes) == 2:
        shares = [share[:, 1:] - share[:, :1] for share in shares]
    n_outputs = 1 if len(classes) == 2 else len(classes)
    read = [_tree(t, share) for t, share in zip(trees, shares, strict=True)]
    return Ensemble(read, np.zeros(n_outputs), classes, size=len(trees))


def _boosted(model: Any) -> Ensemble:
    """Return gradient boosted trees: one a class, or one in all."""
    if model.init_ != "zero" and type(model.init_).__name__ not in (
        "DummyClassifier",
        "DummyRegressor",
    ):
        raise ConvertError("convert: an init of its own is not supported")
    start = np.zeros((1, model.n_features_in_), dtype=np.float32)
    base = np.asarray(model._raw_predict_init(start), dtype=np.float64).ravel()
    trees = [
        _tree(estimator, model.learning_rate * estimator.tree_.value[:, 0, :], output)
        for output in range(base.size)
        for estimator in model.estimators_[:, output]
    ]
    classes = getattr(model, "classes_", None)
    known = None if classes is None else tuple(classes.tolist())
    return Ensemble(trees, base, known, ties_up=base.size == 1 and known is not None)


def _histograms(model: Any) -> Ensemble:
    """Return trees of histograms, which compare float64."""
    classes = getattr(model, "classes_", None)
    loss = type(model._loss).__name__
    curve = "power" if loss in ("HalfPoissonLoss", "HalfGammaLoss") else ""
    is_sum = curve or loss in ("HalfSquaredError", "AbsoluteError", "PinballLoss")
    if classes is None and not is_sum:
        raise ConvertError(f"convert: values of the loss {model.loss!r} are no sums of leaves")
    base = np.asarray(model._baseline_prediction, dtype=np.float64).ravel()
    trees = []
    for output in range(base.size):
        for stage in model._predictors:
            nodes = stage[output].nodes
            leaf = nodes["is_leaf"].astype(bool)
            trees.append(
                ForeignTree(
                    np.where(leaf, -1, nodes["left"].astype(np.int64)),
                    np.where(leaf, -1, nodes["right"].astype(np.int64)),
                    nodes["feature_idx"].astype(np.int64),
                    nodes["num_threshold"].astype(np.float64),
                    nodes["missing_go_to_left"].astype(bool),
                    nodes["value"].astype(np.float64)[:, None],
                    output,
                    _sets(stage[output]),
                )
            )
    known = None if classes is None else tuple(classes.tolist())
    return Ensemble(trees, base, known, as_double, curve=curve)


def _sets(tree: Any) -> dict[int, tuple[float, ...]]:
    """Return the encoded categories to the left of each node that splits by them."""
    nodes, bits = tree.nodes, np.arange(32)
    return {
        node: bounds_of(np.flatnonzero(tree.raw_left_cat_bitsets[row][:, None] >> bits & 1))
        for node, row in enumerate(nodes["bitset_idx"].tolist())
        if nodes["is_categorical"][node] and not nodes["is_leaf"][node]
    }


def _isolation(model: Any) -> Ensemble:
    """Return an isolation forest: sums of depths, novel (-1) below a limit."""
    from sklearn.ensemble._iforest import _average_path_length

    trees = []
    for estimator, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        tree = estimator.tree_
        depth = tree.compute_node_depths()  # 1 for the root
        length = depth + _average_path_length(tree.n_node_samples) - 1.0
        read = _tree(estimator, length[:, None])
        of_inputs = np.asarray(columns, dtype=np.int64)[read.column]
        trees.append(replace(read, column=of_inputs))
    # A score -2^(-mean / mean of all) below the offset is a mean depth below a limit.
    every = float(_average_path_length([model._max_samples])[0])
    limit = -np.log2(-model.offset_) * every * len(trees)
    return Ensemble(trees, np.array([-limit]), (-1, 1), ties_up=True, share_of="limit")
