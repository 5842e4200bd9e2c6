"""What each part of the learned trainer gives: accuracy with one thing changed at a time.

Run with ``python benchmarks/ablation.py --data DIR [--names mnist,usps]
[--variants format,noise] [--write FOLDER]``. Rows
held out of the training part are scored (whole groups where the file has groups), never the test
part, by the integer model that the firmware computes. All variants of one data set use about
the same bytes of tables. ``--write FOLDER`` leaves ``ablation.md`` there.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import accuracy_per_byte
import numpy as np
from _environment import describe_machine

from tinykernel.codegen.packing import pack
from tinykernel.files import write_bytes_atomically
from tinykernel.hadamard import padded_dimension
from tinykernel.model import quantize
from tinykernel.training.layouts import LAYOUTS, components_within
from tinykernel.training.options import TrainerOptions
from tinykernel.training.trainer import fit
from tinykernel.training.trainset import prepare

BASE = {"dropout": 0.0, "noise": 0.3}
VARIANTS: dict[str, dict[str, Any]] = {
    "recipe": {},
    "format phases: 8-bit G, learned starts": {"layout": "phases"},
    "format windows: also widths, S, ternary weights": {"layout": "windows"},
    "format pruned: as phases, half of the rows left out": {"layout": "pruned"},
    "random features: G not learned": {"diagonal_factor": 0.0},
    "P and blocks by alignment, best of 8": {"candidates": 8},
    "random features, P and blocks by alignment": {"diagonal_factor": 0.0, "candidates": 8},
    "no noise": {"noise": 0.0},
    "twice the noise": {"noise": 0.6},
    "dropout 0.2": {"dropout": 0.2},
    "sigma halved": {"sigma_factor": 0.5},
    "sigma doubled": {"sigma_factor": 2.0},
    "surrogate slope 1": {"slope": 1.0},
    "surrogate slope 4": {"slope": 4.0},
    "half the rate of G": {"diagonal_factor": 7.5},
    "integers from the start": {"quantize_from": 0.0},
    "integers only afterwards": {"quantize_from": 1.0},
}


def held_out(n_rows: int, groups: np.ndarray | None) -> np.ndarray:
    """Return which rows are scored."""
    rng = np.random.default_rng(0)
    if groups is None:
        return rng.permutation(n_rows) % 6 == 0
    names = rng.permutation(np.unique(groups))
    return np.isin(groups, names[: max(1, len(names) // 4)])


def measure(data: tuple[Any, Any, Any, Any], epochs: int, arguments: argparse.Namespace,
            changes: dict[str, Any]) -> str:  # fmt: skip
    """Train one variant with every seed; return the cells of its row."""
    X, y, X_out, y_out = data
    options = {**BASE, "sigma_multiple": arguments.sigma, **changes}
    options["sigma_multiple"] *= options.pop("sigma_factor", 1.0)
    n_classes = len(np.unique(y))
    layout = LAYOUTS[options.pop("layout", "compact")]
    p = components_within(arguments.bytes, layout, padded_dimension(X.shape[1]),
                          1 if n_classes == 2 else n_classes)  # fmt: skip
    if p == 0:
        raise SystemExit(f"{arguments.bytes} bytes of tables are too few")
    scores, sizes, losses = [], [], []
    for seed in range(arguments.seeds):
        told = TrainerOptions(n_components=p, layout=layout.name, epochs=epochs, search=False,
                              random_state=seed, n_jobs=arguments.threads)  # fmt: skip
        result = fit(prepare(X, y)[1], told, **options)
        model = quantize(result.machine)
        scores.append(100 * np.mean(model.predict(X_out) == y_out))
        sizes.append(sum(pack(model).table_bytes().values()))
        losses.append(result.history[-1]["loss"])
    return (f"{p} | {max(sizes)} | {np.mean(scores):.2f} % | {min(scores):.2f} to "
            f"{max(scores):.2f} | {np.mean(losses):.3f}")  # fmt: skip


def load(folder: Path, name: str) -> tuple[tuple[Any, Any, Any, Any], str]:
    """Return training rows, labels, rows held out, their labels; and how they were held out.

    The test part of `accuracy_per_byte` is in neither.
    """
    data = accuracy_per_byte.load(folder, name)
    out = held_out(len(data.y), data.groups)
    how = "random" if data.groups is None else "whole groups"
    parts = (data.X[~out], data.y[~out], data.X[out], data.y[out])
    return parts, f"{out.sum()} training rows held out ({how})"


def main() -> None:
    """Train every variant with every seed and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    folder = os.environ.get("TINYKERNEL_DATA")
    parser.add_argument("--data", type=Path, default=folder, required=folder is None)
    parser.add_argument("--names", default="mnist,usps")
    parser.add_argument("--bytes", type=int, default=6000, help="of tables")
    parser.add_argument("--epochs", type=int, help="10, or 40 for fewer than 20000 rows")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--sigma", type=float, default=1.0, help="as a multiple, see Recipe")
    parser.add_argument("--variants", help="only those with one of these texts in the title")
    parser.add_argument("--write", type=Path, help="a folder for the page")
    arguments = parser.parse_args()
    texts = (arguments.variants or "").split(",")
    chosen = {title: v for title, v in VARIANTS.items() if any(text in title for text in texts)}
    if not chosen:
        parser.error(f"no variant has {arguments.variants} in its title")
    lines = ["# What each part of the learned trainer gives", "",
             f"Written by `python benchmarks/ablation.py` on {describe_machine()}."]  # fmt: skip
    print("\n".join(lines), flush=True)
    for name in arguments.names.split(","):
        data, how = load(arguments.data, name)
        epochs = arguments.epochs or (10 if len(data[1]) >= 20000 else 40)
        new = ["", f"## {name}", "",
               f"{arguments.bytes} bytes of tables, {epochs} epochs, {arguments.seeds} "
               f"seeds, sigma x {arguments.sigma:g}, {how}; accuracies are those of the integer "
               "model.", "",
               "| variant | components | bytes of tables | accuracy "
               "| lowest to highest | loss |",
               "|---|---:|---:|---:|---:|---:|"]  # fmt: skip
        print("\n".join(new), flush=True)
        lines += new
        for title, changes in chosen.items():
            lines.append(f"| {title} | {measure(data, epochs, arguments, changes)} |")
            print(lines[-1], flush=True)
    if arguments.write is not None:
        arguments.write.mkdir(parents=True, exist_ok=True)
        write_bytes_atomically(arguments.write / "ablation.md", ("\n".join(lines) + "\n").encode())


if __name__ == "__main__":
    main()
