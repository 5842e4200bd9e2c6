"""The six systems of Lei & Lan 2021: a feature map and a linear classifier each, and their cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from benchmarks.papers.harness import Bench, Data, climb, stratified
from benchmarks.papers.linear import LinearOutputs, fit_linear
from tinykernel import TernaryKernelClassifier
from tinykernel.hadamard import padded_dimension
from tinykernel.papers.features import (
    BCSIK,
    RMBCSIK,
    Fastfood,
    RandomFourierFeatures,
    neighbour_distance,
)
from tinykernel.papers.ternary.bits import pack_features
from tinykernel.papers.ternary.coordinate import PaperOptions, TernaryOutputs, fit_outputs
from tinykernel.training.layouts import LAYOUTS, components_within

__all__ = ["NAMES", "Cost", "System", "cost_of", "learned_model", "table_bytes", "tune"]

#: As Lei & Lan 2021 call them, in the order of its Table 2.
NAMES = ("RFE", "Fastfood", "BJLE", "BCSIK", "ours", "ours-b")
SIGMAS = tuple(2.0**k for k in range(-5, 6))
PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0)
#: Rows to search with, two thirds to train on and one to choose by. Two classes are cheap.
SEARCH_ROWS = 4500
MORE_SEARCH_ROWS = {"covtype": 15_000}
#: Where there are as many rows, they check whether a smaller lambda is better. Two classes: more.
REFINE_ROWS = 20_000
MORE_REFINE_ROWS = {"covtype": 100_000}
# Blocks as published: everything random; but they share B and P, which costs nothing.
PUBLISHED: dict[str, Any] = {
    "diagonal": "gaussian",
    "row_scale": "chi",
    "permutation": "stored",
}


class BinaryJohnsonLindenstrauss:
    """Signs of a random projection, which keep angles: ``z(x) = sign(R x)``, R Gaussian."""

    def __init__(self, n_components: int, random_state: int) -> None:
        self.n_components, self.seed = n_components, random_state

    def fit(self, X: np.ndarray) -> BinaryJohnsonLindenstrauss:
        rng = np.random.RandomState(self.seed)
        self.weights = rng.standard_normal((X.shape[1], self.n_components)).astype(X.dtype)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        return 2 * (X @ self.weights >= 0).view(np.int8) - 1


def make_map(name: str, p: int, sigma: float, seed: int) -> Any:
    """Return the feature map of a system."""
    options: dict[str, Any] = {"n_components": p, "random_state": seed}
    if name == "BJLE":
        return BinaryJohnsonLindenstrauss(**options)
    options["sigma"] = sigma
    if name == "RFE":
        return RandomFourierFeatures(**options)
    if name == "BCSIK":
        return BCSIK(**options)
    return (
        Fastfood(**PUBLISHED, **options) if name == "Fastfood" else RMBCSIK(**PUBLISHED, **options)
    )


@dataclass
class System:
    """A trained system: features, then outputs."""

    name: str
    map_: Any
    outputs: LinearOutputs | TernaryOutputs

    @staticmethod
    def features(map_: Any, X: np.ndarray) -> np.ndarray:
        """Compute features of size about 1: cosines without their factor, or signs."""
        Z = map_.transform(X)
        if Z.dtype == np.float32:
            Z *= np.float32(np.sqrt(Z.shape[1] / 2))
        return Z

    def score(self, X: np.ndarray, y: np.ndarray) -> float:
        """Return the share of rows whose label, 0 to c - 1, comes out right."""
        if isinstance(self.outputs, LinearOutputs):
            return float(np.mean(self.outputs.codes(self.features(self.map_, X)) == y))
        packed = pack_features(self.map_.transform, X, self.map_.n_components)
        values = self.outputs.decide(packed)
        codes = values.argmax(axis=1) if values.shape[1] > 1 else values[:, 0] > 0
        return float(np.mean(codes == y))


def train(
    name: str,
    X: np.ndarray,
    y: np.ndarray,
    p: int,
    sigma: float,
    penalty: float,
    seed: int = 0,
    steps: int = 100,
) -> System:
    """Train a system on float32 rows with labels 0 to c - 1; `steps` of L-BFGS at most."""
    map_ = make_map(name, p, sigma, seed).fit(X[:1])
    c = int(y.max()) + 1
    if name == "ours-b":
        packed = pack_features(map_.transform, X, p)
        return System(name, map_, ternary(packed, y, penalty, seed))
    return System(name, map_, fit_linear(System.features(map_, X), y, c, penalty, max_iter=steps))


def ternary(
    packed: Any, y: np.ndarray, penalty: float, seed: int, **descent: Any
) -> TernaryOutputs:
    """Run Algorithm 1 of Lei & Lan 2021 with its loss (7) and its start (12)."""
    options = {"loss": "hinge", "init": "svm_sign", "regularization": penalty} | descent
    return fit_outputs(
        packed,
        y.astype(np.int64),
        np.ones(y.size),
        int(y.max()) + 1,
        PaperOptions(**options),
        seed=seed,
        n_threads=numba.get_num_threads(),
    )


def tune(bench: Bench, data: Data, name: str, p: int) -> tuple[float, float]:
    """Choose sigma and lambda from the grids of Lei & Lan 2021 on a third of some training rows.

    The grid is climbed, not searched in full: from the sigma nearest to the distance to the 50th
    neighbour and lambda 0.1, lambda and then sigma go on while the accuracy rises. The best lambda
    falls with the number of rows, so with many rows smaller ones are tried on more of them.
    """

    def search() -> list[float]:
        n_rows = bench.pick(MORE_SEARCH_ROWS.get(data.name, SEARCH_ROWS), 900)
        kept, out = search_parts(data, n_rows)
        best = {-1: PENALTIES.index(0.1)}

        def score(at: int) -> float:
            scorer = Scorer(name, p, SIGMAS[at], data, kept, out)
            # The last lambda chosen is a good start for the next sigma.
            best[at], known = climb(scorer.score, len(PENALTIES), list(best.values())[-1])
            return known[best[at]]

        unit = 1.0 if name == "BJLE" else neighbour_distance(data.X[kept], random_state=0)
        first = int(np.argmin(np.abs(np.log2(SIGMAS) - np.log2(unit))))
        if name == "BJLE":
            score(first)
            return [SIGMAS[first], PENALTIES[best[first]]]
        chosen, known = climb(score, len(SIGMAS), first)
        return [SIGMAS[chosen], PENALTIES[best[chosen]], known[chosen]]

    sigma, penalty = bench.measure(f"tune {data.name} {name} {p}", search)[:2]

    def refine() -> float:
        n_rows = MORE_REFINE_ROWS.get(data.name, REFINE_ROWS)
        scorer = Scorer(name, p, sigma, data, *search_parts(data, n_rows))
        highest = PENALTIES.index(penalty)
        return PENALTIES[climb(scorer.score, highest + 1, highest)[0]]

    if data.y.size >= REFINE_ROWS:
        penalty = bench.measure(f"refine {data.name} {name} {p}", refine)
    return sigma, penalty


def search_parts(data: Data, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows to train on, two of three, and rows to choose by."""
    rows = stratified(data.y, n_rows, np.random.default_rng(0))
    held = np.arange(rows.size) % 3 == 0
    return rows[~held], rows[held]


