"""All systems of the papers, scikit-learn's and this project's, on the same rows."""

from __future__ import annotations

from collections.abc import Iterator
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
from tinykernel.papers import (
    BinaryCodes,
    CirculantFeatures,
    CompactKernelMap,
    CompactMapClassifier,
    Fastfood,
    KernelAlignment,
    PaperClassifier,
    SpectralFeatures,
    TernaryLinearClassifier,
)

INTRO = """# All systems on the same data

{p} features or components, of binary codes {q}; sigma is 1.4 times the mean distance to the 50th
neighbour, and nothing is tuned: the pages of the papers do that. {rows} random training rows, seed
0, of the official part, of which exact kernel machines see 2000, and up to {test} test rows.
Accuracy in %, processor seconds of training and answering, and KB of the numbers that an answer
needs: 32 bits each, or 1 and 2 for codes and ternary weights; of models that become firmware what
`report` says for Cortex-M4. `TernaryKernelClassifier` makes {epochs} passes over the rows."""

EPOCHS = (10, 2)


def page(run: Run) -> Iterator[str]:
    """Yield the page."""
    p, q, n, test = run.pick((512, 2048, 3000, 2000), (128, 256, 1000, 1000))
    sizes = {"rows": f"{n:,}", "test": f"{test:,}", "epochs": run.pick(*EPOCHS)}
    yield INTRO.format(p=p, q=q, **sizes)
    _, axes = plt.subplots(1, 2, figsize=(10, 4.5))
    for ax, name in zip(axes, ("usps", "mnist"), strict=True):
        raw = cut(load(run.data, name)[0], n, test)
        rows = []
        for system, (model, data, floats) in systems(run, raw, p, q).items():
            model, seconds = timed(lambda: model.fit(data.X, data.y))  # noqa: B023
            right, more = timed(lambda: model.score(data.X_test, data.y_test))  # noqa: B023
            if floats is None:
                kilobytes = report(model, "cortex-m4", compiler="none").flash / 1024
            else:
                kilobytes = floats(model) / 256
            rows.append((system, f"{100 * right:.2f}", f"{seconds + more:.1f}", f"{kilobytes:.0f}"))
            ax.scatter(kilobytes, 100 * right, s=12)
            ax.annotate(system, (kilobytes, 100 * right), fontsize=6)
        yield from ("", f"## {name}")
        yield from table(("system", "accuracy", "seconds", "KB"), rows)
        ax.set(xscale="log", xlabel="KB", ylabel="accuracy, %", title=name)
    yield from run.picture("systems", "Accuracy against memory.")


def systems(run: Run, raw: Data, p: int, q: int) -> dict[str, tuple[Any, Data, Any]]:
    """Return each system with its rows, and what counts its numbers, None for firmware."""
    data = scaled(raw)
    few = Data(data.X[:2000], data.y[:2000], data.X_test, data.y_test)
    d, c = data.X.shape[1], len(np.unique(data.y))
    sigma, n_few = 1.4 * neighbour_distance(data.X), len(few.y)
    gamma, seed = 0.5 / sigma**2, {"random_state": 0}
    how, codes = {"n_components": p, "sigma": sigma, **seed}, {"n_components": q, "sigma": sigma}
    width = 1 << (d - 1).bit_length()
    aligned = BinaryCodes(KernelAlignment(n_candidates=2 * q, **codes, **seed), **seed)
    rm_bcsik = BinaryCodes(Fastfood(**codes, **seed), **seed)
    compact = {**how, "n_turns": run.pick(10, 3), "batch_size": 200}

    def same(count: float) -> Any:
        return lambda model: count

    dense, blocks = d * p + p + c * p, 4 * q + q / 32 + q
    learned = TernaryKernelClassifier(n_components=q, epochs=run.pick(*EPOCHS), **seed)
    return {
        "LinearSVC": (LinearSVC(max_iter=300, **seed), data, same(c * d)),
        "RidgeClassifier": (RidgeClassifier(), data, same(c * d)),
        "KernelRidge": (_Ridge(alpha=0.01, kernel="rbf", gamma=gamma), few, same(n_few * (d + c))),
        "SVC": (exact(sigma, 10.0), few, lambda m: m.support_.size * (d + c - 1)),
        "RBFSampler": (
            svm_on(RBFSampler(gamma=gamma, n_components=p, **seed), 10),
            data,
            same(dense),
        ),
        "Nystroem": (
            svm_on(Nystroem(gamma=gamma, n_components=p, **seed), 10),
            data,
            same(dense + p * p),
        ),
        "random Fourier, ridge": (
            make_pipeline(SpectralFeatures(**how), RidgeClassifier(0.01)),
            data,
            same(dense),
        ),
        "Fastfood": (svm_on(Fastfood(**how), 10), data, same(5 * max(p, width) + c * p)),
        "circulant, random": (svm_on(CirculantFeatures(**how), 10), data, same(3 * p + c * p)),
        "map learned to the kernel": (
            svm_on(CompactKernelMap(n_steps=run.pick(400, 50), batch_size=200, **how), 10),
            data,
            same(dense),
        ),
        "circulant, optimised": (
            CompactMapClassifier(projection="circulant", **compact),
            data,
            same(3 * p + c * p),
        ),
        "compact nonlinear map": (CompactMapClassifier(**compact), data, same(dense)),
        "aligned codes": (svm_on(aligned, 1), data, same(d * q + 2 * q + c * q)),
        "RM-BCSIK": (svm_on(rm_bcsik, 1), data, same(blocks + c * q)),
        "RM-BCSIK, ternary": (
            make_pipeline(
                rm_bcsik, TernaryLinearClassifier(regularization=0.01, max_iter=8, **seed)
            ),
            data,
            same(blocks + c * q / 16),
        ),
        "PaperClassifier": (
            PaperClassifier(n_components=q, regularization=0.01, **seed),
            raw,
            None,
        ),
        "TernaryKernelClassifier": (learned, raw, None),
    }


class _Ridge(KernelRidge):
    """Kernel least squares on one-hot labels, as in 003."""

    def fit(self, X: Any, y: Any) -> Any:
        self.classes_ = np.unique(y)
        return super().fit(X, 2.0 * (y[:, None] == self.classes_) - 1)

    def score(self, X: Any, y: Any) -> float:
        return float(np.mean(self.classes_[self.predict(X).argmax(axis=1)] == y))
