"""Boosted trees of LightGBM and XGBoost, as their own dumps have them."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import ConvertError
from tinykernel.conversion.ensemble import Ensemble, ForeignTree, bounds_of
from tinykernel.model.integer import IntegerModel

_BINARY = ("binary", "cross_entropy", "binary:logistic", "binary:hinge")
_CLASSES = ("multiclass", "multiclassova", "multi:softprob", "multi:softmax")
_VALUES = (
    *("regression", "regression_l1", "huber", "fair", "quantile", "mape", "reg:squarederror"),
    *("reg:absoluteerror", "reg:pseudohubererror", "reg:quantileerror", "reg:linear"),
)


def ensemble_of(model: Any) -> Ensemble:
    """Return the trees of a Booster, or of a fitted model of the interface of scikit-learn."""
    return _light(model) if type(model).__module__.startswith("lightgbm") else _extreme(model)


def predicted(booster: Any, X: NDArray[Any], converted: IntegerModel) -> NDArray[Any]:
    """Return the labels or values that a Booster predicts."""
    if type(booster).__module__.startswith("lightgbm"):
        raw = np.asarray(booster.predict(X))
    else:
        from xgboost import DMatrix

        names = booster.feature_names
        raw = np.asarray(booster.predict(DMatrix(X, feature_names=names)))
    if converted.is_regressor:
        return raw
    if raw.ndim == 1 and converted.n_classes > 2:  # softmax gives labels
        return np.asarray(np.array(converted.classes)[raw.astype(int)])
    label = raw.argmax(axis=1) if raw.ndim == 2 else (raw > 0.5).astype(int)
    return np.asarray(np.array(converted.classes)[label])


def _classes(model: Any, objective: str, n: int) -> tuple[Any, ...] | None:
    """Return the labels of an objective; None of values."""
    if objective in _VALUES:
        return None
    if objective not in (*_BINARY, *_CLASSES):
        raise ConvertError(f"convert: the objective {objective!r} is no sum of leaves")
    if objective in _BINARY and n > 1:
        raise ConvertError("convert: a classifier of several labels a row is not supported")
    known = getattr(model, "classes_", None)
    return tuple(range(max(n, 2))) if known is None else tuple(np.asarray(known).tolist())


def _light(model: Any) -> Ensemble:
    """Return the trees of LightGBM, which compares float64."""
    dump = getattr(model, "booster_", model).dump_model()
    objective, *options = dump.get("objective", "").split(" ")
    if "sqrt" in options:
        raise ConvertError("convert: reg_sqrt makes squares of sums, which are not supported")
    n = int(dump["num_tree_per_iteration"])
    share = n / len(dump["tree_info"]) if dump.get("average_output") else 1.0
    trees = [_light_tree(tree, i % n, share) for i, tree in enumerate(dump["tree_info"])]
    trees.sort(key=lambda tree: tree.output)
    classes = _classes(model, objective, n)
    return Ensemble(trees, np.zeros(n), classes, cast=lambda seen: seen.astype(np.float64))


def _light_tree(tree: dict[str, Any], output: int, share: float) -> ForeignTree:
    """Return a tree of a dump, which is nested."""
    nodes: list[tuple[int, int, int, float, bool, float]] = []
    waiting: list[tuple[dict[str, Any], int, int]] = [(tree["tree_structure"], -1, 0)]
    bounds = dict[int, tuple[float, ...]]()
    while waiting:
        node, parent, side = waiting.pop()
        place = len(nodes)
        if parent >= 0:
            children = list(nodes[parent])
            children[side] = place
            nodes[parent] = tuple(children)  # type: ignore[assignment]
        if "split_feature" not in node:
            if node.get("leaf_coeff"):
                raise ConvertError("convert: leaves of linear_tree are not supported")
            nodes.append((-1, -1, 0, 0.0, True, float(node["leaf_value"]) * share))
            continue
        threshold, kind, goes_left = node["threshold"], node["missing_type"], False
        if node["decision_type"] == "==":  # whole parts that are one of the categories
            bounds[place] = bounds_of(np.array(threshold.split("||"), dtype=np.int64))
            if bounds[place][0] == 0:
                bounds[place] = (float(np.nextafter(-1.0, 0.0)), *bounds[place][1:])
            threshold = 0.0
        elif kind == "Zero":
            raise ConvertError("convert: zero_as_missing is not supported")
        else:
            goes_left = bool(node["default_left"]) if kind == "NaN" else threshold >= 0
        nodes.append((0, 0, int(node["split_feature"]), float(threshold), goes_left, 0.0))
        waiting += [(node["right_child"], place, 1), (node["left_child"], place, 0)]
    left, right, column, limit, missing, value = map(np.array, zip(*nodes, strict=True))
    return ForeignTree(left, right, column, limit, missing, value[:, None], output, bounds)


def _extreme(model: Any) -> Ensemble:
    """Return the trees of XGBoost, which compares float32: less than goes left."""
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    stopped_early = booster.attr("best_iteration") is not None
    best = getattr(model, "best_iteration", None) if stopped_early else None
    if best is not None:
        booster = booster[: best + 1]
    learner = json.loads(bytes(booster.save_raw("json")))["learner"]
    name = learner["gradient_booster"]["name"]
    if name != "gbtree":
        raise ConvertError(f"convert: boosters of the kind {name!r} are not supported")
    about, objective = learner["learner_model_param"], learner["objective"]["name"]
    n = max(1, int(about["num_class"]), int(about.get("num_target", 1)))
    content = learner["gradient_booster"]["model"]
    trees = [
        _extreme_tree(tree, output)
        for tree, output in zip(content["trees"], content["tree_info"], strict=True)
    ]
    trees.sort(key=lambda tree: tree.output)
    base = np.array(json.loads(about["base_score"]), dtype=np.float64, ndmin=1)
    if objective == "binary:logistic":
        base = np.log(base / (1 - base))
    base = np.broadcast_to(base, (n,))
    return Ensemble(trees, base, _classes(model, objective, n), below=np.less)


def _extreme_tree(tree: dict[str, Any], output: int) -> ForeignTree:
    """Return a tree of a dump."""
    if int(tree["tree_param"]["size_leaf_vector"]) > 1:
        raise ConvertError(
            "convert: trees of several outputs (multi_output_tree) are not supported"
        )
    left, right = (np.array(tree[f"{s}_children"], dtype=np.int64) for s in ("left", "right"))
    condition = np.array(tree["split_conditions"], dtype=np.float32).astype(np.float64)
    value = np.where(left < 0, condition, 0.0)[:, None]
    missing, bounds = np.array(tree["default_left"]).astype(bool), dict[int, tuple[float, ...]]()
    segments = zip(
        *(tree.get(f"categories_{s}", ()) for s in ("nodes", "segments", "sizes")), strict=True
    )
    for node, first, size in segments:  # these categories go right
        bounds[node] = bounds_of(np.array(tree["categories"][first : first + size]))
        left[node], right[node], missing[node] = right[node], left[node], not missing[node]
        condition[node] = 0.0
    column = np.array(tree["split_indices"], dtype=np.int64)
    return ForeignTree(left, right, column, condition, missing, value, int(output), bounds)
