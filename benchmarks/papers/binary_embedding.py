"""001, Lei & Lan 2021: binary embedding and ternary weights."""

from functools import partial
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles
from sklearn.pipeline import make_pipeline
from sklearn.random_projection import GaussianRandomProjection

from benchmarks._data import Data
from benchmarks.papers.common import (
    Run,
    beside,
    choose,
    draw_regions,
    exact,
    score,
    spread,
    svm_on,
    table,
    timed,
)
from tinykernel.papers.maps import BinaryCodes, Fastfood, SpectralFeatures
from tinykernel.papers.ternary import TernaryLinearClassifier

PAPER = {
    "usps": (98.63, 98.29, 97.53, 97.85, 98.01, 96.57),
    "covtype": (84.19, 84.82, 80.77, 81.91, 81.68, 78.12),
    "mnist": (96.88, 96.48, 92.95, 93.05, 93.27, 92.66),
    "fashion_mnist": (87.5, 87.55, 84.06, 84.01, 83.29, 82.07),
}
KILOBYTES = {
    "usps": (2136, 112, 2128, 2128, 104, 29),
    "covtype": (448, 40, 440, 440, 32, 24),
    "mnist": (6328, 112, 6320, 6320, 104, 29),
    "fashion_mnist": (6328, 112, 6320, 6320, 104, 29),
}
START = {"svm": "a linear SVM (12)", "random": "random weights"}
NAMES = ("RFE", "Fastfood", "BJLE", "BCSIK", "ours", "ours-b")


