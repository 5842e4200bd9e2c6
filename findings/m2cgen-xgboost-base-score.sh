#!/usr/bin/env bash
# m2cgen 0.10.0: C of an XGBoost regressor whose base_score was not set holds a bare nan.
#
# xgboost estimates base_score when it is not given, and get_params then answers nan. Seen with
# xgboost 3.2.0: the generated function adds "nan", which C does not know as a name, and with a
# base_score of 0.5 the same model is fine. Ends with status 1 if that has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    m2cgen==0.10.0 scikit-learn==1.7.2 xgboost-cpu==3.2.0
"$folder/venv/bin/python" -W ignore - <<'P'
import re

import m2cgen
import xgboost
from sklearn.datasets import load_diabetes

X, y = load_diabetes(return_X_y=True)
bare = []
for more in ({}, {"base_score": 0.5}):
    model = xgboost.XGBRegressor(n_estimators=3, max_depth=2, **more).fit(X, y)
    bare.append(re.findall(r"\bnan\b", m2cgen.export_to_c(model)))
print(m2cgen.__version__, xgboost.__version__, bare)
raise SystemExit(not (bare[0] and not bare[1]))
P
