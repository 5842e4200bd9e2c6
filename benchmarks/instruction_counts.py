"""Count the instructions of many models and write tinykernel/run/instruction_counts.json.

Run it again whenever the runtime in firmware/ becomes faster or slower::

    python benchmarks/instruction_counts.py

It needs QEMU and the compilers of all targets, and takes about twenty minutes; ``--targets
cortex-m3,esp8266`` counts on these alone and leaves the others as they are. ``--only tree`` counts
models of trees alone, as ``prototypes`` and ``spectrum`` others, and takes only these pieces;
``small`` what fits into 2 KB, for pieces that have no price yet. The
models are those of ``code_size.py``. What a piece of work costs is fitted by least squares of the
relative error, stage by stage, with no price below zero.
"""

import argparse
import json
from dataclasses import replace
from typing import Any

import numpy as np
from code_size import (
    component_sample,
    convolution_sample,
    dense_sample,
    offset_sample,
    one_class_sample,
    packed_sample,
    shaped_sample,
    spectral_sample,
    tree_sample,
)
from scipy.optimize import nnls
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from tests.frames import frame_model
from tests.random_fronts import local_model, random_signal_stage
from tests.separable import separable_model
from tests.spectra import plane_model, spectral_model
from tinykernel.base.errors import LinkError
from tinykernel.base.files import write_bytes_atomically
from tinykernel.compile.sources import generated_inputs
from tinykernel.compile.targets import TARGETS
from tinykernel.conversion.models import convert
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.frame.spec import FORMATS, Frame
from tinykernel.pieces.trees.spec import Trees
from tinykernel.run.bench import bench
from tinykernel.run.estimate import PRICES, SAME, work_of

Rows = list[tuple[IntegerModel, dict[str, int]]]


def fit(rows: Rows) -> dict[str, Any]:
    """Return the price of each piece of work by stage, and the errors that remain."""
    works = [_walked(model, work_of(model)) for model, _ in rows]
    totals = np.array([sum(counts.values()) for _, counts in rows], dtype=np.float64)
    found, prices = np.zeros(len(rows)), dict[str, dict[str, float]]()
    for stage in sorted({stage for work in works for stage in work}):
        pieces = sorted({piece for work in works for piece in work.get(stage, {})})
        matrix = np.array(
            [[work.get(stage, {}).get(piece, 0.0) for piece in pieces] for work in works]
        )
        goal = np.array([float(counts.get(stage, 0)) for _, counts in rows])
        solved, _ = nnls(matrix / totals[:, None], goal / totals)
        found += matrix @ solved
        prices[stage] = {piece: round(float(x), 3) for piece, x in zip(pieces, solved, strict=True)}
    errors = totals / found - 1
    return {
        "models": len(rows),
        # By how much a count exceeds its estimate, at most, and what is usual.
        "largest_excess": round(float(errors.max()), 3),
        "deviation": round(float(np.sqrt(np.mean(errors**2))), 3),
        "prices": prices,
    }


def _walked(model: IntegerModel, work: dict[str, Any]) -> dict[str, Any]:
    """Put the steps of the row that is counted in the place of the most that trees can take."""
    trees = model.find(Trees)
    if trees is None:
        return work
    row = model.scaler.quantize(counted_input(model))[0]
    steps = node = 0
    for size in trees.size.astype(int):
        at, below = node, size
        while below > 0:
            test, skipped = trees.test[at], int(trees.left[at]) + 1
            above = row[trees.feature[test]] > trees.threshold[test]
            at, below = (at + skipped, below - skipped) if above else (at + 1, skipped - 1)
            steps += 1
        node += size
    return work | {"scores": work["scores"] | {"tree step": steps}}


def together(known: dict[str, Any], one: dict[str, Any], kind: str) -> dict[str, Any]:
    """Add to the prices of a target those of the pieces, or of the stage, of one kind.

    What these models share with others, which have more of it, keeps its price.
    """
    prices = {stage: dict(pieces) for stage, pieces in known["prices"].items()}
    for stage, pieces in one["prices"].items():
        others = prices.get(stage, {})
        own = {n: x for n, x in pieces.items() if stage == kind or kind in n or n not in others}
        if own:
            prices[stage] = dict(sorted((others | own).items()))
    excess = max(known["largest_excess"], one["largest_excess"])
    return {**known, "largest_excess": excess, "prices": prices}


def write(name: str, found: dict[str, Any]) -> None:
    """Print the errors of a target, and put it into the table."""
    targets: dict[str, Any] = json.loads(PRICES.read_text())["targets"]
    targets[name] = found
    told = {key: value for key, value in targets[name].items() if key != "prices"}
    print(f"{name}: {told}", flush=True)
    table = {"version": 1, "targets": targets}
    write_bytes_atomically(PRICES, (json.dumps(table, indent=1) + "\n").encode())


def _trees(index: int) -> IntegerModel:
    """Draw many small trees, or fewer large ones."""
    return tree_sample(index, ((80, 4), (40, 40), (20, 120))[index % 4 % 3])


def _sounds(index: int) -> IntegerModel:
    """Draw models of few frames, which an emulator runs in seconds."""
    return spectral_sample(index, 50)


def _small(index: int) -> IntegerModel:
    """Draw signals and sounds that fit into 2 KB of memory, by turns."""
    rng = np.random.default_rng([7, index])
    fields: dict[str, Any] = {
        "channels": int(rng.integers(1, 3)),
        "n_kernels": int(rng.integers(6, 20)),
        "cells": (1, 1),
        "dilations": (1, 2)[: int(rng.integers(1, 3))],
        "hop": 0,
    }
    if index % 2:
        raw = str(rng.choice(["uint8", "int16"]))
        fields |= {
            "height": int(rng.integers(24, 80)),
            "raw_dtype": raw,
            "average": 1 + index % 4 // 2,
        }
        return local_model(random_signal_stage(index, **fields), index, n_classes=3)
    length = (64, 64, 128)[index % 3]
    fields |= {"channels": 1, "dilations": (1,), "length": length, "dtype": "uint8"}
    return spectral_model(index, frames=int(rng.integers(9, 13)), bands=4 + index % 5, **fields)


