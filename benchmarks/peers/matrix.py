"""One converter on 24 models of four libraries, in the environment that ``converters.py`` makes.

``python matrix.py PEER FIRST`` prints a line of JSON for each model from number FIRST on: what
became of it, and why. It imports the converter and these libraries alone.
"""

import contextlib
import ctypes
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

#: A converted model is right if so few labels are others, ties apart, and values are so near.
WRONG_SHARE, TIE, NEAR = 1e-3, 1e-6, 1e-4


def _sets() -> dict[str, tuple[Any, Any]]:
    """Return the tables: rows in float32, and labels or values."""
    datasets = importlib.import_module("sklearn.datasets")
    names = ("digits", "breast_cancer", "wine", "diabetes")
    sets = {name: getattr(datasets, f"load_{name}")(return_X_y=True) for name in names}
    sets = {name: (X.astype(np.float32), y) for name, (X, y) in sets.items()}
    rng = np.random.default_rng(0)
    X, y = sets["wine"]
    sets["gaps"] = np.where(rng.random(X.shape) < 0.1, np.nan, X).astype(np.float32), y
    X, y = sets["diabetes"]
    sets["counts"] = X, y // 25
    codes = rng.integers(0, 8, len(X))
    X = np.column_stack([codes, X[:, :4]]).astype(np.float32)
    sets["codes"] = X, (np.isin(codes, (1, 4, 6)) ^ (y > 140)).astype(int)
    sets["texts"] = X, sets["codes"][1]
    return sets


def _as_texts(X: Any) -> Any:
    """Return a frame whose first column is text."""
    frame = importlib.import_module("pandas").DataFrame(X)
    frame[0] = frame[0].astype(int).astype(str)
    return frame


def _of(library: str, name: str, *sets: str, **options: Any) -> tuple[Any, ...]:
    """Return a row of `MODELS`."""
    return library, name, options, *sets


_FEW = {"n_estimators": 10, "random_state": 0}
#: By library and title: the module, the class, its options, and the table.
MODELS: dict[str, tuple[Any, ...]] = {
    "scikit-learn: decision tree": _of(
        "sklearn.tree", "DecisionTreeClassifier", "digits", random_state=0
    ),
    "scikit-learn: random forest": _of(
        "sklearn.ensemble", "RandomForestClassifier", "digits", **_FEW
    ),
    "scikit-learn: extra trees, missing values": _of(
        "sklearn.ensemble", "ExtraTreesClassifier", "gaps", **_FEW
    ),
    "scikit-learn: gradient boosting": _of(
        "sklearn.ensemble", "GradientBoostingClassifier", "wine", **_FEW
    ),
    "scikit-learn: histograms, categories": _of(
        *("sklearn.ensemble", "HistGradientBoostingClassifier", "codes"),
        **{"max_iter": 10, "categorical_features": [0], "min_samples_leaf": 5},
    ),
    "scikit-learn: histograms, counts": _of(
        *("sklearn.ensemble", "HistGradientBoostingRegressor", "counts"),
        **{"max_iter": 10, "loss": "poisson"},
    ),
    "scikit-learn: isolation forest": _of("sklearn.ensemble", "IsolationForest", "wine", **_FEW),
    "scikit-learn: AdaBoost": _of("sklearn.ensemble", "AdaBoostClassifier", "wine", **_FEW),
    "xgboost: two classes": _of("xgboost", "XGBClassifier", "breast_cancer", **_FEW),
    "xgboost: ten classes": _of("xgboost", "XGBClassifier", "digits", **_FEW),
    "xgboost: values": _of("xgboost", "XGBRegressor", "diabetes", **_FEW),
    "xgboost: categories": _of(
        *("xgboost", "XGBClassifier", "codes"),
        **{**_FEW, "enable_categorical": True, "feature_types": list("cqqqq")},
    ),
    "xgboost: counts": _of("xgboost", "XGBRegressor", "counts", **_FEW, objective="count:poisson"),
    "xgboost: DART": _of("xgboost", "XGBClassifier", "wine", **_FEW, booster="dart", rate_drop=0.3),
    "lightgbm: two classes": _of("lightgbm", "LGBMClassifier", "breast_cancer", **_FEW),
    "lightgbm: ten classes": _of("lightgbm", "LGBMClassifier", "digits", **_FEW),
    "lightgbm: values, missing ones": _of("lightgbm", "LGBMRegressor", "gaps", **_FEW),
    "lightgbm: categories": _of("lightgbm", "LGBMClassifier", "codes", **_FEW),
    "lightgbm: counts": _of("lightgbm", "LGBMRegressor", "counts", **_FEW, objective="poisson"),
    "lightgbm: linear trees": _of(
        "lightgbm", "LGBMRegressor", "diabetes", **_FEW, linear_tree=True
    ),
    "catboost: two classes": _of("catboost", "CatBoostClassifier", "breast_cancer", **_FEW),
    "catboost: ten classes": _of("catboost", "CatBoostClassifier", "digits", **_FEW),
    "catboost: values": _of("catboost", "CatBoostRegressor", "diabetes", **_FEW),
    "catboost: texts": _of("catboost", "CatBoostClassifier", "texts", **_FEW),
}


