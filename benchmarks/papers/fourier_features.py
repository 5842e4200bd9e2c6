"""002, Qi 2020: two moons by random Fourier features."""

from functools import partial
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from benchmarks.papers.common import Run, draw_regions, spread, table
from tinykernel.papers.maps import SpectralFeatures


def gaussian(w: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the logarithm of the Gaussian density, with the square that 002 lacks."""
    return -0.5 * np.sum(w**2, axis=1)


def cauchy(w: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the logarithm of the product of Cauchy densities."""
    return -np.sum(np.log1p(w**2), axis=1)


def printed(w: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the logarithm of the "Gaussian" density as 002 prints it."""
    return -0.5 * np.linalg.norm(w, axis=1)


def results(run: Run) -> dict[str, Any]:
    """Return what the page shows."""
    draws, features = run.pick(10, 3), partial(SpectralFeatures, n_components=500)
    how = {
        "Gaussian kernel, exact": SVC(C=10, gamma=0.5),
        "Laplacian kernel, exact": SVC(C=10, kernel=laplacian_kernel),
        "Gaussian features": features(),
        "Gaussian features, Metropolis-Hastings": features(log_density=gaussian),
        "Laplacian features": features(kernel="laplacian"),
        "Laplacian features, Metropolis-Hastings": features(log_density=cauchy),
        "the density as printed": features(log_density=printed),
    }
    rows, models = [], {}
    for name, kind in how.items():
        scores, errors, rates = [], [], []
        for seed in range(draws):
            X, y = make_moons(2000, noise=0.3, random_state=seed)
            X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)
            model = kind
            if isinstance(kind, SpectralFeatures):
                kind.set_params(random_state=seed)
                model = make_pipeline(kind, SVC(C=10, kernel="linear"))
            models[name] = model.fit(X, y)
            scores.append(100 * model.score(X_test, y_test))
            if isinstance(kind, SpectralFeatures) and name != "the density as printed":
                Z, few = kind.transform(X[:300]), X[:300]
                is_gaussian = name.startswith("Gaussian")
                K = rbf_kernel(few, gamma=0.5) if is_gaussian else laplacian_kernel(few, gamma=1)
                errors.append(np.sqrt(np.mean((K - Z @ Z.T) ** 2)))
            if isinstance(kind, SpectralFeatures) and kind.log_density is not None:
                rates.append(kind.acceptance_rate_)
        mean = f"{np.mean(errors):.4f}" if errors else ""
        rows.append((name, spread(scores), mean, f"{np.mean(rates):.2f}" if rates else ""))
    _, axes = plt.subplots(1, 2, figsize=(9, 4))
    for ax, name in zip(axes, ("Gaussian kernel, exact", "Gaussian features"), strict=True):
        draw_regions(ax, models[name], (-2, 3), (-1.6, 2.1))
        ax.scatter(*X.T, c=y, s=2, cmap="coolwarm")
        svm = models[name] if isinstance(models[name], SVC) else models[name][-1]
        ax.scatter(*X[svm.support_].T, marker="x", s=6, color="black")
        ax.set_title(f"{name}: {len(svm.support_)} support vectors")
    text = "Two moons: regions and support vectors (crosses)."
    head = ("method", "accuracy", "error of the kernel", "acceptance rate")
    return {
        "draws": draws,
        "methods": table(head, rows),
        "regions": run.picture("fourier-features", text),
    }