def _layers(index: int) -> IntegerModel:
    """Draw models of images, the first eight of which fit into 2 KB of memory, and of tables."""
    images = (2, 35, 28, 4, 56, 25, 13, 20, 0, 31, 33, 29)
    return convolution_sample(images[index]) if index < 12 else dense_sample(index - 12)


def _mixed(index: int) -> IntegerModel:
    """Draw models of mixed convolutions, the first eight of which fit into 2 KB of memory."""
    rng = np.random.default_rng([9, index])
    most, sides = ((4, 8), (6, 8)) if index < 8 else ((4, 8, 16, 32, 64), (8, 12, 16))
    n_blocks = 1 + index % (2 if index < 8 else 4)
    blocks = tuple(rng.choice(most, n_blocks).tolist())
    strides = tuple(rng.integers(1, 3, n_blocks).tolist())
    channels = 1 if index < 8 else (1, 3)[index % 2]
    return separable_model(index, tuple(rng.choice(sides, 2)), blocks, strides, channels=channels)


def _planes(index: int) -> IntegerModel:
    """Draw convolutions of small spectra, the first eight of which fit into 2 KB of memory."""
    rng = np.random.default_rng([10, index])
    blocks, strides = ((4,), (2,)) if index < 8 else ((8, 12, 16), (2, 1, 2))
    spectrum = {"frames": int(rng.integers(20, 50)), "bands": int(rng.integers(4, 13))}
    return plane_model(index, blocks, strides, length=64, dtype="uint8", hop=0, **spectrum)


def _frames(index: int) -> IntegerModel:
    """Draw models of small frames, by turns of each format and number of channels."""
    kinds = [(name, n) for name in FORMATS for n in (1, 3) if (name, n) != ("grey8", 3)]
    pixel_format, channels = kinds[index % len(kinds)]
    sides = (40, 30) if index < len(kinds) else (16, 24)
    model = frame_model(index, 8, 8, channels, blocks=(4,), strides=(2,))
    frame = replace(model.find(Frame), pixel_format=pixel_format, width=sides[0], height=sides[1])
    return replace(model, input=frame.taken, stages=(frame, *model.stages[1:]))


def _squares(index: int) -> IntegerModel:
    """Draw naive Bayes and quadratic discriminants by turns."""
    rng = np.random.default_rng([11, index])
    X = rng.normal(size=(300, 3 + index)).astype(("float32", "int16")[index // 2 % 2])
    kind = (GaussianNB(), QuadraticDiscriminantAnalysis(reg_param=0.5))[index % 2]
    return convert(kind.fit(X, rng.integers(0, 2 + index % 3, 300)), X, max_change=1.0)


# Kinds of which only their own pieces, or their own stage, are taken.
_ALONE = {
    "prototypes": one_class_sample,
    "tree": _trees,
    "spectrum": _sounds,
    "convolutions": _layers,
    "separable": _mixed,
    "offset": offset_sample,
    "frame": _frames,
    "plane": _planes,
    "packed": packed_sample,
    "squares": _squares,
    # What others gave no price for, as none of them fits.
    "small": _small,
}
# Kinds without floats, which run the same instructions with an FPU: see `instructions.SAME`.
_WHOLE = ("spectrum", "offset", "frame", "plane", "packed", "small")
# Every format of frames at two sizes; 12 of the others.
_OF_EACH = {"convolutions": 24, "frame": 18, "separable": 20}


def main() -> None:
    """Count on every core that runs code of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=20, help="of each kind and core")
    parser.add_argument("--targets", help="count on these alone, parted by commas")
    parser.add_argument("--only", choices=_ALONE, help="count only models of this kind")
    arguments = parser.parse_args()
    names = [n for n, t in TARGETS.items() if t.machines and t.family != "host" and n not in SAME]
    if arguments.targets is not None:
        names = arguments.targets.split(",")
    elif arguments.only:  # only what the others have prices for
        names = [name for name in names if name in json.loads(PRICES.read_text())["targets"]]
    for name in names:
        if arguments.only:
            known = json.loads(PRICES.read_text())["targets"][name]
        else:
            models = [component_sample(index) for index in range(arguments.models)]
            models += [shaped_sample(index) for index in range(arguments.models * 6 // 5)]
            known = fit(counted_rows(models, name))
        for kind in [arguments.only] if arguments.only else _ALONE:
            rows = counted_rows(list(map(_ALONE[kind], range(_OF_EACH.get(kind, 12)))), name)
            if not rows or (TARGETS[name].soft and kind in _WHOLE):
                continue
            one = fit(rows)
            print(f"{name}, {kind}: largest excess {one['largest_excess']}", flush=True)
            known = together(known, one, kind)
        write(name, known)


def counted_rows(models: list[IntegerModel], target: str) -> Rows:
    """Count what one inference of each model takes, of those that fit."""
    return [counted for model in models if (counted := count(model, target)) is not None]


def counted_input(model: IntegerModel) -> np.ndarray:
    """Return the row that is counted."""
    return generated_inputs(model, 3)[2:3]


def count(model: IntegerModel, target: str) -> tuple[IntegerModel, dict[str, int]] | None:
    """Count the instructions of one inference by stage; None where the model is too large."""
    try:
        return model, bench(model, target, X=counted_input(model)).stages
    except LinkError:
        return None


if __name__ == "__main__":
    main()
