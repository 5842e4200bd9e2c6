"""What each part of the learned trainer gives: accuracy with one thing changed at a time.

Run with ``python benchmarks/ablation.py --data DIR [--names mnist,usps]
[--variants format,noise] [--write FOLDER]``. Rows
held out of the training part are scored (whole groups where the file has groups), never the test
part, by the integer model that the firmware computes. All variants of one data set use about
the same bytes of tables. ``--write FOLDER`` leaves ``ablation.md`` there.

With ``--local`` it is about the parts of models for images and signals: local stage, linear part,
what of them is learned, augmentation. Each is trained by `tinykernel.train` for ``--budget`` of
linked flash, and of the series of ``ucr`` 512 kernels, on three folds of the training part of ten
sets; the page is ``ablation-local.md``, and finished rows are kept in
``numbers/ablation-local.json``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from _data import load as load_parts
from _environment import describe_machine
from sklearn.model_selection import StratifiedKFold

import tinykernel
from tinykernel import TernaryKernelClassifier
from tinykernel.codegen.description import consists_of
from tinykernel.codegen.plan import pack
from tinykernel.errors import TinykernelError
from tinykernel.files import write_bytes_atomically
from tinykernel.hadamard import padded_dimension
from tinykernel.model import quantize
from tinykernel.training.layouts import LAYOUTS, components_within
from tinykernel.training.local import image_training, signal_training, signals
from tinykernel.training.options import TrainerOptions
from tinykernel.training.trainer import fit
from tinykernel.training.trainset import prepare

BASE = {"noise": 0.3}
VARIANTS: dict[str, dict[str, Any]] = {
    "recipe": {},
    "format windows: also widths, S, ternary weights": {"layout": "windows"},
    "random features: G not learned": {"diagonal_factor": 0.0},
    "P and blocks by alignment, best of 8": {"permutation": "aligned"},
    "random features, P and blocks by alignment": {
        "diagonal_factor": 0.0,
        "permutation": "aligned",
    },
    "no noise": {"noise": 0.0},
    "twice the noise": {"noise": 0.6},
    "sigma halved": {"sigma_factor": 0.5},
    "sigma doubled": {"sigma_factor": 2.0},
    "surrogate slope 1": {"slope": 1.0},
    "surrogate slope 4": {"slope": 4.0},
    "half the rate of G": {"diagonal_factor": 7.5},
    "integers from the start": {"quantize_from": 0.0},
    "integers only afterwards": {"quantize_from": 1.0},
}


_NO_LOCAL: dict[str, Any] = {
    "image_shape": None,
    "window_shape": None,
    "augment": None,
    "n_kernels": None,
}
#: Changes of options of `tinykernel.train`; "plan" has those of the plan of a local stage.
IMAGE_VARIANTS: dict[str, dict[str, Any]] = {
    "recipe: kernels and thresholds learned, 4-bit weights, augmented": {},
    "no augmentation": {"augment": None},
    "thresholds not learned": {"plan": {"threshold_step": 0.0}},
    "taps not learned": {"plan": {"tap_step": 0.0}},
    "neither taps nor thresholds learned": {"plan": {"tap_step": 0.0, "threshold_step": 0.0}},
    "weights on counts of 2 bits": {"linear": 2},
    "weights on counts of 8 bits": {"linear": 8},
    "no local stage: components, linear part or both, by search": _NO_LOCAL,
    "no local stage, components only": {**_NO_LOCAL, "linear": "off"},
    "linear part alone, 8 bits": {**_NO_LOCAL, "n_components": 0, "linear": 8},
}
SIGNAL_VARIANTS: dict[str, dict[str, Any]] = {
    "recipe: kernels chosen from a pool, 4-bit weights, augmented": {},
    "no augmentation": {"augment": None},
    "kernels not chosen: a pool of the number that is kept": {
        "plan": {"n_pool": lambda plan: plan.n_kernels}
    },
    "MiniRocket's kernels only, none of the level": {"plan": {"level_share": 0.0}},
    "dilations 1 and 2: a reach of 17 rows": {"plan": {"dilations": (1, 2)}},
    "dilations 1 to 6: a reach of 49 rows": {"plan": {"dilations": (1, 2, 3, 4, 6)}},
    "samples not averaged": {"plan": {"average": 1}},
    "a pool of 4032": {"plan": {"n_pool": 4032}},
    "thresholds by one window in place of 64": {"constants": {"_QUANTILE_WINDOWS": 1}},
    "128 kernels in 4 cells": {"n_kernels": 128, "cells": 4},
    "128 kernels": {"n_kernels": 128},
    "256 kernels": {"n_kernels": 256},
    "943 kernels, which fill the budget": {"n_kernels": 943},
    "weights on counts of 2 bits": {"linear": 2},
    "weights on counts of 8 bits": {"linear": 8},
    "no local stage: components, linear part or both, by search": _NO_LOCAL,
    "no local stage, components only": {**_NO_LOCAL, "linear": "off"},
    "linear part alone, 8 bits": {**_NO_LOCAL, "n_components": 0, "linear": 8},
}
CONVOLUTION_VARIANTS: dict[str, dict[str, Any]] = {
    "recipe: three layers, two of them pooled, a hidden layer, augmented": {},
    "no augmentation": {"augment": {"affine": 0}},
    "two layers, both pooled": {"plan": {"pools": (2, 2)}},
    "four layers, the last one pooled": {"plan": {"pools": (1, 1, 1, 2)}},
    "three layers, the second one pooled": {"plan": {"pools": (1, 2, 1)}},
    "three layers, none pooled": {"plan": {"pools": (1, 1, 1)}},
    "half the hidden units": {"plan": {"n_hidden": lambda plan: plan.n_hidden // 2}},
    "twice the hidden units": {"plan": {"n_hidden": lambda plan: 2 * plan.n_hidden}},
    "kernels and counts instead": {"convolutions": "off"},
}
#: Changes of the classifier of few windows; "few" has those of the plan of a pool.
SERIES_VARIANTS: dict[str, dict[str, Any]] = {
    "recipe: 512 kernels of 4032, 4-bit weights, ridge regression": {},
    "dilations 1, 2, 4: a reach of 33 rows": {"few": {"dilations": (1, 2, 4)}},
    "kernels not chosen: a pool of the number that is kept": {
        "few": {"n_pool": lambda plan: plan.n_kernels}
    },
    "a pool of 1344": {"few": {"n_pool": 1344}},
    "MiniRocket's kernels only, none of the level": {"few": {"level_share": 0.0}},
    "thresholds by one window in place of 64": {"constants": {"_QUANTILE_WINDOWS": 1}},
    "samples not averaged": {"plan": {"average": 1}},
    "256 kernels in 2 cells": {"n_kernels": 256, "cells": 2},
    "128 kernels in 4 cells": {"n_kernels": 128, "cells": 4},
    "128 kernels": {"n_kernels": 128},
    "256 kernels": {"n_kernels": 256},
    "1024 kernels": {"n_kernels": 1024},
    "weights on counts of 2 bits": {"linear": 2},
    "weights on counts of 8 bits": {"linear": 8},
    "gradients in place of ridge regression": {
        "epochs": 60,
        "plan": {"n_pool": 4032, "level_share": 0.2, "dilations": (1, 2, 3, 4, 6, 8, 11, 16, 22)},
    },
}
SERIES = (
    "ArrowHead",
    "Beef",
    "Fish",
    "Herring",
    "Lightning7",
    "Meat",
    "OSULeaf",
    "PowerCons",
    "SonyAIBORobotSurface2",
    "ToeSegmentation1",
)
LOCAL_SETS: dict[str, dict[str, Any]] = {
    "mnist": {"image_shape": (28, 28), "augment": {"affine": 1.0}, "convolutions": "on"},
    "fashion_mnist": {
        "image_shape": (28, 28),
        "augment": {"affine": 0.3, "flip": 0.5},
        "convolutions": "on",
    },
    "usps": {"image_shape": (16, 16), "augment": {"affine": 1.0}},
    "har_raw": {"window_shape": (128, 6), "augment": {"rotate": 0.15}, "n_kernels": 512},
    "digits": {"image_shape": (8, 8), "augment": {"affine": 1.0}},
}


def held_out(n_rows: int, groups: np.ndarray | None) -> np.ndarray:
    """Return which rows are scored."""
    rng = np.random.default_rng(0)
    if groups is None:
        return rng.permutation(n_rows) % 6 == 0
    names = rng.permutation(np.unique(groups))
    return np.isin(groups, names[: max(1, len(names) // 4)])


def measure(
    data: tuple[Any, Any, Any, Any],
    epochs: int,
    arguments: argparse.Namespace,
    changes: dict[str, Any],
) -> str:
    """Train one variant with every seed; return the cells of its row."""
    X, y, X_out, y_out = data
    options = {**BASE, "sigma_multiple": arguments.sigma, **changes}
    options["sigma_multiple"] *= options.pop("sigma_factor", 1.0)
    n_classes = len(np.unique(y))
    layout = LAYOUTS[options.pop("layout", "compact")]
    aligned = options.pop("permutation", "drawn")
    p = components_within(
        arguments.bytes, layout, padded_dimension(X.shape[1]), 1 if n_classes == 2 else n_classes
    )
    if p == 0:
        raise SystemExit(f"{arguments.bytes} bytes of tables are too few")
    scores, sizes, losses = [], [], []
    for seed in range(arguments.seeds):
        told = TrainerOptions(
            n_components=p,
            layout=layout.name,
            permutation=aligned,
            epochs=epochs,
            effort="quick",
            random_state=seed,
            n_jobs=arguments.threads,
        )
        result = fit(prepare(X, y)[1], told, **options)
        model = quantize(result.machine)
        scores.append(100 * np.mean(model.predict(X_out) == y_out))
        sizes.append(sum(pack(model).table_bytes().values()))
        losses.append(result.history.epochs[-1]["loss"])
    return (
        f"{p} | {max(sizes)} | {np.mean(scores):.2f} % | {min(scores):.2f} to "
        f"{max(scores):.2f} | {np.mean(losses):.3f}"
    )


def load(folder: Path, name: str) -> tuple[tuple[Any, Any, Any, Any], str]:
    """Return training rows, labels, rows held out, their labels; and how they were held out.

    The test part of `accuracy_per_byte` is in neither; of several parts the first is taken.
    """
    data = load_parts(folder, name)[0]
    out = held_out(len(data.y), data.groups)
    how = "random" if data.groups is None else "whole groups"
    parts = (data.X[~out], data.y[~out], data.X[out], data.y[out])
    return parts, f"{out.sum()} training rows held out ({how})"


# -- models for images and signals ----------------------------------------------------------------


@contextlib.contextmanager
def _plans_with(options: dict[str, Any]) -> Iterator[None]:
    """Change what the trainer plans for a local stage: to values, or what a function returns.

    The changes are taken out of the options: of plans, of those of few windows, of constants.
    """
    changes, few = options.pop("plan", {}), options.pop("few", {})

    def changed(usual: Any, changes: Mapping[str, Any]) -> Any:
        def plan(*arguments: Any) -> Any:
            found = usual(*arguments)
            own = {k: v(found) if callable(v) else v for k, v in changes.items()}
            return replace(found, **own)

        return plan

    with contextlib.ExitStack() as stack:
        for module, name, own in (
            (image_training, "image_plan", changes),
            (image_training, "convolution_plan", changes),
            (signal_training, "signal_plan", changes),
            (signal_training, "_few_plan", few),
        ):
            plan = changed(getattr(module, name), own)
            stack.enter_context(mock.patch.object(module, name, plan))
        for name, value in options.pop("constants", {}).items():
            stack.enter_context(mock.patch.object(signals, name, value))
        yield


def measure_local(
    data: tuple[Any, Any, Any, Any],
    groups: np.ndarray | None,
    name: str,
    changes: Mapping[str, Any],
    arguments: argparse.Namespace,
) -> str:
    """Train one variant for the budget with every seed; return the cells of its row."""
    X, y, X_out, y_out = data
    # A linear part alone takes what it needs; the limit is for linking it.
    budget = "1MB" if "n_components" in changes else arguments.budget
    scores, sizes, words = [], [], ""
    for seed in range(arguments.seeds):
        options = {**LOCAL_SETS[name], **changes}
        with _plans_with(options):
            found = tinykernel.train(
                X,
                y,
                budget=budget,
                groups=groups,
                random_state=seed,
                n_jobs=arguments.threads,
                epochs=arguments.epochs,
                **options,
            )
        scores.append(100 * np.mean(found.model.predict(X_out) == y_out))
        assert found.memory is not None
        sizes.append(found.memory.flash)
        words = consists_of(found.model)
    return (
        f"{words} | {max(sizes)} | {np.mean(scores):.2f} % | {min(scores):.2f} to {max(scores):.2f}"
    )


def measure_series(folder: Path, changes: Mapping[str, Any], arguments: argparse.Namespace) -> str:
    """Train one variant on folds of the training part of each series; return its cells."""
    options = {"linear": 4, **changes}
    known, means = {"n_kernels": 512} | options, []
    with np.load(folder / "ucr.npz") as data, _plans_with(options):
        for name in SERIES:
            X, y = data[f"{name}/X_train"], data[f"{name}/y_train"]
            right = []
            for inside, outside in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
                model = TernaryKernelClassifier(
                    n_kernels=known["n_kernels"],
                    window_shape=(X.shape[1], 1),
                    linear=options["linear"],
                    epochs=options.get("epochs"),
                    random_state=0,
                    n_jobs=arguments.threads,
                    options={key: options[key] for key in ("cells",) if key in options},
                ).fit(X[inside], y[inside])
                right.extend(model.quantize().predict(X[outside]) == y[outside])
            means.append(100 * np.mean(right))
    n = known["n_kernels"] * known.get("cells", 1)
    words = f"{known['n_kernels']} kernels, {n} counts, linear part of {options['linear']} bits"
    return f"{words} | | {np.mean(means):.2f} % | {min(means):.2f} to {max(means):.2f}"


def run_local(arguments: argparse.Namespace, chosen: list[str]) -> None:
    """Measure the variants of models with a shape; rows that are there are kept."""
    folder = arguments.write
    store = folder / "numbers" / "ablation-local.json" if folder else None
    kept: dict[str, dict[str, Any]] = {}
    if store is not None and store.exists():
        kept = json.loads(store.read_text())
    for name in arguments.names.split(","):
        kept.setdefault(name, {"rows": {}})
        how, variants, measured = _asked_of(name, arguments)
        kept[name]["how"] = f"{how}; {describe_machine()}."
        for title, changes in variants.items():
            if title in kept[name]["rows"] or not any(text in title for text in chosen):
                continue
            try:
                cells = measured(changes)
            except TinykernelError as error:
                if "no model for this data fits" not in str(error):
                    raise
                cells = "nothing fits | | |"
            kept[name]["rows"][title] = cells
            print(f"| {title} | {cells} |", flush=True)
            if store is not None:
                store.parent.mkdir(parents=True, exist_ok=True)
                write_bytes_atomically(store, json.dumps(kept, indent=1).encode())
    if folder is not None:
        write_bytes_atomically(folder / "ablation-local.md", local_page(kept).encode())


def _asked_of(
    name: str, arguments: argparse.Namespace
) -> tuple[str, dict[str, dict[str, Any]], Callable[[Mapping[str, Any]], str]]:
    """Say how a data set is measured; also its variants, and what measures one."""
    if name == "ucr":
        how = f"Mean of {len(SERIES)} sets ({', '.join(SERIES)}), three folds of the training part"
        return (
            how,
            SERIES_VARIANTS,
            lambda changes: measure_series(arguments.data, changes, arguments),
        )
    part = load_parts(arguments.data, name)[0]
    out = held_out(len(part.y), part.groups)
    kept = np.flatnonzero(~out)[: arguments.rows]
    data = (part.X[kept], part.y[kept], part.X[out], part.y[out])
    groups = None if part.groups is None else part.groups[kept]
    kind = "random" if groups is None else "whole groups"
    how = (
        f"{arguments.budget} of linked flash on cortex-m4, {len(kept)} rows, "
        f"{arguments.epochs or 'the usual'} epochs, {arguments.seeds} seeds, {out.sum()} "
        f"training rows held out ({kind})"
    )
    variants = SIGNAL_VARIANTS if "window_shape" in LOCAL_SETS[name] else IMAGE_VARIANTS
    if "convolutions" in LOCAL_SETS[name]:
        variants = CONVOLUTION_VARIANTS
    return how, variants, lambda changes: measure_local(data, groups, name, changes, arguments)


def local_page(kept: Mapping[str, Mapping[str, Any]]) -> str:
    """Write the page of models for images and signals."""
    lines = [
        "# What the parts of models for images and signals give",
        "",
        "Written by `python benchmarks/ablation.py --local`. Accuracies are those of the "
        "integer model on rows held out of the training part; the test part has no share in "
        "them. The linear part alone takes what it needs.",
    ]
    for name, found in kept.items():
        lines += [
            "",
            f"## {name}",
            "",
            found["how"],
            "",
            "| variant | model | flash | accuracy | lowest to highest |",
            "|---|---|---:|---:|---:|",
        ]
        lines += [f"| {title} | {cells} |" for title, cells in found["rows"].items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Train every variant with every seed and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    folder = os.environ.get("TINYKERNEL_DATA")
    parser.add_argument("--data", type=Path, default=folder, required=folder is None)
    parser.add_argument("--names", help="mnist,usps; with --local usps,har_raw")
    parser.add_argument("--local", action="store_true", help="models for images and signals")
    parser.add_argument("--budget", default="8KB", help="of flash, with --local")
    parser.add_argument("--bytes", type=int, default=6000, help="of tables")
    parser.add_argument("--epochs", type=int, help="10, or 40 for fewer than 20000 rows")
    parser.add_argument("--rows", type=int, help="at most so many to learn from, with --local")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--sigma", type=float, default=1.0, help="as a multiple, see Recipe")
    parser.add_argument("--variants", help="only those with one of these texts in the title")
    parser.add_argument("--write", type=Path, help="a folder for the page")
    arguments = parser.parse_args()
    texts = (arguments.variants or "").split(",")
    if arguments.local:
        arguments.names = arguments.names or "usps,har_raw"
        run_local(arguments, texts)
        return
    arguments.names = arguments.names or "mnist,usps"
    chosen = {title: v for title, v in VARIANTS.items() if any(text in title for text in texts)}
    if not chosen:
        parser.error(f"no variant has {arguments.variants} in its title")
    lines = [
        "# What each part of the learned trainer gives",
        "",
        f"Written by `python benchmarks/ablation.py` on {describe_machine()}.",
    ]
    print("\n".join(lines), flush=True)
    for name in arguments.names.split(","):
        data, how = load(arguments.data, name)
        epochs = arguments.epochs or (10 if len(data[1]) >= 20000 else 40)
        new = [
            "",
            f"## {name}",
            "",
            f"{arguments.bytes} bytes of tables, {epochs} epochs, {arguments.seeds} "
            f"seeds, sigma x {arguments.sigma:g}, {how}; accuracies are those of the integer "
            "model.",
            "",
            "| variant | components | bytes of tables | accuracy | lowest to highest | loss |",
            "|---|---:|---:|---:|---:|---:|",
        ]
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
