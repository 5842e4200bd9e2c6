"""Symmetric trees of CatBoost, as its JSON files have them."""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.errors import ConvertError, FormatError
from tinykernel.conversion.ensemble import Ensemble, ForeignTree

_CLASSES = ("Logloss", "CrossEntropy", "MultiClass", "MultiClassOneVsAll")
_VALUES = ("RMSE", "MAE", "Quantile", "MAPE", "Huber", "LogCosh")


class SavedModel:
    """A model of a JSON file: what `convert` takes where CatBoost is not installed."""

    def __init__(self, text: str | bytes) -> None:
        try:
            self.content = json.loads(text)
            self.trees, features = self.content["oblivious_trees"], self.content["features_info"]
            self.columns = features["float_features"]
        except (KeyError, TypeError, ValueError):
            raise FormatError("convert: not a JSON file of CatBoost with symmetric trees") from None
        self.n_features_in_ = 1 + max(column["flat_feature_index"] for column in self.columns)
        info = self.content.get("model_info", {})
        self.loss = info.get("params", {}).get("loss_function", {}).get("type", "")
        if self.loss not in (*_CLASSES, *_VALUES):
            raise ConvertError(f"convert: the loss {self.loss!r} of CatBoost is no sum of leaves")
        if self.loss in _CLASSES:
            self.classes_ = np.array(info["class_params"]["class_names"])

    def sums(self, X: ArrayLike) -> NDArray[np.float64]:
        """Compute the sums of leaves, shape (n_rows, n_outputs)."""
        rows, (scale, bias) = np.asarray(X, dtype=np.float32), self.content["scale_and_bias"]
        total = np.zeros((len(rows), len(bias)))
        for tree in self.trees:
            leaf = np.zeros(len(rows), dtype=np.int64)
            for level, split in enumerate(tree["splits"]):
                column, border, missing_left = self.split(split)
                values = rows[:, column]
                right = np.where(np.isnan(values), not missing_left, values > border)
                leaf |= right.astype(np.int64) << level
            total += np.reshape(tree["leaf_values"], (-1, len(bias)))[leaf]
        return np.asarray(scale * total + bias)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict labels or values."""
        sums = self.sums(X)
        if self.loss in _VALUES:
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
        column = self.columns[split["float_feature_index"]]
        is_left = column["nan_value_treatment"] != "AsTrue"
        return int(column["flat_feature_index"]), float(split["border"]), is_left


def ensemble_of(model: Any) -> Ensemble:
    """Return the trees of a fitted model of CatBoost, or of a file."""
    if not isinstance(model, SavedModel):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.json"
            model.save_model(str(file), format="json")
            model = SavedModel(file.read_bytes())
    scale, bias = model.content["scale_and_bias"]
    trees = [
        _tree(model, tree, scale * np.reshape(tree["leaf_values"], (-1, len(bias))), output)
        for output in range(len(bias))
        for tree in model.trees
    ]
    classes = tuple(model.classes_.tolist()) if model.loss in _CLASSES else None
    return Ensemble(trees, np.array(bias, dtype=np.float64), classes)


def _tree(
    model: SavedModel, tree: dict[str, Any], leaves: NDArray[np.float64], output: int
) -> ForeignTree:
    """Return a symmetric tree: node i has the children 2 i + 1 and 2 i + 2."""
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
