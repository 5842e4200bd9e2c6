"""The generated C of a model of each piece keeps its bytes, whatever becomes of the packages."""

import re
from hashlib import sha256

import pytest

from tests.codegen.kinds import EVERY
from tinykernel.compile.projects import generated_inputs
from tinykernel.compile.sources import render_selftest, render_sources, render_web
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.catalogue import PARTS, STAGES

DIGESTS = {
    "table, windows by row": "94c01d662553d683",
    "table, compact": "645625ec127ebd71",
    "table, packed weights": "05e11be2c73300c3",
    "linear, 4 bits, few inputs": "b191dbff008242fa",
    "linear, 2 bits, components": "54d244333b6ae6d7",
    "signal, averaged": "118f414a5f8c001a",
    "signal, events": "8e77bc0c4a8939b0",
    "signal, no stream": "f491a2c9909c3a8b",
    "signal, numbers beside": "339019d959d5654f",
    "spectrum, int16": "7066ffc0130c917e",
    "spectrum, kernels in turns": "19ce03d6d171a356",
    "spectrum, uint8, no stream": "2f07a4666e07a693",
    "spectrum, numbers beside": "255cbba557a79dfb",
    "spectrum, planes": "1ba2ccd227093101",
    "spectrum, planes of a stream": "fd9b0057fce65d2c",
    "offset, int16": "fef31b6c0a819c31",
    "offset, numbers beside": "237c08c3909e98cf",
    "offset, int8, no stream": "ea5b9e41f30bebed",
    "frame, grey": "9ada56e41a050039",
    "frame, convolutions": "cdb381ab3accc715",
    "convolutions, 4-bit taps": "efddba32840f130b",
    "convolutions, 8-bit taps, averaged, hidden layer": "6f7e44d519e5afa6",
    "dense, table of floats": "d27fe51fee72c496",
    "dense, image, averaged": "f2a71444f95a0b23",
    "separable, one block": "9485944febab49f8",
    "separable, mixed twice, patches, flat, hidden layer": "f13ec6b38fa7d35a",
    "filters, groups, sums and curves": "d32a17e5ddc94805",
    "table, calibrated: known": "f225238f072019b8",
    "signal, calibrated: novelty": "af50ae32936b3351",
    "one class, table": "4066fb2846a8c2dc",
    "one class, signal": "af70c1696def4323",
    "values, signal": "c8fe7b3edab680e3",
    "trees": "99c03881ed6a3f19",
    "trees, floats, vectors": "bc65db5aba9ea13c",
    "trees beside a linear part": "480fbb95088c0331",
}


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
