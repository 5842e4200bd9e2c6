"""Rows, widths, choices, tables and pictures of the papers' benchmarks."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC, LinearSVC

from benchmarks._data import Data, load

matplotlib.use("Agg")
import matplotlib.pyplot as plt

#: Widths that are tried, over the mean distance to the 50th neighbour.
WIDTHS = (0.7, 1.0, 1.4, 2.0)


@dataclass(frozen=True)
class Run:
    """One run of the benchmark: where data and pages are, and whether it is the short one."""

    data: Path
    folder: Path
    quick: bool

    def pick(self, full: Any, quick: Any) -> Any:
        """Return the size of the full or of the quick run."""
        return quick if self.quick else full

    def split(self, name: str, n_train: int, n_test: int = 10_000) -> Data:
        """Load a split with inputs in [-1, 1] and so many random rows at most."""
        return scaled(cut(load(self.data, name)[0], n_train, n_test))

    def picture(self, name: str, text: str) -> str:
        """Save the current figure, and return the Markdown that shows it."""
        plt.tight_layout()
        plt.savefig(self.folder / f"{name}.png", dpi=110, metadata={"Software": None})
        plt.close("all")
        return f"![{text}]({name}.png)\n\n*{text}*"


def cut(data: Data, n_train: int, n_test: int) -> Data:
    """Keep random rows, seed 0."""
    rng = np.random.default_rng(0)
    train = rng.permutation(len(data.y))[:n_train]
    test = rng.permutation(len(data.y_test))[:n_test]
    return Data(data.X[train], data.y[train], data.X_test[test], data.y_test[test])


def scaled(data: Data) -> Data:
    """Scale inputs to [-1, 1] by the range of the training rows, as 001 does."""
    low, high = data.X.min(axis=0).astype(np.float32), data.X.max(axis=0).astype(np.float32)
    span = np.where(high > low, high - low, 1)

    def scale(X: NDArray[Any]) -> NDArray[np.float32]:
        return np.asarray(2 * (X.astype(np.float32) - low) / span - 1, dtype=np.float32)

    return Data(scale(data.X), data.y, scale(data.X_test), data.y_test)


def neighbour_distance(X: NDArray[Any]) -> float:
    """Return the mean distance to the 50th neighbour among 1000 rows (004, section 7)."""
    few = X[:1000]
    distances = NearestNeighbors(n_neighbors=min(51, len(few))).fit(few).kneighbors(few)[0]
    return float(distances[:, -1].mean())


def svm_on(map: Any, C: float) -> Any:
    """Put a linear SVM on a map; codes get the norm of cosines, so that C means the same."""
    unit = FunctionTransformer(lambda Z: Z / np.sqrt(Z.shape[1]) if Z.dtype == np.int8 else Z)
    return make_pipeline(map, unit, LinearSVC(C=C, tol=1e-2, max_iter=200, random_state=0))


def choose(
    make: Callable[[float, float], Any], data: Data, Cs: Sequence[float], n: int = 1500
) -> tuple[float, float]:
    """Return the width and C that are best on a third of a few training rows."""
    X, X_out, y, y_out = train_test_split(data.X[:n], data.y[:n], test_size=1 / 3, random_state=0)
    base = neighbour_distance(data.X)
    trials = [(width * base, C) for width in WIDTHS for C in Cs]
    scores = [make(*trial).fit(X, y).score(X_out, y_out) for trial in trials]
    return trials[int(np.argmax(scores))]


def exact(sigma: float, C: float) -> SVC:
    """Make the exact Gaussian SVM, whose width is sigma."""
    return SVC(C=C, gamma=1 / (2 * sigma**2))


def score(model: Any, data: Data) -> float:
    """Train, and return the accuracy on the test rows in percent."""
    return 100 * float(model.fit(data.X, data.y).score(data.X_test, data.y_test))


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result, and the processor seconds it took."""
    started = time.process_time()
    return function(), time.process_time() - started


def spread(values: Sequence[float]) -> str:
    """Write mean and standard deviation."""
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return f"{np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}"


def beside(paper: float | None, values: Sequence[float]) -> str:
    """Write paper / ours / difference."""
    if paper is None:
        return f"- / {spread(values)} / -"
    return f"*{paper:.2f}* / {spread(values)} / {np.mean(values) - paper:+.2f}"


def table(head: Sequence[Any], rows: Sequence[Sequence[Any]]) -> str:
    """Write a table as Markdown."""
    first, *more = (f"| {' | '.join(map(str, row))} |" for row in (head, *rows))
    return "\n".join([first, f"|---|{'---:|' * (len(head) - 1)}", *more])


def draw_regions(axes: Any, model: Any, x: Sequence[float], y: Sequence[float]) -> None:
    """Draw where a classifier of points says what, between the ends of x and of y."""
    at = np.stack(np.meshgrid(np.linspace(*x, 200), np.linspace(*y, 200)), axis=-1)
    values = model.decision_function(at.reshape(-1, 2)).reshape(200, 200)
    axes.contourf(at[..., 0], at[..., 1], values > 0, alpha=0.3, cmap="coolwarm")


def curves(
    axes: Any, rows: Sequence[Sequence[Any]], at: Sequence[float], title: str, x: str, y: str
) -> None:
    """Draw rows of a name and values against the numbers `at`; a single value is a level."""
    for name, *values in rows:
        points = [(k, v) for k, v in zip(at, values, strict=False) if v is not None]
        if len(points) == 1:
            axes.axhline(points[0][1], label=name, linestyle=":", color="grey")
        else:
            axes.plot(*zip(*points, strict=True), marker="o", label=name)
    axes.set(title=title, xlabel=x, ylabel=y, xscale="log")
    axes.legend(fontsize=7)
