"""Boosted trees of LightGBM and XGBoost, as their own dumps have them."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.coding import Coding
from tinykernel.base.errors import ConvertError
from tinykernel.conversion import dumps
from tinykernel.conversion.checks import check_fields, damaged, intact
from tinykernel.conversion.ensemble import Ensemble, ForeignTree, as_double, bounds_of, redirected
from tinykernel.conversion.files import SavedBooster
from tinykernel.model.integer import IntegerModel

_INF = float("inf")
#: LightGBM: absolute values up to this are zeros.
_ZERO = float(np.float32(1e-35))
#: Objectives by what a sum of leaves is: the sigmoid or the sign of it says the class, the largest
#: one does, or the sum is the answer.
_BINARY = ("binary", "cross_entropy", "binary:logistic", "binary:hinge", "reg:logistic")
_CLASSES = ("multiclass", "multiclassova", "multi:softprob", "multi:softmax")
_VALUES = (
    *("regression", "regression_l1", "huber", "fair", "quantile", "mape", "custom"),
    *("lambdarank", "rank_xendcg", "reg:squarederror", "reg:squaredlogerror", "reg:linear"),
    *("reg:absoluteerror", "reg:pseudohubererror", "reg:quantileerror", "binary:logitraw"),
    *("reg:expectileerror", "rank:pairwise", "rank:ndcg", "rank:map"),
)
#: Objectives whose answer is exp of the sum.
_POWERS = (
    *("poisson", "gamma", "tweedie", "count:poisson", "reg:gamma", "reg:tweedie"),
    *("survival:cox", "survival:aft"),
)
_LOGITS = ("binary:logistic", "reg:logistic")
#: All fields of the formats. A field that is not here may change what a model predicts.
_FIELDS = {
    "LightGBM": {
        *("name", "version", "num_class", "num_tree_per_iteration", "label_index", "categorical"),
        *("max_feature_idx", "objective", "average_output", "feature_names", "feature_infos"),
        *("monotone_constraints", "tree_info", "feature_importances", "pandas_categorical"),
    },
    "a tree of LightGBM": {"tree_index", "num_leaves", "num_cat", "shrinkage", "tree_structure"},
    "a node of LightGBM": {
        *("split_index", "split_feature", "split_gain", "threshold", "decision_type"),
        *("default_left", "missing_type", "internal_value", "internal_weight", "internal_count"),
        *("left_child", "right_child", "leaf_index", "leaf_value", "leaf_weight", "leaf_count"),
    },
    "XGBoost": {
        *("attributes", "feature_names", "feature_types", "gradient_booster", "objective"),
        "learner_model_param",
    },
    "a booster of XGBoost": {"model", "name", "gbtree", "weight_drop"},
    "a model of XGBoost": {
        *("cats", "gbtree_model_param", "iteration_indptr", "tree_info", "trees", "weight_drop")
    },
    "a tree of XGBoost": {
        *("base_weights", "categories", "categories_nodes", "categories_segments", "id"),
        *("categories_sizes", "default_left", "left_children", "right_children", "parents"),
        *("loss_changes", "split_conditions", "split_indices", "split_type", "sum_hessian"),
        *("tree_param", "leaf_weights"),
    },
}


@dataclass(frozen=True)
class Tables:
    """The categories of the columns of a frame, in the order of their codes."""

    numbers: Mapping[int, tuple[float, ...]]  # compared as they are
    texts: Mapping[int, tuple[str, ...]]  # compared by their codes

    def redirected(self, column: int, lefts: Collection[int], missing: bool) -> tuple[float, ...]:
        """Return bounds that send some codes left, and what is no category where NaN goes."""
        bounds: tuple[float, ...] = (-_INF,) if missing else ()
        raw = self.numbers.get(column) or range(self.size(column))
        for code, number in enumerate(raw):
            # A float32 stands for all numbers that become it.
            single = np.float32(number)
            low, high = min(number, float(single)), np.nextafter(single, np.float32(_INF))
            bounds = redirected(bounds, low, float(high), code in lefts)
        return bounds

    @property
    def columns(self) -> set[int]:
        """The columns that have categories."""
        return {*self.numbers, *self.texts}

    def size(self, column: int) -> int:
        """Count the categories of a column."""
        return len(self.numbers.get(column) or self.texts[column])

    def codes(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Return raw rows with the codes of categories, NaN where there is none."""
        rows = rows.astype(np.float64)
        for column in self.texts:
            rows[rows[:, column] < 0, column] = np.nan
        for column, numbers in self.numbers.items():
            code = {number: float(place) for place, number in enumerate(numbers)}
            rows[:, column] = [code.get(cell, np.nan) for cell in rows[:, column].tolist()]
        return rows


