"""The six systems of 001: a feature map and a linear classifier each, and what they cost."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.papers.harness import Bench, Data, stratified
from benchmarks.papers.linear import LinearOutputs, fit_linear
from tinykernel.features.binary import BCSIK, BinaryJohnsonLindenstrauss
from tinykernel.features.fastfood import RMBCSIK, Fastfood
from tinykernel.features.fourier import RandomFourierFeatures
from tinykernel.hadamard import padded_dimension
from tinykernel.training.bits import pack_features
from tinykernel.training.coordinate import DescentOptions, TernaryOutputs, fit_outputs

__all__ = ["NAMES", "Cost", "System", "cost_of", "tune"]

#: As 001 calls them, in the order of its Table 2.
NAMES = ("RFE", "Fastfood", "BJLE", "BCSIK", "ours", "ours-b")
SIGMAS = tuple(2.0**k for k in range(-5, 6))
PENALTIES = tuple(10.0**k for k in range(-3, 4))
# Blocks as published: everything random and of its own, nothing shared.
PUBLISHED: dict[str, Any] = {
    "diagonal": "gaussian",
    "row_scale": "chi",
    "shared": False,
    "permutation": "stored",
}


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
    **descent: Any,
) -> System:
    """Train a system on float32 rows with labels 0 to c - 1."""
    map_ = make_map(name, p, sigma, seed).fit(X[:1])
    c = int(y.max()) + 1
    if name == "ours-b":
        packed = pack_features(map_.transform, X, p)
        return System(name, map_, ternary(packed, y, penalty, seed, **descent))
    return System(name, map_, fit_linear(System.features(map_, X), y, c, penalty))


def ternary(
    packed: Any, y: np.ndarray, penalty: float, seed: int, **descent: Any
) -> TernaryOutputs:
    """Run Algorithm 1 of 001 with its loss (7) and its start (12)."""
    options = {"loss": "hinge", "init": "svm_sign", "regularization": penalty} | descent
    traced = bool(options.pop("traced", False))
    return fit_outputs(
        packed,
        y.astype(np.int64),
        np.ones(y.size),
        int(y.max()) + 1,
        DescentOptions(**options),
        seed=seed,
        n_threads=os.cpu_count() or 1,
        traced=traced,
    )


def tune(bench: Bench, data: Data, name: str, p: int, key: str = "") -> tuple[float, float]:
    """Choose sigma and lambda from the grids of 001 on a third of at most 9000 training rows."""

    def search() -> list[Any]:
        rows = stratified(data.y, bench.pick(9000, 900), np.random.default_rng(0))
        held = np.arange(rows.size) % 3 == 0
        X, y, X_held, y_held = data.X[rows][~held], data.y[rows][~held], *held_out(data, rows, held)
        sigmas = (1.0,) if name == "BJLE" else bench.pick(SIGMAS, (2.0, 8.0))
        scores = []
        for sigma in sigmas:
            scores.append(score_penalties(bench, name, p, sigma, X, y, X_held, y_held))
        best = np.unravel_index(int(np.argmax(scores)), np.shape(scores))
        return [sigmas[best[0]], penalties(bench)[best[1]], scores]

    sigma, penalty, _ = bench.measure(f"tune {data.name} {name} {p}{key}", search)
    return sigma, penalty


def held_out(data: Data, rows: np.ndarray, held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to validate on."""
    return data.X[rows][held], data.y[rows][held]


def penalties(bench: Bench) -> tuple[float, ...]:
    """Return the lambdas to try."""
    return bench.pick(PENALTIES, (1e-3, 1e-1))


def score_penalties(
    bench: Bench,
    name: str,
    p: int,
    sigma: float,
    X: np.ndarray,
    y: np.ndarray,
    X_held: np.ndarray,
    y_held: np.ndarray,
) -> list[float]:
    """Score all lambdas for one sigma; the features are computed once."""
    map_ = make_map(name, p, sigma, 0).fit(X[:1])
    c = int(y.max()) + 1
    scores = []
    if name == "ours-b":
        packed = pack_features(map_.transform, X, p)
        for penalty in penalties(bench):
            outputs = ternary(packed, y, penalty, 0, tol=1e-3)
            scores.append(System(name, map_, outputs).score(X_held, y_held))
        return scores
    Z, Z_held = System.features(map_, X), System.features(map_, X_held)
    Z, Z_held = Z.astype(np.float32), Z_held.astype(np.float32)
    last: LinearOutputs | None = None
    for penalty in reversed(penalties(bench)):
        last = fit_linear(Z, y, c, penalty, start=last)
        scores.append(float(np.mean(last.codes(Z_held) == y_held)))
    return scores[::-1]


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
    "tinykernel" is what is deployed: B and P shared, generated from numbers, sign G, 8-bit start
    and width, one 8-bit scale a block, integers instead of floats.
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
