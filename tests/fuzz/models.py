"""Mutated model files: refused in one line, or whole in all that is done with a model."""

import pickle
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.firmware.local_models import CONVOLUTIONS, LINEAR, OFFSETS, SEPARABLE, SIGNALS, SPECTRA
from tests.fuzz.batch import Batch
from tests.fuzz.mutate import mutate_array, mutate_bytes, mutate_json
from tests.random_models import make_model, one_class, random_raw, tree_model
from tinykernel.base.coding import Coding
from tinykernel.compile.sources import render_sources
from tinykernel.model import file as modelfile
from tinykernel.model import records
from tinykernel.model import records as schema
from tinykernel.model.file import _Pickled, load
from tinykernel.model.pipelines import as_integer_model
from tinykernel.model.records import read_container, write_container


@cache
def seeds() -> list[bytes]:
    """Return .tkm files of every kind of model."""
    models: list[Any] = [
        make_model(seed, dtype, 16 if seed % 2 else 8)
        for seed, dtype in enumerate(("uint8", "float32", "int16", "int32"))
    ]
    models += [tree_model(1), *(make() for make in LINEAR.values())]
    models += [SEPARABLE["one block"](), SIGNALS["averaged"](), SIGNALS["components"]()]
    coding = Coding({"a": ("x", "*/"), "b": ("y", "")}, {"a": -1.0, "c": -1.0})
    models += [SPECTRA["int16"](), OFFSETS["int16"](), tree_model(2, linear=True)]
    models += [SIGNALS["numbers beside"]()]
    models += [one_class(make_model(4), 1), *(make() for make in CONVOLUTIONS.values())]
    files = [modelfile.to_bytes(tree_model(2), {"coding": coding.written()})]
    return files + [modelfile.to_bytes(model) for model in models]


def mutated(rng: np.random.Generator) -> tuple[bytes, str]:
    """Return the content of a damaged model file, and its suffix."""
    data, other = (seeds()[rng.integers(len(seeds()))] for _ in range(2))
    kind = rng.random()
    if kind < 0.6:
        data = mutate_content(data, rng)
    is_pickle = rng.random() < 0.25
    if is_pickle:
        data = pickle.dumps(_Pickled(data), protocol=int(rng.choice([2, 4, 4, 4, 5])))
    if kind >= 0.5:
        data = mutate_bytes(data, other, rng)
    return data, ".pkl" if is_pickle else ".tkm"


def mutate_content(data: bytes, rng: np.random.Generator) -> bytes:
    """Change what a .tkm says, in a zip that is right; often with the fingerprint of that."""
    header, arrays = read_container(data)
    for _ in range(int(rng.integers(1, 3))):
        if rng.random() < 0.5:
            other = "about" if "about" in header else str(rng.choice(sorted(header)))
            key = "object" if rng.random() < (0.5 if other == "about" else 0.95) else other
            if isinstance(header.get(key), dict):
                header[key] = mutate_json(header[key], rng)
        else:
            name = str(rng.choice(sorted(arrays)))
            arrays[name] = mutate_array(arrays[name], rng)
    if rng.random() < 0.8:
        try:
            ((_, (name, fields)),) = header["object"].items()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                obj = records.decode_record(name, fields, arrays)
                header["fingerprint"] = modelfile._integer_model(obj).fingerprint()
        except Exception:  # no model: the reader will say so
            pass
    return write_container(header, arrays)


def use(batch: Batch, model: Any, data: bytes, suffix: str, coding: Coding | None = None) -> None:
    """Do with a file that was accepted what people do with models."""

    def everything() -> None:
        integer = as_integer_model(model)
        if integer.input.is_table or integer.n_inputs < 5000:
            integer.scores(random_raw(integer, 1, 2))
        render_sources(integer, "model", coding=coding)
        modelfile._from_bytes(modelfile.to_bytes(model))

    batch.load(everything, data, suffix)


def run(batch: Batch, size: int) -> None:
    """Damage `size` files."""
    warnings.simplefilter("error", RuntimeWarning)
    warnings.simplefilter("ignore", UserWarning)
    for data in seeds():  # compiles what is to be compiled, before anything is measured
        modelfile._from_bytes(data)
        use(Batch("", 0), modelfile._from_bytes(data), b"", "")
    with tempfile.TemporaryDirectory() as folder:
        for index in range(size):
            rng = np.random.default_rng((batch.seed, index))
            data, suffix = mutated(rng)
            path = Path(folder, f"model{suffix}")
            path.write_bytes(data)
            batch.counts["mutated files"] += 1
            model = batch.load(lambda path=path: load(path), data, suffix)
            said = batch.load(lambda path=path: _about(path), data, suffix)
            if model is not None:
                batch.counts["accepted files"] += 1
                use(batch, model, data, suffix, Coding.read((said or {}).get("coding")))


def _about(path: Path) -> dict[str, Any]:
    found = modelfile.about(path)
    if not schema.is_plain(found):
        raise ValueError("about cannot be printed")
    return found


__all__ = ["mutated", "run", "seeds"]