def ensemble_of(model: Any) -> Ensemble:
    """Return the trees of a Booster, or of a fitted model of the interface of scikit-learn."""
    ensemble: Ensemble = _checked(model, _light if _is_light(model) else _extreme)
    return ensemble


def coding_of(model: Any) -> Coding | None:
    """Return the numbers that stand for categories of text; None without such."""
    names, tables = _names(model), _checked(model, _tables)
    if not tables.texts:
        return None
    texts = {str(names[column]): known for column, known in tables.texts.items()}
    return Coding(texts, dict.fromkeys(texts, -1.0))


def answers_of(model: Any, X: Any, rows: NDArray[Any]) -> NDArray[Any]:
    """Return what a model predicts of X, whose raw rows have numbers for text."""
    is_wrapper, tables = hasattr(model, "get_params"), _checked(model, _tables)
    if hasattr(X, "columns") and _has_categories(X, tables) and not isinstance(model, SavedBooster):
        if is_wrapper or _is_light(model):
            return np.asarray(model.predict(X))
        from xgboost import DMatrix

        return np.asarray(model.predict(DMatrix(X, enable_categorical=True)))
    codes = tables.codes(rows) if tables.columns else rows
    if isinstance(model, SavedBooster) or is_wrapper:
        return np.asarray(model.predict(codes))
    return np.asarray(dumps.answers_of(model, codes))


def _has_categories(frame: Any, tables: Tables) -> bool:
    """Whether columns of text are categories of pandas, as the libraries take them."""
    return all(str(list(frame.dtypes)[column]) == "category" for column in tables.texts)


def labels_of(raw: NDArray[Any], converted: IntegerModel) -> NDArray[Any]:
    """Return the labels, or values, that answers of a Booster stand for."""
    if converted.is_regressor:
        return raw
    if raw.ndim == 1 and converted.n_classes > 2:  # softmax gives labels
        return np.asarray(np.array(converted.classes)[raw.astype(int)])
    label = raw.argmax(axis=1) if raw.ndim == 2 else (raw > 0.5).astype(int)
    return np.asarray(np.array(converted.classes)[label])


def _is_light(model: Any) -> bool:
    library = getattr(model, "library", type(model).__module__)
    return bool(library.startswith("lightgbm"))


def _checked(model: Any, read: Any) -> Any:
    """Read the dump of a model."""
    with intact(f"convert: the model of {'LightGBM' if _is_light(model) else 'XGBoost'}"):
        return read(model, _dump(model))


def _dump(model: Any) -> dict[str, Any]:
    if isinstance(model, SavedBooster):
        return dict(model.dump)
    if hasattr(model, "get_params") and not hasattr(model, "n_features_in_"):
        raise ConvertError(f"convert: the {type(model).__name__} is not fitted")
    if _is_light(model):
        return dumps.of_lightgbm(getattr(model, "booster_", model))
    if not hasattr(model, "get_booster"):
        return dumps.of_xgboost(model)
    booster = model.get_booster()  # which predicts by all rounds, unlike the wrapper
    if booster.attr("best_iteration") is not None:
        booster = booster[: model.best_iteration + 1]
    return dumps.of_xgboost(booster)


def _names(model: Any) -> list[str]:
    """Return the names of the columns; LightGBM replaces blanks in those of a Booster."""
    names = getattr(model, "feature_names_in_", None)
    return list(_dump(model).get("feature_names") or ()) if names is None else list(names)


