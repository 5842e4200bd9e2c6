"""Symmetric trees of CatBoost, as its JSON files have them."""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.errors import ConvertError
from tinykernel.conversion.checks import check_fields, damaged, first_line, intact
from tinykernel.conversion.ensemble import Ensemble, ForeignTree

_CLASSES = ("Logloss", "CrossEntropy", "Focal", "MultiClass", "MultiClassOneVsAll")
#: Losses whose answer is exp of the sum of leaves.
_POWERS = ("Poisson", "Tweedie")
#: Losses whose answer is the sum.
_VALUES = (
    *("RMSE", "MAE", "Quantile", "MAPE", "Huber", "LogCosh", "Lq", "Expectile", "LogLinQuantile"),
    *("MultiRMSE", "MultiRMSEWithMissingValues", "MultiQuantile", "Cox"),
    *("PythonUserDefinedPerObject", "PythonUserDefinedMultiTarget"),
    *("YetiRank", "YetiRankPairwise", "PairLogit", "PairLogitPairwise", "QueryRMSE"),
    *("QuerySoftMax", "QueryCrossEntropy", "StochasticRank", "StochasticFilter", "LambdaMart"),
)
#: All fields of the format. A field that is not here may change what a model predicts.
_FIELDS = {
    "features_info": {"float_features", "categorical_features"},
    "oblivious_trees": {"splits", "leaf_values", "leaf_weights"},
    "": {"features_info", "model_info", "oblivious_trees", "scale_and_bias", "ctr_data"},
}
_PLACE = "convert: the model of CatBoost"


