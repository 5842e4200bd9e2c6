#!/usr/bin/env bash
# onnxmltools 1.16.0: LightGBM's linear_tree=True is converted as if leaves were constants.
#
# Such a leaf adds a line of some inputs to its constant. Seen with lightgbm 4.7.0: the file holds
# leaf_value alone, conversion says nothing, and values are off by more than a tenth of their range.
# Ends with status 1 if that has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    onnxmltools==1.16.0 skl2onnx==1.20.0 scikit-learn==1.9.1 lightgbm==4.7.0 onnxruntime==1.32.0
"$folder/venv/bin/python" -W ignore - <<'P'
import lightgbm
import numpy as np
import onnxmltools
import onnxruntime
from onnxmltools.convert.common.data_types import FloatTensorType
from sklearn.datasets import load_diabetes

X, y = load_diabetes(return_X_y=True)
X = X.astype(np.float32)
model = lightgbm.LGBMRegressor(n_estimators=10, linear_tree=True, verbose=-1).fit(X, y)
file = onnxmltools.convert_lightgbm(model, initial_types=[("X", FloatTensorType([None, 10]))])
session = onnxruntime.InferenceSession(file.SerializeToString())
off = np.abs(session.run(None, {"X": X})[0].ravel() - model.predict(X)).max() / np.ptp(y)
print(onnxmltools.__version__, f"off by {off:.0%} of the range of the targets")
raise SystemExit(not off > 0.05)
P
