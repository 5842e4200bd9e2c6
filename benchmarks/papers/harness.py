"""What all papers share: data, splits, remembered numbers, Markdown pages and figures."""

from __future__ import annotations

import io
import json
import platform
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numba
import numpy as np

from tinykernel.files import write_bytes_atomically

__all__ = [
    "Bench",
    "Data",
    "Page",
    "climb",
    "per_cent",
    "split_rows",
    "stratified",
]


@dataclass(frozen=True)
class Data:
    """A data set in two parts, float32, scaled to [-1, 1] by the range of the training rows."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    split: str

    def cut(self, n_rows: int, seed: int = 0) -> Data:
        """Return the same with some random rows of the training part, if there are more."""
        if self.y.size <= n_rows:
            return self
        rows = stratified(self.y, n_rows, np.random.default_rng(seed))
        rows = np.random.default_rng(seed).permutation(rows)
        split = f"{self.split} ({n_rows} of them used)"
        return replace(self, X=self.X[rows], y=self.y[rows], split=split)

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def n_classes(self) -> int:
        return int(np.unique(self.y).size)


def minmax(X: np.ndarray, *others: np.ndarray) -> list[np.ndarray]:
    """Scale features to [-1, 1] by the range in `X`; constant ones to 0 (Lei & Lan 2021, 3.1)."""
    low, high = X.min(axis=0).astype(np.float32), X.max(axis=0).astype(np.float32)
    span = np.where(high > low, high - low, np.inf).astype(np.float32)
    centre = (low + high) / 2
    return [2 * (part.astype(np.float32) - centre) / span for part in (X, *others)]


def stratified(y: np.ndarray, n_wanted: int, rng: np.random.Generator) -> np.ndarray:
    """Choose `n_wanted` random rows, of every class in proportion."""
    if y.size <= n_wanted:
        return np.arange(y.size)
    order = rng.permutation(y.size)
    counts = np.unique(y, return_counts=True)[1]
    by_class = order[np.argsort(y[order], kind="stable")]
    first = np.repeat(np.cumsum(counts) - counts, counts)
    rank = (np.arange(y.size) - first) / np.repeat(counts, counts)
    return np.sort(by_class[np.argsort(rank, kind="stable")[:n_wanted]])


def split_rows(
    y: np.ndarray, share: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Split rows at random, of every class in proportion; return training and test rows."""
    train = stratified(y, round(share * y.size), rng)
    return train, np.setdiff1d(np.arange(y.size), train)


@dataclass
class Bench:
    """One run: where data comes from and results go, and what is already known.

    Numbers are kept in ``<out>/numbers/<paper>.json`` as soon as they are measured, so that a run
    that was interrupted goes on, and pages can be written again without measuring.
    """

    data: Path
    out: Path
    quick: bool
    fresh: bool = False
    paper: str = ""
    known: dict[str, Any] = field(default_factory=dict)

    def open(self, paper: str) -> None:
        """Begin a paper."""
        self.paper = paper
        self.known = {}
        if self._path().exists() and not self.fresh:
            self.known = json.loads(self._path().read_text(encoding="utf-8"))

    def _path(self) -> Path:
        return self.out / "numbers" / f"{self.paper}.json"

    def measure(self, key: str, function: Callable[[], Any]) -> Any:
        """Return the remembered result under `key`, or compute it and remember it."""
        if key not in self.known:
            begin = time.process_time()
            value = function()
            seconds = round(time.process_time() - begin, 2)
            self.known[key] = {"value": value, "seconds": seconds}
            self._path().parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(self.known, indent=1, sort_keys=True) + "\n"
            write_bytes_atomically(self._path(), text.encode())
            print(f"  {self.paper} {key}: {seconds:.1f} s of processor time", flush=True)
        return self.known[key]["value"]

    @property
    def seconds(self) -> float:
        """Processor time that all numbers of this paper took."""
        return float(sum(entry["seconds"] for entry in self.known.values()))

    def pick(self, full: Any, quick: Any) -> Any:
        """Return one of two settings."""
        return quick if self.quick else full

    # --- data -----------------------------------------------------------------------------------

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        """Load a file as it is."""
        with np.load(self.data / f"{name}.npz", allow_pickle=False) as file:
            return {key: file[key] for key in file.files}

    def load(self, name: str, train_share: float | int = 0.8) -> Data:
        """Load a data set with its official split, or a random one by seed 0.

        In quick mode 800 rows to train and 400 to test are kept.
        """
        file = self.arrays(name)
        rng = np.random.default_rng(0)
        if "X_train" in file:
            X, y, X_test, y_test = (file[k] for k in ("X_train", "y_train", "X_test", "y_test"))
            split = "official"
        else:
            share = train_share if train_share < 1 else train_share / file["y"].size
            train, test = split_rows(file["y"], share, rng)
            X, y, X_test, y_test = (
                a[rows] for rows in (train, test) for a in (file["X"], file["y"])
            )
            split = "random, stratified, seed 0"
        if self.quick:
            train, test = stratified(y, 800, rng), stratified(y_test, 400, rng)
            X, y, X_test, y_test = X[train], y[train], X_test[test], y_test[test]
            split += ", cut"
        order = rng.permutation(y.size)
        X, X_test = minmax(X[order], X_test)
        return Data(name, X, y[order], X_test, y_test, f"{split}, {y.size}/{y_test.size}")


