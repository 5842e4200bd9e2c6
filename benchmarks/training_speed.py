"""Speed and memory of the learned trainer.

Run with ``python benchmarks/training_speed.py --data DIR [--write FOLDER]``, where DIR holds
``mnist.npz`` and ``covtype.npz``. Measures an epoch of MNIST, the time to 97 % on MNIST against the
time in which ``sklearn.svm.SVC`` fits the same rows, the time to a good model of covtype by the
same call without anything set, and the memory that training needs beside its caller's arrays. The
time of compilation is not counted: a short training comes first. ``--write FOLDER`` leaves
``training-speed.md`` there.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np
from _environment import describe_machine
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from tinykernel import TernaryKernelClassifier
from tinykernel.files import write_bytes_atomically
from tinykernel.integer.ranges import choose_schedules
from tinykernel.training.joint import fit_joint

WANTED = 97.0
_COVTYPE_COMPONENTS = 4096


def peak() -> float:
    """Return the most memory that this process ever used, in MB."""
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes / (2**20 if sys.platform == "darwin" else 2**10)


class Report:
    """A Markdown table that is printed as it grows."""

    def __init__(self) -> None:
        self.lines = [
            "# Speed of training", "",
            f"Written by `python benchmarks/training_speed.py` on {describe_machine()}.", "",
            "| what | measured | limit |", "|---|---:|---:|",
        ]  # fmt: skip
        print("\n".join(self.lines), flush=True)

    def add(self, what: str, measured: str, limit: str = "") -> None:
        """Add a row."""
        self.lines.append(f"| {what} | {measured} | {limit} |")
        print(self.lines[-1], flush=True)


def warm_up() -> None:
    """Compile everything."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 256, (640, 64)).astype(np.uint8), rng.integers(0, 3, 640)
    for storage in ("compact", "phases"):
        TernaryKernelClassifier(n_components=64, storage=storage, epochs=4).fit(X, y)
    for rows in (y, y > 0):
        fit_joint(X, rows, n_components=64, epochs=4, schedules=choose_schedules)


def mnist(report: Report, folder: Path, threads: int) -> None:
    """Measure memory, epochs, and the time to 97 %."""
    with np.load(folder / "mnist.npz", allow_pickle=False) as data:
        X, y, X_test, y_test = (data[k] for k in ("X_train", "y_train", "X_test", "y_test"))
    before, size = peak(), X.size * 4 / 2**20
    fit_joint(X, y, n_components=4096, epochs=1, n_threads=threads, schedules=choose_schedules)
    report.add("MNIST: memory added by training over X in float32",
               f"{peak() - before:.0f} MB over {size:.0f} MB = {(peak() - before) / size:.1f}",
               "4")  # fmt: skip
    for p in (1024, 4096, 16384):
        result = fit_joint(X, y, n_components=p, epochs=4, search=False, n_threads=threads,
                           schedules=choose_schedules)  # fmt: skip
        seconds = [entry["seconds"] for entry in result.history]
        limit = "3 s" if p == 4096 else ""
        report.add(f"MNIST: an epoch, p = {p}", f"{np.mean(seconds):.2f} s", limit)
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
    report.add(f"MNIST: fit with p = 8192 in 10 epochs, search included; test {score:.2f} %",
               f"{seconds:.0f} s")  # fmt: skip
    report.add(f"sklearn.svm.SVC(kernel='rbf') on the same rows, fit alone; test {other:.2f} % of "
               "2000", f"{reference:.0f} s")  # fmt: skip
    share = f"{seconds / reference:.2f}" if score >= WANTED else "not reached"
    report.add(f"MNIST: time to {WANTED:.0f} % over that of SVC", share, "0.20")


def covtype(report: Report, folder: Path, threads: int) -> None:
    """Measure the time of a whole fit, with the search of hyper-parameters."""
    with np.load(folder / "covtype.npz", allow_pickle=False) as data:
        parts = train_test_split(
            data["X"], data["y"], test_size=0.2, stratify=data["y"], random_state=0
        )
    X, X_test, y, y_test = parts
    before, size = peak(), X.size * 4 / 2**20
    begin = time.perf_counter()
    model = TernaryKernelClassifier(
        n_components=_COVTYPE_COMPONENTS, storage="phases", random_state=0, n_jobs=threads
    ).fit(X, y)
    seconds = time.perf_counter() - begin
    score = 100 * np.mean(model.quantize().predict(X_test) == y_test)
    report.add(f"covtype, {len(y)} rows: fit with p = {_COVTYPE_COMPONENTS}, search included; test "
               f"{score:.2f} %", f"{seconds:.0f} s", "300 s")  # fmt: skip
    report.add("covtype: memory added over X in float32",
               f"{max(0, peak() - before):.0f} MB over {size:.0f} MB", "4")  # fmt: skip


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    folder = os.environ.get("TINYKERNEL_DATA")
    parser.add_argument("--data", type=Path, default=folder, required=folder is None)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--write", type=Path, help="a folder for the page")
    arguments = parser.parse_args()
    report = Report()
    warm_up()
    # The smaller set first: the peak of the memory of a process never falls.
    covtype(report, arguments.data, arguments.threads)
    mnist(report, arguments.data, arguments.threads)
    if arguments.write is not None:
        arguments.write.mkdir(parents=True, exist_ok=True)
        text = "\n".join(report.lines) + "\n"
        write_bytes_atomically(arguments.write / "training-speed.md", text.encode())


if __name__ == "__main__":
    main()
