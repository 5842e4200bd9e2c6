"""Trees of ONNX files: one node TreeEnsembleClassifier, TreeEnsembleRegressor or TreeEnsemble."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.errors import ConvertError, FormatError
from tinykernel.conversion.checks import check_fields
from tinykernel.conversion.ensemble import Ensemble, ForeignTree

KINDS = ("TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble")
_BELOW = {"BRANCH_LEQ": np.less_equal, "BRANCH_LT": np.less}
_ABOVE = {"BRANCH_GT": np.less_equal, "BRANCH_GTE": np.less}  # with its sides exchanged
#: Of labels and shares. Identity, Reshape and a Cast to float32 change no value.
_BEHIND = ("ZipMap", "Cast", "Normalizer")
#: Attributes that are read; `nodes_hitrates` are counts of rows.
_READ = {
    *("aggregate_function", "base_values", "classlabels_int64s", "classlabels_strings", "name"),
    *("n_targets", "post_transform", "nodes_hitrates", "nodes_missing_value_tracks_true"),
}
_OF_NODES = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
_OF_LEAVES = ("treeids", "nodeids", "ids", "weights")
_READ |= {f"nodes_{name}" for name in _OF_NODES}
_READ |= {f"{kind}_{name}" for kind in ("class", "target") for name in _OF_LEAVES}
#: Attributes of TreeEnsemble, and what its numbers stand for.
_READ_OF_5 = {
    *("aggregate_function", "leaf_targetids", "leaf_weights", "membership_values", "n_targets"),
    *("name", "nodes_falseleafs", "nodes_falsenodeids", "nodes_featureids", "nodes_hitrates"),
    *("nodes_missing_value_tracks_true", "nodes_modes", "nodes_splits", "nodes_trueleafs"),
    *("nodes_truenodeids", "post_transform", "tree_roots"),
}
_AGGREGATES = (b"AVERAGE", b"SUM", b"MIN", b"MAX")
_AFTER = (b"NONE", b"SOFTMAX", b"LOGISTIC", b"SOFTMAX_ZERO", b"PROBIT")
_MODES = [b"BRANCH_" + name for name in (b"LEQ", b"LT", b"GTE", b"GT", b"EQ", b"NEQ", b"MEMBER")]
_MOST = 1 << 16  # inputs, classes and targets
_NAMED = 5  # operators in a message


def _options_of_trees(onnx: Any, nodes: list[Any], entry: str) -> dict[str, Any]:
    """Return the attributes of the one node of trees, which reads the input as it is."""
    ensembles, others = list[dict[str, Any]](), dict[str, None]()
    sums: set[str] = set()
    get = onnx.helper.get_attribute_value
    for node in nodes:
        kind, of = node.op_type, {item.name: get(item) for item in node.attribute}
        is_same = kind in ("Identity", "Reshape") or of.get("to") == onnx.TensorProto.FLOAT
        if kind in KINDS and node.input[0] == entry:
            ensembles.append(_of_version_3(onnx, of) if kind == "TreeEnsemble" else of)
            sums = {*node.output} if "target_ids" in ensembles[0] else set()
        elif is_same:
            sums |= set(node.output) if node.input[0] in sums else set()
        elif kind == "ArgMax" and node.input[0] in sums and _is_first(of, ensembles[0]):
            ensembles[0], sums = _with_labels(ensembles[0]), set()
        elif kind not in _BEHIND or not ensembles or "target_ids" in ensembles[0]:
            others[kind] = None
    if others or len(ensembles) != 1:
        # Beside others, these are none: behind trees they change no label.
        named = [kind for kind in others if kind not in (*KINDS, *_BEHIND)] or list(others)
        named = [kind for kind in named if kind not in KINDS][:_NAMED]
        listed = f"{', '.join(named)} beside trees" if named else ""
        raise ConvertError(
            f"convert: {listed or f'{len(ensembles)} ensembles of trees'}: not supported; convert "
            "the fitted model itself, or let it teach: tinykernel.train(X, y, teacher=model)"
        )
    if any(name.endswith("_as_tensor") for name in ensembles[0]):
        raise ConvertError("convert: trees of ONNX in float64 are not supported; write float32")
    check_fields("an ensemble of ONNX", ensembles[0], _READ)
    return ensembles[0]


def _is_first(of: dict[str, Any], ensemble: dict[str, Any]) -> bool:
    """Say whether an ArgMax gives the first largest of the sums of leaves."""
    is_sum = ensemble.get("post_transform", b"NONE") == b"NONE"
    return is_sum and of.get("axis") in (1, -1) and not of.get("select_last_index")


def _with_labels(of: dict[str, Any]) -> dict[str, Any]:
    """Return trees whose targets are the classes 0, 1 and so on."""
    named = {name.replace("target_", "class_"): value for name, value in of.items()}
    return named | {"classlabels_int64s": [*range(of.get("n_targets", 1))]}


def _of_version_3(onnx: Any, of: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a TreeEnsemble as those of a TreeEnsembleRegressor."""
    check_fields("an ensemble of ONNX", of, _READ_OF_5)
    splits, weights = map(onnx.numpy_helper.to_array, (of["nodes_splits"], of["leaf_weights"]))
    if splits.dtype != np.float32 or weights.dtype != np.float32:
        raise ConvertError("convert: trees of ONNX in float64 are not supported; write float32")
    modes = [_MODES[mode] for mode in onnx.numpy_helper.to_array(of["nodes_modes"])]
    missing = of.get("nodes_missing_value_tracks_true") or [0] * len(modes)
    names = [f"nodes_{name}" for name in (*_OF_NODES, "missing_value_tracks_true")]
    names += [f"target_{name}" for name in _OF_LEAVES]
    columns: dict[str, list[Any]] = {name: [] for name in names}
    nodes, leaves = set[int](), names[-len(_OF_LEAVES) :]
    for tree, root in enumerate(of["tree_roots"]):
        below, n = [(root, 0, 0)], 1  # index, whether it is of a leaf, number in the tree
        while below:
            at, is_leaf, number = below.pop()
            row: tuple[Any, ...] = (tree, number, 0, b"LEAF", 0.0, 0, 0, 0)
            if at < 0 or (not is_leaf and at in nodes):
                raise _damaged("a node is below no node, or below two")
            if is_leaf:
                leaf = tree, number, of["leaf_targetids"][at], weights[at]
                for name, value in zip(leaves, leaf, strict=True):
                    columns[name].append(value)
            else:
                nodes.add(at)
                row = tree, number, of["nodes_featureids"][at], modes[at]
                row += splits[at], n, n + 1, missing[at]
                for side in ("true", "false"):
                    ids, ends = of[f"nodes_{side}nodeids"], of[f"nodes_{side}leafs"]
                    below.append((ids[at], ends[at], n))
                    n += 1
            for name, value in zip(names, row, strict=False):
                columns[name].append(value)
    return columns | {
        "n_targets": of.get("n_targets", 1),
        "aggregate_function": _AGGREGATES[of.get("aggregate_function", 1)],
        "post_transform": _AFTER[of.get("post_transform", 0)],
    }