class Scorer:
    """Accuracy on rows held out for one sigma and any lambda; the features are computed once."""

    def __init__(
        self, name: str, p: int, sigma: float, data: Data, kept: np.ndarray, out: np.ndarray
    ) -> None:
        self.name, self.y, self.y_out = name, data.y[kept], data.y[out]
        self.map_ = make_map(name, p, sigma, 0).fit(data.X[:1])
        self.X_out = data.X[out]
        if name == "ours-b":
            self.packed = pack_features(self.map_.transform, data.X[kept], p)
        else:
            self.Z = System.features(self.map_, data.X[kept])
        self.n_classes = data.n_classes

    def score(self, at: int) -> float:
        """Return the share of rows held out whose label comes out right."""
        outputs: LinearOutputs | TernaryOutputs
        if self.name == "ours-b":
            outputs = ternary(self.packed, self.y, PENALTIES[at], 0, tol=1e-3)
        else:
            outputs = fit_linear(self.Z, self.y, self.n_classes, PENALTIES[at])
        return System(self.name, self.map_, outputs).score(self.X_out, self.y_out)


# --- the trainer of this project ------------------------------------------------------------------


def table_bytes(data: Data, p: int) -> int:
    """Return the bytes of windows, diagonals and ternary weights of ours-b as deployed."""
    cost = cost_of("tinykernel", data.n_features, p, data.n_classes)
    return (cost.transformation + cost.classifier) // 8


