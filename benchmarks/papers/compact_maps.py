# ruff: noqa: RUF001 - the pages write sigma and gamma in Greek
"""004: compact nonlinear maps, maps learned to a kernel, circulant maps."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline

from benchmarks.papers.harness import (
    Bench,
    Data,
    Page,
    beyond,
    choose,
    new_figure,
    per_cent,
    stratified,
)
from tinykernel.papers.classifiers import (
    CirculantMapClassifier,
    CompactMapClassifier,
    KernelSVC,
    LearnedKernelFeatures,
    PegasosClassifier,
)
from tinykernel.papers.features.circulant import CirculantFeatures
from tinykernel.papers.features.fourier import RandomFourierFeatures
from tinykernel.papers.features.kernels import gaussian_kernel, neighbour_distance

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
# The columns of Table 2.
CIRCULANT = ("rff", "circulant", "circulant learned")
# Written about the numbers of the full run; look at them again when these change.
REASONS = (
    "On usps learning the circulant map gains half a point to two points over random maps. On "
    "mnist it gains nothing here, where σ and λ are those chosen for random features. All of our "
    "maps on mnist are above the paper's, random ones by about three to four points.",
)
# Rows to choose sigma and lambda with, and steps of Pegasos there and in the end.
SEARCH_ROWS = 8000
SEARCH_STEPS, STEPS = 1000, 2000
# Turns of the learned maps at most, of 100 + 100 steps.
TURNS = 12
# Steps of maps that are learned to the kernel.
KERNEL_STEPS = 500
# Sets that get fewer sizes and draws.
LARGE = ("mnist", "covtype")
USED_ROWS = {"covtype": 100_000}
# The exact machine: rows that sigma and C are chosen on, and rows that it is trained on.
SVM_SEARCH_ROWS = 1500
SVM_ROWS = 4000


def load(bench: Bench, name: str) -> Data:
    """Load a data set in the split of Table 1 of 004."""
    data = bench.load(name, TRAIN_SHARE.get(name, 0.8))
    return data.cut(USED_ROWS.get(name, data.y.size))


def draws(bench: Bench, name: str = "") -> range:
    """Return the seeds of the maps: two, in the figures for the large sets one."""
    return range(bench.pick(1 if name in LARGE else 2, 1))


def settings(bench: Bench, data: Data) -> tuple[float, float]:
    """Choose sigma and lambda on validation rows, for d but at least 256 random features."""
    k = bench.pick(max(256, data.n_features), 64)

    def search() -> list[float]:
        rng = np.random.default_rng(0)
        rows = stratified(data.y, bench.pick(SEARCH_ROWS, 1500), rng)
        X, y = data.X[rows], data.y[rows]
        held = np.arange(rows.size) % 4 == 0
        unit = neighbour_distance(X, random_state=0)

        def score(pair: tuple[float, float], part: int) -> float:
            model = random_map(k, pair[0] * unit, pair[1], bench.pick(SEARCH_STEPS, 300), part)
            return float(model.fit(X[~held], y[~held]).score(X[held], y[held]))

        pairs = [(m, p) for m in bench.pick(MULTIPLES, (1.0, 1.4)) for p in PENALTIES]
        best, _ = choose(pairs, score, 1)
        return [best[0] * unit, best[1], best[0]]

    sigma, penalty, _ = bench.measure(f"settings {data.name}", search)
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
        "max_iter": bench.pick(TURNS, 2),
        "random_state": seed,
    }
    if kind == "rff":
        return random_map(k, sigma, penalty, steps, seed)
    svm = PegasosClassifier(regularization=penalty, max_iter=steps, random_state=seed)
    if kind == "circulant":
        return make_pipeline(CirculantFeatures(n_components=k, sigma=sigma, random_state=seed), svm)
    if kind == "kerapp":
        map_ = LearnedKernelFeatures(
            n_components=k, sigma=sigma, max_iter=bench.pick(KERNEL_STEPS, 60), random_state=seed
        )
        return make_pipeline(map_, svm)
    if kind == "circulant learned":
        return CirculantMapClassifier(**learned)
    return CompactMapClassifier(**learned)


def accuracy(bench: Bench, data: Data, kind: str, k: int, seed: int) -> float:
    """Train one system and score it on the test part."""
    sigma, penalty = settings(bench, data)

    def score() -> float:
        model = model_of(bench, kind, k, sigma, penalty, seed)
        return float(model.fit(data.X, data.y).score(data.X_test, data.y_test))

    return bench.measure(f"{kind} {data.name} {k} {seed}", score)


# --- Table 2 -------------------------------------------------------------------------------------


def table_2(bench: Bench, page: Page) -> None:
    """Compare random Fourier features with circulant maps, random and learned."""
    rows, gaps = [], []
    for name in bench.pick(("usps", "mnist"), ("usps",)):
        data = load(bench, name)
        for factor in (1, 2):
            k, label, ours = factor * data.n_features, f"{name} ({'2' * (factor == 2)}d)", []
            for kind, theirs in zip(CIRCULANT, PAPER[name, factor], strict=True):
                scores = [accuracy(bench, data, kind, k, seed) for seed in draws(bench)]
                ours.append(f"*{theirs}* / {per_cent(scores)}")
                gap = beyond(theirs, scores)
                gaps += [f"{kind} on {label} ({gap:+.2f})"] if gap else []
            sigma, penalty = settings(bench, data)
            rows.append((f"{label}, {data.split}", *ours, f"{sigma:.3g}, {penalty:g}"))
    page.heading("Table 2: circulant maps")
    page.text(
        "Accuracy in per cent, *paper* / ours: mean ± standard deviation over two draws of the "
        "map. CIFAR, as 400 unpublished "
        "features, is not to be had."
    )
    page.table(
        ("data (k)", "random Fourier", "circulant, random", "circulant, learned", "σ, λ"), rows
    )
    page.text(
        "Further from the paper than both deviations together (ours minus the paper's, points): "
        f"{', '.join(gaps) or 'none'}."
    )
    if not bench.quick:
        page.text(*REASONS)


# --- Figure 1 ------------------------------------------------------------------------------------


def references(bench: Bench, data: Data) -> dict[str, float]:
    """Score the exact kernel machine and the linear one."""
    sigma, _ = settings(bench, data)

    def rbf() -> list[float]:
        search = bench.pick(SVM_SEARCH_ROWS, 1000)
        rows = stratified(data.y, search, np.random.default_rng(1))
        X, y = data.X[rows], data.y[rows]
        held = np.arange(rows.size) % 4 == 0
        pairs = [(m, C) for m in (0.35, 0.7, 1.4) for C in bench.pick((1.0, 10.0, 100.0), (10.0,))]

        def score(pair: tuple[float, float], part: int) -> float:
            model = KernelSVC(sigma=pair[0] * sigma, C=pair[1])
            return float(model.fit(X[~held], y[~held]).score(X[held], y[held]))

        (multiple, C), _ = choose(pairs, score, 1)
        rows = stratified(data.y, bench.pick(SVM_ROWS, 1000), np.random.default_rng(1))
        model = KernelSVC(sigma=multiple * sigma, C=C).fit(data.X[rows], data.y[rows])
        return [float(model.score(data.X_test[:20000], data.y_test[:20000])), rows.size]

    def linear() -> float:
        model = PegasosClassifier(
            regularization=1e-4, max_iter=bench.pick(STEPS, 500), random_state=0
        )
        return float(model.fit(data.X, data.y).score(data.X_test, data.y_test))

    score, rows = bench.measure(f"rbf {data.name}", rbf)
    return {
        f"RBF SVM, {int(rows)} rows": score,
        "linear": bench.measure(f"linear {data.name}", linear),
    }


SIZES = (2, 4, 8, 16, 32, 64, 128, 256, 512)
# Large sets, and maps learned to the kernel, which take as long at any k, get fewer points.
FEW_SIZES = (4, 16, 64, 256)
KERNEL_SIZES = (16, 64)
LABELS = {"rff": "random Fourier", "kerapp": "learned to the kernel", "compact": "learned (CNM)"}


def figure_1(bench: Bench, page: Page) -> None:
    """Plot accuracy against k."""
    names = bench.pick(("usps", "mnist", "banana", "covtype"), ("usps", "banana"))
    figure, axes = new_figure(len(names) // 2, 2)
    sizes = bench.pick(SIZES, (8, 64))
    rows = []
    for axis, name in zip(axes.ravel(), names, strict=True):
        data = load(bench, name)
        here = bench.pick(FEW_SIZES if name in LARGE else SIZES, (8, 64))
        for kind, label in LABELS.items():
            used = [k for k in here if bench.quick or kind != "kerapp" or k in KERNEL_SIZES]
            scores = [[accuracy(bench, data, kind, k, s) for s in draws(bench, name)] for k in used]
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
        sigma = bench.measure(
            f"neighbour distance {data.name}",
            lambda: neighbour_distance(data.X[:10000], random_state=0),
        )
        options: dict[str, Any] = {"n_components": k, "sigma": sigma, "random_state": seed}
        if kind == "learned":
            map_: Any = LearnedKernelFeatures(max_iter=bench.pick(KERNEL_STEPS, 60), **options)
        else:
            map_ = {"rff": RandomFourierFeatures, "circulant": CirculantFeatures}[kind](**options)
        new = data.X_test[:1000]
        # Random maps see nothing of the rows but their number of columns.
        Z = map_.fit(data.X if kind == "learned" else data.X[:10]).transform(new)
        return float(np.mean((gaussian_kernel(new, sigma=sigma) - Z @ Z.T) ** 2))

    return bench.measure(f"error {kind} {data.name} {k} {seed}", error)


def error_figure(
    bench: Bench, page: Page, names: tuple[str, ...], kinds: dict[str, str], sizes: tuple[int, ...]
) -> None:
    """Plot the mean squared error against k."""
    figure, axes = new_figure(len(names), 1, width=3.6)
    rows = []
    for axis, name in zip(axes[0], names, strict=True):
        data = load(bench, name)
        for kind, label in kinds.items():
            means = [
                np.mean([error_of(bench, data, kind, k, seed) for seed in draws(bench, name)])
                for k in sizes
            ]
            axis.loglog(sizes, means, marker="o", base=2, label=label)
            rows.append((f"{name}, {label}", *[f"{m:.2e}" for m in means]))
        axis.set(title=name, xlabel="k", ylabel="mean squared error")
        axis.set_yscale("log", base=10)
        axis.legend(fontsize=7)
    page.table(("data, map; k =", *map(str, sizes)), rows)
    caption = "Mean squared error of the Gaussian kernel on 1000 test rows."
    page.figure("error-" + list(kinds)[-1], figure, caption)


def claim(bench: Bench, page: Page) -> None:
    """Compare 8 learned features with random ones."""
    data = load(bench, "usps")

    def mean(kind: str, k: int) -> float:
        return float(np.mean([accuracy(bench, data, kind, k, s) for s in draws(bench, "usps")]))

    learned = mean("compact", 8)
    reached = [k for k in bench.pick(SIZES, (8, 64)) if mean("rff", k) >= learned]
    enough = f"take {reached[0]}" if reached else "do not reach it at any size above"
    page.text(
        "Two draws of the map for usps and banana, one for mnist and covtype. The paper's claim: "
        "on USPS 8 learned features reach 90 %, for which random ones take 512. Ours: 8 learned "
        f"features reach {per_cent(learned)} %, random ones {enough}."
    )


def printed_width(bench: Bench) -> float:
    """Score random Fourier features of the width that 004 prints, gamma = 2 / sigma^2."""
    data = load(bench, "usps")
    sigma = 0.5 * neighbour_distance(data.X, random_state=0)
    model = random_map(256, sigma, 1e-4, bench.pick(STEPS, 500), 0)
    return float(model.fit(data.X, data.y).score(data.X_test, data.y_test))


def run(bench: Bench) -> None:
    """Write the page of 004."""
    bench.open("compact-maps")
    page = Page(bench, "004: compact nonlinear maps and circulant extensions", SOURCE)
    narrow = bench.measure("printed width", lambda: printed_width(bench))
    page.text(
        "Features scaled to [-1, 1] by the training rows. σ, as a multiple "
        f"({', '.join(map(str, MULTIPLES))}) of the mean distance to the 50th neighbour, and λ "
        f"({', '.join(f'{p:g}' for p in PENALTIES)}) are chosen for d, at least 256, random "
        f"Fourier features on a quarter of {SEARCH_ROWS} training rows, and taken over for the "
        f"learned maps, which make at most {TURNS} turns "
        f"of 100 + 100 steps of 500 rows; maps learned to the kernel make "
        f"{KERNEL_STEPS} steps, and the Pegasos classifiers on fixed maps {STEPS}. Of the training "
        "part of covtype "
        f"{USED_ROWS['covtype']} rows are used. The paper sets γ = 2/σ² with σ that distance; read "
        "as "
        "exp(-γ ||x - y||²) this kernel is so narrow that 256 random features reach "
        f"{per_cent(narrow)} % on usps, where the paper has 89 %, so something else must be meant. "
        "How the learned maps differ from the printed algorithms is written at "
        "`CompactMapClassifier`."
    )
    table_2(bench, page)
    figure_1(bench, page)
    claim(bench, page)
    page.heading("Figure 2: learning the map to the kernel")
    sizes = bench.pick((4, 16, 64), (8, 32))
    names = bench.pick(("usps", "mnist", "banana", "covtype"), ("usps", "banana"))
    error_figure(bench, page, names, {"rff": "random Fourier", "learned": "learned"}, sizes)
    page.heading("Figure 3: circulant maps against dense ones")
    sizes = bench.pick((16, 64, 256, 1024, 4096), (64, 256))
    kinds = {"rff": "random Fourier", "circulant": "circulant"}
    error_figure(bench, page, bench.pick(("usps", "mnist"), ("usps",)), kinds, sizes)
    page.write()
