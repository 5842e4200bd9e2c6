# ruff: noqa: RUF001 - the page writes sigma in Greek
"""How the step sizes of the learned maps were chosen: on USPS rows held out to validate."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.papers.harness import Bench, Page, split_rows
from tinykernel.papers.classifiers import (
    CirculantMapClassifier,
    CompactMapClassifier,
    LearnedKernelFeatures,
)
from tinykernel.papers.features.kernels import gaussian_kernel, neighbour_distance

RATES = (0.1, 0.3, 1.0)
TURNS = (0.03, 0.1, 0.3)
DEFAULT = (0.3, 0.1)
SYSTEMS = ("compact", "circulant", "kernel")
TITLES = {
    "compact": "CompactMapClassifier, k = 8 and 64, accuracy in per cent",
    "circulant": "CirculantMapClassifier, k = 256, accuracy in per cent",
    "kernel": "LearnedKernelFeatures, p = 8 and 64, 1000 × mean squared error",
}
SIZES = {"compact": (8, 64), "circulant": (256,), "kernel": (8, 64)}


class Held:
    """The training part of USPS in two parts; the official test part is not looked at."""

    def __init__(self, bench: Bench) -> None:
        data = bench.load("usps")
        kept, held = split_rows(data.y, 0.75, np.random.default_rng(0))
        self.X, self.y = data.X[kept], data.y[kept]
        self.X_held, self.y_held = data.X[held], data.y[held]
        self.sigma = neighbour_distance(self.X, random_state=0)
        self.turns = bench.pick(20, 2)
        self.steps = bench.pick(1000, 50)

    def score(self, system: str, k: int, rate: float, turn: float, seed: int) -> float:
        """Return the accuracy, or the error of the kernel, on the rows held out."""
        options: dict[str, Any] = {
            "n_components": k,
            "learning_rate": rate,
            "max_turn": turn,
            "random_state": seed,
        }
        if system == "kernel":
            map_ = LearnedKernelFeatures(sigma=self.sigma, max_iter=self.steps, **options)
            Z = map_.fit(self.X).transform(self.X_held)
            K = gaussian_kernel(self.X_held, sigma=self.sigma)
            return float(np.mean((K - Z @ Z.T) ** 2))
        cls = {"compact": CompactMapClassifier, "circulant": CirculantMapClassifier}[system]
        model = cls(sigma=1.4 * self.sigma, max_iter=self.turns, **options)
        return float(model.fit(self.X, self.y).score(self.X_held, self.y_held))


def mean_scores(bench: Bench, held: Held, system: str) -> dict[tuple[float, float], list[float]]:
    """Measure a system with all step sizes; return the means over two starts, one for each k."""
    seeds = range(bench.pick(2, 1))
    sizes = bench.pick(SIZES[system], SIZES[system][:1])
    found = {}
    for rate in bench.pick(RATES, (DEFAULT[0],)):
        for turn in bench.pick(TURNS, (DEFAULT[1],)):
            means = []
            for k in sizes:

                def scores(k: int = k, rate: float = rate, turn: float = turn) -> list[float]:
                    return [held.score(system, k, rate, turn, seed) for seed in seeds]

                key = f"{system} {k} {rate:g} {turn:g}"
                means.append(float(np.mean(bench.measure(key, scores))))
            found[rate, turn] = means
    return found


def behind(found: dict[tuple[float, float], list[float]], lower_is_better: bool) -> list[float]:
    """Return by how much the defaults miss the best of the table, for each k."""
    best = (np.min if lower_is_better else np.max)(list(found.values()), axis=0)
    return np.abs(np.array(found[DEFAULT]) - best).tolist()


def run(bench: Bench) -> None:
    """Write the page."""
    bench.open("defaults")
    held = Held(bench)
    page = Page(
        bench,
        "Step sizes of the learned maps",
        "How the defaults of `learning_rate` and `max_turn` were chosen.",
    )
    page.text(
        f"A quarter of the training part of USPS ({held.y_held.size} rows) is held out and scored "
        f"on, {held.y.size} rows are trained on; the official test part, which the page of 004 "
        "scores on, is not looked at. Means over two starts. Classifiers make at most "
        f"{held.turns} turns with σ 1.4 times the mean distance to the 50th neighbour, kernel maps "
        f"{held.steps} steps with σ that distance. One pair of defaults serves all three; no pair "
        "is the best of every column, and the standard error of an accuracy here is about "
        f"{100 * np.sqrt(0.97 * 0.03 / held.y_held.size):.1f} points."
    )
    for system in SYSTEMS:
        found = mean_scores(bench, held, system)
        scale = 1000 if system == "kernel" else 100
        rows = [
            (f"{rate:g}", f"{turn:g}", *[f"{scale * mean:.2f}" for mean in means])
            for (rate, turn), means in found.items()
        ]
        page.heading(TITLES[system])
        sizes = [f"k = {k}" for k in bench.pick(SIZES[system], SIZES[system][:1])]
        page.table(("learning_rate", "max_turn", *sizes), rows)
        missed = " and ".join(f"{scale * gap:.2f}" for gap in behind(found, system == "kernel"))
        page.text(f"The defaults {DEFAULT[0]} and {DEFAULT[1]} are {missed} behind the best.")
    page.write()
