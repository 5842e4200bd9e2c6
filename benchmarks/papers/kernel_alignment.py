# ruff: noqa: RUF001 - the pages write sigma and gamma in Greek
"""000: features optimised by kernel alignment, on small data sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.papers.harness import (
    Bench,
    Page,
    beyond,
    choose,
    climb,
    minmax,
    new_figure,
    per_cent,
    split_rows,
    stratified,
)
from benchmarks.papers.linear import fit_linear
from benchmarks.papers.systems import PUBLISHED, System
from tinykernel.papers.classifiers import KernelSVC
from tinykernel.papers.features import (
    RMBCSIK,
    Fastfood,
    KernelAlignment,
    RandomFourierFeatures,
    neighbour_distance,
)

SOURCE = (
    "J. Zhang (2022), *Kernel SVM Based on Binary Embedding and Optimized Random Fourier "
    "Features*, technical report."
)
METHODS = ("RFF + SVM", "RM-BCSIK + SVM", "aligned codes + SVM", "exact kernel SVM")
PAPER = {
    "sonar": ("82.89 ± 4.99", "80.84 ± 5.45", "83.49 ± 2.90", "82.05 ± 5.37"),
    "dna": ("93.48 ± 1.94", "91.84 ± 3.92", "93.62 ± 0.63", "94.25 ± 0.55"),
    "binaryalpha": ("68.79 ± 2.93", "66.69 ± 3.68", "70.07 ± 1.14", "70.89 ± 1.66"),
    "usps": ("96.54 ± 0.29", "95.36 ± 0.39", "95.73 ± 0.25", "96.44 ± 0.24"),
}
P = 4096
REPEATS = {"binaryalpha": 3, "usps": 3}
# Parameters are chosen on at most so many of the training rows of a split.
SEARCH_ROWS = 1000
# Steps of L-BFGS at most, in the search and in the end.
SEARCH_STEPS, STEPS = 60, 100
CANDIDATES = 8192
MULTIPLES = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8)
PENALTIES = (1e-3, 1e-2, 1e-1, 1.0)
RADII = (1.0, 10.0, 100.0)
COSTS = (0.1, 1.0, 10.0, 100.0)
# Where the search for sigma begins.
FIRST = MULTIPLES.index(1.4)


# Written about the numbers of the full run; look at them again when these change.
REASONS = (
    "The exact machine does better here than in the paper, which does not say how it chose σ and "
    "C; ours are chosen in each split. On dna our aligned codes have the threshold t, and without "
    "it even codes that are not aligned come to the paper's number (last column).",
    "That alignment improves on RM-BCSIK, as the paper has it, is not confirmed: on all four sets "
    "our aligned codes are below RM-BCSIK, by less than one standard deviation each. Of 4096 draws "
    "from 8192 candidates on average at most 3223 are different ones, so that sampling alone costs "
    "features.",
)


class CosineSigns:
    """Signs of Fastfood cosines, without the random t of (6): what the printed code computes."""

    def __init__(self, **options: Any) -> None:
        self.map_ = Fastfood(**options)

    def fit(self, X: np.ndarray, y: np.ndarray) -> CosineSigns:
        self.map_.fit(X)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        return np.where(self.map_.transform(X) > 0, 1, -1).astype(np.int8)


def load(bench: Bench, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Load all rows that the paper counts: of DNA and USPS those of the official training part."""
    file = bench.arrays(name)
    X, y = (file["X_train"], file["y_train"]) if "X_train" in file else (file["X"], file["y"])
    if bench.quick:
        rows = stratified(y, 700, np.random.default_rng(0))
        X, y = X[rows], y[rows]
    return X, y.astype(np.int64)


