# ruff: noqa: RUF001 - the pages write sigma and gamma in Greek
"""Lei & Lan 2021: binary embedding and ternary weights, the method this project deploys."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.svm import SVC

from benchmarks.papers import speed
from benchmarks.papers.harness import (
    Bench,
    Data,
    Page,
    new_figure,
    per_cent,
    split_rows,
    stratified,
)
from benchmarks.papers.systems import (
    MORE_REFINE_ROWS,
    MORE_SEARCH_ROWS,
    NAMES,
    REFINE_ROWS,
    SEARCH_ROWS,
    cost_of,
    learned_model,
    table_bytes,
    train,
    tune,
)
from tinykernel.papers.features import neighbour_distance

SOURCE = (
    "Z. Lei, L. Lan, *Memory and Computation-Efficient Kernel SVM via Binary Embedding and Ternary "
    "Model Coefficients*, AAAI 2021."
)
PAPER = {
    "usps": (98.63, 98.29, 97.53, 97.85, 98.01, 96.57),
    "covtype": (84.19, 84.82, 80.77, 81.91, 81.68, 78.12),
    "mnist": (96.88, 96.48, 92.95, 93.05, 93.27, 92.66),
    "fashion_mnist": (87.5, 87.55, 84.06, 84.01, 83.29, 82.07),
}
PAPER_KB = {
    "usps": (2136, 112, 2128, 2128, 104, 29),
    "covtype": (448, 40, 440, 440, 32, 24),
    "mnist": (6328, 112, 6320, 6320, 104, 29),
    "fashion_mnist": (6328, 112, 6320, 6320, 104, 29),
}
# The paper's training part of covtype, and how many training rows are used here.
TRAIN_ROWS = {"covtype": 464_810}
USED_ROWS = {"covtype": 100_000, "fashion_mnist": 20_000}
REPEATS = {"usps": 3, "usps-random": 3}
# Steps of L-BFGS at most, where they are not 100.
STEPS = {"covtype": 60, "mnist": 60, "fashion_mnist": 60}
P = 2048
# Where the learned trainer chooses sigma itself: neighbours say little of one-hot features.
SEARCHED = ("covtype",)
# Passes over the rows of the learned trainer.
EPOCHS = {"usps": 30, "usps-random": 30, "covtype": 6, "mnist": 6, "fashion_mnist": 6}


# Written about the numbers of the full run; look at them again when these change.
REASONS = (
    "As in the paper RFE or Fastfood is the best of its systems on every set. Binary codes with "
    "full-precision weights lose one to three points to them, and ternary weights up to one point "
    "more than *ours*, on covtype four. usps is explained below.",
    "mnist: binary codes are one to two points above the paper's. fashion_mnist: RFE and Fastfood "
    "see a third of the paper's rows.",
)


def load(bench: Bench, name: str) -> Data:
    """Load a data set in the paper's split, as far as it is known."""
    if name == "usps-random":
        data = bench.load("usps")
        X, y = np.concatenate([data.X, data.X_test]), np.concatenate([data.y, data.y_test])
        a, b = split_rows(y, data.y.size / y.size, np.random.default_rng(0))
        a = np.random.default_rng(1).permutation(a)
        split = f"random, stratified, seed 0, {a.size}/{b.size}"
        return Data(name, X[a], y[a], X[b], y[b], split)
    data = bench.load(name, TRAIN_ROWS.get(name, 0.8))
    return data.cut(USED_ROWS.get(name, data.y.size))


# --- Table 1 -------------------------------------------------------------------------------------


def table_1(page: Page) -> None:
    """Count bits and operations."""
    page.heading("Table 1: memory and computation")
    page.text(
        "Exact counts of our implementations for usps (256 inputs, 10 classes) and mnist (784), "
        f"p = {P}: bits stored for the transformation, of one embedded row, of the classifier; "
        "32-bit word operations and floating-point operations for one row. The paper gives orders "
        "of growth only. *tinykernel* is what the firmware of this project holds: its counts of "
        "words include the integer transform."
    )
    rows = []
    for data, n in (("usps", 256), ("mnist", 784)):
        for name in (*NAMES, "tinykernel"):
            cost = cost_of(name, n, P, 10)
            counts = (cost.transformation, cost.embedding, cost.classifier, cost.words, cost.flops)
            rows.append((f"{data}, {name}", *[f"{v:,}" for v in counts], f"{cost.kilobytes:.1f}"))
    header = ("system", "transformation", "embedding", "classifier", "word ops", "FLOPs", "KB")
    page.table(header, rows)


# --- Table 2 -------------------------------------------------------------------------------------


def accuracy(bench: Bench, data: Data, name: str, p: int, seed: int) -> float:
    """Train a system with the parameters chosen for it, and score it."""
    sigma, penalty = tune(bench, data, name, bench.pick(P, 256))

    def score() -> float:
        steps = STEPS.get(data.name, 100)
        model = train(name, data.X, data.y, p, sigma, penalty, seed, steps)
        return model.score(data.X_test, data.y_test)

    return bench.measure(f"accuracy {data.name} {name} {p} {seed}", score)


