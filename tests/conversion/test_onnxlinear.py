"""ONNX files of linear models, with the nodes that skl2onnx 1.20 writes for scikit-learn 1.9."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import tinykernel
from tests.refusals import refused
from tinykernel.base.errors import ConvertError, FormatError
from tinykernel.conversion.models import convert

SETS = {"wine": load_wine, "cancer": load_breast_cancer, "values": load_diabetes}


@pytest.fixture
def written(require_tool: Any, tmp_path: Path) -> Any:
    """Return a function that writes nodes of the domain ai.onnx.ml, each behind the one before."""
    onnx = require_tool("onnx")

    def write(n: int, *nodes: tuple[str, dict[str, Any]]) -> Path:
        of, names = onnx.helper, ["x", *(f"v{i}" for i in range(len(nodes)))]
        made, numbers, tensor = [], [], onnx.numpy_helper.from_array
        for i, (kind, options) in enumerate(nodes):
            second = [tensor(options.pop(n), f"n{i}") for n in [*options] if n == "b"]
            inputs, domain = [names[i], *(b.name for b in second)], "" if second else "ai.onnx.ml"
            made.append(of.make_node(kind, inputs, [names[i + 1]], domain=domain, **options))
            numbers += second
        ends = [
            of.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [None, n])
            for name in (names[0], names[-1])
        ]
        opsets = [of.make_opsetid("", 21), of.make_opsetid("ai.onnx.ml", 1)]
        graph = of.make_graph(made, "g", ends[:1], ends[1:], numbers)
        onnx.save(of.make_model(graph, opset_imports=opsets), tmp_path / "m.onnx")
        return tmp_path / "m.onnx"

    return write


def weights_of(model: Any) -> tuple[str, dict[str, Any]]:
    """Return the node of a linear model; of two classes it has a row for each."""
    weights, bias = np.atleast_2d(model.coef_), np.ravel(model.intercept_)
    if not hasattr(model, "classes_"):
        return "LinearRegressor", {
            "coefficients": weights.ravel().tolist(),
            "intercepts": bias.tolist(),
        }
    if len(weights) == 1:
        weights, bias = np.vstack([-weights, weights]), np.append(-bias, bias)
    return "LinearClassifier", {
        "coefficients": weights.ravel().tolist(),
        "intercepts": bias.tolist(),
        "classlabels_ints": model.classes_.tolist(),
        "multi_class": 1,
        "post_transform": "SOFTMAX",
    }


@pytest.mark.parametrize("data", SETS)
def test_linear_files_answer_as_before(data: str, written: Any) -> None:
    """Steps and weights of three classes, of two in two rows, and of values."""
    X, y = SETS[data](return_X_y=True)
    X = X.astype(np.float32)
    scaler, pca = StandardScaler(), PCA(5)
    sums = pca.fit_transform(scaler.fit_transform(X))
    model = (Ridge() if data == "values" else LogisticRegression()).fit(sums, y)
    filled = {"imputed_value_floats": scaler.mean_.tolist(), "replaced_value_float": np.nan}
    mixed = ("Sub", {"b": np.float32(pca.mean_)}), ("MatMul", {"b": np.float32(pca.components_.T)})
    behind = [("ZipMap", {})] if data == "wine" else []
    scaled = {"offset": scaler.mean_.tolist(), "scale": (1 / scaler.scale_).tolist()}
    steps = ("Imputer", filled), ("Scaler", scaled), *mixed, weights_of(model)
    converted, expected = convert(written(X.shape[1], *steps, *behind), X), model.predict(sums)
    if data == "values":
        assert np.abs(converted.predict(X) - expected).max() < 1e-3 * expected.std()
    else:
        assert np.mean(converted.predict(X) != expected) <= 0.005
    if data == "cancer":
        assert tinykernel.verify(converted, X[:50]).differences == 0


def test_a_linear_kernel_is_the_sum_of_its_vectors(written: Any) -> None:
    """Its sums are above 0 for the first class."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X).astype(np.float32)
    model = SVC(kernel="linear").fit(X, y)
    options = {
        "classlabels_ints": [0, 1],
        "coefficients": (-model.dual_coef_).ravel().tolist(),
        "kernel_params": [0.1, 0.0, 3.0],
        "kernel_type": "LINEAR",
        "post_transform": "NONE",
        "rho": (-model.intercept_).tolist(),
        "support_vectors": model.support_vectors_.ravel().tolist(),
        "vectors_per_class": model.n_support_.tolist(),
    }
    converted = convert(written(X.shape[1], ("SVMClassifier", options)), X)
    assert np.mean(converted.predict(X) != model.predict(X)) <= 0.005
    curved = written(X.shape[1], ("SVMClassifier", options | {"kernel_type": "RBF"}))
    refused(ConvertError, convert, curved, X, match="kernel is linear.*teacher=")


def test_other_nodes_and_damaged_weights_are_refused(written: Any) -> None:
    """One line says which, and what to do."""
    X, y = load_wine(return_X_y=True)
    weights = weights_of(LogisticRegression(max_iter=9999).fit(X, y))
    long = written(13, ("Normalizer", {"norm": "L2"}), weights)
    refused(ConvertError, convert, long, X, match="Normalizer.*length.*train without")
    values = ("LinearRegressor", {"coefficients": [1.0] * 26, "targets": 2})
    shares = written(13, values, ("Normalizer", {"norm": "L1"}))
    refused(ConvertError, convert, shares, X, match="Normalizer")
    refused(ConvertError, convert, written(13, ("Div", {"b": np.ones(13, int)}), weights), X)
    probit = weights[1] | {"post_transform": "PROBIT"}
    refused(ConvertError, convert, written(13, ("LinearClassifier", probit)), X, match="PROBIT")
    few = weights[1] | {"coefficients": weights[1]["coefficients"][:-1]}
    refused(FormatError, convert, written(13, ("LinearClassifier", few)), X, match="damaged")
    lost = weights[1] | {"intercepts": [0.0, float("nan"), 1.0]}
    refused(FormatError, convert, written(13, ("LinearClassifier", lost)), X, match="finite")