def _damaged(problem: str) -> FormatError:
    return FormatError(f"convert: damaged trees: {problem}; write the file again")


def _check_lengths(of: dict[str, Any], prefix: str, names: tuple[str, ...]) -> None:
    """Refuse lists of nodes or leaves that lack, or have not one length."""
    lengths = {len(of.get(f"{prefix}_{name}", ())) for name in names}
    if len(lengths) != 1 or not min(lengths):
        raise _damaged(f"lists of {prefix} have the lengths {sorted(lengths)}")


def _check_tree(tree: ForeignTree, n_inputs: int) -> None:
    """Refuse a tree whose nodes are not those below its first one, each once."""
    inner = tree.left >= 0
    below = np.sort(np.concatenate([tree.left[inner], tree.right[inner]]))
    columns = tree.column[inner]
    if not np.array_equal(below, np.arange(1, tree.left.size)) or np.any(tree.right[inner] < 1):
        raise _damaged("a node is not below one other node")
    depth, level = 0, np.zeros(1, np.int64)
    while level.size and depth <= tree.left.size:
        level = level[inner[level]]
        level, depth = np.concatenate([tree.left[level], tree.right[level]]), depth + 1
    if level.size:
        raise _damaged("nodes lie in a circle")
    if columns.size and not 0 <= columns.min() <= columns.max() < n_inputs:
        raise _damaged(f"a node reads another input than 0 to {n_inputs - 1}")


