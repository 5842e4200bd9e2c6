"""004, Yu et al. 2015: compact nonlinear maps and circulant extensions."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import LinearSVC

from benchmarks.papers.common import (
    Run,
    beside,
    curves,
    exact,
    neighbour_distance,
    score,
    svm_on,
    table,
)
from tinykernel.papers.compact import CompactKernelMap, CompactMapClassifier
from tinykernel.papers.maps import CirculantFeatures, SpectralFeatures

TABLE_2 = {
    ("usps", 1): (89.05, 89.40, 91.96),
    ("usps", 2): (91.90, 91.87, 93.08),
    ("mnist", 1): (91.33, 91.01, 92.73),
    ("mnist", 2): (92.95, 93.22, 94.11),
}
ROWS = {"usps": 7291, "mnist": 5000, "banana": 1000, "covtype": 10_000}


def results(run: Run) -> dict[str, Any]:
    """Return what the page shows."""
    turns, batch, draws, test = run.pick((10, 200, 1, 4000), (4, 100, 1, 1000))
    rows = {name: n if not run.quick else 1000 for name, n in ROWS.items()}
    data = {name: run.split(name, n, test) for name, n in rows.items()}
    sigma = {name: 1.4 * neighbour_distance(part.X) for name, part in data.items()}

    def learned(name: str, k: int, seed: int, **how: Any) -> CompactMapClassifier:
        how = {"n_turns": turns, "batch_size": batch, "sigma": sigma[name], **how}
        return CompactMapClassifier(n_components=k, random_state=seed, **how)

    circulant = []
    for (name, times), papers in TABLE_2.items():
        k = times * data[name].X.shape[1]
        row = [f"{name} ({'' if times == 1 else times}d)"]
        for paper, projection, T in zip(
            papers, ("dense", "circulant", "circulant"), (0, 0, turns), strict=True
        ):
            models = (learned(name, k, s, projection=projection, n_turns=T) for s in range(draws))
            row.append(beside(paper, [score(model, data[name]) for model in models]))
        circulant.append(row)
    sizes = run.pick((4, 8, 16, 64, 256), (4, 16, 64))
    _, axes = plt.subplots(2, 2, figsize=(9, 7))
    cells = []
    for ax, (name, part) in zip(axes.flat, data.items(), strict=True):
        lines = [
            ["random Fourier", *(score(learned(name, k, 0, n_turns=0), part) for k in sizes)],
            ["CNM to the kernel", *(kernel_score(run, part, sigma[name], k) for k in sizes)],
            ["CNM", *(score(learned(name, k, 0), part) for k in sizes)],
        ]
        few = type(part)(part.X[:4000], part.y[:4000], part.X_test, part.y_test)
        lines.append(["RBF SVM", score(exact(sigma[name], 10.0), few)])
        lines.append(["linear SVM", score(LinearSVC(max_iter=200), few)])
        curves(ax, lines, sizes, name, "k", "accuracy, %")
        for line in lines:
            values = [line[1]] * len(sizes) if len(line) == 2 else line[1:]
            shown = ("" if v is None else f"{v:.2f}" for v in values)
            cells.append((f"{name}, {line[0]}", *shown))
    head = ("data (k)", "random Fourier", "circulant, random", "circulant, optimised")
    text = "Accuracy against the number of features k."
    return {
        "rows": ", ".join(f"{name} {n:,}" for name, n in rows.items()),
        **{"test": test, "turns": turns, "batch": batch, "draws": draws},
        "steps": run.pick(400, 100),
        "circulant": table(head, circulant),
        "accuracy": table(("data, system; k =", *sizes), cells),
        "curves": run.picture("compact-maps-accuracy", text),
        "errors": errors(run, data, sigma),
    }


def kernel_map(run: Run, sigma: float, k: int) -> CompactKernelMap:
    """Make the map of section 5."""
    return CompactKernelMap(
        n_components=k, sigma=sigma, n_steps=run.pick(400, 100), batch_size=200, random_state=0
    )


def kernel_score(run: Run, part: Any, sigma: float, k: int) -> float | None:
    """Return the accuracy of a linear SVM on a map learned to the kernel, up to k = 128."""
    few = type(part)(part.X[:4000], part.y[:4000], part.X_test, part.y_test)
    return score(svm_on(kernel_map(run, sigma, k), 10.0), few) if k <= 128 else None


def errors(run: Run, data: dict[str, Any], sigma: dict[str, float]) -> list[str]:
    """Return the tables of Figures 2 and 3, and the picture of both."""
    small, large = run.pick((4, 16, 64, 128), (4, 32)), run.pick((16, 64, 256, 1024), (16, 128))

    def error(map: Any, name: str) -> float:
        X = data[name].X_test[:1000].astype(np.float64)
        Z = map.fit(data[name].X.astype(np.float64)).transform(X)
        return float(np.mean((rbf_kernel(X, gamma=0.5 / sigma[name] ** 2) - Z @ Z.T) ** 2))

    _, axes = plt.subplots(1, 2, figsize=(9, 4))
    draws, tables = range(run.pick(2, 1)), []
    for ax, names, sizes, other, title in (
        (axes[0], data, small, "learned", "learned to the kernel"),
        (axes[1], ("usps", "mnist"), large, "circulant", "circulant maps"),
    ):
        cells = []
        for name in names:
            maps = {
                "random Fourier": SpectralFeatures(sigma=sigma[name]),
                "learned": kernel_map(run, sigma[name], 1),
                "circulant": CirculantFeatures(sigma=sigma[name]),
            }
            for kind in ("random Fourier", other):
                map, means = maps[kind], []
                for k in sizes:
                    drawn = (map.set_params(n_components=k, random_state=s) for s in draws)
                    means.append(float(np.mean([error(one, name) for one in drawn])))
                ax.plot(sizes, means, marker="o", label=f"{name}, {kind}")
                cells.append((f"{name}, {kind}", *(f"{mean:.2e}" for mean in means)))
        tables.append(table(("data, map; k =", *sizes), cells))
        ax.set(xscale="log", yscale="log", xlabel="k", ylabel="mean squared error", title=title)
        ax.legend(fontsize=7)
    text = "Mean squared error of the Gaussian kernel."
    return [*tables, run.picture("compact-maps-error", text)]
