"""The generated C of a model of each piece keeps its bytes; each piece comes with samples."""

import json
import re
from hashlib import sha256
from pathlib import Path

import pytest

from tests.codegen.kinds import EVERY
from tests.codegen.test_certificate import Checker, export_of
from tests.fuzz.proofs import load_checker
from tests.random_fronts import model_of
from tinykernel import load, save
from tinykernel.compile.sources import generated_inputs, render_selftest, render_sources, render_web
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.catalogue import FOLDERS, PARTS, STAGES, samples_of

DIGESTS = json.loads(Path(__file__).with_name("export_bytes.json").read_text(encoding="utf-8"))


def digest_of(model: IntegerModel) -> str:
    """Return a digest of what is generated, without includes and empty lines."""
    files = render_sources(model, "golden")
    files |= render_selftest(model, "golden", generated_inputs(model, 2)) | render_web(
        model, "golden"
    )
    made = {path: data for path, data in files.items() if not path.startswith("lib/")}
    parts = (re.sub(rb"(?m)^(#include .*)?\n", b"", made[path]) for path in sorted(made))
    return sha256(b"".join(parts)).hexdigest()[:16]


@pytest.mark.parametrize("kind", DIGESTS)
def test_generated_bytes(kind: str) -> None:
    """Who means to change what is generated changes the line of each kind that it touches."""
    assert digest_of(EVERY[kind]()) == DIGESTS[kind]


def test_every_piece_has_bytes() -> None:
    """Whoever adds a stage or a read-out gives a model of it a line."""
    seen = {piece.KIND for kind in DIGESTS for piece in EVERY[kind]().pieces}
    assert {piece.KIND for piece in (*STAGES, *PARTS)} == seen


@pytest.mark.parametrize("kind", FOLDERS)
def test_samples_of_a_piece_make_models(kind, tmp_path, capsys) -> None:
    """A sample has its piece; the proof of its model holds, and a file gives it back."""
    checker, found = Checker(load_checker(), tmp_path), samples_of(kind, 1)
    assert found
    for sample in found:
        model = model_of(sample, 2)
        assert kind in {piece.KIND for piece in model.pieces}
        checker.accept(export_of(model))
        save(model, tmp_path / "m.tkm")
        assert load(tmp_path / "m.tkm") == model
