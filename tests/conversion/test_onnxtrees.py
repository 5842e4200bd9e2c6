"""Trees of ONNX files after conversion."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from tests.refusals import refused
from tinykernel.base.errors import TinykernelError
from tinykernel.conversion.models import change_of, convert

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
    ml, shapes = (
        {"domain": "ai.onnx.ml"},
        {"nodes_values_as_tensor": helper.make_tensor("v", 1, [], [0])},
    )
    for before, more, text in [
        (helper.make_node("Scaler", ["x"], ["s"], offset=[0.0], **ml), {}, "Scaler beside trees"),
        (helper.make_node("Normalizer", ["x"], ["s"], norm="L2", **ml), {}, "Normalizer beside"),
        (helper.make_node("Cast", ["x"], ["s"], to=onnx.TensorProto.INT32), {}, "Cast beside"),
        (helper.make_node("Identity", ["x"], ["s"]), shapes, "trees of ONNX in float64"),
        (helper.make_node("Identity", ["x"], ["s"]), {}, ""),
    ]:
        save([before, helper.make_node(name, ["s"], outputs, **ml, **options, **more)])
        if text:
            refused(TinykernelError, convert, file)
    assert np.array_equal(convert(file).predict(rows[:200]), converted.predict(rows[:200]))
    if not is_class:
        save([helper.make_node(name, ["x"], outputs, post_transform="LOGISTIC", **ml, **options)])
        refused(TinykernelError, convert, file)