class SavedModel:
    """A model of a JSON file: what `convert` takes where CatBoost is not installed."""

    def __init__(self, text: str | bytes) -> None:
        with intact(_PLACE):
            self._read(json.loads(text))

    def _read(self, content: dict[str, Any]) -> None:
        """Take and check what a file holds."""
        if "trees" in content:
            raise ConvertError(
                "convert: unsymmetric trees of CatBoost are not supported; train with "
                "grow_policy='SymmetricTree'"
            )
        features, self.trees = content["features_info"], content["oblivious_trees"]
        parts = [("", content), ("features_info", features)]
        for name, part in [*parts, *(("oblivious_trees", tree) for tree in self.trees)]:
            check_fields("the model of CatBoost", part, _FIELDS[name])
        self.columns = features["float_features"]
        every = [*self.columns, *features.get("categorical_features", ())]
        self.n_features_in_ = 1 + max(int(column["flat_feature_index"]) for column in every)
        every.sort(key=lambda column: int(column["flat_feature_index"]))
        self.feature_names = tuple(str(column.get("feature_id", "")) for column in every)
        scale, bias = content["scale_and_bias"]
        self.scale, self.bias = float(scale), np.array(bias, dtype=np.float64)
        for tree in self.trees:
            n = len(self.bias) << len(tree["splits"])
            if np.array(tree["leaf_values"], dtype=np.float64).shape != (n,):
                raise damaged(_PLACE)
        info = content.get("model_info", {})
        self.loss = info.get("params", {}).get("loss_function", {}).get("type", "")
        if self.loss not in (*_CLASSES, *_VALUES, *_POWERS):
            raise ConvertError(
                f"convert: the answer of the loss {self.loss!r} of CatBoost is no sum of leaves, "
                "but a function of it; train with another loss, or let it teach: "
                "tinykernel.train(X, y, teacher=...)"
            )
        if self.loss in _CLASSES:
            about = info["class_params"]
            self.classes_ = np.array(about["class_names"] or about["class_to_label"])
            if self.classes_.shape != (max(2, len(self.bias)),):
                raise damaged(_PLACE)
            threshold = float(info.get("binclass_probability_threshold", 0.5))
            if len(self.bias) == 1 and threshold != 0.5:
                if not 0 < threshold < 1:
                    raise ConvertError("convert: a threshold of 0 or 1 leaves one class")
                self.bias = self.bias - np.log(threshold / (1 - threshold))

    def sums(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the sums of leaves, shape (n_rows, n_outputs)."""
        rows = np.asarray(X, dtype=np.float32)
        total = np.zeros((len(rows), len(self.bias)))
        for tree in self.trees:
            leaf = np.zeros(len(rows), dtype=np.int64)
            for level, split in enumerate(tree["splits"]):
                column, border, missing_left = self.split(split)
                values = rows[:, column]
                right = np.where(np.isnan(values), not missing_left, values > border)
                leaf |= right.astype(np.int64) << level
            total += np.reshape(tree["leaf_values"], (-1, len(self.bias)))[leaf]
        return np.asarray(self.scale * total + self.bias)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict labels or values."""
        sums = self.sums(X)
        if self.loss not in _CLASSES:
            sums = np.exp(sums) if self.loss in _POWERS else sums
            return sums[:, 0] if sums.shape[1] == 1 else sums
        label = sums.argmax(axis=1) if sums.shape[1] > 1 else (sums[:, 0] > 0).astype(int)
        return np.asarray(self.classes_[label])

    def split(self, split: dict[str, Any]) -> tuple[int, float, bool]:
        """Return the column of a split, its border, and whether NaN stays on the left."""
        if split["split_type"] != "FloatFeature":
            raise ConvertError(
                f"convert: splits of CatBoost of the type {split['split_type']} are not supported; "
                "code categories as numbers"
            )
        if split["float_feature_index"] < 0:
            raise damaged(_PLACE)
        column = self.columns[split["float_feature_index"]]
        is_left = column["nan_value_treatment"] != "AsTrue"
        return int(column["flat_feature_index"]), float(split["border"]), is_left


def ensemble_of(model: Any) -> Ensemble:
    """Return the trees of a fitted model of CatBoost, or of a file."""
    if not isinstance(model, SavedModel):
        model = _saved(model)
    outputs = range(len(model.bias))
    with intact(_PLACE):
        trees = [_tree(model, tree, output) for output in outputs for tree in model.trees]
    classes = tuple(model.classes_.tolist()) if model.loss in _CLASSES else None
    curve = "power" if model.loss in _POWERS else ""
    return Ensemble(trees, model.bias, classes, curve=curve)


def _saved(model: Any) -> SavedModel:
    """Return a model of the library as its JSON file has it."""
    if not model.is_fitted():
        raise ConvertError(f"convert: the {type(model).__name__} is not fitted")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.json"
        try:
            model.save_model(str(file), format="json")
        except Exception as error:  # a CatBoostError is no more than an Exception
            reason = first_line(error)
            raise ConvertError(f"convert: CatBoost could not write its trees: {reason}") from None
        return SavedModel(file.read_bytes())


def _tree(model: SavedModel, tree: dict[str, Any], output: int) -> ForeignTree:
    """Return a symmetric tree: node i has the children 2 i + 1 and 2 i + 2."""
    leaves = model.scale * np.reshape(tree["leaf_values"], (-1, len(model.bias)))
    splits = [model.split(split) for split in tree["splits"]]
    n, depth = (1 << len(splits)) - 1, len(splits)
    node = np.arange(2 * n + 1)
    level = np.floor(np.log2(node + 1)).astype(np.int64)
    column, border, missing_left = (
        np.array([*part, part[0] if part else 0])[level]
        for part in (zip(*splits, strict=True) if splits else ([0], [0.0], [True]))
    )
    # The first split is the lowest bit of the number of a leaf, and the highest of its place.
    place = node[n:] - n
    number = sum(((place >> (depth - 1 - bit)) & 1) << bit for bit in range(depth)) + 0 * place
    value = np.zeros((2 * n + 1, 1))
    value[n:, 0] = leaves[number, output]
    inner = node < n
    return ForeignTree(
        np.where(inner, 2 * node + 1, -1),
        np.where(inner, 2 * node + 2, -1),
        column.astype(np.int64),
        border.astype(np.float64),
        missing_left.astype(bool),
        value,
        output,
    )