def learned(bench: Bench, data: Data, seed: int) -> float:
    """Score the project's own trainer with tables as large as those of ours-b as deployed."""
    few = data.cut(bench.pick(data.y.size, 500))
    model = learned_model(few, bench.pick(P, 64), bench.pick(EPOCHS[data.name], 1), seed)
    if data.name in SEARCHED:
        model.set_params(sigma=None)

    def score() -> float:
        labels = model.fit(few.X, few.y).quantize().predict(data.X_test)
        return float(np.mean(labels == data.y_test))

    return float(bench.measure(f"learned {data.name} {seed}", score))


def table_2(bench: Bench, page: Page) -> None:
    """Compare accuracy and memory."""
    page.heading("Table 2: accuracy and memory")
    p = bench.pick(P, 256)
    rows, gaps = [], []
    for name in bench.pick(("usps", "usps-random", "covtype", "mnist", "fashion_mnist"), ("usps",)):
        data = load(bench, name)
        draws = range(bench.pick(REPEATS.get(name, 2), 1))
        cells = []
        for position, system in enumerate(NAMES):
            scores = [accuracy(bench, data, system, p, seed) for seed in draws]
            theirs = f"*{PAPER[name][position]}* / " if name in PAPER else ""
            cells.append(theirs + per_cent(scores))
            if name in PAPER:
                gap = 100 * float(np.mean(scores)) - PAPER[name][position]
                gaps += [f"{name} {system} {gap:+.1f}"] if abs(gap) > 1 else []
        cells.append(per_cent(learned(bench, data, 0)))
        rows.append((f"{name}, {data.split}", *cells))
        theirs_kb = PAPER_KB.get(name, ("",) * 6)
        costs = [cost_of(s, data.n_features, p, data.n_classes).kilobytes for s in NAMES]
        kilobytes = [
            f"*{kb}* / {cost:.0f}" if kb else f"{cost:.0f}"
            for kb, cost in zip(theirs_kb, costs, strict=True)
        ]
        rows.append((f"{name}, KB", *kilobytes, f"{table_bytes(data, p) / 1024:.0f}"))
    page.text(
        f"p = {p}, features scaled to [-1, 1]. For each system σ from 2⁻⁵ to 2⁵ and λ from 10⁻³ to "
        f"10³ are chosen on a third of {bench.pick(SEARCH_ROWS, 900)} training rows (of covtype "
        f"{MORE_SEARCH_ROWS['covtype']}), climbing the "
        "grid from the σ nearest to the distance to the 50th neighbour and λ = 0.1; on the three "
        f"large sets smaller λ are then tried with {REFINE_ROWS} rows (of covtype "
        f"{MORE_REFINE_ROWS['covtype']}). The system is trained on "
        "all rows given in the first column. *Paper* / ours, mean ± standard "
        "deviation over draws of the features, three for usps and two for the others, accuracy in "
        "per cent. Full-precision weights by squared hinge loss and at most 100 steps of L-BFGS "
        f"({STEPS['mnist']} on the large sets), "
        "ternary ones by Algorithm 1 with hinge loss. webspam is not to be had as a complete "
        "public file.",
        "The last column is not in the paper: `TernaryKernelClassifier`, which "
        "learns features and weights together, as the integer model that the firmware computes, "
        "with tables no larger than those of ours-b as this project deploys it (*tinykernel* in "
        f"Table 1); one draw, {EPOCHS['usps']} passes over the rows of usps, {EPOCHS['mnist']} "
        "over those of the others, σ the distance to the 50th neighbour (on covtype the trainer "
        "chooses it).",
    )
    page.table(("data", *NAMES, "learned"), rows)
    page.text(
        "The paper gives no deviations; further than a point from it (ours minus the paper's) are: "
        f"{', '.join(gaps) or 'none'}."
    )
    if not bench.quick:
        page.text(*REASONS, more_steps(bench))
    explain_usps(bench, page)


def more_steps(bench: Bench) -> str:
    """Say what more steps of L-BFGS would give on covtype."""
    data = load(bench, "covtype")
    sigma, penalty = tune(bench, data, "RFE", P)

    def score() -> float:
        model = train("RFE", data.X, data.y, P, sigma, penalty, 0, 200)
        return model.score(data.X_test, data.y_test)

    more = bench.measure("covtype RFE 200 steps", score)
    few = accuracy(bench, data, "RFE", P, 0)
    return (
        f"covtype: {data.y.size} of the paper's {TRAIN_ROWS['covtype']} rows are used, and "
        f"{STEPS['covtype']} steps of L-BFGS are not enough for the small λ chosen: 200 steps give "
        f"RFE {per_cent(more)} % in place of {per_cent(few)} %."
    )


def exact(sigma: float) -> SVC:
    """Return the machine that all systems approximate."""
    return SVC(C=10.0, gamma=0.5 / sigma**2, cache_size=500.0)


