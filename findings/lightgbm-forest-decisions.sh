#!/usr/bin/env bash
# LightGBM 4.7.0: decision_function of boosting_type="rf" is no log odds of predict_proba.
#
# Trees of a forest are averaged: predict_proba is the sigmoid of their mean. decision_function, and
# predict(raw_score=True), give their sum, here ten times the log odds with ten trees; of gradient
# boosting they are the log odds themselves. Labels agree, but a threshold that is learned on
# decisions, or a calibration of them, means another probability for each number of trees. Ends with
# status 1 if that has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    lightgbm==4.7.0 scikit-learn==1.7.2
"$folder/venv/bin/python" -W ignore - <<'P'
import lightgbm
import numpy as np
from sklearn.datasets import load_breast_cancer

X, y = load_breast_cancer(return_X_y=True)
ratios = []
for options in ({"boosting_type": "rf", "subsample": 0.6, "subsample_freq": 1}, {}):
    model = lightgbm.LGBMClassifier(n_estimators=10, verbose=-1, **options).fit(X, y)
    p = model.predict_proba(X)[:, 1]
    ratios.append(np.median(model.decision_function(X) / np.log(p / (1 - p))))
print(lightgbm.__version__, np.round(ratios, 4))
raise SystemExit(not np.allclose(ratios, [10, 1]))
P
