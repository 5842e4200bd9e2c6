"""000, Zhang 2022: features optimised by kernel alignment."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.manifold import TSNE
from sklearn.model_selection import train_test_split

from benchmarks._data import Data, load
from benchmarks.papers.common import Run, beside, choose, exact, scaled, score, svm_on, table
from tinykernel.papers.maps import BinaryCodes, Fastfood, KernelAlignment, SpectralFeatures

PAPER = {
    "sonar": (82.89, 80.84, 83.49, 82.05),
    "dna": (93.48, 91.84, 93.62, 94.25),
    "binaryalpha": (68.79, 66.69, 70.07, 70.89),
    "usps": (96.54, 95.36, 95.73, 96.44),
}
DRAWS = {"sonar": (10, 3), "dna": (3, 1), "binaryalpha": (2, 1), "usps": (1, 1)}


def split(run: Run, name: str, seed: int) -> Data:
    """Split the rows that the paper has 6:4."""
    part = load(run.data, name)[0]
    X, y = part.X, part.y
    if name not in ("dna", "usps"):  # of these 000 has the official training part
        X, y = np.vstack([X, part.X_test]), np.concatenate([y, part.y_test])
    if run.quick:
        X, y = X[:1500], y[:1500]
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=seed)
    return scaled(Data(X, y, X_test, y_test))


def results(run: Run) -> dict[str, Any]:
    """Return what the page shows."""
    p, n = run.pick((4096, 8192), (256, 512))
    few = run.pick(1000, 500)

    def systems(sigma: float, seed: int) -> dict[str, Any]:
        how = {"n_components": p, "sigma": sigma, "random_state": seed}
        aligned = KernelAlignment(n_candidates=n, **how)
        return {
            "RFF": SpectralFeatures(**how),
            "RM-BCSIK": BinaryCodes(Fastfood(**how), random_state=seed),
            "aligned codes": BinaryCodes(aligned, random_state=seed),
            "exact": None,
            "signs of cosines": BinaryCodes(aligned, threshold="zero", random_state=seed),
        }

    rows, codes = [], {}
    for name, papers in PAPER.items():
        first, Cs = split(run, name, 0), (0.3, 3.0)
        sigma, C = choose(lambda s, c: svm_on(systems(s, 0)["RM-BCSIK"], c), first, Cs, few)
        by_kernel = choose(exact, first, (1.0, 10.0), 1000)
        columns: dict[str, list[float]] = {}
        for seed in range(run.pick(*DRAWS[name])):
            data = split(run, name, seed)
            for system, map in systems(sigma, seed).items():
                model = exact(*by_kernel) if map is None else svm_on(map, C)
                columns.setdefault(system, []).append(score(model, data))
        size = f"{name}, {len(first.y) + len(first.y_test)} rows"
        every = zip(columns.values(), (*papers, None), strict=True)
        rows.append((size, *(beside(paper, values) for values, paper in every)))
        if name in ("dna", "usps"):
            map = systems(sigma, 0)["aligned codes"].fit(first.X, first.y)
            codes[name] = map.transform(first.X_test[:600]), first.y_test[:600]
    _, axes = plt.subplots(1, 2, figsize=(9, 4))
    for ax, (name, (Z, y)) in zip(axes, codes.items(), strict=True):
        at = TSNE(random_state=0).fit_transform(Z.astype(float))
        ax.scatter(*at.T, c=y, s=5, cmap="tab10")
        ax.set(title=name, xticks=[], yticks=[])
    text = "t-SNE of the aligned codes; a colour is a class."
    return {
        **{"p": p, "n": n, "few": few},
        "draws": ", ".join(f"{name} {run.pick(*DRAWS[name])}" for name in PAPER),
        "accuracy": table(("data", *(f"{name} + SVM" for name in columns)), rows),
        "codes": run.picture("kernel-alignment", text),
    }
