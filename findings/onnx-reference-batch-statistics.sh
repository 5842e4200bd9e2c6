#!/usr/bin/env bash
# onnx 1.20.0: onnx.reference normalizes by the batch where BatchNormalization has opset 9.
#
# Up to opset 13 the number of outputs decides: one output is inference, with the mean and variance
# of the file. Seen: a tenth of those of the rows is mixed in, so that the answer of a row depends on
# its neighbours: 0.949 alone and 0.988 beside a zero, for (1 - 0) / 1 = 1. Opset 15 is right. It is
# what converters compare with. Ends with status 1 if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check onnx==1.20.0 numpy==2.2.6
"$folder/venv/bin/python" - <<'P'
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator


def answers(opset, rows):
    node = helper.make_node("BatchNormalization", list("xsbmv"), ["y"], epsilon=0.0)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy"]
    values = {"s": 1.0, "b": 0.0, "m": 0.0, "v": 1.0}
    known = [numpy_helper.from_array(np.array([v], np.float32), n) for n, v in values.items()]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], known)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    rows = np.array(rows, np.float32).reshape(-1, 1, 1, 1)
    return ReferenceEvaluator(model).run(None, {"x": rows})[0].ravel()


old, new = [[answers(opset, rows)[0] for rows in ([1], [1, 0])] for opset in (9, 15)]
print(onnx.__version__, "opset 9:", old, "opset 15:", new)
raise SystemExit(not (np.allclose(new, 1) and abs(old[0] - old[1]) > 0.01))
P
