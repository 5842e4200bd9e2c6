"""Damaged counters and offsets of a device: refused in one line, or the very bytes come back."""

from __future__ import annotations

import warnings
import zlib
from functools import cache

import numpy as np

from tests.fuzz.batch import Batch
from tests.fuzz.mutate import mutate_bytes
from tests.random_models import make_model, random_model, random_raw
from tinykernel.decisions.adaptation import Adaptation
from tinykernel.decisions.counters import Counters, saturated
from tinykernel.decisions.drift import drift, expected_counts
from tinykernel.model import IntegerModel
from tinykernel.model.answers.decision import margins

_WORDS = (0, 1, 2, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1)
_CHECK = 4


def used(model: IntegerModel, seed: int) -> tuple[Counters, Adaptation]:
    """Return what a device has after some decisions and labels."""
    counters, adaptation = Counters(model), Adaptation(model)
    rows = random_raw(model, seed, 20)
    labels, margin = margins(model.scores(rows))
    for one in zip(labels, margin, saturated(model, rows), strict=True):
        counters.update(*map(int, one))
    adaptation.adapt(rows, np.arange(20) % model.n_classes)
    return counters, adaptation


def states(model: IntegerModel) -> list[bytes]:
    """Return counters and offsets as `guided.c` takes them: as they are, and to be checked anew."""
    counters, adaptation = used(model, 1)
    return [
        bytes([kind + flag]) + state.to_bytes()
        for flag in (0, 128)
        for kind, state in ((0, counters), (1, adaptation))
    ]


@cache
def models() -> list[IntegerModel]:
    """Return models of few and many classes, in which offsets have much or little room."""
    return [
        make_model(1, "uint8"),
        random_model(2, n_classes=2),
        random_model(3, n_classes=12, bits=16, raw_dtype="int32"),
    ]


def mutated(data: bytes, is_counters: bool, rng: np.random.Generator) -> bytes:
    """Return other bytes, often with a check that is right."""
    if rng.random() < 0.3:
        data = mutate_bytes(data, data[::-1], rng)
    words = np.frombuffer(data[: len(data) // 4 * 4], "<u4").copy()
    for _ in range(int(rng.integers(0, 3))):
        if len(words):
            at = int(rng.integers(0 if rng.random() < 0.2 else min(4, len(words) - 1), len(words)))
            words[at] = rng.choice(_WORDS) if rng.random() < 0.7 else rng.integers(2**32)
    if rng.random() < 0.8 and len(words) > _CHECK:
        if is_counters:
            check = 0
            for word in np.delete(words, _CHECK).tolist():
                check = ((check << 1 | check >> 31) + word) % 2**32
            words[_CHECK] = check
        else:
            words[-1] = zlib.crc32(words[:-1].tobytes())
    return words.tobytes() + data[len(data) // 4 * 4 :]


def use(model: IntegerModel, data: bytes, is_counters: bool) -> bool:
    """Read them, and do with them what people do; say whether the same bytes come back."""
    if is_counters:
        counters = Counters.from_bytes(model, data)
        if counters.to_bytes() != data:
            return False
        drift(counters, _expected(model.fingerprint()))
        counters.update(0, 2**32 - 1, 2**32 - 1)
        return len(counters.to_bytes()) == len(data)
    adaptation = Adaptation.from_bytes(model, data)
    if adaptation.to_bytes() != data:
        return False
    adaptation.adapt(random_raw(model, 3, 4), np.arange(4) % model.n_classes)
    return max(map(abs, adaptation.offsets)) <= adaptation.largest


@cache
def _expected(fingerprint: str) -> object:
    (model,) = (one for one in models() if one.fingerprint() == fingerprint)
    return expected_counts(model, random_raw(model, 2, 60))


def run(batch: Batch, size: int) -> None:
    """Damage `size` states."""
    warnings.simplefilter("error", RuntimeWarning)
    kept = [(model, [state.to_bytes() for state in used(model, 1)]) for model in models()]
    for model, both in kept:
        for is_counters, data in zip((True, False), both, strict=True):
            use(model, data, is_counters)  # compiles what is to be compiled
    for index in range(size):
        rng = np.random.default_rng((batch.seed, index))
        model, both = kept[rng.integers(len(kept))]
        is_counters = bool(rng.integers(2))
        data = mutated(both[not is_counters], is_counters, rng)
        batch.counts["saved states"] += 1
        same = batch.load(lambda m=model, d=data, c=is_counters: use(m, d, c), data, ".bin")
        if same is False:
            batch.find("differences", f"state {index} is not the one that was read", data, ".bin")


__all__ = ["run", "states"]
