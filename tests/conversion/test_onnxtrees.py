"""Trees of ONNX files after conversion."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import tinykernel
from tests.refusals import refused
from tinykernel.base.errors import ConvertError, TinykernelError
from tinykernel.conversion.models import change_of, convert
from tinykernel.conversion.onnxtrees import TreeFile

pytestmark = pytest.mark.usefixtures("page")


def attributes(forest, output):
    """Return the attributes of a node with the trees of a forest; of two classes one score."""
    rows, leaves = [], []
    for number, estimator in enumerate(forest.estimators_):
        tree = estimator.tree_
        for node in range(tree.node_count):
            test = (0, 0, 0, 0.0, "LEAF")
            if tree.children_left[node] >= 0:
                children = tree.children_left[node], tree.children_right[node]
                test = *children, tree.feature[node], tree.threshold[node], "BRANCH_LEQ"
            rows.append((number, node, *test))
            values = tree.value[node].ravel() / len(forest.estimators_)
            if test[-1] == "LEAF":
                chosen = [(0, values[1])] if len(values) == 2 else list(enumerate(values))
                leaves += [(number, node, target, float(value)) for target, value in chosen]
    of_nodes = ("treeids", "nodeids", "truenodeids", "falsenodeids", "featureids", "values")
    of_leaves = ("treeids", "nodeids", "ids", "weights")
    names = [f"nodes_{name}" for name in (*of_nodes, "modes")]
    names += [f"{output}_{name}" for name in of_leaves]
    columns = (*zip(*rows, strict=True), *zip(*leaves, strict=True))
    labels = {"classlabels_int64s": range(len(getattr(forest, "classes_", ())))}
    return dict(zip(names, map(list, columns), strict=True)) | (
        labels if output == "class" else {"n_targets": 1}
    )


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer, load_diabetes])
def test_trees_of_a_file_are_exact(load, tmp_path, require_tool):
    """No label differs from the forest of the file, nor from the evaluator of ONNX."""
    onnx = require_tool("onnx")
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    X, y = load(return_X_y=True)
    X, is_class = X.astype(np.float32), load is not load_diabetes
    kind = RandomForestClassifier if is_class else RandomForestRegressor
    forest = kind(10, max_depth=6, random_state=0).fit(X, y)
    options = attributes(forest, "class" if is_class else "target")
    name = "TreeEnsembleClassifier" if is_class else "TreeEnsembleRegressor"
    ends = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [None, X.shape[1]])]
    file = tmp_path / "forest.onnx"

    def save(nodes):
        results = [helper.make_tensor_value_info("label", onnx.TensorProto.INT64, [None])]
        graph = helper.make_graph(nodes, "forest", ends, results)
        versions = [helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("", 18)]
        onnx.save(helper.make_model(graph, opset_imports=versions), file)

    outputs = ["label", "scores"] if is_class else ["label"]
    save([helper.make_node(name, ["x"], outputs, domain="ai.onnx.ml", **options)])
    rng = np.random.default_rng(0)
    rows = X[rng.integers(0, len(X), 20000)]
    rows = (rows + 0.3 * rng.normal(size=rows.shape) * X.std(axis=0)).astype(np.float32)
    converted = convert(file)
    expected = ReferenceEvaluator(str(file)).run(None, {"x": rows[:200]})[0].ravel()
    if is_class:
        assert np.array_equal(converted.predict(rows), forest.predict(rows))
        assert np.array_equal(converted.predict(rows[:200]), expected)
        assert change_of(file, converted, rows).differing == 0
    else:
        assert np.abs(converted.predict(rows) - forest.predict(rows)).max() < 1e-2
    ml, filled = {"domain": "ai.onnx.ml"}, {"imputed_value_floats": X.mean(axis=0)}

    def save_behind(*steps, **more):
        names = "xabc"
        nodes = [helper.make_node(k, [names[i]], [names[i + 1]], **o) for i, (k, o) in steps]
        save(
            [*nodes, helper.make_node(name, [names[len(steps)]], outputs, **ml, **options, **more)]
        )

    for steps, more in [
        ([("Scaler", ml | {"offset": [0.0], "scale": [-1.0]})], {}),
        ([("Cast", {"to": onnx.TensorProto.INT32})], {}),
        ([], {"nodes_values_as_tensor": helper.make_tensor("v", 1, [], [0])}),
        ([], {"post_transform": "PROBIT"}),
    ]:
        save_behind(*enumerate(steps), **more)
        refused(TinykernelError, convert, file)
    scaler = ("Scaler", ml | {"offset": [1.0], "scale": [0.9]})
    imputer = ("Imputer", ml | filled | {"replaced_value_float": np.nan})
    save_behind(*enumerate([("Identity", {}), imputer, scaler]))
    rows[::2, ::3] = np.nan
    expected = ReferenceEvaluator(str(file)).run(None, {"x": rows[:400]})[0].ravel()
    assert np.abs(convert(file).predict(rows[:400]) - expected).max() <= (0 if is_class else 1e-2)


@pytest.mark.parametrize(("start", "first"), [({}, 0), ({"base_values": [0.1]}, 1)])
def test_scores_on_which_runtimes_differ_are_refused(start, first, require_tool):
    """onnxruntime compares the second of two scores with 0, and takes no start of it alone."""
    onnx = require_tool("onnx")
    X, y = load_breast_cancer(return_X_y=True)
    of = attributes(RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, y), "class")
    of |= start | {"class_ids": [first, *[1] * (len(of["class_ids"]) - 1)]}
    node = onnx.helper.make_node("TreeEnsembleClassifier", ["x"], ["l"], **of)
    refused(ConvertError, TreeFile, onnx, [node], "x", X.shape[1])


def random_trees(rng, modes, n_inputs=4, n_targets=3):
    """Return attributes of a random TreeEnsemble; some leaves are reached on both sides."""
    from onnx import numpy_helper

    nodes, leaves, roots = [], [], []
    for _ in range(5):
        roots.append(len(nodes))
        for place in range(7):
            test = [int(rng.integers(n_inputs)), rng.normal(), int(rng.choice(modes))]
            sides = []
            for child in (2 * place + 1, 2 * place + 2):
                sides += [roots[-1] + child, 0] if child < 7 else [len(leaves), 1]
                if child >= 7 and rng.random() < 0.9:
                    leaves.append((int(rng.integers(n_targets)), rng.normal()))
            leaves.append((0, 0.5))
            nodes.append([*test, *sides, int(rng.integers(2))])
    names = ("featureids", "splits", "modes", "truenodeids", "trueleafs", "falsenodeids")
    names += ("falseleafs", "missing_value_tracks_true")
    of = {f"nodes_{k}": list(v) for k, v in zip(names, zip(*nodes, strict=True), strict=True)}
    of["leaf_targetids"], weights = map(list, zip(*leaves, strict=True))
    for name, values, dtype in (
        ("nodes_splits", of["nodes_splits"], np.float32),
        ("nodes_modes", of["nodes_modes"], np.uint8),
        ("leaf_weights", weights, np.float32),
    ):
        of[name] = numpy_helper.from_array(np.array(values, dtype))
    return of | {"tree_roots": roots, "n_targets": n_targets}


@pytest.fixture
def ensemble_file(require_tool, tmp_path):
    """Return a function that writes a TreeEnsemble, with an ArgMax behind it if `of_labels`."""
    onnx = require_tool("onnx")
    of = onnx.helper

    def write(attributes, of_labels=False, **options):
        nodes = [of.make_node("TreeEnsemble", ["x"], ["s"], domain="ai.onnx.ml", **attributes)]
        end = of.make_tensor_value_info("s", 1, [None, None])
        if of_labels:
            nodes.append(
                of.make_node("ArgMax", ["s"], ["y"], **{"axis": 1, "keepdims": 0} | options)
            )
            end = of.make_tensor_value_info("y", onnx.TensorProto.INT64, [None])
        entry = of.make_tensor_value_info("x", 1, [None, 4])
        opsets = [of.make_opsetid("", 21), of.make_opsetid("ai.onnx.ml", 5)]
        graph = of.make_graph(nodes, "g", [entry], [end])
        onnx.save(of.make_model(graph, opset_imports=opsets, ir_version=10), tmp_path / "t.onnx")
        return tmp_path / "t.onnx"

    return write


# Less or equal, less, greater or equal, greater; the last two of one sort.
@pytest.mark.parametrize("modes", [[0], [1], [2], [3], [0, 3], [1, 2]], ids=str)
def test_tree_ensembles_of_version_5_are_exact(modes, ensemble_file):
    """Labels and values are those of the evaluator of ONNX, also of missing values."""
    from onnx.reference import ReferenceEvaluator

    for seed in range(4):
        rng = np.random.default_rng([seed, *modes])
        X = rng.normal(size=(300, 4)).astype(np.float32)
        X[rng.random(X.shape) < 0.2] = np.nan
        trees = random_trees(rng, modes, n_targets=2 + seed % 2)
        trees |= {"aggregate_function": 0} if seed == 3 else {}
        for of_labels in (True, False):
            file = ensemble_file(trees, of_labels)
            expected = ReferenceEvaluator(str(file)).run(None, {"x": X})[0]
            answers = convert(file).predict(X)
            assert np.abs(answers - expected).max() <= (0 if of_labels else 1e-3)
    assert tinykernel.verify(convert(file), X[:60]).differences == 0


@pytest.mark.parametrize(
    "change",
    [
        {"aggregate_function": 2},
        {"post_transform": 1},
        {"nodes_modes": [0] * 34 + [6]},
        {"nodes_modes": [0] * 34 + [1]},
        {"leaf_weights": np.zeros(3)},
        {"tree_roots": [0, 0]},
        {"tree_roots": [-1]},
        {"tree_roots": [99]},
        {"nodes_truenodeids": [0] * 35},
        {"later": 1},
        {"axis": 0},
        {"select_last_index": 1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_other_tree_ensembles_are_refused(change, ensemble_file, require_tool):
    """One line names what changes an answer, or that the file is damaged."""
    helper = require_tool("onnx").numpy_helper
    trees, of_argmax = random_trees(np.random.default_rng(0), [0]), {}
    for name, value in change.items():
        if name in ("axis", "select_last_index"):
            of_argmax[name] = value
            continue
        dtype = np.uint8 if name == "nodes_modes" else np.float64
        is_tensor = name in ("nodes_modes", "leaf_weights")
        trees[name] = helper.from_array(np.array(value, dtype)) if is_tensor else value
    refused(TinykernelError, convert, ensemble_file(trees, True, **of_argmax))
