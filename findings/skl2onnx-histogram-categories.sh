#!/usr/bin/env bash
# skl2onnx 1.20.0: categories and links of histogram boosting are left out without a word.
#
# Both models convert, and onnxruntime takes the files. Seen with scikit-learn 1.7.2: splits
# by sets of categories become comparisons with one number, so that 37 % of the labels are others;
# of loss="poisson" the sum comes without its exponential. Ends with status 1 if that has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    skl2onnx==1.20.0 scikit-learn==1.7.2 onnxruntime==1.32.0 onnx==1.19.1 protobuf==6.33.6
"$folder/venv/bin/python" -W ignore - <<'P'
import numpy as np
import onnxruntime
import skl2onnx
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from skl2onnx.common.data_types import FloatTensorType


def answers(model, X):
    kind = [("X", FloatTensorType([None, X.shape[1]]))]
    options = {id(model): {"zipmap": False}} if hasattr(model, "classes_") else None
    file = skl2onnx.convert_sklearn(model, initial_types=kind, options=options)
    session = onnxruntime.InferenceSession(file.SerializeToString())
    return session.run(None, {"X": X})[0].ravel()


X, y = load_diabetes(return_X_y=True)
codes = np.random.default_rng(0).integers(0, 8, len(X))
rows = np.column_stack([codes, X[:, :4]]).astype(np.float32)
labels = (np.isin(codes, (1, 4, 6)) ^ (y > 140)).astype(int)
by_sets = HistGradientBoostingClassifier(
    max_iter=10, categorical_features=[0], min_samples_leaf=5, random_state=0
).fit(rows, labels)
others = np.mean(answers(by_sets, rows) != by_sets.predict(rows))
X = X.astype(np.float32)
counts = HistGradientBoostingRegressor(max_iter=10, loss="poisson", random_state=0).fit(X, y // 25)
sums, values = answers(counts, X), counts.predict(X)
print(skl2onnx.__version__, f"{others:.0%} other labels,", "values are", sums[:2], "for", values[:2])
raise SystemExit(not (others > 0.1 and np.abs(np.exp(sums) - values).max() < 1e-4))
P