def explain_usps(bench: Bench, page: Page) -> None:
    """Show what the exact machine reaches on both splits of USPS."""
    cells = []
    for name in ("usps", "usps-random"):
        data = load(bench, name)

        def score(data: Data = data) -> float:
            unit = neighbour_distance(data.X, random_state=0)
            rows = stratified(data.y, 4000, np.random.default_rng(0))
            held = np.arange(rows.size) % 3 == 0
            X, y = data.X[rows], data.y[rows]
            scores = {}
            for multiple in (0.35, 0.5, 0.7, 1.0, 1.4):
                scores[multiple] = (
                    exact(multiple * unit).fit(X[~held], y[~held]).score(X[held], y[held])
                )
            best = max(scores, key=lambda multiple: scores[multiple])
            model = exact(best * unit).fit(data.X, data.y)
            return float(model.score(data.X_test, data.y_test))

        cells.append(f"{per_cent(bench.measure(f'exact {name}', score))} % ({data.split})")
    page.text(
        "The paper's numbers for usps cannot be reproduced on the standard split: the exact "
        f"Gaussian SVM, which all systems approximate, reaches {cells[0]} there and {cells[1]} "
        "on a random split of all rows, where training and test digits come from the same pool. "
        "The paper names the sizes of the standard split; its numbers look like the other one's."
    )


# --- Figure 1 ------------------------------------------------------------------------------------


def figure_1(bench: Bench, page: Page) -> None:
    """Plot accuracy against memory, and time for one row."""
    page.heading("Figure 1: memory and computation time")
    data = load(bench, "usps")
    unit = neighbour_distance(data.X, random_state=0)
    sizes = bench.pick((128, 256, 512, 1024, 2048, 4096), (128, 512))
    figure, axes = new_figure(2)
    rows = []
    for name in ("Fastfood", "ours", "ours-b"):
        scores, memory = [], []
        for p in sizes:
            repeats = range(bench.pick(3, 1))
            scores.append([accuracy(bench, data, name, p, seed) for seed in repeats])
            memory.append(cost_of(name, data.n_features, p, data.n_classes).kilobytes)
        axes[0, 0].plot(memory, [100 * np.mean(s) for s in scores], marker="o", label=name)
        rows.append(
            (name, *[f"{per_cent(s)} ({k:.0f})" for s, k in zip(scores, memory, strict=True)])
        )
    axes[0, 0].set(xlabel="memory, KB", ylabel="accuracy, %", title=f"usps, {data.split}")
    axes[0, 0].set_xscale("log")
    axes[0, 0].legend()
    times = {
        name: bench.measure(f"times {name}", lambda n=name: speed.times(n, bench.pick(P, 256)))
        for name in ("usps", "mnist")
    }
    bars(axes[0, 1], times)
    page.text(
        "The paper fixes σ = 2⁻¹ here; ours takes σ and λ of Table 2, as features in [-1, 1] lie "
        f"much further apart than that (the 50th neighbour at {unit:.1f} on average). Accuracy in "
        "per cent (memory in KB):"
    )
    page.table(("p =", *map(str, sizes)), rows)
    page.text(
        "Time for one row in microseconds on one core, embedding + prediction, rows in batches of "
        "256: dense features by BLAS, Fastfood and binary features in compiled loops, ternary "
        "prediction by XNOR, AND and POPCOUNT."
    )
    page.table(
        ("data", *speed.SYSTEMS),
        [(name, *[f"{e:.1f} + {q:.2f}" for e, q in values]) for name, values in times.items()],
    )
    page.figure("memory-time", figure, "(a) accuracy against memory; (b) time for one row.")


def bars(axis: Any, times: dict[str, list[list[float]]]) -> None:
    """Draw stacked bars: embedding below, prediction above."""
    for i, values in enumerate(times.values()):
        at = np.arange(len(values)) + 0.4 * i
        embedding, prediction = np.array(values).T
        axis.bar(at, embedding, 0.35, color=f"C{i}", label=list(times)[i])
        axis.bar(at, prediction, 0.35, bottom=embedding, color=f"C{i}", alpha=0.4)
    axis.set_xticks(np.arange(len(speed.SYSTEMS)) + 0.2, speed.SYSTEMS)
    axis.set(ylabel="microseconds a row", title="light: prediction")
    axis.legend()


def run(bench: Bench) -> None:
    """Write the page of Lei & Lan 2021."""
    bench.open("binary-embedding")
    page = Page(bench, "Lei & Lan 2021: binary embedding and ternary weights", SOURCE)
    page.text(
        "RFE: random Fourier features, BJLE: binary Johnson-Lindenstrauss embedding, BCSIK: binary "
        "codes for shift-invariant kernels, *ours*: the paper's binary Fastfood features with "
        "full-precision weights, *ours-b*: with ternary weights."
    )
    table_1(page)
    table_2(bench, page)
    figure_1(bench, page)
    page.write()
