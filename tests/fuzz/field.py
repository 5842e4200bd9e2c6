"""Damaged counters of a device: refused in one line, or the very bytes come back."""

import warnings
from functools import cache

import numpy as np

from tests.fuzz.batch import Batch
from tests.fuzz.mutate import mutate_bytes
from tests.random_models import make_model, random_model, random_raw
from tinykernel.judge.drift import drift, expected_counts
from tinykernel.model.answers import margins
from tinykernel.model.counters import Counters, saturated
from tinykernel.model.integer import IntegerModel

_WORDS = (0, 1, 2, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1)
_CHECK = 4


def used(model: IntegerModel, seed: int) -> bytes:
    """Return what a device has after some decisions."""
    counters = Counters(model)
    rows = random_raw(model, seed, 20)
    labels, margin = margins(model.scores(rows))
    for one in zip(labels, margin, saturated(model, rows), strict=True):
        counters.update(*map(int, one))
    return counters.to_bytes()


def states(model: IntegerModel) -> list[bytes]:
    """Return counters as `guided.c` takes them: as they are, and to be checked anew."""
    return [bytes([flag]) + used(model, 1) for flag in (0, 128)]


@cache
def models() -> list[IntegerModel]:
    """Return models of few and many classes."""
    return [
        make_model(1, "uint8"),
        random_model(2, n_classes=2),
        random_model(3, n_classes=12, bits=16, raw_dtype="int32"),
    ]


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Return other bytes, often with a check that is right."""
    if rng.random() < 0.3:
        data = mutate_bytes(data, data[::-1], rng)
    words = np.frombuffer(data[: len(data) // 4 * 4], "<u4").copy()
    for _ in range(int(rng.integers(0, 3))):
        if len(words):
            at = int(rng.integers(0 if rng.random() < 0.2 else min(4, len(words) - 1), len(words)))
            words[at] = rng.choice(_WORDS) if rng.random() < 0.7 else rng.integers(2**32)
    if rng.random() < 0.8 and len(words) > _CHECK:
        check = 0
        for word in np.delete(words, _CHECK).tolist():
            check = ((check << 1 | check >> 31) + word) % 2**32
        words[_CHECK] = check
    return words.tobytes() + data[len(data) // 4 * 4 :]


def use(model: IntegerModel, data: bytes) -> bool:
    """Read them, and do with them what people do; say whether the same bytes come back."""
    counters = Counters.from_bytes(model, data)
    if counters.to_bytes() != data:
        return False
    drift(counters, _expected(model.fingerprint()))
    counters.update(0, 2**32 - 1, 2**32 - 1)
    return len(counters.to_bytes()) == len(data)


@cache
def _expected(fingerprint: str) -> object:
    (model,) = (one for one in models() if one.fingerprint() == fingerprint)
    return expected_counts(model, random_raw(model, 2, 60))


def run(batch: Batch, size: int) -> None:
    """Damage `size` states."""
    warnings.simplefilter("error", RuntimeWarning)
    kept = [(model, used(model, 1)) for model in models()]
    for model, state in kept:
        use(model, state)  # compiles what is to be compiled
    for index in range(size):
        rng = np.random.default_rng((batch.seed, index))
        model, state = kept[rng.integers(len(kept))]
        data = mutated(state, rng)
        batch.counts["saved states"] += 1
        same = batch.load(lambda m=model, d=data: use(m, d), data, ".bin")
        if same is False:
            batch.find("differences", f"state {index} is not the one that was read", data, ".bin")


__all__ = ["run", "states"]
