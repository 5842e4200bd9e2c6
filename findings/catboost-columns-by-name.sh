#!/usr/bin/env bash
# catboost 1.2.7: predict takes the columns of a frame by name, without a word, in any order.
#
# LightGBM 4.6 takes the same frame by place, also without a word, and scikit-learn 1.6 refuses it.
# So a chain of libraries that passes frames on gives three answers for a frame whose columns were
# put in another order. Ends with status 1 if the behaviour of one of them has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    catboost==1.2.7 lightgbm==4.6.0 scikit-learn==1.6.1 pandas==2.2.3 'numpy<2'
"$folder/venv/bin/python" - <<'P'
import numpy as np
import pandas as pd
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from sklearn.linear_model import LogisticRegression

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(400, 2)), columns=["a", "b"])
y = (X["a"] > X["b"]).astype(int)
turned = X[["b", "a"]]
said = {}
for model in (
    CatBoostClassifier(iterations=50, verbose=False, allow_writing_files=False),
    LGBMClassifier(n_estimators=50, verbose=-1),
    LogisticRegression(),
):
    model.fit(X, y)
    before = model.predict(X)
    try:
        same = np.mean(model.predict(turned) == before)
        said[type(model).__name__] = f"{same:.2f} of the labels stay"
    except ValueError as error:
        said[type(model).__name__] = str(error).splitlines()[0]
print(said)
first, second, third = said.values()
raise SystemExit(not (first.startswith("1.00") and second < "0.5" and "feature names" in third))
P