def climb(score: Callable[[int], float], n_points: int, start: int) -> tuple[int, dict[int, float]]:
    """Go up, then down, from a point of a grid while the score rises; return best and scores."""
    known = {start: score(start)}
    best = start
    for step in (1, -1):
        while 0 <= best + step < n_points:
            if best + step not in known:
                known[best + step] = score(best + step)
            if known[best + step] <= known[best]:
                break
            best += step
    return best, known


def per_cent(shares: Iterable[float] | float) -> str:
    """Write accuracies in per cent: mean and, of several, standard deviation."""
    values = 100 * np.atleast_1d(np.asarray(shares, dtype=np.float64))
    if values.size == 1:
        return f"{values[0]:.2f}"
    return f"{values.mean():.2f} ± {values.std(ddof=1):.2f}"


class Page:
    """A Markdown page that is built up part by part."""

    def __init__(self, bench: Bench, title: str, source: str) -> None:
        self.bench = bench
        self.lines = [f"# {title}", "", source, ""]
        if bench.quick:
            self.lines += [
                "**Quick run: few rows, small grids. It checks that everything works; the numbers "
                "are not results.**",
                "",
            ]

    def heading(self, text: str) -> None:
        self.lines += [f"## {text}", ""]

    def text(self, *paragraphs: str) -> None:
        for paragraph in paragraphs:
            self.lines += [paragraph, ""]

    def table(self, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        self.lines.append("| " + " | ".join(header) + " |")
        self.lines.append("|---" + "|---:" * (len(header) - 1) + "|")
        self.lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
        self.lines.append("")

    def figure(self, name: str, figure: Any, caption: str) -> None:
        """Write a figure beside the page and show it."""
        buffer = io.BytesIO()
        # Without the version of matplotlib in it the file depends on the figure only.
        figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
        file = f"{self.bench.paper}-{name}.png"
        write_bytes_atomically(self.bench.out / file, buffer.getvalue())
        import matplotlib.pyplot as plt

        plt.close(figure)
        self.lines += [f"![{caption}]({file})", "", f"*{caption}*", ""]

    def write(self) -> None:
        """Write the page."""
        minutes = self.bench.seconds / 60
        option = " --quick" if self.bench.quick else ""
        machine = self.bench.measure("machine", machine_name)
        self.heading("How to repeat")
        self.text(
            f"`python -m benchmarks.papers {self.bench.paper} --data DIR{option}`; the "
            f"measurements took {minutes:.1f} minutes of processor time ({machine}). Every "
            f"number is in [numbers/{self.bench.paper}.json](numbers/{self.bench.paper}.json)."
        )
        text = "\n".join(self.lines).rstrip() + "\n"
        self.bench.out.mkdir(parents=True, exist_ok=True)
        write_bytes_atomically(self.bench.out / f"{self.bench.paper}.md", text.encode())


def machine_name() -> str:
    """Name the processor and how many threads are used."""
    name = platform.processor() or platform.machine()
    known = Path("/proc/cpuinfo")
    if known.exists():
        found = re.search(r"^model name\s*: (.*)$", known.read_text(encoding="utf-8"), re.MULTILINE)
        name = found[1] if found else name
    n_threads = numba.get_num_threads()
    return f"{name}, {n_threads} {'thread' if n_threads == 1 else 'threads'}"


def new_figure(columns: int = 1, rows: int = 1, width: float = 4.6, height: float = 3.5) -> Any:
    """Return a figure and its axes, an array, in one look."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt.subplots(
        rows,
        columns,
        figsize=(width * columns, height * rows),
        layout="constrained",
        squeeze=False,
    )
