"""Speed and memory of the learned trainer.

Run with ``python benchmarks/training_speed.py --data DIR [--write FOLDER]``, where DIR holds
``mnist.npz`` and ``covtype.npz``. Measures an epoch of MNIST, the time to 97 % on MNIST against the
time in which ``sklearn.svm.SVC`` fits the same rows, the time to a good model of covtype by the
same call without anything set, and the memory that training needs beside its caller's arrays, for
each data set in a process of its own. The time of compilation is not counted: a short training
comes first. ``--write FOLDER`` leaves ``training-speed.md`` there. Ends with status 1 when a figure
misses its limit.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from _environment import describe_machine
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from tinykernel import TernaryKernelClassifier
from tinykernel.files import write_bytes_atomically
from tinykernel.kinds import Problem
from tinykernel.kinds.components import ComponentsKind
from tinykernel.training.options import TrainerOptions
from tinykernel.training.trainset import prepare

WANTED = 97.0
# Most of each: memory over X in float32, seconds of an epoch with p = 4096, time over that of SVC,
# seconds for covtype.
MEMORY_LIMIT, EPOCH_LIMIT, SVC_LIMIT, COVTYPE_LIMIT = 4.0, 3.0, 0.20, 300.0
_COVTYPE_COMPONENTS = 4096


def peak() -> float:
    """Return the most memory that this process ever used, in MB."""
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes / (2**20 if sys.platform == "darwin" else 2**10)


def resident() -> float:
    """Return the memory that this process uses now, in MB; its peak where that is not known."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
    except OSError:
        return peak()
    return pages * resource.getpagesize() / 2**20


Add = Callable[..., None]


class Report:
    """A Markdown table that is printed as it grows."""

    def __init__(self) -> None:
        self.missed: list[str] = []
        self.lines = [
            "# Speed of training",
            "",
            "Training takes seconds to minutes on two cores, and twice the memory of the data. "
            f"Repeat it with `python benchmarks/training_speed.py`; this was {describe_machine()}.",
            "",
            "| what | measured | limit |",
            "|---|---:|---:|",
        ]
        print("\n".join(self.lines), flush=True)

    def add(self, what: str, measured: str, limit: str = "", held: bool = True) -> None:
        """Add a row; `held` tells whether it keeps to its limit."""
        if not held:
            self.missed.append(f"{what}: {measured}, the limit is {limit}")
        self.lines.append(f"| {what} | {measured} | {limit} |")
        print(self.lines[-1], flush=True)


def add_memory(add: Add, name: str, before: float, X: np.ndarray) -> None:
    """Add the row of the memory that was added since `before`."""
    added, size = max(0.0, peak() - before), X.size * 4 / 2**20
    add(
        f"{name}: memory added by training over X in float32",
        f"{added:.0f} MB over {size:.0f} MB = {added / size:.1f}",
        f"{MEMORY_LIMIT:g}",
        added <= MEMORY_LIMIT * size,
    )