class Split:
    """One random 6:4 split, with parts of its training rows to choose parameters on."""

    def __init__(self, bench: Bench, name: str, seed: int) -> None:
        X, y = load(bench, name)
        rng = np.random.default_rng(seed)
        train, test = split_rows(y, 0.6, rng)
        self.X, self.X_test = minmax(X[train], X[test])
        self.y, self.y_test = y[train], y[test]
        self.unit = neighbour_distance(self.X, random_state=seed)
        # Small sets are split several times, or chance would choose.
        n_parts = bench.pick(max(1, min(5, 1500 // self.y.size)), 1)
        self.parts = [self.part(rng) for _ in range(n_parts)]
        self.p, self.candidates = bench.pick((P, CANDIDATES), (256, 1024))
        self.seed = seed

    def part(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return rows to train and to choose on, 7 to 3, of at most `SEARCH_ROWS`."""
        rows = stratified(self.y, SEARCH_ROWS, rng)
        kept, held = split_rows(self.y[rows], 0.7, rng)
        return rows[kept], rows[held]

    def linear_score(self, map_: Any, penalty: float) -> float:
        """Train on all training rows and score on the test rows."""
        Z = System.features(map_.fit(self.X, self.y), self.X).astype(np.float32)
        fitted = fit_linear(Z, self.y, int(self.y.max()) + 1, penalty, max_iter=STEPS)
        return float(np.mean(fitted.codes(System.features(map_, self.X_test)) == self.y_test))

    def rows(self, part: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return rows to train and to score on."""
        if part is None:
            return self.X, self.y, self.X_test, self.y_test
        kept, held = self.parts[part]
        return self.X[kept], self.y[kept], self.X[held], self.y[held]

    def best_penalty(self, make: Callable[[], Any], start: int) -> tuple[int, float]:
        """Choose lambda on the parts, climbing from `start`; return which, and its mean score."""
        parts = []
        for part in range(len(self.parts)):
            X, y, X_held, y_held = self.rows(part)
            map_ = make().fit(X, y)
            Z = System.features(map_, X).astype(np.float32)
            parts.append((Z, y, System.features(map_, X_held), y_held))
        n_classes = int(self.y.max()) + 1

        def score(at: int) -> float:
            shares = []
            for Z, y, Z_held, y_held in parts:
                fitted = fit_linear(Z, y, n_classes, PENALTIES[at], max_iter=SEARCH_STEPS)
                shares.append(np.mean(fitted.codes(Z_held) == y_held))
            return float(np.mean(shares))

        best, known = climb(score, len(PENALTIES), start)
        return best, known[best]

    def best_width(self, make: Callable[[float], Any]) -> tuple[int, float]:
        """Choose sigma, climbing from `FIRST`, and lambda; return which, and the test score."""
        chosen = {-1: PENALTIES.index(0.1)}

        def score(at: int) -> float:
            # The last lambda chosen is a good start for the next sigma.
            last = list(chosen.values())[-1]
            chosen[at], share = self.best_penalty(lambda: make(MULTIPLES[at] * self.unit), last)
            return share

        best, _ = climb(score, len(MULTIPLES), FIRST)
        return best, self.linear_score(make(MULTIPLES[best] * self.unit), PENALTIES[chosen[best]])

    def measure(self) -> dict[str, float]:
        """Score all four methods."""
        options: dict[str, Any] = {"n_components": self.p, "random_state": self.seed}
        _, rff = self.best_width(lambda s: RandomFourierFeatures(sigma=s, **options))
        chosen, codes = self.best_width(lambda s: RMBCSIK(sigma=s, **PUBLISHED, **options))
        _, plain = self.best_width(lambda s: CosineSigns(sigma=s, **PUBLISHED, **options))
        options |= {"sigma": MULTIPLES[chosen] * self.unit, "n_candidates": self.candidates}
        tried = []
        for rho in RADII:
            found = self.best_penalty(lambda r=rho: KernelAlignment(rho=r, **options), 2)
            tried.append((found[1], rho, PENALTIES[found[0]]))
        _, radius, penalty = max(tried, key=lambda entry: entry[0])
        optimised = self.linear_score(KernelAlignment(rho=radius, **options), penalty)
        return dict(zip(METHODS, (rff, codes, optimised, self.exact()), strict=True)) | {
            "plain": plain,
            "multiple": MULTIPLES[chosen],
            "rho": radius,
        }

    def exact(self) -> float:
        """Choose sigma and C of the exact machine, and score it."""

        def score(at: int, C: float, part: int | None) -> float:
            X, y, X_held, y_held = self.rows(part)
            model = KernelSVC(sigma=MULTIPLES[at] * self.unit, C=C).fit(X, y)
            return float(model.score(X_held, y_held))

        parts = len(self.parts)
        costs: dict[int, float] = {}

        def width(at: int) -> float:
            costs[at], scores = choose(COSTS, lambda C, part: score(at, C, part), parts)
            return max(scores)

        best, _ = climb(width, len(MULTIPLES), FIRST)
        return score(best, costs[best], None)


def picture(bench: Bench) -> Any:
    """Draw the codes of two data sets by t-SNE."""
    from sklearn.manifold import TSNE

    figure, axes = new_figure(2)
    for axis, name in zip(axes[0], ("dna", "usps"), strict=True):
        X, y = load(bench, name)
        rows = stratified(y, bench.pick(1500, 300), np.random.default_rng(0))
        (X,), y = minmax(X[rows]), y[rows]
        codes = KernelAlignment(
            n_components=P,
            n_candidates=CANDIDATES,
            sigma=1.4 * neighbour_distance(X, random_state=0),
            random_state=0,
        ).fit_transform(X, y)
        flat = TSNE(random_state=0, init="pca").fit_transform(codes.astype(np.float32))
        axis.scatter(*flat.T, c=y, cmap="tab10", s=4)
        axis.set(title=f"{name}, {y.size} rows", xticks=[], yticks=[])
    return figure


def run(bench: Bench) -> None:
    """Write the page of 000."""
    bench.open("kernel-alignment")
    page = Page(bench, "000: features optimised by kernel alignment", SOURCE)
    page.heading("Table 2: accuracy")
    page.text(
        "*Paper* / ours: mean ± standard deviation over random stratified 6:4 splits, "
        f"{bench.pick('10, of binaryalpha and usps 3', '1')}, in per cent. "
        f"p = {bench.pick(P, 256)} features; aligned codes are drawn from "
        f"{bench.pick(CANDIDATES, 1024)} candidates. The paper states "
        "neither, nor how σ was chosen. Ours chooses σ, λ, the radius ρ of the chi-square ball and "
        "C in each split on 30 % of its training rows (of small sets several times; of at most "
        f"{SEARCH_ROWS} rows): σ from {', '.join(map(str, MULTIPLES))} times the mean distance to "
        f"the 50th neighbour and λ from {', '.join(f'{p:g}' for p in PENALTIES)} by going up and "
        "down from 1.4 and 0.1 while the accuracy rises. Features are scaled to [-1, 1]; weights "
        f"are full precision, as in the paper, by squared hinge loss and at most {STEPS} steps of "
        "L-BFGS."
    )
    rows, choices, gaps = [], [], []
    for name in bench.pick(tuple(PAPER), ("sonar", "dna")):
        results = [
            bench.measure(f"{name} {seed}", lambda n=name, s=seed: Split(bench, n, s).measure())
            for seed in range(bench.pick(REPEATS.get(name, 10), 1))
        ]
        cells = [
            f"*{theirs}* / {per_cent([r[method] for r in results])}"
            for method, theirs in zip(METHODS, PAPER[name], strict=True)
        ]
        for method, theirs in zip(METHODS, PAPER[name], strict=True):
            gap = beyond(theirs, [r[method] for r in results])
            gaps += [f"{method} on {name} ({gap:+.2f})"] if gap else []
        cells.append(per_cent([r["plain"] for r in results]))
        rows.append((f"{name}, {load(bench, name)[1].size} rows, 6:4", *cells))
        median = [np.median([r[key] for r in results]) for key in ("multiple", "rho")]
        choices.append((name, f"{median[0]:.2g}", f"{median[1]:g}"))
    page.table(("data", *METHODS, "signs of cosines"), rows)
    page.text(
        "The code printed in the paper takes the signs of the cosines without the random threshold "
        "t of its (6): the last column.",
        "Further from the paper than both deviations together (ours minus the paper's, points): "
        f"{', '.join(gaps) or 'none'}.",
    )
    if not bench.quick:
        page.text(*REASONS)
    page.text("Medians chosen; σ of the codes in mean distances to the 50th neighbour:")
    page.table(("data", "σ", "ρ"), choices)
    page.heading("Figure 1: the codes")
    page.figure("codes", picture(bench), "t-SNE of the aligned codes; a colour is a class.")
    page.write()
