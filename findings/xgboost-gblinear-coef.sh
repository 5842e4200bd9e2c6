#!/usr/bin/env bash
# xgboost 3.2.0: coef_ of a gblinear classifier of three classes mixes classes and features.
#
# scikit-learn's convention is (classes, features), and the shape says so. Seen: the values are those
# of (features, classes) in that order, reshaped. coef_ is off by 2.4 from the slopes of the margins on
# wine, while coef_.ravel().reshape(features, classes).T has them to 1e-5. Who takes coef_ for another
# platform gets another model. Ends with status 1 if the behaviour has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    xgboost-cpu==3.2.0 scikit-learn==1.7.2
"$folder/venv/bin/python" -W ignore - <<'P'
import numpy as np
import xgboost
from sklearn.datasets import load_wine

X, y = load_wine(return_X_y=True)
model = xgboost.XGBClassifier(booster="gblinear", n_estimators=20).fit(X, y)
n = X.shape[1]
margins = model.predict(np.eye(n + 1, n, k=0), output_margin=True)
slopes = (margins[:n] - margins[n]).T  # (classes, features)
coef = np.asarray(model.coef_)
turned = coef.ravel().reshape(n, 3).T
off = np.abs(coef - slopes).max(), np.abs(turned - slopes).max()
print(xgboost.__version__, coef.shape, f"off by {off[0]:.2g}, turned by {off[1]:.2g}")
raise SystemExit(not (coef.shape == slopes.shape and off[0] > 0.1 and off[1] < 1e-4))
P
