# ruff: noqa: RUF001 - the page writes sigma in Greek
"""Every system on the same data."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from benchmarks.papers.harness import Bench, Data, Page, per_cent, stratified
from benchmarks.papers.systems import learned_model, table_bytes, train
from tinykernel.papers.classifiers import (
    CirculantMapClassifier,
    CompactMapClassifier,
    FourierLeastSquaresClassifier,
    KernelLeastSquaresClassifier,
    KernelSVC,
    LearnedKernelFeatures,
    LeastSquaresClassifier,
    PegasosClassifier,
)
from tinykernel.papers.features import (
    CirculantFeatures,
    Fastfood,
    KernelAlignment,
    RandomFourierFeatures,
    neighbour_distance,
)

K = 512
# Passes of the learned trainer over the rows.
EPOCHS = {"usps": 30, "mnist": 10}
SVM_ROWS = 5_000
ROWS = 20_000
# Turns of the learned maps, of 100 + 100 steps.
TURNS = 15


def systems(bench: Bench, data: Data, sigma: float, seed: int) -> dict[str, tuple[Any, int, int]]:
    """Return a model, the numbers of bits that it stores, and the rows it trains on."""
    n, c, rows = data.n_features, data.n_classes, data.y.size
    few = min(rows, SVM_ROWS)
    k = bench.pick(K, 64)
    options: dict[str, Any] = {"n_components": k, "sigma": sigma, "random_state": seed}
    svm = PegasosClassifier(max_iter=bench.pick(6000, 300), random_state=seed)
    learned = {**options, "max_iter": bench.pick(TURNS, 2)}
    linear = 32 * (k + 1) * c
    return {
        "linear SVM (`PegasosClassifier`)": (svm, 32 * (n + 1) * c, rows),
        "linear least squares": (LeastSquaresClassifier(), 32 * (n + 1) * c, rows),
        "kernel least squares": (
            KernelLeastSquaresClassifier(sigma=sigma, regularization=0.1),
            32 * few * (n + c),
            few,
        ),
        "exact kernel SVM (`KernelSVC`)": (KernelSVC(sigma=0.7 * sigma, C=10.0), 0, few),
        "random Fourier features": (
            make_pipeline(RandomFourierFeatures(**options), svm),
            32 * k * (n + 1) + linear,
            rows,
        ),
        "random Fourier least squares": (
            FourierLeastSquaresClassifier(**options, regularization=0.1),
            32 * k * (n + 1) + 32 * k * c,
            rows,
        ),
        "Fastfood": (make_pipeline(Fastfood(**options), svm), 32 * 4 * k + linear, rows),
        "circulant, random": (
            make_pipeline(CirculantFeatures(**options), svm),
            32 * 2 * k + linear,
            rows,
        ),
        "map learned to the kernel": (
            make_pipeline(LearnedKernelFeatures(max_iter=bench.pick(1000, 50), **options), svm),
            32 * k * (n + 1) + linear,
            rows,
        ),
        "circulant, learned": (CirculantMapClassifier(**learned), 32 * 2 * k + linear, rows),
        "compact nonlinear map": (
            CompactMapClassifier(**learned),
            32 * k * (n + 1) + linear,
            rows,
        ),
        "aligned binary codes": (
            # Signs are sqrt(k) times as long as the other features, so lambda is k times as large.
            make_pipeline(
                KernelAlignment(**options, n_candidates=4 * k, rho=1.0),
                clone(svm).set_params(regularization=1e-4 * k),
            ),
            32 * k * (n + 2) + linear,
            rows,
        ),
    }


def timed(function: Callable[[], float]) -> list[float]:
    """Return a score and the processor time that it took."""
    begin = time.process_time()
    score = function()
    return [score, time.process_time() - begin]


def measure(bench: Bench, data: Data) -> dict[str, list[float]]:
    """Train and score every system; return scores, seconds and kilobytes."""
    unit = neighbour_distance(data.X[:10000], random_state=0)
    sigma = 1.4 * unit
    result = {}
    for name, (model, bits, n_rows) in systems(bench, data, sigma, 0).items():
        rows = stratified(data.y, n_rows, np.random.default_rng(0))

        def score(model: Any = model, rows: np.ndarray = rows) -> float:
            model.fit(data.X[rows], data.y[rows])
            return float(model.score(data.X_test, data.y_test))

        warm_up(bench, name, model, data)
        values = bench.measure(f"{data.name} {name}", lambda s=score: timed(s))
        if isinstance(model, KernelSVC):
            key = f"{data.name} {name} bits"
            bits = bench.measure(key, lambda m=model, d=data, r=rows: svm_bits(m, d, r))
        result[name] = [*values, bits / 8192]
    for kind, label in (("ours", "RM-BCSIK, float weights"), ("ours-b", "RM-BCSIK, ternary")):

        def binary(kind: str = kind) -> float:
            p = 4 * bench.pick(K, 64)
            model = train(kind, data.X, data.y, p, sigma, {"ours": 0.01, "ours-b": 0.1}[kind])
            return model.score(data.X_test, data.y_test)

        p = 4 * bench.pick(K, 64)
        rows = stratified(data.y, 300, np.random.default_rng(0))
        train(kind, data.X[rows], data.y[rows], 64, sigma, 0.1)  # compiles
        bits = {"ours": 17 * p + 32 * data.n_classes * p, "ours-b": 17 * p + 2 * data.n_classes * p}
        values = bench.measure(f"{data.name} {label}", lambda b=binary: timed(b))
        result[label] = [*values, bits[kind] / 8192]
    p = 4 * bench.pick(K, 64)
    model = learned_model(data, p, bench.pick(EPOCHS[data.name], 1), 0)
    bits = 8 * table_bytes(data, p)
    label = "learned ternary kernel machine, as firmware"

    def integer() -> float:
        few = data.cut(bench.pick(data.y.size, 500))
        labels = model.fit(few.X, few.y).quantize().predict(data.X_test)
        return float(np.mean(labels == data.y_test))

    if f"{data.name} learned" not in bench.known:
        few = data.cut(300)
        learned_model(data, 64, 1, 0).fit(few.X, few.y)  # compiles
    result[label] = [*bench.measure(f"{data.name} learned", lambda: timed(integer)), bits / 8192]
    return result


def warm_up(bench: Bench, name: str, model: Any, data: Data) -> None:
    """Let numba compile on a few rows, unless the number is known already."""
    if f"{data.name} {name}" not in bench.known:
        rows = stratified(data.y, 300, np.random.default_rng(0))
        clone(model).fit(data.X[rows], data.y[rows]).predict(data.X_test[:10])


def svm_bits(model: KernelSVC, data: Data, rows: np.ndarray) -> int:
    """Return the size of an exact machine, training it first when its score was remembered."""
    if not hasattr(model, "svc_"):
        model.fit(data.X[rows], data.y[rows])
    return model.memory_bits


def run(bench: Bench) -> None:
    """Write the table."""
    bench.open("methods")
    page = Page(
        bench,
        "All systems on the same data",
        "When to use which: [training](../training.md#methods-of-the-papers).",
    )
    k = bench.pick(K, 64)
    page.text(
        f"{k} features, of RM-BCSIK {4 * k}; σ 1.4 times the mean distance to the 50th "
        "neighbour (exact SVM: 0.7 times that), other parameters fixed, one draw. Nothing is tuned "
        f"for the data set: the pages of the papers do that. Learned maps make {TURNS} turns at "
        f"most, the learned trainer {EPOCHS['usps']} passes over the rows of usps and "
        f"{EPOCHS['mnist']} over those of mnist. Time is processor time for training "
        "and scoring the test part. KB are the numbers that a prediction needs, 32 bits each "
        "unless binary; RM-BCSIK as deployed, 16 bits of window and one sign a feature. Kernel "
        f"machines see at most {SVM_ROWS} rows."
    )
    for name in bench.pick(("usps", "mnist"), ("usps",)):
        data = bench.load(name).cut(ROWS)
        page.heading(f"{name}, {data.split}")
        page.table(
            ("system", "accuracy, %", "seconds", "KB"),
            [
                (label, per_cent(score), f"{seconds:.1f}", f"{kilobytes:.0f}")
                for label, (score, seconds, kilobytes) in measure(bench, data).items()
            ],
        )
    page.write()
