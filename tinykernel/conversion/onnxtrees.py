"""Trees of ONNX files: one node TreeEnsembleClassifier or TreeEnsembleRegressor."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.errors import ConvertError
from tinykernel.conversion.ensemble import Ensemble, ForeignTree

KINDS = ("TreeEnsembleClassifier", "TreeEnsembleRegressor")
_BELOW = {"BRANCH_LEQ": np.less_equal, "BRANCH_LT": np.less}
#: Of labels and shares. Identity, Reshape and a Cast to float32 change no value.
_BEHIND = ("ZipMap", "Cast", "Normalizer")


def _options_of_trees(onnx: Any, graph: Any, entry: str) -> dict[str, Any]:
    """Return the attributes of the one node of trees, which reads the input as it is."""
    same, ensembles, others = {entry}, list[dict[str, Any]](), list[str]()
    get = onnx.helper.get_attribute_value
    for node in graph.node:
        kind, of = node.op_type, {item.name: get(item) for item in node.attribute}
        is_same = kind in ("Identity", "Reshape") or of.get("to") == onnx.TensorProto.FLOAT
        if kind in KINDS and node.input[0] in same:
            ensembles.append(of)
        elif is_same:
            same |= set(node.output) if node.input[0] in same else set()
        elif kind not in _BEHIND or not ensembles or "target_ids" in ensembles[0]:
            others.append(kind)
    if others or len(ensembles) != 1:
        names = ", ".join(kind for kind in others if kind not in KINDS)
        raise ConvertError(f"convert: {names or 'two ensembles'} beside trees: not supported")
    if any(name.endswith("_as_tensor") for name in ensembles[0]):
        raise ConvertError("convert: trees of ONNX in float64 are not supported; write float32")
    return ensembles[0]


class TreeFile:
    """The trees of a graph; what `convert` takes."""

    def __init__(self, onnx: Any, graph: Any, entry: str, n_inputs: int) -> None:
        self._of = _options_of_trees(onnx, graph, entry)
        modes = {mode.decode() for mode in self._of["nodes_modes"]} - {"LEAF"}
        labels = self._of.get("classlabels_strings") or self._of.get("classlabels_int64s")
        average = self._of.get("aggregate_function", b"SUM")
        if len(modes) > 1 or not modes <= set(_BELOW) or average not in (b"SUM", b"AVERAGE"):
            raise ConvertError(
                f"convert: trees of ONNX with {', '.join(sorted(modes))} and "
                f"{average.decode()} of leaves are not supported"
            )
        after = self._of.get("post_transform", b"NONE")
        if not labels and after != b"NONE":  # of classes, the order stays
            raise ConvertError(f"convert: values of trees after {after.decode()} are not supported")
        self.n_features_in_ = n_inputs or 1 + max(self._of["nodes_featureids"])
        self.below = _BELOW[modes.pop() if modes else "BRANCH_LEQ"]
        self.kind = "class" if labels else "target"
        if labels:
            text = [item.decode() if isinstance(item, bytes) else item for item in labels]
            self.classes_ = np.array(text)
        self.base, self.trees = self._read(average == b"AVERAGE")

    def _read(self, is_mean: bool) -> tuple[NDArray[np.float64], list[ForeignTree]]:
        """Return what is added to the sums, and the trees; of two classes there is one sum."""
        of = {name: np.array(values) for name, values in self._of.items()}
        leaf_output, weight = of[f"{self.kind}_ids"], of[f"{self.kind}_weights"].astype(np.float64)
        n = len(self.classes_) if self.kind == "class" else int(self._of.get("n_targets", 1))
        base = np.zeros(n)
        base[: len(self._of.get("base_values", ()))] = self._of.get("base_values", ())
        # Of two classes, the scores of one are enough: of probabilities they are compared with 0.5,
        # which sums of float32 reach by ties that sums of float64 exceed.
        is_one = self.kind == "class" and n == 2 and np.ptp(leaf_output) == 0
        if is_one:
            leaf_output = np.zeros_like(leaf_output)
            base = base[:1] - (0.5 + 1e-6 if np.all(weight >= 0) else 0.0)
        trees = []
        numbers = of["nodes_treeids"]
        for number in np.unique(numbers):
            at, place = numbers == number, np.zeros(numbers.size, dtype=np.int64)
            nodes = of["nodes_nodeids"][at]
            place = np.full(nodes.max() + 1, -1)
            place[nodes] = np.arange(nodes.size)
            is_leaf = np.array([mode == b"LEAF" for mode in self._of["nodes_modes"]])[at]
            leaves = of[f"{self.kind}_treeids"] == number
            value = np.zeros((nodes.size, base.size))
            places = place[of[f"{self.kind}_nodeids"][leaves]], leaf_output[leaves]
            np.add.at(value, places, weight[leaves] / (len(np.unique(numbers)) if is_mean else 1))
            missing = of.get("nodes_missing_value_tracks_true", np.zeros(numbers.size))
            trees.append(
                ForeignTree(
                    np.where(is_leaf, -1, place[of["nodes_truenodeids"][at]]),
                    np.where(is_leaf, -1, place[of["nodes_falsenodeids"][at]]),
                    of["nodes_featureids"][at].astype(np.int64),
                    of["nodes_values"][at].astype(np.float64),
                    missing[at].astype(bool) if len(missing) else np.zeros(nodes.size, bool),
                    value,
                )
            )
        if self.kind == "class" and n == 2 and not is_one:
            base = np.diff(base)
            trees = [replace(tree, value=np.diff(tree.value)) for tree in trees]
        return base, trees

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict labels or values."""
        rows = np.asarray(X, dtype=np.float32)
        sums, every = np.tile(self.base, (len(rows), 1)), np.arange(len(rows))
        for tree in self.trees:
            node = np.zeros(len(rows), dtype=np.int64)
            while np.any(tree.left[node] >= 0):
                x = rows[every, tree.column[node]]
                assert tree.missing_left is not None
                left = np.where(
                    np.isnan(x), tree.missing_left[node], self.below(x, tree.threshold[node])
                )
                following = np.where(left, tree.left[node], tree.right[node])
                node = np.where(tree.left[node] >= 0, following, node)
            sums += tree.value[node]
        if self.kind == "target":
            return sums[:, 0] if sums.shape[1] == 1 else sums
        place = sums.argmax(axis=1) if sums.shape[1] > 1 else (sums[:, 0] > 0).astype(int)
        return np.asarray(self.classes_[place])


def ensemble_of(model: TreeFile) -> Ensemble:
    """Return the trees of a file."""
    classes = tuple(model.classes_.tolist()) if model.kind == "class" else None
    return Ensemble(model.trees, model.base, classes, below=model.below)
