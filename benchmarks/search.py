"""The search of hyper-parameters: its time against that of the training, and what it is worth.

Run with ``python benchmarks/search.py --data DIR [--sets digits,wine] [--write FILE]``, where DIR
holds ``usps.npz`` and ``har.npz``. Trains with a budget of 8 KB on five sets, for each seed and
each effort: "quick" (usual values), "normal" (a race), "thorough" (long trials). A short training
comes first, so that no compilation is counted. ``--epochs`` makes the training, and with it the
race, shorter; what was run is written into the page.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _environment import describe_machine
from sklearn import datasets
from sklearn.model_selection import train_test_split

from tinykernel import progress, train
from tinykernel.files import write_bytes_atomically
from tinykernel.training.options import EFFORTS

BUDGET = "8KB"
SETS = ("digits", "breast_cancer", "wine", "usps", "har")


def split(name: str, folder: Path | None, seed: int) -> tuple[Any, Any, Any, Any]:
    """Return rows and labels to train and to test; what we draw depends on the seed."""
    if name in ("usps", "har"):
        if folder is None:
            raise SystemExit(f"{name}: give the folder of {name}.npz as --data")
        with np.load(folder / f"{name}.npz") as found:
            return tuple(found[key] for key in ("X_train", "X_test", "y_train", "y_test"))
    load: Callable[..., Any] = getattr(datasets, f"load_{name}")
    X, y = load(return_X_y=True)
    X = X.astype(np.uint8 if name == "digits" else np.float32)
    return tuple(train_test_split(X, y, test_size=0.25, stratify=y, random_state=seed))


def run(rows: tuple[Any, Any, Any, Any], effort: str, seed: int, **given: Any) -> dict[str, float]:
    """Train once; return the seconds of search and training, and the accuracy in integers."""
    X_train, X_test, y_train, y_test = rows
    seen: dict[str, list[float]] = {}

    def note(message: progress.Progress) -> None:
        kind = "search" if message.stage.startswith("choosing") else message.stage
        seen.setdefault(kind, []).append(time.perf_counter())

    with progress.observing(note):
        found = train(X_train, y_train, budget=BUDGET, random_state=seed, effort=effort, **given)
    times = seen.get("search", [0.0])
    end = times[-1] if len(times) > 1 else seen["training"][0]
    return {
        "search": times[-1] - times[0],
        "training": seen["training"][-1] - end,
        "trials": len(found.classifier.trials_),
        "accuracy": float((found.model.predict(X_test) == y_test).mean()),
    }


def main() -> None:
    """Print a line a set and effort, and the mean over the sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--efforts", default=",".join(EFFORTS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--write", type=Path, help="page to write, e.g. docs/results/search.md")
    arguments = parser.parse_args()
    given = {} if arguments.epochs is None else {"epochs": arguments.epochs}
    command = f"python benchmarks/search.py --sets {arguments.sets} --seeds {arguments.seeds}"
    command += "" if arguments.epochs is None else f" --epochs {arguments.epochs}"
    lines = [
        "# The search of hyper-parameters", "",
        f"Written by `{command}` on {describe_machine()}. Budget {BUDGET} on cortex-m4, means of "
        f"{arguments.seeds} seeds; accuracy on test rows, in integers, with its range over seeds.",
        "", "| set | effort | trials | search | training | search / training | accuracy |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    print("\n".join(lines), flush=True)
    warm = split("wine", None, 0)
    run(warm, "normal", 0, epochs=2)
    means: dict[str, list[float]] = {}
    for name in arguments.sets.split(","):
        for effort in arguments.efforts.split(","):
            found = [run(split(name, arguments.data, seed), effort, seed, **given)
                     for seed in range(arguments.seeds)]  # fmt: skip
            mean = {key: float(np.mean([each[key] for each in found])) for key in found[0]}
            each = [100 * one["accuracy"] for one in found]
            means.setdefault(effort, []).append(100 * mean["accuracy"])
            lines.append(
                f"| {name} | {effort} | {mean['trials']:.0f} | {mean['search']:.1f} s | "
                f"{mean['training']:.1f} s | {mean['search'] / mean['training']:.2f} | "
                f"{np.mean(each):.2f} % ({min(each):.2f} to {max(each):.2f}) |"
            )
            print(lines[-1], flush=True)
    lines += ["", *(f"Mean accuracy, {effort}: {np.mean(found):.2f} %."
                    for effort, found in means.items())]  # fmt: skip
    print("\n".join(lines[-len(means) :]))
    if arguments.write is not None:
        write_bytes_atomically(arguments.write, ("\n".join(lines) + "\n").encode())


if __name__ == "__main__":
    main()
