#!/usr/bin/env bash
# onnxruntime 1.32.0: quantize_static mistakes a Gemm whose alpha is not 1.
#
# alpha is an attribute of Gemm in all versions of ONNX. Seen: with alpha = -1 the QOperator file keeps
# the attribute for the product and not for the bias, whose quantized form has no alpha of its own, so
# answers are off by a good part of their spread; with the weights negated instead they are right.
# Ends with status 1 if that has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    onnxruntime==1.32.0 onnx==1.19.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'P'
import logging

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

logging.disable(logging.WARNING)
rng = np.random.default_rng(0)
X = rng.normal(size=(500, 8)).astype(np.float32)
W, b = rng.normal(size=(8, 4)).astype(np.float32), (3 * rng.normal(size=4)).astype(np.float32)


class Rows(CalibrationDataReader):
    def __init__(self):
        self.rows = iter([{"X": X}])

    def get_next(self):
        return next(self.rows, None)


def spread_off(alpha, weights, name):
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["X", "W", "b"], ["Y"], alpha=alpha)],
        "g",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n", 8])],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, ["n", 4])],
        [numpy_helper.from_array(weights, "W"), numpy_helper.from_array(b, "b")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, f"{name}.onnx")
    quantize_static(
        f"{name}.onnx",
        f"{name}8.onnx",
        Rows(),
        quant_format=QuantFormat.QOperator,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        reduce_range=True,
    )
    floats, levels = (
        onnxruntime.InferenceSession(f"{name}{end}.onnx").run(None, {"X": X})[0] for end in ("", "8")
    )
    return np.abs(floats - levels).max() / floats.std()


minus, plain = spread_off(-1.0, -W, "minus"), spread_off(1.0, W, "plain")
print(onnxruntime.__version__, f"off by {minus:.2f} deviations with alpha -1, {plain:.2f} with 1")
raise SystemExit(not (minus > 0.5 > 0.1 > plain))
P
