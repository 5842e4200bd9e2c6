#!/usr/bin/env bash
# onnxruntime 1.22.1: a TreeEnsembleClassifier of two integer classes answers 1, whatever the labels.
#
# classlabels_int64s are 7 and -2, and every leaf has a score for both. The scores come out as they
# are, 0.8 and 0.2 for the first row, but the label is 1 in both rows, which is no label of the model.
# onnx.reference of onnx 1.18.0 gives 7 and -2, as the larger score says. With labels 0 and 1 the
# same answer, 1 and 1 for 0 and 1, looks like a label. Ends with status 1 if that has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    onnx==1.18.0 onnxruntime==1.22.1
"$folder/venv/bin/python" -W ignore - <<'P'
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

nodes = {"nodes_treeids": [0] * 3, "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0] * 3}
nodes |= {"nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_values": [0.5, 0.0, 0.0]}
nodes |= {"nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0]}
leaves = {"class_treeids": [0] * 4, "class_nodeids": [1, 1, 2, 2], "class_ids": [0, 1, 0, 1]}
leaves |= {"class_weights": [0.8, 0.2, 0.3, 0.7]}
ends = (("X", TensorProto.FLOAT, 1), ("label", TensorProto.INT64, 0), ("scores", TensorProto.FLOAT, 2))
X, *outputs = (
    helper.make_tensor_value_info(name, kind, [None, width] if width else [None])
    for name, kind, width in ends
)
opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
rows, answers = {"X": np.array([[0.0], [1.0]], np.float32)}, []
for labels in ([7, -2], [0, 1]):
    both = nodes | leaves | {"classlabels_int64s": labels}
    node = helper.make_node(
        "TreeEnsembleClassifier", ["X"], ["label", "scores"], domain="ai.onnx.ml", **both
    )
    graph = helper.make_graph([node], "tree", [X], outputs)
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    reference = ReferenceEvaluator(model)
    answers += [session.run(None, rows)[0].tolist(), reference.run(None, rows)[0].tolist()]
print(onnxruntime.__version__, onnx.__version__, answers)
raise SystemExit(answers != [[1, 1], [7, -2], [1, 1], [0, 1]])
P
