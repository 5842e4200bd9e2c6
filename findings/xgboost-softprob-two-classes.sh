#!/usr/bin/env bash
# xgboost 3.2.0: predict of a classifier of two classes by multi:softprob gives two columns.
#
# With objective="multi:softprob" and num_class=2, predict of XGBClassifier has the shape (n, 2), ones
# and zeros in place of labels; with three classes it has labels (n,). The rows are right, but a
# comparison with y broadcasts or fails. Ends with status 1 if that has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    scikit-learn==1.7.2 xgboost-cpu==3.2.0
"$folder/venv/bin/python" -W ignore - <<'P'
import numpy as np
import xgboost
from sklearn.datasets import load_breast_cancer, load_iris

two, three = load_breast_cancer(return_X_y=True), load_iris(return_X_y=True)
answers = []
for (X, y), more in ((two, {"num_class": 2}), (three, {})):
    model = xgboost.XGBClassifier(n_estimators=3, objective="multi:softprob", **more).fit(X, y)
    answers.append(model.predict(X))
print(xgboost.__version__, [answer.shape for answer in answers], np.unique(answers[0]))
raise SystemExit([answer.shape for answer in answers] != [(569, 2), (150,)])
P
