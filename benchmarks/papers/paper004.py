# ruff: noqa: RUF001 - the pages write sigma and gamma in Greek
"""004: compact nonlinear maps, maps learned to a kernel, circulant maps."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline

from benchmarks.papers.harness import Bench, Data, Page, choose, new_figure, per_cent, stratified
from tinykernel.features.circulant import CirculantFeatures
from tinykernel.features.fourier import RandomFourierFeatures
from tinykernel.features.kernels import gaussian_kernel, neighbour_distance
from tinykernel.training import (
    CirculantMapClassifier,
    CompactMapClassifier,
    KernelSVC,
    LearnedKernelFeatures,
    PegasosClassifier,
)

SOURCE = (
    "F. X. Yu, S. Kumar, H. Rowley, S.-F. Chang, *Compact Nonlinear Maps and Circulant Extensions* "
    "(arXiv:1503.03893)."
)
# Table 2: random Fourier features, circulant random, circulant optimised.
PAPER = {
    ("usps", 1): ("89.05 ± 0.65", "89.40 ± 1.02", "91.96 ± 0.45"),
    ("usps", 2): ("91.90 ± 0.29", "91.87 ± 0.11", "93.08 ± 0.96"),
    ("mnist", 1): ("91.33 ± 0.05", "91.01 ± 0.03", "92.73 ± 0.21"),
    ("mnist", 2): ("92.95 ± 0.42", "93.22 ± 0.30", "94.11 ± 0.24"),
}
TRAIN_SHARE = {"banana": 1000, "covtype": 0.9}
MULTIPLES = (0.7, 1.0, 1.4, 2.0)
PENALTIES = (1e-3, 1e-4, 1e-5)
STEPS = 6000
SVM_ROWS = 10_000


def load(bench: Bench, name: str) -> Data:
    """Load a data set in the split of Table 1 of 004."""
    return bench.load(name, TRAIN_SHARE.get(name, 0.8))


def settings(bench: Bench, data: Data, k: int) -> tuple[float, float]:
    """Choose sigma, for random Fourier features of k components, and lambda on validation rows."""

    def search() -> list[float]:
        rng = np.random.default_rng(0)
        rows = stratified(data.y, bench.pick(8000, 1500), rng)
        X, y = data.X[rows], data.y[rows]
        held = np.arange(rows.size) % 4 == 0
        unit = neighbour_distance(X, random_state=0)

        def score(pair: tuple[float, float], part: int) -> float:
            model = random_map(k, pair[0] * unit, pair[1], bench.pick(2000, 300), part)
            return float(model.fit(X[~held], y[~held]).score(X[held], y[held]))

        pairs = [(m, p) for m in bench.pick(MULTIPLES, (1.0, 1.4)) for p in PENALTIES]
        best, _ = choose(pairs, score, 1)
        return [best[0] * unit, best[1], best[0]]

    sigma, penalty, _ = bench.measure(f"settings {data.name} {k}", search)
    return sigma, penalty


def random_map(k: int, sigma: float, penalty: float, steps: int, seed: int) -> Any:
    """Return random Fourier features and Pegasos."""
    return make_pipeline(
        RandomFourierFeatures(n_components=k, sigma=sigma, random_state=seed),
        PegasosClassifier(regularization=penalty, max_iter=steps, random_state=seed),
    )


def model_of(bench: Bench, kind: str, k: int, sigma: float, penalty: float, seed: int) -> Any:
    """Return one of the systems of Table 2 and Figure 1."""
    steps = bench.pick(STEPS, 500)
    learned: dict[str, Any] = {
        "n_components": k,
        "sigma": sigma,
        "regularization": penalty,
        "max_iter": bench.pick(50, 4),
        "random_state": seed,
    }
    if kind == "rff":
        return random_map(k, sigma, penalty, steps, seed)
    svm = PegasosClassifier(regularization=penalty, max_iter=steps, random_state=seed)
    if kind == "circulant":
        return make_pipeline(CirculantFeatures(n_components=k, sigma=sigma, random_state=seed), svm)
    if kind == "kerapp":
        map_ = LearnedKernelFeatures(
            n_components=k, sigma=sigma, max_iter=bench.pick(1000, 60), random_state=seed
        )
        return make_pipeline(map_, svm)
    if kind == "circulant learned":
        return CirculantMapClassifier(**learned)
    return CompactMapClassifier(**learned)


def accuracy(bench: Bench, data: Data, kind: str, k: int, seed: int, settings_k: int) -> float:
    """Train one system and score it on the test part."""
    sigma, penalty = settings(bench, data, settings_k)

    def score() -> float:
        model = model_of(bench, kind, k, sigma, penalty, seed)
        return float(model.fit(data.X, data.y).score(data.X_test, data.y_test))

    return bench.measure(f"{kind} {data.name} {k} {seed}", score)


# --- Table 2 -------------------------------------------------------------------------------------


def table_2(bench: Bench, page: Page) -> None:
    """Compare random Fourier features with circulant maps, random and learned."""
    repeats = bench.pick(3, 1)
    rows = []
    for name in bench.pick(("usps", "mnist"), ("usps",)):
        data = load(bench, name)
        for factor in (1, 2):
            k = factor * data.n_features
            ours = [
                per_cent([accuracy(bench, data, kind, k, seed, k) for seed in range(repeats)])
                for kind in ("rff", "circulant", "circulant learned")
            ]
            label = f"{name} ({'2' * (factor == 2)}d), {data.split}"
            sigma, penalty = settings(bench, data, k)
            rows.append((label, *zip_cells(PAPER[name, factor], ours), f"{sigma:.3g}, {penalty:g}"))
    page.heading("Table 2: circulant maps")
    page.text(
        f"Accuracy in per cent, *paper* / ours over {repeats} draw(s) of the map, with the chosen "
        "σ and λ. CIFAR, as 400 unpublished features, is not to be had."
    )
    page.table(
        ("data (k)", "random Fourier", "circulant, random", "circulant, learned", "σ, λ"), rows
    )


def zip_cells(theirs: tuple[str, ...], ours: list[str]) -> list[str]:
    """Put the paper's numbers in front of ours."""
    return [f"*{a}* / {b}" for a, b in zip(theirs, ours, strict=True)]


