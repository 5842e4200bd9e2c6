"""One small model file of every kind, and its scores: ``python -m tests.modelfile.every_kind``.

Writes them into one archive, with the present version of the format in its name. The archives of
earlier versions stay for good: later versions must read them and give the same scores.
"""

from __future__ import annotations

import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.convolutions import convolution_model
from tests.firmware.test_decisions import deciding
from tests.modelfile.files import OLD, X, fit
from tests.random_fronts import (
    local_model,
    random_beside,
    random_signal_stage,
    random_stage,
    sums_model,
)
from tests.random_models import (
    changed,
    make_machine,
    one_class,
    random_model,
    random_raw,
    with_linear,
)
from tinykernel.estimator import TernaryKernelClassifier, TernaryKernelRegressor
from tinykernel.model import IntegerModel, as_integer_model
from tinykernel.model.answers.labels import Labels
from tinykernel.model.answers.values import Values
from tinykernel.model.quantization.units import ValueUnits
from tinykernel.model.stages.components import Components
from tinykernel.modelfile import save
from tinykernel.modelfile.container import VERSION
from tinykernel.papers import PaperClassifier

#: Where they are written.
ARCHIVE = OLD / f"every-kind-{VERSION}.zip"
_ROWS = 6
_NAMES = ("height", "width", "depth")


def _deciding(model: IntegerModel, per_class: bool = False) -> IntegerModel:
    return deciding(model, random_raw(model, 5, 60), per_class)


def _of_values(model: IntegerModel, names: tuple[str, ...]) -> IntegerModel:
    return replace(model, answers=Values(names, 9))


def integer_models() -> dict[str, IntegerModel]:
    """Return models of random contents, in integers."""
    small = {"n_features": 12, "n_blocks": 1}
    table = random_model(1, **small)
    images = random_stage(2, n_kernels=4, cells=(2, 2))
    colours = random_stage(3, n_kernels=4, channels=3, terms=2, level_bits=6, average=2)
    small_signal = {"height": 24, "n_kernels": 6, "average": 1, "dilations": (1,), "hop": 8}
    signals = random_signal_stage(4, **small_signal)
    return {
        "int8": table,
        "int4": random_model(2, diagonal_kind="int4", permutation="orbit", kept="tail", **small),
        "sign": random_model(3, diagonal_kind="sign", windows="constant", one_scale=True, **small),
        "compact": random_model(
            4, n_blocks=2, n_features=20, kept="few", permutation="stored", windows="half turns"
        ),
        "small-code": changed(table, replace(table.find(Components), small_code=True)),
        "int32-in-16-bits": random_model(5, bits=16, raw_dtype="int32", **small),
        "two-classes": replace(
            random_model(6, n_classes=2, raw_dtype="float32", n_features=3, n_blocks=1),
            answers=Labels(("no", "yes")),
            feature_names=_NAMES,
        ),
        "components-and-linear": with_linear(random_model(7, **small), 7, 4),
        "linear": with_linear(random_model(8, raw_dtype="int16", **small), 8, 8, False),
        "value": _of_values(random_model(9, n_classes=2, **small), ("hours",)),
        "values": _of_values(with_linear(random_model(9, **small), 9, 8), ("a", "b", "c")),
        "images": local_model(images, 2, components=False),
        "images-convolutions": convolution_model(6, (9, 8), (1,), units=4, padding=1),
        "images-components": local_model(colours, 3, components=True, n_blocks=1),
        "signals": local_model(signals, 4, components=False),
        "signals-sums": sums_model(6, **small_signal),
        "signals-numbers": local_model(signals, 6, beside=random_beside(6, 2, "int16")),
        "signals-components": local_model(signals, 5, weight_bits=0, n_blocks=1),
        "one-class": one_class(table, 6),
        "one-class-of-images": one_class(local_model(images, 2, components=False), 7),
        "margin": _deciding(table),
        "margins-and-prototypes": _deciding(with_linear(random_model(10, **small), 10, 1), True),
        "images-decide": _deciding(local_model(images, 8, components=False), True),
    }


def machines() -> dict[str, Any]:
    """Return machines in floats and trained estimators."""
    machine = make_machine(1, n_features=3, n_blocks=1, kind="int4")
    schedule = (True,) * 5
    linear = np.arange(-4, 5, dtype=np.int8).reshape(3, 3)
    units = ValueUnits(("a", "b", "c"), np.zeros(3), np.array([1.0, 2.0, 0.5]))
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (40, 64)).astype(np.uint8)
    pixels[20:, :32] //= 4
    brief = {"n_components": 32, "epochs": 2, "effort": "quick", "random_state": 0}
    return {
        "machine": replace(machine, linear=linear, linear_scale=0.01, small_code=True),
        "machine-held": replace(
            machine,
            held_first=schedule,
            held_second=schedule,
            held_shift=31,
            units=units,
            classes=(),
        ),
        "classifier": fit(["a", "b", "c"], linear=4),
        "classifier-of-images": TernaryKernelClassifier(
            image_shape=(8, 8),
            n_components=0,
            n_kernels=8,
            epochs=2,
            effort="quick",
            random_state=0,
        ).fit(pixels, np.repeat(["dark", "light"], 20)),
        "regressor": TernaryKernelRegressor(**brief).fit(X, 50 + 7 * X[:, 0] - X[:, 1] ** 2),
        "paper": PaperClassifier(n_components=32, random_state=0).fit(X, X[:, 0] > 0),
    }


def answers(model: IntegerModel, rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return all that a model says of rows, by name."""
    found = {"scores": model.scores(rows), "predict": model.predict(rows)}
    if model.decision is not None:
        found |= {
            name: getattr(model, name)(rows)
            for name in ("decide", "confidence", "novelty", "is_novel", "predict_proba")
        }
    return found


def main() -> None:
    """Write every file, and an .npz of its rows and answers, into one archive."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(ARCHIVE, "w") as archive:
        for kind, obj in (integer_models() | machines()).items():
            save(obj, Path(folder, f"{kind}.tkm"))
            model = as_integer_model(obj)
            rows = random_raw(model, 11, _ROWS)
            np.savez(Path(folder, f"{kind}.npz"), rows=rows, **answers(model, rows))
        for file in sorted(Path(folder).iterdir()):  # with fixed times: the same bytes again
            member = zipfile.ZipInfo(file.name, (1980, 1, 1, 0, 0, 0))
            archive.writestr(member, file.read_bytes(), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main()
