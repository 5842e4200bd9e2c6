"""002: two moons, random Fourier features drawn by Metropolis-Hastings."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import make_moons
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from benchmarks.papers.harness import Bench, Page, new_figure, per_cent
from tinykernel.papers.classifiers import KernelSVC
from tinykernel.papers.features.fourier import RandomFourierFeatures
from tinykernel.papers.features.kernels import gaussian_kernel, laplacian_kernel

SOURCE = (
    "Z. Qi (2020), *Finite-dimensional Approximation of Kernel SVM with Random Fourier Features*: "
    "two moons, 2000 points with noise 0.3, 80 % to train, D = 500 features, C = 10."
)
KERNELS = {"gaussian": gaussian_kernel, "laplacian": laplacian_kernel}


def log_normal(w: np.ndarray) -> np.ndarray:
    """Spectral density of the Gaussian kernel."""
    return -0.5 * (w**2).sum(axis=1)


def log_cauchy(w: np.ndarray) -> np.ndarray:
    """Spectral density of the Laplacian kernel."""
    return -np.log1p(w**2).sum(axis=1)


def log_printed(w: np.ndarray) -> np.ndarray:
    """Gaussian density as the paper's code has it: the norm lacks its square."""
    return -0.5 * np.linalg.norm(w, axis=1)


DENSITIES = {"gaussian": log_normal, "laplacian": log_cauchy, "printed": log_printed}


def moons(bench: Bench, seed: int) -> list[np.ndarray]:
    """Draw the data and split it."""
    X, y = make_moons(n_samples=bench.pick(2000, 600), noise=0.3, random_state=seed)
    return train_test_split(X, y, test_size=0.2, random_state=seed)


def features(name: str, sampler: str, D: int, seed: int) -> RandomFourierFeatures:
    """Return a feature map of width 1."""
    options: dict[str, Any] = {"n_components": D, "random_state": seed}
    if sampler == "exact":
        return RandomFourierFeatures(kernel=name, **options)
    return RandomFourierFeatures(log_density=DENSITIES[name], **options)


def trial(bench: Bench, seed: int) -> dict[str, float]:
    """Score every combination on one draw of the data."""
    X, X_test, y, y_test = moons(bench, seed)
    D = bench.pick(500, 200)
    result = {}
    for name in KERNELS:
        exact = KernelSVC(kernel=name, sigma=1.0, C=10.0).fit(X, y)
        result[f"{name} kernel"] = float(exact.score(X_test, y_test))
    for name, sampler in (
        ("gaussian", "exact"),
        ("gaussian", "walk"),
        ("laplacian", "exact"),
        ("laplacian", "walk"),
        ("printed", "walk"),
    ):
        map_ = features(name, sampler, D, seed).fit(X)
        svm = SVC(kernel="linear", C=10.0).fit(map_.transform(X), y)
        result[f"{name} {sampler}"] = float(svm.score(map_.transform(X_test), y_test))
        if sampler == "walk":
            result[f"{name} rate"] = float(map_.acceptance_rate_)
        if name in KERNELS:
            Z = map_.transform(X[:300])
            error = Z @ Z.T - KERNELS[name](X[:300])
            result[f"{name} {sampler} error"] = float(np.sqrt(np.mean(error**2)))
    return result


def picture(bench: Bench) -> Any:
    """Draw the decision regions and the support vectors of both kernels."""
    X, _, y, _ = moons(bench, 1)
    figure, axes = new_figure(3)
    side = np.linspace(-2.2, 3.2, 160)
    grid = np.stack(np.meshgrid(side, side * 0.75), axis=-1).reshape(-1, 2)
    for axis, name in zip(axes[0], ("", "gaussian", "laplacian"), strict=True):
        axis.set(xticks=[], yticks=[])
        if name:
            map_ = features(name, "walk", bench.pick(500, 200), 1).fit(X)
            svm = SVC(kernel="linear", C=10.0).fit(map_.transform(X), y)
            values = svm.decision_function(map_.transform(grid)).reshape(160, 160)
            axis.contourf(side, side * 0.75, values > 0, cmap="coolwarm", alpha=0.25)
            vectors = X[svm.support_]
            axis.scatter(*vectors.T, c="black", marker="x", s=8, linewidths=0.6)
            axis.set_title(f"{name}, {svm.support_.size} support vectors")
        else:
            axis.set_title("training data")
        axis.scatter(*X.T, c=y, cmap="coolwarm", s=3)
    return figure


def run(bench: Bench) -> None:
    """Write the page of 002."""
    bench.open("fourier-features")
    trials = [
        bench.measure(f"trial {seed}", lambda s=seed: trial(bench, s))
        for seed in range(bench.pick(10, 2))
    ]
    column = {name: [t[name] for t in trials] for name in trials[0]}
    page = Page(bench, "002: random Fourier features by hand", SOURCE)
    page.text(
        "The paper shows its accuracy and its support vectors as pictures only, so there is no "
        "number to compare with: it says that the features work as well as the kernel, and that "
        f"is what is checked. Ours: mean ± standard deviation over {len(trials)} draws of data and "
        "features, kernels of width 1. The error is that of the Gram matrix of 300 rows, root mean "
        "square; 1/√D is its scale."
    )
    rows: list[tuple[object, ...]] = []
    for name in KERNELS:
        rows.append((f"{name} kernel, exact SVM", per_cent(column[f"{name} kernel"]), "", ""))
        for sampler, words in (("exact", "sampled exactly"), ("walk", "Metropolis-Hastings")):
            rate = f"{np.mean(column[f'{name} rate']):.2f}" if sampler == "walk" else ""
            error = f"{np.mean(column[f'{name} {sampler} error']):.4f}"
            score = per_cent(column[f"{name} {sampler}"])
            rows.append((f"{name} features, {words}", score, error, rate))
    rows.append(
        (
            "features of the density as printed",
            per_cent(column["printed walk"]),
            "",
            f"{np.mean(column['printed rate']):.2f}",
        )
    )
    page.table(("method", "accuracy, %", "error of the kernel", "acceptance rate"), rows)
    page.text(
        "What differs from the printed code: its Gaussian density is `exp(-||w|| / 2)`, without "
        "the square, which is the spectrum of another kernel (last row); its Cauchy density lacks "
        "the square of `w` and is negative for `w < -1`, so that it is no density; and it draws D "
        "frequencies with replacement from one walk of 1000 steps after 10, where ours takes every "
        "20th position of 64 walks after 500."
    )
    page.figure("moons", picture(bench), "Two moons: data; regions and support vectors (crosses).")
    page.write()
