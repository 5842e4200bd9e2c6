"""All systems of the papers, scikit-learn's and this project's, on the same rows."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from benchmarks._data import Data, load
from benchmarks.papers.common import (
    Run,
    cut,
    exact,
    neighbour_distance,
    scaled,
    svm_on,
    table,
    timed,
)
from tinykernel import TernaryKernelClassifier, report
from tinykernel.papers.classifier import PaperClassifier
from tinykernel.papers.compact import CompactKernelMap, CompactMapClassifier
from tinykernel.papers.maps import (
    BinaryCodes,
    CirculantFeatures,
    Fastfood,
    KernelAlignment,
    SpectralFeatures,
)
from tinykernel.papers.ternary import TernaryLinearClassifier

EPOCHS = (10, 2)


def results(run: Run) -> dict[str, Any]:
    """Return what the page shows."""
    p, q, n, test = run.pick((512, 2048, 3000, 2000), (128, 256, 1000, 1000))
    _, axes = plt.subplots(1, 2, figsize=(10, 4.5))
    tables = {}
    for ax, name in zip(axes, ("usps", "mnist"), strict=True):
        raw = cut(load(run.data, name)[0], n, test)
        rows = []
        for system, (model, data, numbers) in systems(run, raw, p, q).items():
            model, seconds = timed(lambda: model.fit(data.X, data.y))  # noqa: B023
            right, more = timed(lambda: model.score(data.X_test, data.y_test))  # noqa: B023
            if numbers is None:
                kilobytes = report(model, "cortex-m4", compiler="none").flash / 1024
            else:
                kilobytes = (numbers(model) if callable(numbers) else numbers) / 256
            rows.append((system, f"{100 * right:.2f}", f"{seconds + more:.1f}", f"{kilobytes:.0f}"))
            ax.scatter(kilobytes, 100 * right, s=12)
            ax.annotate(system, (kilobytes, 100 * right), fontsize=6)
        tables[name] = table(("system", "accuracy", "seconds", "KB"), rows)
        ax.set(xscale="log", xlabel="KB", ylabel="accuracy, %", title=name)
    return {
        **{"p": p, "q": q, "rows": f"{n:,}", "test": f"{test:,}", "epochs": run.pick(*EPOCHS)},
        "tables": tables,
        "memory": run.picture("systems", "Accuracy against memory."),
    }


def systems(run: Run, raw: Data, p: int, q: int) -> dict[str, tuple[Any, Data, Any]]:
    """Return each system with its rows, and the count of its numbers, None for firmware."""
    data = scaled(raw)
    few = Data(data.X[:2000], data.y[:2000], data.X_test, data.y_test)
    d, c = data.X.shape[1], len(np.unique(data.y))
    sigma, n_few = 1.4 * neighbour_distance(data.X), len(few.y)
    gamma, seed = 0.5 / sigma**2, {"random_state": 0}
    how, codes = {"n_components": p, "sigma": sigma, **seed}, {"n_components": q, "sigma": sigma}
    width = 1 << (d - 1).bit_length()
    rbf = RBFSampler(gamma=gamma, n_components=p, **seed)
    nystroem = Nystroem(gamma=gamma, n_components=p, **seed)
    to_kernel = CompactKernelMap(n_steps=run.pick(400, 50), batch_size=200, **how)
    compact = {**how, "n_turns": run.pick(10, 3), "batch_size": 200}
    aligned = BinaryCodes(KernelAlignment(n_candidates=2 * q, **codes, **seed), **seed)
    rm_bcsik = BinaryCodes(Fastfood(**codes, **seed), **seed)
    ternary = TernaryLinearClassifier(regularization=0.01, max_iter=8, **seed)
    dense, circulant, blocks = d * p + p + c * p, 3 * p + c * p, 4 * q + q / 32 + q
    chosen = {
        "LinearSVC": (LinearSVC(max_iter=300, **seed), c * d),
        "RidgeClassifier": (RidgeClassifier(), c * d),
        "KernelRidge": (_Ridge(alpha=0.01, kernel="rbf", gamma=gamma), n_few * (d + c)),
        "SVC": (exact(sigma, 10.0), lambda m: m.support_.size * (d + c - 1)),
        "RBFSampler": (svm_on(rbf, 10), dense),
        "Nystroem": (svm_on(nystroem, 10), dense + p * p),
        "random Fourier, ridge": (
            make_pipeline(SpectralFeatures(**how), RidgeClassifier(0.01)),
            dense,
        ),
        "Fastfood": (svm_on(Fastfood(**how), 10), 5 * max(p, width) + c * p),
        "circulant, random": (svm_on(CirculantFeatures(**how), 10), circulant),
        "map learned to the kernel": (svm_on(to_kernel, 10), dense),
        "circulant, optimised": (
            CompactMapClassifier(projection="circulant", **compact),
            circulant,
        ),
        "compact nonlinear map": (CompactMapClassifier(**compact), dense),
        "aligned codes": (svm_on(aligned, 1), d * q + 2 * q + c * q),
        "RM-BCSIK": (svm_on(rm_bcsik, 1), blocks + c * q),
        "RM-BCSIK, ternary": (make_pipeline(rm_bcsik, ternary), blocks + c * q / 16),
        "PaperClassifier": (PaperClassifier(regularization=0.01, n_components=q, **seed), None),
        "TernaryKernelClassifier": (
            TernaryKernelClassifier(n_components=q, epochs=run.pick(*EPOCHS), **seed),
            None,
        ),
    }
    rows = {"KernelRidge": few, "SVC": few, "PaperClassifier": raw, "TernaryKernelClassifier": raw}
    return {name: (model, rows.get(name, data), n) for name, (model, n) in chosen.items()}


class _Ridge(KernelRidge):
    """Kernel least squares on one-hot labels, as in 003."""

    def fit(self, X: Any, y: Any) -> Any:
        self.classes_ = np.unique(y)
        return super().fit(X, 2.0 * (y[:, None] == self.classes_) - 1)

    def score(self, X: Any, y: Any) -> float:
        return float(np.mean(self.classes_[self.predict(X).argmax(axis=1)] == y))