# --- Figure 1 ------------------------------------------------------------------------------------


def references(bench: Bench, data: Data) -> dict[str, float]:
    """Score the exact kernel machine and the linear one."""
    sigma, _ = settings(bench, data, bench.pick(512, 64))

    def rbf() -> list[float]:
        rows = stratified(data.y, bench.pick(SVM_ROWS, 1000), np.random.default_rng(1))
        X, y = data.X[rows], data.y[rows]
        held = np.arange(rows.size) % 4 == 0
        pairs = [(m, C) for m in (0.35, 0.7, 1.4) for C in bench.pick((1.0, 10.0, 100.0), (10.0,))]

        def score(pair: tuple[float, float], part: int) -> float:
            model = KernelSVC(sigma=pair[0] * sigma, C=pair[1])
            return float(model.fit(X[~held], y[~held]).score(X[held], y[held]))

        (multiple, C), _ = choose(pairs, score, 1)
        model = KernelSVC(sigma=multiple * sigma, C=C).fit(X, y)
        return [float(model.score(data.X_test[:20000], data.y_test[:20000])), rows.size]

    def linear() -> float:
        model = PegasosClassifier(regularization=1e-4, max_iter=STEPS, random_state=0)
        return float(model.fit(data.X, data.y).score(data.X_test, data.y_test))

    score, rows = bench.measure(f"rbf {data.name}", rbf)
    return {
        f"RBF SVM, {int(rows)} rows": score,
        "linear": bench.measure(f"linear {data.name}", linear),
    }


LABELS = {"rff": "random Fourier", "kerapp": "learned to the kernel", "compact": "learned (CNM)"}