def _rows(X: Any, name: str) -> Any:
    """Return the rows of a table, and as many near them; whole numbers and codes stay so."""
    near = X + 0.2 * np.nanstd(X, axis=0) * np.random.default_rng(1).normal(size=X.shape)
    if name == "digits":
        near = np.rint(near).clip(0, 16)
    if name in ("codes", "texts"):
        near[:, 0] = X[:, 0]
    return np.concatenate([X, near]).astype(np.float32)


def trained(title: str) -> tuple[Any, Any]:
    """Return a fitted model, and rows to compare."""
    module, name, options, data = MODELS[title]
    X, y = _sets()[data]
    quiet = {"lightgbm": {"verbose": -1}, "catboost": {"allow_writing_files": False}}
    model = getattr(importlib.import_module(module), name)(**options, **quiet.get(module, {}))
    rows, more = _rows(X, data), {}
    if module == "lightgbm" and data == "codes":
        more["categorical_feature"] = [0]
    if module == "catboost":
        more["verbose"] = False
    if data == "texts":
        X, rows, more["cat_features"] = _as_texts(X), _as_texts(rows), [0]
    return model.fit(X, y, **more), rows


def _answers(model: Any, scores: Any) -> Any:
    """Return labels of scores a class, or of the probability of the second one; else values."""
    scores = np.asarray(scores).reshape(len(scores), -1)
    if hasattr(model, "offset_"):  # an isolation forest says how far a row is from the others
        return np.where(-scores[:, 0] < model.offset_, -1, 1)
    if not hasattr(model, "classes_"):
        return scores[:, 0]
    best = scores[:, 0] > 0.5 if scores.shape[1] == 1 else scores.argmax(axis=1)
    return model.classes_[best.astype(int)]


def tl2cgen(model: Any, rows: Any) -> Any:
    """C that treelite's models become."""
    treelite, compiler = importlib.import_module("treelite"), importlib.import_module("tl2cgen")
    if hasattr(model, "get_booster"):
        loaded = treelite.frontend.from_xgboost(model.get_booster())
    elif hasattr(model, "booster_"):
        loaded = treelite.frontend.from_lightgbm(model.booster_)
    else:
        loaded = importlib.import_module("treelite.sklearn").import_model(model)
    library = str(Path("tree.so").resolve())
    compiler.export_lib(loaded, toolchain="gcc", libpath=library, params={"quantize": 0})
    return _answers(model, compiler.Predictor(library).predict(compiler.DMatrix(rows)))


def _by_onnx(file: Any, rows: Any) -> Any:
    """Return the first output, which has labels or values."""
    runtime = importlib.import_module("onnxruntime")
    session = runtime.InferenceSession(file.SerializeToString())
    return np.ravel(session.run(None, {session.get_inputs()[0].name: rows})[0])


# Without, some are refused with the advice to say this.
_VERSIONS = {"": 15, "ai.onnx.ml": 3}


def skl2onnx(model: Any, rows: Any) -> Any:
    """ONNX, with the converters of onnxmltools that its documentation registers."""
    convert = importlib.import_module("skl2onnx")
    shapes = importlib.import_module("skl2onnx.common.shape_calculator")
    kind = type(model).__name__
    module = {"X": "xgboost", "L": "lightgbm"}.get(kind[0])
    if module:
        name = {"xgboost": "XGBoost", "lightgbm": "LightGbm"}[module]
        operators = importlib.import_module(
            f"onnxmltools.convert.{module}.operator_converters.{name}"
        )
        is_of_classes = hasattr(model, "classes_")
        shape = "classifier" if is_of_classes else "regressor"
        convert.update_registered_converter(
            type(model),
            f"{name}{kind}",
            getattr(shapes, f"calculate_linear_{shape}_output_shapes"),
            getattr(operators, f"convert_{module}"),
            options={"nocl": [True, False], "zipmap": [True, False]} if is_of_classes else {},
        )
    return _by_onnx(convert.to_onnx(model, np.asarray(rows[:1]), target_opset=_VERSIONS), rows)


def onnxmltools(model: Any, rows: Any) -> Any:
    """ONNX, by the function for each library."""
    tools = importlib.import_module("onnxmltools")
    library = type(model).__module__.split(".")[0]
    if library == "catboost":
        return _by_onnx(tools.convert_catboost(model, name="model"), rows)
    module = "skl2onnx.common" if library == "sklearn" else "onnxmltools.convert.common"
    types = importlib.import_module(f"{module}.data_types")
    convert = getattr(tools, f"convert_{library}")
    taken = [("input", types.FloatTensorType([None, rows.shape[1]]))]
    versions = {"target_opset": _VERSIONS} if library == "sklearn" else {}
    return _by_onnx(convert(model, initial_types=taken, **versions), rows)


