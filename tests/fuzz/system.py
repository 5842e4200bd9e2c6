"""Random models from end to end: train, quantize, save, load, export, build, compare all scores."""

import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.fuzz.batch import Batch, no_limit
from tests.fuzz.kernels import SANITIZERS
from tinykernel import Classifier, load, save
from tinykernel.base.checks import PRESETS
from tinykernel.base.errors import TinykernelError
from tinykernel.compile.projects import export
from tinykernel.compile.targets import TARGETS
from tinykernel.run.parity import verify

_DTYPES = ("float32", "float64", "uint8", "int8", "uint16", "int16", "int32", "int64", "bool")
_LABELS: tuple[Any, ...] = (
    *(range(200), ("a", 'q"', "*/", "%s", "\\", "??/", "\u00e4", "new\nline", "int")),
    *((-1.0, 2.0, 5.0), (False, True), (3, -7, 2**40)),
)


def any_rows(rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any], dict[str, Any]]:
    """Draw a data set, and options of the trainer for it."""
    labels = _LABELS[rng.integers(len(_LABELS))]
    n_classes = int(rng.integers(2, min(len(labels), 12) + 1))
    n, options = int(rng.integers(3 * n_classes, 80)), {}
    kind, shape = rng.random(), (int(rng.choice([1, 2, 7, 31, 32, 40, 100])),)
    if kind < 0.15:
        shape = (int(rng.integers(34, 70)), int(rng.integers(1, 4)))
        options = {
            "window_shape": shape,
            "hop": int(rng.choice([0, 2, 8])),
            "n_kernels": int(rng.choice([84, 168])),
        }
    elif kind < 0.3:
        shape = (int(rng.integers(4, 20)), int(rng.integers(4, 20)))
        options = {"image_shape": shape, "n_channels": int(rng.integers(2, 12))}
        options["model"] = str(rng.choice(["chains", "separable"]))
    elif kind < 0.36:
        options = {"model": "trees", "budget": int(rng.integers(900, 2000))}
    else:
        linear = str(rng.choice(["off", "2", "4", "8"]))
        options = {"linear": linear if linear == "off" else int(linear)}
        if linear != "off" and rng.random() < 0.3:
            options["model"] = str(rng.choice(["linear", "perceptron"]))
        else:
            options |= {"n_components": int(rng.choice([32, 64, 96]))}
            options["layout"] = str(rng.choice(list(PRESETS)))
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, int(np.prod(shape)))) + y[:, None] * rng.normal(
        size=int(np.prod(shape))
    )
    X = X * 10 ** float(rng.integers(-3, 4))
    dtype = np.dtype(str(rng.choice(_DTYPES)))
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        X = np.clip(X * 30, max(limits.min, -(2**31)), min(limits.max, 2**31 - 1))
    X = (X > 0) if dtype.kind == "b" else X.astype(dtype)
    X[:, rng.random(X.shape[1]) < 0.1] = X[0, 0]
    channels = X.reshape(-1, shape[-1] if "window_shape" in options else 1)
    if kind < 0.3 and np.any(np.all(channels == channels[0], axis=0)):
        return any_rows(rng)  # a channel that never varies is refused
    return X, np.array(list(labels)[:n_classes])[y], options


def one(rng: np.random.Generator, folder: Path, batch: Batch) -> None:
    """Take one model all the way."""
    X, y, options = any_rows(rng)
    classifier = Classifier(
        epochs=None if "window_shape" in options else int(rng.integers(1, 4)),
        effort="quick",
        random_state=int(rng.integers(100)),
        **options,
    )
    try:
        model = classifier.fit(X, y).quantize()
    except TinykernelError:  # rows without a signal, which trees need
        batch.counts["refused models"] += 1
        return
    path = folder / "model.tkm"
    save(classifier, path)
    if load(path).quantize() != model:
        batch.find("differences", "the model that was saved is another one")
    target: str | None = str(rng.choice(list(TARGETS)))
    form = str(rng.choice(["platformio", "library", "single"]))
    if form != "platformio":
        target = None
    export(model, target, folder / "project", name="model", format=form, force=True)
    compiler = str(rng.choice(list(SANITIZERS)))
    found = verify(classifier, X, y, compiler=compiler, flags=["-O0", *SANITIZERS[compiler]])
    batch.counts["models"] += 1
    batch.counts["scores"] += found.scores
    if not found.ok:
        batch.find("differences", f"{options}, {X.dtype}: {found.first_difference}")


def run(batch: Batch, size: int) -> None:
    """Train `size` models."""
    no_limit()
    warnings.simplefilter("error", RuntimeWarning)
    with tempfile.TemporaryDirectory() as folder:
        for index in range(size):
            rng = np.random.default_rng((batch.seed, index))
            try:
                one(rng, Path(folder), batch)
            except TinykernelError as error:
                message = str(error)
                kind = "sanitizer reports" if "the program" in message else "uncaught exceptions"
                batch.find(kind, f"model {index}: {message}")
            except Exception:
                batch.find(
                    "uncaught exceptions", f"model {index}: {traceback.format_exc(limit=-4)}"
                )