def figure_1(bench: Bench, page: Page) -> None:
    """Plot accuracy against k."""
    names = bench.pick(("usps", "mnist", "banana", "covtype"), ("usps", "banana"))
    figure, axes = new_figure(len(names) // 2, 2)
    rows = []
    for axis, name in zip(axes.ravel(), names, strict=True):
        data = load(bench, name)
        sizes = bench.pick((2, 4, 8, 16, 32, 64, 128, 256, 512), (8, 64))
        repeats = bench.pick(3 if name in ("usps", "banana") else 1, 1)
        for kind, label in LABELS.items():
            limit = sizes[-1] if kind != "kerapp" else 128
            used = [k for k in sizes if k <= limit]
            scores = [
                [
                    accuracy(bench, data, kind, k, seed, bench.pick(512, 64))
                    for seed in range(repeats)
                ]
                for k in used
            ]
            axis.plot(used, [100 * np.mean(s) for s in scores], marker="o", label=label)
            rows.append((f"{name}, {label}", *[cell(used, scores, k) for k in sizes]))
        for (label, score), style in zip(
            references(bench, data).items(), ("k-", "k:"), strict=True
        ):
            axis.plot([sizes[0], sizes[-1]], [100 * score] * 2, style, label=label)
            rows.append((f"{name}, {label}", per_cent(score), *[""] * (len(sizes) - 1)))
        axis.set_xscale("log", base=2)
        axis.set(title=f"{name}, {data.split}", xlabel="k", ylabel="accuracy, %")
        axis.legend(fontsize=7)
    page.heading("Figure 1: accuracy against k")
    page.table(("data, system; k =", *map(str, sizes)), rows)
    page.figure("accuracy", figure, "Accuracy against the number of features k.")


def cell(used: list[int], scores: list[list[float]], k: int) -> str:
    """Return the cell of a table of scores by k."""
    return per_cent(scores[used.index(k)]) if k in used else ""


# --- Figures 2 and 3 -----------------------------------------------------------------------------


def error_of(bench: Bench, data: Data, kind: str, k: int, seed: int) -> float:
    """Measure the mean squared error of the Gaussian kernel on 1000 test rows."""

    def error() -> float:
        sigma = neighbour_distance(data.X[:10000], random_state=0)
        options: dict[str, Any] = {"n_components": k, "sigma": sigma, "random_state": seed}
        if kind == "learned":
            map_: Any = LearnedKernelFeatures(max_iter=bench.pick(1000, 60), **options)
        else:
            map_ = {"rff": RandomFourierFeatures, "circulant": CirculantFeatures}[kind](**options)
        new = data.X_test[:1000]
        Z = map_.fit(data.X).transform(new)
        return float(np.mean((gaussian_kernel(new, sigma=sigma) - Z @ Z.T) ** 2))

    return bench.measure(f"error {kind} {data.name} {k} {seed}", error)


def error_figure(
    bench: Bench, page: Page, names: tuple[str, ...], kinds: dict[str, str], sizes: tuple[int, ...]
) -> None:
    """Plot the mean squared error against k."""
    repeats = bench.pick(3, 1)
    figure, axes = new_figure(len(names), 1, width=3.6)
    rows = []
    for axis, name in zip(axes[0], names, strict=True):
        data = load(bench, name)
        for kind, label in kinds.items():
            means = [
                np.mean([error_of(bench, data, kind, k, seed) for seed in range(repeats)])
                for k in sizes
            ]
            axis.loglog(sizes, means, marker="o", base=2, label=label)
            rows.append((f"{name}, {label}", *[f"{m:.2e}" for m in means]))
        axis.set(title=name, xlabel="k", ylabel="mean squared error")
        axis.set_yscale("log", base=10)
        axis.legend(fontsize=7)
    page.table(("data, map; k =", *map(str, sizes)), rows)
    caption = f"Mean squared error of the Gaussian kernel on 1000 test rows; {repeats} draw(s)."
    page.figure("error-" + list(kinds)[-1], figure, caption)


def printed_width(bench: Bench) -> float:
    """Score random Fourier features of the width that 004 prints, gamma = 2 / sigma^2."""
    data = load(bench, "usps")
    sigma = 0.5 * neighbour_distance(data.X, random_state=0)
    model = random_map(256, sigma, 1e-4, bench.pick(STEPS, 500), 0)
    return float(model.fit(data.X, data.y).score(data.X_test, data.y_test))


def run(bench: Bench) -> None:
    """Write the page of 004."""
    bench.open("004")
    page = Page(bench, "004: compact nonlinear maps and circulant extensions", SOURCE)
    narrow = bench.measure("printed width", lambda: printed_width(bench))
    page.text(
        "Features scaled to [-1, 1] by the training rows. σ, as a multiple "
        f"({', '.join(map(str, MULTIPLES))}) of the mean distance to the 50th neighbour, and λ "
        f"({', '.join(f'{p:g}' for p in PENALTIES)}) are chosen for random Fourier features on a "
        "quarter of 8000 training rows. The paper sets γ = 2/σ² with σ that distance; read as "
        "exp(-γ ||x - y||²) this kernel is so narrow that 256 random features reach "
        f"{per_cent(narrow)} % on usps, where the paper has 89 %, so something else must be meant. "
        "How the learned maps differ from the printed algorithms is written at "
        "`CompactMapClassifier`."
    )
    table_2(bench, page)
    figure_1(bench, page)
    page.text(
        "The paper's claim to check: on USPS 8 learned features reach 90 %, for which random ones "
        "take 512. The exact machine is trained on a sample of the rows where there are more."
    )
    page.heading("Figure 2: learning the map to the kernel")
    sizes = bench.pick((2, 4, 8, 16, 32, 64, 128), (8, 32))
    names = bench.pick(("usps", "mnist", "banana", "covtype"), ("usps", "banana"))
    error_figure(bench, page, names, {"rff": "random Fourier", "learned": "learned"}, sizes)
    page.heading("Figure 3: circulant maps against dense ones")
    sizes = bench.pick((16, 64, 256, 1024, 4096), (64, 256))
    kinds = {"rff": "random Fourier", "circulant": "circulant"}
    error_figure(bench, page, bench.pick(("usps", "mnist"), ("usps",)), kinds, sizes)
    page.write()