def hummingbird(model: Any, rows: Any) -> Any:
    """Tensors of PyTorch."""
    converted = importlib.import_module("hummingbird.ml").convert(model, "torch", rows[:1])
    return np.ravel(converted.predict(rows))


def _library(code: str, suffix: str, compiler: str) -> Any:
    """Compile a source and load it."""
    Path(f"code{suffix}").write_text(code, encoding="utf-8")
    command = [compiler, "-shared", "-fPIC", "-O1", "-w", "-o", "code.so", f"code{suffix}", "-lm"]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return ctypes.CDLL(str(Path("code.so").resolve()))


def m2cgen(model: Any, rows: Any) -> Any:
    """Nested conditions in C."""
    code = importlib.import_module("m2cgen").export_to_c(model)
    score = _library(code, ".c", "gcc").score
    outputs, rows = np.zeros((len(rows), 64)), np.ascontiguousarray(rows, np.float64)
    address = ctypes.POINTER(ctypes.c_double)
    if code.rpartition("double score(")[1]:
        score.restype = ctypes.c_double
        return _answers(model, [score(row.ctypes.data_as(address)) for row in rows])
    for row, output in zip(rows, outputs, strict=True):
        score(row.ctypes.data_as(address), output.ctypes.data_as(address))
    return _answers(model, outputs[:, : len(getattr(model, "classes_", [0]))])


def emlearn(model: Any, rows: Any) -> Any:
    """Trees in C: of int16 by default, of floats where rows are not whole numbers."""
    convert = importlib.import_module("emlearn").convert
    is_whole = np.array_equal(rows, np.rint(np.asarray(rows, float)))
    return np.ravel(convert(model, **({} if is_whole else {"dtype": "float"})).predict(rows))


def micromlgen(model: Any, rows: Any) -> Any:
    """A class in C++."""
    code = importlib.import_module("micromlgen").port(model)
    kind = re.findall(r"class (\w+) \{", code)[-1]
    end = "int" if hasattr(model, "classes_") else "float"
    around = f"""
#include <cstdarg>
#include <cstdint>
#include <cstring>
{code}
extern "C" {end} answer(float *row) {{ return Eloquent::ML::Port::{kind}().predict(row); }}
"""
    answer = _library(around, ".cpp", "g++").answer
    answer.restype = ctypes.c_int if end == "int" else ctypes.c_float
    rows, address = np.ascontiguousarray(rows, np.float32), ctypes.POINTER(ctypes.c_float)
    results = np.array([answer(row.ctypes.data_as(address)) for row in rows])
    return model.classes_[results] if end == "int" else results


def tinykernel(model: Any, rows: Any) -> Any:
    """Integers, without rows to compare."""
    return importlib.import_module("tinykernel").convert(model).predict(rows)


PEERS: dict[str, Callable[[Any, Any], Any]] = {
    peer.__name__: peer
    for peer in (
        *(tl2cgen, skl2onnx, onnxmltools, hummingbird, m2cgen, emlearn, micromlgen),
        tinykernel,
    )
}


def compared(model: Any, rows: Any, answers: Any) -> str:
    """Say how answers differ from those of the library; empty if they are right."""
    expected, answers = np.ravel(model.predict(rows)), np.ravel(answers)
    if not hasattr(model, "predict_proba") and not hasattr(model, "offset_"):
        off = np.abs(answers.astype(float) - expected) / np.abs(expected).max()
        return f"off by {100 * off.max():.2g} %" if not off.max() <= NEAR else ""
    differs = answers.astype(str) != expected.astype(str)
    if hasattr(model, "predict_proba"):
        best = np.sort(model.predict_proba(rows), axis=1)
        differs &= best[:, -1] - best[:, -2] > TIE
    return f"{100 * differs.mean():.2g} % of labels" if differs.mean() > WRONG_SHARE else ""


def main(peer: str, first: int) -> None:
    """Convert the models, each as soon as it is trained."""
    for number, title in enumerate(MODELS):
        if number < first:
            continue
        outcome, why = "right", ""
        model, rows = trained(title)
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            try:
                with (
                    open(os.devnull, "w", encoding="utf-8") as nowhere,
                    contextlib.redirect_stdout(nowhere),
                ):
                    answers = PEERS[peer](model, rows)
            except subprocess.CalledProcessError as error:
                lines = error.stderr.decode(errors="replace").splitlines()
                line = next((line for line in lines if "error:" in line), "")
                outcome, why = "refused", f"code that does not compile: {line}"
            except Exception as error:  # each converter has its own
                text = " ".join(str(error).split())
                outcome, why = "refused", f"{type(error).__name__}: {text}"
            else:
                why = compared(model, rows, answers)
                outcome = "wrong" if why else "right"
        print(json.dumps({"number": number, "outcome": outcome, "why": why[:300]}), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1], int(sys.argv[2]))
