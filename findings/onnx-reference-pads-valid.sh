#!/usr/bin/env bash
# onnx 1.20.0: onnx.reference pads a Conv with auto_pad=VALID, as if it said SAME.
#
# The specification of Conv says that VALID means no padding, the same as auto_pad=NOTSET with pads
# of 0: 5 x 5 values under a kernel of 3 x 3 leave 3 x 3. Seen: 5 x 5, whose first sum is 12 for 54. It
# is what converters compare with. Seen in 1.16 to 1.20, right in 1.23. Ends with status 1 if the behaviour has changed.
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


def answer(**padding):
    node = helper.make_node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3], **padding)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy"]
    weights = numpy_helper.from_array(np.ones((1, 1, 3, 3), np.float32), "w")
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    rows = np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5)
    return ReferenceEvaluator(model).run(None, {"x": rows})[0]


valid, none = answer(auto_pad="VALID"), answer(pads=[0, 0, 0, 0])
print(onnx.__version__, "VALID", valid.shape, valid.ravel()[:3], "no padding", none.shape, none.ravel()[:3])
raise SystemExit(valid.shape == none.shape and np.array_equal(valid, none))
P