class TreeFile:
    """The trees of a graph; what `convert` takes."""

    def __init__(self, onnx: Any, nodes: list[Any], entry: str, n_inputs: int) -> None:
        self._of = _options_of_trees(onnx, nodes, entry)
        of_leaves = "target" if "target_ids" in self._of else "class"
        _check_lengths(self._of, "nodes", _OF_NODES)
        _check_lengths(self._of, of_leaves, _OF_LEAVES)
        modes = {mode.decode(errors="replace") for mode in self._of["nodes_modes"]} - {"LEAF"}
        labels = self._of.get("classlabels_strings") or self._of.get("classlabels_int64s")
        average = self._of.get("aggregate_function", b"SUM")
        tests = _BELOW | _ABOVE
        below = {tests.get(mode) for mode in modes}
        if len(below) > 1 or None in below or average not in (b"SUM", b"AVERAGE"):
            raise ConvertError(
                f"convert: trees of ONNX with {', '.join(sorted(modes)[:_NAMED])} and "
                f"{average.decode(errors='replace')} of leaves are not supported"
            )
        after = self._of.get("post_transform", b"NONE")
        if after not in ((b"NONE", b"SOFTMAX", b"LOGISTIC") if labels else (b"NONE",)):
            # Of classes, the order stays.
            raise ConvertError(
                f"convert: values of trees after {after.decode(errors='replace')} are not supported"
            )
        self.n_features_in_ = n_inputs or 1 + max(self._of["nodes_featureids"])
        if not 0 < self.n_features_in_ <= _MOST:
            raise _damaged(f"{self.n_features_in_} inputs")
        self.below: Any = below.pop() if below else np.less_equal
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
        if not 0 < n <= _MOST or leaf_output.min() < 0 or leaf_output.max() >= n:
            raise _damaged(f"leaves of other outputs than {n}")
        base, start = np.zeros(n), self._of.get("base_values", ())
        if np.isnan(of["nodes_values"].astype(np.float64)).any():
            raise _damaged("a threshold is no number")
        # Of two classes, the scores of one are enough: of probabilities they are compared with 0.5,
        # which sums of float32 reach by ties that sums of float64 exceed.
        is_one = self.kind == "class" and n == 2 and np.ptp(leaf_output) == 0
        is_one = is_one and "n_targets" not in self._of  # of which ArgMax takes the largest
        if len(start) not in (0, 1 if is_one else n) or not np.isfinite([*start, *weight]).all():
            raise _damaged(f"{len(start)} values to begin with, or leaves that are not finite")
        base[: len(start)] = start
        starts_second = bool(len(start)) and leaf_output.max() == 1
        if is_one:
            leaf_output = np.zeros_like(leaf_output)
            base = base[:1] - (0.5 + 1e-6 if np.all(weight >= 0) else 0.0)
        trees = []
        numbers = of["nodes_treeids"]
        for number in np.unique(numbers):
            at = numbers == number
            nodes = of["nodes_nodeids"][at]
            place = dict(zip(nodes.tolist(), range(nodes.size), strict=True))
            if len(place) != nodes.size:
                raise _damaged(f"two nodes of tree {number} have one number")
            is_leaf = of["nodes_modes"][at] == b"LEAF"
            is_above = np.isin(of["nodes_modes"][at], [mode.encode() for mode in _ABOVE])
            leaves = of[f"{self.kind}_treeids"] == number
            value = np.zeros((nodes.size, base.size))
            ids = of[f"{self.kind}_nodeids"][leaves].tolist()
            if not set(ids) <= set(nodes[is_leaf].tolist()):
                raise _damaged(f"a leaf of tree {number} is no leaf of its nodes")
            places = [place[node] for node in ids], leaf_output[leaves]
            np.add.at(value, places, weight[leaves] / (len(np.unique(numbers)) if is_mean else 1))
            missing = of.get("nodes_missing_value_tracks_true", np.zeros(numbers.size))
            missing = (missing if len(missing) else np.zeros(numbers.size))[at].astype(bool)
            true, false = (
                np.array([place.get(node, -1) for node in of[f"nodes_{name}"][at].tolist()])
                for name in ("truenodeids", "falsenodeids")
            )
            tree = ForeignTree(
                np.where(is_leaf, -1, np.where(is_above, false, true)),
                np.where(is_leaf, -1, np.where(is_above, true, false)),
                np.where(is_leaf, 0, of["nodes_featureids"][at]),
                of["nodes_values"][at].astype(np.float64),
                missing ^ is_above,
                value,
            )
            _check_tree(tree, self.n_features_in_)
            trees.append(tree)
        if self.kind == "class" and n == 2 and "n_targets" not in self._of:
            # onnxruntime takes the second score alone, and of two the start of the second alone.
            values = [] if is_one else [base, *(tree.value for tree in trees)]
            is_clear = all(np.allclose(each.sum(axis=-1), 0, atol=1e-6) for each in values)
            if not is_clear or starts_second:
                raise ConvertError(
                    "convert: trees of ONNX with two scores for two classes, on which runtimes "
                    "differ; write one score for them, or convert the fitted model itself"
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