def _known(name: str, content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the content of a part of a dump, all of whose fields are known."""
    check_fields(name, content, _FIELDS[name])
    return content


def _tables(model: Any, dump: dict[str, Any]) -> Tables:
    """Return the categories that a model learned from a frame."""
    if _is_light(model):
        every = dump.get("pandas_categorical") or []
        kinds = dict(zip(_columns_of(every, dump), every, strict=True)) if every else {}
    else:
        content = _content(dump)[0].get("cats", {}).get("enc", ())
        kinds = {i: _listed(each) for i, each in enumerate(content) if each["values"]}
    texts = {i: tuple(each) for i, each in kinds.items() if all(type(x) is str for x in each)}
    numbers: dict[int, tuple[float, ...]] = {}
    for column in kinds.keys() - texts.keys():
        if not all(isinstance(x, int | float) for x in kinds[column]):
            raise ConvertError(f"convert: the categories of input {column} are text and numbers")
        numbers[column] = tuple(map(float, kinds[column]))
        if len(set(np.array(numbers[column], np.float32).tolist())) < len(numbers[column]):
            raise ConvertError(f"convert: two categories of input {column} are equal in float32")
    return Tables(numbers, texts)


def _columns_of(tables: list[list[Any]], dump: dict[str, Any]) -> tuple[int, ...]:
    """Return the column of each table of categories, which are in the order of the columns.

    LightGBM names those without an order; others have whole numbers that are codes of the table.
    """
    ways: dict[int, list[tuple[int, ...]]] = {0: [()]}  # by the tables that have a column
    for column, name in enumerate(dump["feature_names"]):
        is_named, info = column in dump["categorical"], dump["feature_infos"].get(name, {})
        low, high = info.get("min_value", 0), info.get("max_value", 0)  # without: never compared
        after: dict[int, list[tuple[int, ...]]] = {}
        for n, found in ways.items():
            fits = n < len(tables) and 0 <= low <= high < len(tables[n])
            if n < len(tables) and (is_named or (fits and low % 1 == high % 1 == 0)):
                after.setdefault(n + 1, []).extend((*way, column) for way in found)
            if not is_named:
                after.setdefault(n, []).extend(found)
        ways = {n: found[:2] for n, found in after.items()}  # a second one is enough to refuse
    (columns, *others) = ways.get(len(tables), [()])
    if others or len(columns) != len(tables):
        raise ConvertError(
            "convert: LightGBM does not say which columns have the ordered categories of the "
            "frame, and several may; train with all of them unordered"
        )
    return columns


def _listed(encoded: dict[str, Any]) -> list[Any]:
    """Return the categories of a column of XGBoost: whole numbers, or the bytes of texts."""
    if "offsets" not in encoded:
        return list(encoded["values"])
    letters = np.array(encoded["values"], np.int8).tobytes()
    ends = encoded["offsets"]
    if ends[-1] != len(letters):  # letters were counted for bytes
        raise ConvertError(
            "convert: this version of XGBoost cuts off categories with letters beyond ASCII; "
            "train with another one, or with ASCII alone"
        )
    return [letters[a:b].decode() for a, b in pairwise(ends)]


def _classes(model: Any, objective: str, n: int) -> tuple[Any, ...] | None:
    """Return the labels of an objective; None of values."""
    known = getattr(model, "classes_", None)
    of_values = type(model).__name__.endswith(("Regressor", "Ranker"))
    if objective == "reg:expectileerror" and n > 1:
        raise ConvertError("convert: several expectiles are no sums of leaves; train one a model")
    is_value = objective in (*_VALUES, *_POWERS) and (known is None or objective == "custom")
    if is_value:
        return None
    if objective == "reg:logistic" and known is None:
        of_values = True
    if objective not in (*_BINARY, *_CLASSES, *_VALUES) or of_values:
        raise ConvertError(
            f"convert: the answer of the objective {objective!r} is no sum of leaves, but a "
            "function of it other than exp; train with another objective, such as squared errors, "
            "or let it teach: tinykernel.train(X, y, teacher=...)"
        )
    if objective not in _CLASSES and n > 1:
        raise ConvertError("convert: a classifier of several labels a row is not supported")
    return tuple(range(max(n, 2))) if known is None else tuple(np.asarray(known).tolist())


def _start_of_labels(classes: tuple[Any, ...] | None, objective: str) -> float:
    """Return what is added to sums that are values, which wrappers compare with a half."""
    return 0.0 if classes is None or objective not in _VALUES else -0.5


def _light(model: Any, dump: dict[str, Any]) -> Ensemble:
    """Return the trees of LightGBM, which compares float64."""
    _known("LightGBM", dump)
    if hasattr(model, "get_params") and model.get_params().get("pred_early_stop"):
        raise ConvertError(
            "convert: pred_early_stop stops within the sum of leaves, which the firmware does not; "
            "set_params(pred_early_stop=False)"
        )
    objective, *options = dump.get("objective", "custom").split(" ")
    curve = "square" if "sqrt" in options else "power" if objective in _POWERS else ""
    n, infos = int(dump["num_tree_per_iteration"]), dump["tree_info"]
    if not 0 < n <= len(infos):
        raise ConvertError("convert: the model of LightGBM has no trees")
    is_mean, tables = bool(dump.get("average_output")), _tables(model, dump)
    share = n / len(infos) if is_mean else 1.0
    trees = [_light_tree(tree, i % n, share, tables) for i, tree in enumerate(infos)]
    trees.sort(key=lambda tree: tree.output)
    classes = _classes(model, objective, n)
    base = np.full(n, _start_of_labels(classes, objective))
    if classes is not None and curve:
        raise ConvertError("convert: labels of reg_sqrt are not supported; train without it")
    share_of = "mean" if is_mean else ""
    return Ensemble(trees, base, classes, as_double, share_of=share_of, curve=curve)


def _light_tree(tree: dict[str, Any], output: int, share: float, tables: Tables) -> ForeignTree:
    """Return a tree of a dump, which is nested."""
    structure = _known("a tree of LightGBM", tree)["tree_structure"]
    nodes: list[tuple[int, int, int, float, bool, float]] = []
    waiting: list[tuple[dict[str, Any], int, int]] = [(structure, -1, 0)]
    bounds = dict[int, tuple[float, ...]]()
    while waiting:
        node, parent, side = waiting.pop()
        place = len(nodes)
        if parent >= 0:
            children = list(nodes[parent])
            children[side] = place
            nodes[parent] = tuple(children)  # type: ignore[assignment]
        if "leaf_const" in node:
            raise ConvertError(
                "convert: leaves of linear_tree are sums of inputs, which the firmware does not "
                "compute; train without linear_tree, or let it teach: tinykernel.train(X, y, "
                "teacher=...), with task='numbers' for values"
            )
        _known("a node of LightGBM", node)
        if "split_feature" not in node:
            nodes.append((-1, -1, 0, 0.0, True, float(node["leaf_value"]) * share))
            continue
        column = int(node["split_feature"])
        threshold, missing, ends = _light_split(node, column, tables)
        if ends is not None:
            bounds[place] = ends
        nodes.append((0, 0, column, threshold, missing, 0.0))
        waiting += [(node["right_child"], place, 1), (node["left_child"], place, 0)]
    left, right, columns, limit, missings, value = map(np.array, zip(*nodes, strict=True))
    return ForeignTree(left, right, columns, limit, missings, value[:, None], output, bounds)


def _light_split(
    node: dict[str, Any], column: int, tables: Tables
) -> tuple[float, bool, tuple[float, ...] | None]:
    """Return the threshold of a split, whether NaN goes left, and bounds in its place."""
    kind, threshold = node["missing_type"], node["threshold"]
    if node["decision_type"] == "==":  # whole parts that are one of the categories
        codes = np.array(threshold.split("||"), dtype=np.int64)
        if column in tables.columns:
            return 0.0, False, tables.redirected(column, set(codes.tolist()), False)
        ends = bounds_of(codes)
        return 0.0, False, (float(np.nextafter(-1.0, 0.0)), *ends[1:]) if ends[0] == 0 else ends
    threshold, is_zero_left = float(threshold), threshold >= 0
    if abs(threshold) <= _ZERO:  # of zeros either all go left or none
        below = float(np.nextafter(np.float32(-_ZERO), np.float32(-_INF)))
        threshold = _ZERO if is_zero_left else below
    missing = is_zero_left if kind == "None" else bool(node["default_left"])
    if kind not in ("None", "NaN", "Zero"):
        raise ConvertError(f"convert: missing values of the type {kind!r} are not known")
    if column in tables.columns:  # in an order
        lefts = {code for code in range(tables.size(column)) if code <= threshold}
        if kind == "Zero":
            lefts = lefts | {0} if missing else lefts - {0}
        return 0.0, missing, tables.redirected(column, lefts, missing)
    if kind != "Zero" or missing == is_zero_left:
        return threshold, missing, None
    above = float(np.nextafter(np.float32(_ZERO), np.float32(_INF)))
    ends = (-_INF, float(np.nextafter(threshold, _INF)))
    return threshold, missing, redirected(ends, -_ZERO, above, missing)


def _content(learner: dict[str, Any]) -> tuple[dict[str, Any], list[float] | None]:
    """Return the trees of a learner, and the weights of those of DART."""
    booster = learner["gradient_booster"]
    if booster["name"] not in ("gbtree", "dart"):
        raise ConvertError(
            f"convert: boosters of the kind {booster['name']!r} are not supported; gbtree and "
            "dart are"
        )
    _known("a booster of XGBoost", booster)
    content = _known("a model of XGBoost", booster.get("gbtree", booster)["model"])
    return dict(content), booster.get("weight_drop", content.get("weight_drop"))


def _extreme(model: Any, learner: dict[str, Any]) -> Ensemble:
    """Return the trees of XGBoost, which compares float32: less than goes left."""
    _known("XGBoost", learner)
    content, weights = _content(learner)
    about, objective = learner["learner_model_param"], learner["objective"]["name"]
    outputs, n = content["tree_info"], max(int(about["num_class"]), int(about.get("num_target", 1)))
    if not 0 < n <= len(outputs) or not set(outputs) <= set(range(n)):
        raise damaged("convert: the model of XGBoost")
    gap, tables = _gap_of(model), _tables(model, learner)
    if any(float(gap) in range(tables.size(column)) for column in tables.columns):
        raise ConvertError(
            f"convert: missing={gap:g} is also the code of a category; replace it by NaN before "
            "training"
        )
    weights = [1.0] * len(outputs) if weights is None else weights
    trees = [
        _with_gap(_extreme_tree(tree, output, weight, tables), gap, tables)
        for tree, output, weight in zip(content["trees"], outputs, weights, strict=True)
    ]
    trees.sort(key=lambda tree: tree.output)
    base = np.array(json.loads(about["base_score"]), dtype=np.float64, ndmin=1)
    classes = _classes(model, objective, n)
    if objective in _LOGITS:
        base = np.log(base / (1 - base))
    elif objective in _POWERS:
        base = np.log(base)
    base = base + _start_of_labels(classes, objective)
    curve = "power" if objective in _POWERS else ""
    return Ensemble(trees, np.broadcast_to(base, (n,)), classes, below=np.less, curve=curve)


def _gap_of(model: Any) -> np.float32:
    """Return the value that stands for a missing one, which only the wrapper knows."""
    value = getattr(model, "missing", None)
    return np.float32(np.nan if value is None else value)


def _with_gap(tree: ForeignTree, gap: np.float32, tables: Tables) -> ForeignTree:
    """Return a tree whose nodes send a value where NaN goes."""
    if np.isnan(gap):
        return tree
    assert tree.missing_left is not None
    low, high = float(gap), float(np.nextafter(gap, np.float32(_INF)))
    bounds = dict(tree.bounds)
    for node in np.flatnonzero(tree.left >= 0).tolist():
        column, left = int(tree.column[node]), bool(tree.missing_left[node])
        is_left = low < tree.threshold[node]
        if column in tables.columns or (node not in bounds and is_left == left):
            continue
        ends = bounds.get(node, (-_INF, float(tree.threshold[node])))
        bounds[node] = redirected(ends, low, high, left)
    return replace(tree, bounds=bounds)


def _extreme_tree(tree: dict[str, Any], output: int, weight: float, tables: Tables) -> ForeignTree:
    """Return a tree of a dump."""
    _known("a tree of XGBoost", tree)
    left, right = (np.array(tree[f"{s}_children"], dtype=np.int64) for s in ("left", "right"))
    condition, leaf = np.array(tree["split_conditions"], dtype=np.float32), left < 0
    value = np.where(leaf, condition * np.float32(weight), np.float32(0)).astype(np.float64)
    value = value[:, None]
    n = int(tree["tree_param"]["size_leaf_vector"])
    if n > 1:  # multi_output_tree: a leaf has its number where others have a child
        if not tree.get("leaf_weights"):
            raise ConvertError(
                "convert: leaves of several outputs (multi_output_tree) of this version of XGBoost "
                "are not read; save the model again by XGBoost 3.2 or newer"
            )
        vectors = np.array(tree["leaf_weights"], dtype=np.float32).reshape(-1, n)
        value = np.zeros((left.size, n))
        value[leaf] = (vectors * np.float32(weight))[right[leaf]]
        right = np.where(leaf, -1, right)
    limit = condition.astype(np.float64)
    missing, bounds = np.array(tree["default_left"]).astype(bool), dict[int, tuple[float, ...]]()
    column = np.array(tree["split_indices"], dtype=np.int64)
    segments = zip(
        *(tree.get(f"categories_{s}", ()) for s in ("nodes", "segments", "sizes")), strict=True
    )
    for node, first, size in segments:  # these categories go right
        codes = np.array(tree["categories"][first : first + size])
        at = int(column[node])
        if at in tables.columns:
            lefts = set(range(tables.size(at))) - set(codes.tolist())
            bounds[node] = tables.redirected(at, lefts, bool(missing[node]))
        else:
            bounds[node] = (-_INF, *bounds_of(codes))
        limit[node] = 0.0
    return ForeignTree(left, right, column, limit, missing, value, output, bounds)