def bits(system: str, d: int, p: int, c: int) -> tuple[int, int, int]:
    """Return the bits of the transformation, of an embedded row and of the classifier (Table 1)."""
    width = 1 << (d - 1).bit_length()
    dense = {"RFE": d * p + p, "BJLE": d * p, "BCSIK": d * p + 2 * p}
    blocks = 32 * 4 * p + p + (0 if system == "Fastfood" else 32 * p)
    transform = 32 * dense[system] if system in dense else blocks * -(-p // width) * width // p
    return (
        transform,
        p * (32 if system in ("RFE", "Fastfood") else 1),
        c * p * (2 if system == "ours-b" else 32),
    )


def operations(system: str, d: int, p: int, c: int) -> tuple[int, int]:
    """Return word operations and floating-point operations of one row (Table 1)."""
    width = 1 << (d - 1).bit_length()
    blocks = -(-p // width)
    fast = blocks * (2 * width * int(np.log2(width)) + 3 * width) + p
    transform = 2 * d * p + p if system in ("RFE", "BJLE", "BCSIK") else fast
    return (3 * c * p // 32, transform) if system == "ours-b" else (0, transform + 2 * c * p)


def maps(p: int, sigma: float, seed: int) -> dict[str, Any]:
    """Make the feature maps of the systems."""
    how = {"n_components": p, "sigma": sigma, "random_state": seed}
    return {
        "RFE": SpectralFeatures(**how),
        "Fastfood": Fastfood(**how),
        "BJLE": BinaryCodes(GaussianRandomProjection(p, random_state=seed), threshold="zero"),
        "BCSIK": BinaryCodes(SpectralFeatures(**how), random_state=seed),
        "ours": BinaryCodes(Fastfood(**how), random_state=seed),
    }


def ternary(price: float, seed: int, **how: Any) -> TernaryLinearClassifier:
    """Make the classifier of ours-b."""
    return TernaryLinearClassifier(regularization=price, random_state=seed, max_iter=8, **how)


def results(run: Run) -> dict[str, Any]:
    """Return what the page shows."""
    p, draws, test = run.pick((2048, 1, 2000), (512, 1, 1000))
    rows, usps = [], None
    for name, papers in PAPER.items():
        most = {"usps": 7291, "covtype": 12_000}.get(name, 6000)
        data = run.split(name, min(most, run.pick(most, 1200)), test)
        columns, sigma = accuracies(data, p, draws, run)
        usps = usps or (data, sigma)
        cells = [beside(paper, values) for paper, values in zip(papers, columns, strict=True)]
        rows.append((f"{name}, {len(data.y):,} rows", *cells))
        n_classes, d = len(np.unique(data.y)), data.X.shape[1]
        ours = (sum(bits(system, d, p, n_classes)) / 8192 for system in NAMES)
        pairs = zip(KILOBYTES[name], ours, strict=True)
        rows.append((f"{name}, KB", *(f"*{paper}* / {mine:.0f}" for paper, mine in pairs)))
    data, sigma = usps
    return {
        "costs": costs(),
        **{"p": p, "draws": draws, "test": test},
        "accuracy": table(("data", *NAMES), rows),
        "exact": f"{score(exact(*choose(exact, data, (1.0, 10.0))), data):.2f}",
        **efficiency(run, data, sigma),
        "sweeps": convergence(run, data, sigma),
        "circles": circles(run),
    }


def costs() -> str:
    """Write Table 1."""
    rows = []
    for name in NAMES:
        memory = bits(name, 256, 2048, 10)
        numbers = (*memory, *operations(name, 256, 2048, 10))
        rows.append((name, *(f"{n:,}" for n in numbers), f"{sum(memory) / 8192:.0f}"))
    head = ("system", "transformation", "embedding", "classifier", "word ops", "FLOPs", "KB")
    return table(head, rows)


def accuracies(data: Data, p: int, draws: int, run: Run) -> tuple[list[list[float]], float]:
    """Return the accuracies of the six systems, and the sigma of ours."""
    columns, sigma = [], 1.0
    few = run.pick(1500, 600)
    for name in NAMES[:5]:
        sigma, C = choose(
            lambda s, c: svm_on(maps(512, s, 9)[name], c),  # noqa: B023
            data,
            (0.3, 3.0) if p > 600 else (1.0,),
            few,
        )
        columns.append([score(svm_on(maps(p, sigma, k)[name], C), data) for k in range(draws)])
    part = Data(data.X[:few], data.y[:few], data.X[few : 2 * few], data.y[few : 2 * few])
    prices = (0.01, 0.1)
    best = max(
        prices, key=lambda c: score(make_pipeline(maps(512, sigma, 9)["ours"], ternary(c, 9)), part)
    )
    last = [make_pipeline(maps(p, sigma, k)["ours"], ternary(best, k)) for k in range(draws)]
    return [*columns, [score(model, data) for model in last]], sigma


def efficiency(run: Run, data: Data, sigma: float) -> dict[str, str]:
    """Return Figure 1: accuracy against memory, and time."""
    sizes, rows, lines = run.pick((128, 512, 2048), (128, 512)), [], []
    for name, system in (("Fastfood", "Fastfood"), ("ours", "ours"), ("ours-b", "ours")):
        values, memory = [], []
        for p in sizes:
            last = ternary(0.01, 0) if name == "ours-b" else None
            map = maps(p, sigma, 0)[system]
            model = svm_on(map, 1.0) if last is None else make_pipeline(map, last)
            values.append(score(model, data))
            memory.append(sum(bits(name, 256, p, 10)) / 8192)
        rows.append((name, *(f"{v:.2f} ({m:.0f} KB)" for v, m in zip(values, memory, strict=True))))
        lines.append((name, memory, values))
    batch, p, times = data.X_test[:256], 2048, []
    W = np.random.default_rng(0).normal(size=(p, 10)).astype(np.float32)
    packed = np.packbits(np.ascontiguousarray(W.T) > 0, axis=1).view(np.uint64)
    for name in ("RFE", "Fastfood", "ours"):
        map = maps(p, sigma, 0)[name].fit(data.X[:500])
        Z = map.transform(batch)
        z = np.packbits(Z > 0, axis=1).view(np.uint64)

        def predict(name: str = name, Z: Any = Z, z: Any = z) -> Any:
            return np.bitwise_count(z[:, None] ^ packed).sum(axis=2) if name == "ours" else Z @ W

        seconds = [
            min(timed(f)[1] for _ in range(9)) for f in (partial(map.transform, batch), predict)
        ]
        times.append(("ours-b" if name == "ours" else name, *(1e6 / 256 * s for s in seconds)))
    _, axes = plt.subplots(1, 2, figsize=(9, 3.5))
    for name, memory, values in lines:
        axes[0].plot(memory, values, marker="o", label=name)
    axes[0].set(xscale="log", xlabel="KB", ylabel="accuracy, %", title="usps")
    axes[0].legend()
    names, embeds, predicts = zip(*times, strict=True)
    axes[1].bar(names, embeds, label="embedding")
    axes[1].bar(names, predicts, bottom=embeds, label="prediction")
    axes[1].set(ylabel="microseconds a row", title="processor time in NumPy")
    axes[1].legend()
    shown = [(name, f"{a:.1f}", f"{b:.2f}") for name, a, b in times]
    text = "(a) memory; (b) time for one row."
    return {
        "memory": table(("p =", *sizes), rows),
        "times": table(("system", "embedding", "prediction"), shown),
        "efficiency": run.picture("binary-embedding-memory-time", text),
    }


def convergence(run: Run, data: Data, sigma: float) -> dict[str, Any]:
    """Return Figure 2."""
    p, draws = run.pick((512, 3), (256, 1))
    _, axes = plt.subplots(figsize=(5, 3.5))
    scores: dict[str, list[float]] = {"svm": [], "random": []}
    for seed in range(draws):
        map = maps(p, sigma, seed)["ours"].fit(data.X)
        Z, Z_test = map.transform(data.X[:2000]), map.transform(data.X_test)
        part = Data(Z, data.y[:2000], Z_test, data.y_test)
        for start, values in scores.items():
            model = ternary(0.01, seed, start=start)
            values.append(score(model, part))
            if seed == 0:
                sweeps = model.objectives_[0]
                axes.plot(range(1, len(sweeps) + 1), sweeps, marker="o", label=start)
    axes.set(xlabel="sweep", ylabel="objective (7)", title="digit 0 of usps")
    axes.legend()
    text = ", ".join(f"from {START[start]} {spread(values)} %" for start, values in scores.items())
    picture = run.picture("binary-embedding-convergence", "Objective after each sweep.")
    return {"p": p, "draws": draws, "scores": text, "picture": picture}


def circles(run: Run) -> str:
    """Draw Figure 3."""
    _, axes = plt.subplots(1, 2, figsize=(8, 4))
    X, y = make_circles(400, noise=0.1, factor=0.5, random_state=0)
    X_test, y_test = make_circles(4000, noise=0.1, factor=0.5, random_state=1)
    for ax, binary in zip(axes, (True, False), strict=True):
        scores = []
        for seed in range(run.pick(20, 3)):
            model = make_pipeline(maps(256, 0.5, seed)["ours"], ternary(0.01, seed, binary=binary))
            scores.append(100 * float(model.fit(X, y).score(X_test, y_test)))
        draw_regions(ax, model, (-1.5, 1.5), (-1.5, 1.5))
        ax.scatter(*X.T, c=y, s=4, cmap="coolwarm")
        ax.set_title(f"{'binary' if binary else 'ternary'}: {spread(scores)} %")
    return run.picture("binary-embedding-circles", "Decision boundaries of 256 codes.")