def warm_up() -> None:
    """Compile everything."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 256, (640, 64)).astype(np.uint8), rng.integers(0, 3, 640)
    for layout in ("compact", "windows"):
        TernaryKernelClassifier(n_components=64, layout=layout, epochs=4).fit(X, y)
    for rows in (y, y > 0):
        TernaryKernelClassifier(n_components=64, epochs=4).fit(X, rows)


def mnist(add: Add, folder: Path, threads: int) -> None:
    """Measure memory, epochs, and the time to 97 %."""
    with np.load(folder / "mnist.npz", allow_pickle=False) as data:
        X, y, X_test, y_test = (data[k] for k in ("X_train", "y_train", "X_test", "y_test"))
    before = resident()
    TernaryKernelClassifier(n_components=4096, epochs=1, n_jobs=threads).fit(X, y)
    add_memory(add, "MNIST", before, X)
    for p in (1024, 4096, 16384):
        told = TrainerOptions(n_components=p, epochs=4, effort="quick", n_jobs=threads)
        problem, kind = Problem(prepare(X, y)[1], told), ComponentsKind()
        result = kind.fit(kind.specs(problem)[0], problem)
        epoch = float(np.mean([entry["seconds"] for entry in result.history.epochs]))
        limited = p == 4096
        limit = f"{EPOCH_LIMIT:g} s" if limited else ""
        held = not limited or epoch <= EPOCH_LIMIT
        add(f"MNIST: an epoch, p = {p}", f"{epoch:.2f} s", limit, held)
    begin = time.perf_counter()
    model = TernaryKernelClassifier(
        n_components=8192, epochs=10, sigma=None, random_state=0, n_jobs=threads
    ).fit(X, y)
    seconds = time.perf_counter() - begin
    score = 100 * np.mean(model.quantize().predict(X_test) == y_test)
    begin = time.perf_counter()
    svm = SVC(kernel="rbf", C=10, gamma=0.02, cache_size=1000).fit(X / np.float32(255), y)
    reference = time.perf_counter() - begin
    other = 100 * svm.score(X_test[:2000] / np.float32(255), y_test[:2000])
    add(
        f"MNIST: fit with p = 8192 in 10 epochs, search included; test {score:.2f} %",
        f"{seconds:.0f} s",
    )
    add(
        f"sklearn.svm.SVC(kernel='rbf') on the same rows, fit alone; test {other:.2f} % of 2000",
        f"{reference:.0f} s",
    )
    share = f"{seconds / reference:.2f}" if score >= WANTED else "not reached"
    add(
        f"MNIST: time to {WANTED:.0f} % over that of SVC",
        share,
        f"{SVC_LIMIT:.2f}",
        bool(score >= WANTED and seconds <= SVC_LIMIT * reference),
    )


def covtype(add: Add, folder: Path, threads: int) -> None:
    """Measure the time of a whole fit, with the search of hyper-parameters."""
    with np.load(folder / "covtype.npz", allow_pickle=False) as data:
        parts = train_test_split(
            data["X"], data["y"], test_size=0.2, stratify=data["y"], random_state=0
        )
    X, X_test, y, y_test = parts
    before = resident()
    begin = time.perf_counter()
    model = TernaryKernelClassifier(
        n_components=_COVTYPE_COMPONENTS, layout="windows", random_state=0, n_jobs=threads
    ).fit(X, y)
    seconds = time.perf_counter() - begin
    add_memory(add, "covtype", before, X)
    score = 100 * np.mean(model.quantize().predict(X_test) == y_test)
    add(
        f"covtype, {len(y)} rows: fit with p = {_COVTYPE_COMPONENTS}, search included; test "
        f"{score:.2f} %",
        f"{seconds:.0f} s",
        f"{COVTYPE_LIMIT:g} s",
        seconds <= COVTYPE_LIMIT,
    )


_SETS = {"covtype": covtype, "mnist": mnist}


def measure_alone(name: str, folder: Path, threads: int) -> None:
    """Measure one data set in this process; print each row as a line of JSON."""
    warm_up()
    _SETS[name](lambda *row: print(json.dumps(row), flush=True), folder, threads)


def measure_apart(name: str, report: Report, folder: Path, threads: int) -> None:
    """Measure one data set in a fresh process: the peak of the memory of a process never falls."""
    command = [sys.executable, __file__, "--data", str(folder), "--threads", str(threads)]
    with subprocess.Popen([*command, "--only", name], stdout=subprocess.PIPE, text=True) as child:
        for line in child.stdout:
            report.add(*json.loads(line))
    if child.returncode:
        raise SystemExit(f"{name}: ended with status {child.returncode}")


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    folder = os.environ.get("TINYKERNEL_DATA")
    parser.add_argument("--data", type=Path, default=folder, required=folder is None)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--write", type=Path, help="a folder for the page")
    parser.add_argument("--only", choices=tuple(_SETS), help="one data set, rows as JSON")
    arguments = parser.parse_args()
    if arguments.only is not None:
        measure_alone(arguments.only, arguments.data, arguments.threads)
        return 0
    report = Report()
    for name in _SETS:
        measure_apart(name, report, arguments.data, arguments.threads)
    if arguments.write is not None:
        arguments.write.mkdir(parents=True, exist_ok=True)
        text = "\n".join(report.lines) + "\n"
        write_bytes_atomically(arguments.write / "training-speed.md", text.encode())
    for line in report.missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if report.missed else 0


if __name__ == "__main__":
    sys.exit(main())
