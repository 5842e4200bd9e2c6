"""Speed of the joint trainer: an epoch of MNIST, and time to an accuracy against an RBF SVM.

Run with ``python benchmarks/training_speed.py --data DIR``, where DIR holds ``mnist.npz`` (X_train,
y_train, X_test, y_test); prints a Markdown table. The time of compilation is not counted: one short
training comes first. ``--svm`` also fits ``sklearn.svm.SVC`` to the same rows, which takes minutes.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from pathlib import Path

import numpy as np

from tinykernel.training.joint import fit_joint


def accuracy(machine: object, X: np.ndarray, y: np.ndarray) -> float:
    """Return the share of rows labelled right."""
    return float(np.mean(machine.decision_function(X).argmax(axis=1) == y))


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--svm", action="store_true")
    arguments = parser.parse_args()
    with np.load(arguments.data / "mnist.npz", allow_pickle=False) as data:
        X, y, X_test, y_test = (data[k] for k in ("X_train", "y_train", "X_test", "y_test"))
    fit_joint(X[:512], y[:512], n_components=1024, epochs=1, search=False)
    print(f"{platform.machine()}, {arguments.threads} threads, numpy {np.__version__}\n")
    print("| what | seconds | test accuracy |")
    print("|---|---:|---:|")
    for p in (1024, 4096, 16384):
        begin = time.perf_counter()
        result = fit_joint(X, y, n_components=p, epochs=arguments.epochs, search=False,
                           n_threads=arguments.threads)  # fmt: skip
        seconds = time.perf_counter() - begin
        epoch = min(entry["seconds"] for entry in result.history)
        print(f"| an epoch, p = {p} | {epoch:.2f} | |")
        score = accuracy(result.machine, X_test, y_test)
        print(f"| {arguments.epochs} epochs, p = {p} | {seconds:.1f} | {100 * score:.2f} % |")
    if arguments.svm:
        from sklearn.svm import SVC

        begin = time.perf_counter()
        svm = SVC(kernel="rbf", C=10, gamma=0.02, cache_size=1000).fit(X / 255.0, y)
        seconds = time.perf_counter() - begin
        score = svm.score(X_test / 255.0, y_test)
        print(f"| sklearn.svm.SVC, fit only | {seconds:.1f} | {100 * score:.2f} % |")


if __name__ == "__main__":
    main()
