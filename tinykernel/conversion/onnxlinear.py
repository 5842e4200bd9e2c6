"""Linear models of ONNX files as scikit-learn's are written: one linear node."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.errors import ConvertError, FormatError
from tinykernel.conversion.checks import check_fields

#: Nodes of weights, and the attributes of each that are read or change no label.
KINDS = {
    "LinearClassifier": {"classlabels_ints", "classlabels_strings", "coefficients", "intercepts"}
    | {"multi_class", "post_transform"},
    "LinearRegressor": {"coefficients", "intercepts", "targets", "post_transform"},
    "SVMClassifier": {"classlabels_ints", "classlabels_strings", "coefficients", "kernel_params"}
    | {"kernel_type", "post_transform", "rho", "support_vectors", "vectors_per_class"},
}
#: Nodes that change no value, as a Cast to float32 does; behind labels there may be more.
_SAME = ("Identity", "Reshape")
_BEHIND = (*_SAME, "ZipMap", "Cast", "Normalizer", "ArrayFeatureExtractor")


class LinearFile:
    """The weights of a graph, with the names that models of scikit-learn have for them."""

    def __init__(self, onnx: Any, nodes: list[Any], entry: str, n_inputs: int) -> None:
        self.coef_: NDArray[np.float64] = np.zeros((0, 0))
        self.intercept_: NDArray[np.float64] = np.zeros(0)
        for node in nodes:
            of = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
            kind = node.op_type
            is_same = kind in _SAME or of.get("to") == onnx.TensorProto.FLOAT
            if not self.coef_.size and kind in KINDS and node.input[0] == entry:
                check_fields(f"a {kind} of ONNX", of, KINDS[kind])
                self._read(kind, of)
            elif not (is_same or (kind in _BEHIND and hasattr(self, "classes_"))):
                raise _other(kind)
        self.n_features_in_ = n = self.coef_.shape[1]
        if n_inputs not in (0, n):
            raise FormatError(f"convert: damaged weights: {n} a class; write the file again")
        if not all(np.isfinite(part).all() for part in (self.coef_, self.intercept_)):
            raise FormatError("convert: a weight is not finite; write the file again")

    def _read(self, kind: str, of: dict[str, Any]) -> None:
        """Take weights and labels; of two classes one sum."""
        self.intercept_ = np.array(of.get("intercepts", [0.0]), dtype=np.float64)
        weights = np.array(of["coefficients"], dtype=np.float64)
        after = of.get("post_transform", b"NONE")
        known = (b"NONE",) if kind == "LinearRegressor" else (b"NONE", b"SOFTMAX", b"LOGISTIC")
        if after not in known:
            raise ConvertError(
                f"convert: {after.decode(errors='replace')} behind a {kind} is not supported; "
                "convert the fitted model itself"
            )
        if kind == "LinearRegressor":
            n = int(of.get("targets", 1))
            self.coef_ = weights.reshape(n, -1)
            self.intercept_ = self.intercept_ + np.zeros(n)
            return
        labels = of.get("classlabels_strings") or of["classlabels_ints"]
        self.classes_ = np.array([x.decode() if isinstance(x, bytes) else x for x in labels])
        if kind == "SVMClassifier":
            self._read_kernel(of, weights)
            return
        self.coef_ = weights.reshape(self.intercept_.size, -1)
        if len(self.coef_) == 2 == len(self.classes_):
            self.coef_, self.intercept_ = np.diff(self.coef_, axis=0), np.diff(self.intercept_)

    def _read_kernel(self, of: dict[str, Any], weights: NDArray[np.float64]) -> None:
        """Take the sums of a linear kernel, which are above 0 for the first class."""
        if of.get("kernel_type") != b"LINEAR" or len(self.classes_) != 2:
            raise ConvertError(
                "convert: a SVMClassifier of ONNX is read if its kernel is linear and of two "
                "classes; convert the fitted model itself if its kernel is linear, else let it "
                "teach: tinykernel.train(X, y, teacher=...)"
            )
        vectors = np.array(of["support_vectors"], dtype=np.float64).reshape(weights.size, -1)
        self.coef_ = -(weights @ vectors)[None]
        self.intercept_ = -np.array(of["rho"], dtype=np.float64)[:1]

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict labels or values in floats."""
        sums = np.asarray(X, dtype=np.float64) @ self.coef_.T + self.intercept_
        if not hasattr(self, "classes_"):
            return np.asarray(sums[:, 0] if sums.shape[1] == 1 else sums)
        place = sums.argmax(axis=1) if sums.shape[1] > 1 else (sums[:, 0] > 0).astype(int)
        return np.asarray(self.classes_[place])


def _other(kind: str) -> ConvertError:
    """Return the error of a node beside the weights."""
    why = "divides each row by its length, which the firmware does not; train without it"
    return ConvertError(
        f"convert: {kind} beside a linear model: "
        + (why if kind == "Normalizer" else "not supported; convert the fitted model itself")
    )