def learned_model(data: Data, p: int, epochs: int, seed: int) -> TernaryKernelClassifier:
    """Return the learned trainer with tables as large as those of ours-b with p features."""
    n_outputs = 1 if data.n_classes == 2 else data.n_classes
    d = padded_dimension(data.n_features)
    fitting = components_within(table_bytes(data, p), LAYOUTS["compact"], d, n_outputs)
    return TernaryKernelClassifier(
        n_components=max(fitting, 32),
        sigma=neighbour_distance(data.X[:10000], random_state=0),
        epochs=epochs,
        random_state=seed,
        n_jobs=numba.get_num_threads(),
    )


# --- costs ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """Exact counts for one row: bits of each part, word and floating-point operations."""

    transformation: int
    embedding: int
    classifier: int
    words: int
    flops: int

    @property
    def kilobytes(self) -> float:
        return (self.transformation + self.embedding + self.classifier) / 8192


def cost_of(name: str, n: int, p: int, c: int) -> Cost:
    """Count what our implementation of a system stores and computes for one row.

    n inputs, p features, c classes. Additions, multiplications and cosines count one operation
    each; XNOR, AND and POPCOUNT of 32 bits and the addition of the count one word operation each.
    "tinykernel" is what `PaperClassifier` deploys: B and P shared, generated from numbers, sign G,
    8-bit start and width, one 8-bit scale a block, integers instead of floats.
    """
    outputs = 1 if c == 2 else c
    d = padded_dimension(n)
    m = -(-p // d)
    stages = d.bit_length() - 1
    words = -(-p // 32)
    if name in ("RFE", "BJLE", "BCSIK"):
        extra = {"RFE": 1, "BJLE": 0, "BCSIK": 2}[name]
        store = 32 * p * (n + extra)
        flops = (2 * n - 1) * p + {"RFE": 3, "BJLE": 1, "BCSIK": 4}[name] * p
    elif name == "tinykernel":
        store = 2 * d + p + 16 * p + 8 * m
        flops = 0
    else:
        # G, S and b (or start and width) in 32 bits, P in 16, B in one bit a row.
        store = m * d * (32 * (3 if name == "Fastfood" else 4) + 16 + 1)
        flops = m * (2 * d * stages + 2 * d) + 3 * p
    binary = name not in ("RFE", "Fastfood")
    embedding = p if binary else 32 * p
    if name in ("ours-b", "tinykernel"):
        # Two classes need one plane once the zero weights have been dropped.
        planes = 1 if outputs == 1 else 2
        word_operations = outputs * words * (planes + 2)
        if name == "tinykernel":
            word_operations += d * stages + m * (d * stages + d) + 3 * p
        return Cost(store, embedding, planes * outputs * p, word_operations, flops)
    return Cost(store, embedding, 32 * outputs * (p + 1), 0, flops + 2 * outputs * p)
