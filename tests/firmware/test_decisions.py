"""Decisions of the generated C, on this computer and on emulated cores, against Python."""

import dataclasses
import subprocess
from collections.abc import Callable

import numpy as np
import pytest

from tests.firmware.compiling import compile_export
from tests.firmware.local_models import CONVOLUTIONS, SIGNALS
from tests.random_models import random_model, random_raw
from tinykernel import export
from tinykernel.compile import sources
from tinykernel.compile.sources import render_single, render_sources
from tinykernel.learn.novelty import as_levels, fit_margin_line
from tinykernel.model.answers import Decision, margins, nearer, novelties
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.prototypes.spec import coarse, distances
from tinykernel.run.parity import verify


def deciding(model: IntegerModel, X: np.ndarray, per_class: bool = False) -> IntegerModel:
    """Return a model that refuses about half of these rows, and finds half of them novel.

    With thresholds of each class novelty is that of three prototypes and the margin.
    """
    scores = model.scores(X)
    labels, margin = margins(scores)
    thresholds = [int(np.percentile(margin, 50, method="lower"))]  # that of a row
    if per_class:
        thresholds = [
            int(np.percentile(margin[labels == label], 50, method="lower"))
            if np.any(labels == label)
            else 2**32 - 1
            for label in range(model.n_classes)
        ]
    shift = max(0, int(margin.max()).bit_length() - 7)
    decision = Decision(
        np.array(thresholds, np.uint32),
        np.linspace(3, 255, 64).astype(np.uint8),
        shift,
        1.0,
        "a promise with */ in it",
        int(np.median(novelties(scores))),
    )
    if per_class:
        inputs = model.quantize_inputs(X)
        prototypes = as_levels(coarse(inputs)[:3])
        distance = distances(inputs, prototypes)
        line, _ = fit_margin_line(scores, distance)
        threshold = int(np.median(nearer(distance, margin, line)))
        decision = dataclasses.replace(
            decision, novelty_threshold=threshold, prototypes=prototypes, margin_line=line
        )
    return dataclasses.replace(model, decision=decision)


CASES: dict[str, Callable[[], IntegerModel]] = {
    "two classes": lambda: random_model(2, n_classes=2, raw_dtype="float32"),
    "five classes, 16 bits": lambda: random_model(3, n_classes=5, bits=16, raw_dtype="int32"),
    "image": CONVOLUTIONS["4-bit taps"],
    "stream": SIGNALS["components"],
    "no stream": SIGNALS["no stream"],
}


@pytest.mark.parametrize(
    ("place", "what"),
    [
        ("TK_THRESHOLD(i)", "decision"),
        ("tk_confidence", "confidence"),
        ("TK_NOVELTY_THRESHOLD", "whether it is novel"),
        ("tk_prototypes", "novelty"),
        ("TK_NOVELTY_STEPS", "novelty"),
    ],
)
def test_a_wrong_decision_is_found(require_tool, monkeypatch, place, what):
    """The comparison bites: another threshold or confidence is named as a difference."""
    require_tool("gcc")
    model = random_model(1)
    X = random_raw(model, 1, 60)
    by_prototypes = place in ("tk_prototypes", "TK_NOVELTY_STEPS")
    found, true_pack = deciding(model, X, by_prototypes), sources.pack

    def wrong_pack(given: IntegerModel):
        packed = true_pack(given)
        definitions = tuple(
            dataclasses.replace(one, value="1") if one.name == place else one
            for one in packed.definitions
        )
        tables = tuple(
            dataclasses.replace(one, values=one.values ^ 1) if one.name == place else one
            for one in packed.tables
        )
        return dataclasses.replace(packed, definitions=definitions, tables=tables)

    monkeypatch.setattr(sources, "pack", wrong_pack)
    result = verify(found, X)
    assert f", {what}: " in str(result.first_difference)


@pytest.mark.sharp
@pytest.mark.parametrize("by_prototypes", [False, True])
def test_the_self_test_decides(require_compiler, tmp_path, by_prototypes):
    """The program of an export compares decisions, refusals too, and names what differs."""
    model = CASES["five classes, 16 bits"]()
    X = random_raw(model, 1, 8)
    found = deciding(model, X, by_prototypes)
    export(found, "host", tmp_path, name="sure", vectors=X)
    refused = int(np.sum(found.decide(X) < 0))
    assert 0 < refused < 8

    def printed() -> str:
        program = compile_export(require_compiler("host"), tmp_path)
        return subprocess.run([program], capture_output=True, text=True).stdout

    assert f"equal, and all decisions, {refused} of them refusals\n" in printed()
    novelty = int(found.novelty(X)[0])
    for vectors in tmp_path.rglob("sure_vectors.h"):
        head, tail = vectors.read_text().split("sure_vector_decisions[", 1)
        assert f" {novelty}\n" in tail
        tail = tail.replace(f" {novelty}\n", " 7\n", 1)
        vectors.write_text(f"{head}sure_vector_decisions[{tail}")
    assert f"FAIL: vector 0, novelty: got {novelty}, expected 7\n" in printed()


def test_without_a_decision_part_the_c_is_as_before() -> None:
    """A model without one has nothing of it."""
    model = random_model(1)
    plain = render_sources(model, "plain")
    for text in (
        plain["src/plain.c"],
        plain["include/plain.h"],
        render_single(plain, "plain")["single/plain.c"],
    ):
        assert b"decide" not in text
        assert b"onfidence" not in text
    X = random_raw(model, 1, 10)
    sure = deciding(model, X)
    files = render_sources(sure, "sure")
    assert b"NOVELTY_THRESHOLD" in files["include/sure.h"]
    bare = dataclasses.replace(sure.decision, novelty_threshold=None)
    for path, text in render_sources(dataclasses.replace(sure, decision=bare), "bare").items():
        assert b"novel" not in text or path.endswith("tk_decide.h")
    assert b"#define SURE_REFUSED (-1)" in files["include/sure.h"]
