"""The generated C of a model of each piece keeps its bytes, whatever becomes of the packages."""

import re
from hashlib import sha256

import pytest

from tests.codegen.kinds import EVERY
from tinykernel.compile.projects import generated_inputs
from tinykernel.compile.sources import render_selftest, render_sources, render_web
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.readouts import PARTS
from tinykernel.pieces.stages import STAGES

DIGESTS = {
    "table, windows by row": "ed8b75da30dfa004",
    "table, compact": "6c7515cecf3d90f9",
    "table, packed weights": "1e619befd5b6b7a4",
    "linear, 4 bits, few inputs": "e1d8050bb68ae672",
    "linear, 2 bits, components": "fba04850211700b9",
    "signal, averaged": "a0bcf2ee20d64aa9",
    "signal, events": "c47b1bcbf60e25f8",
    "signal, no stream": "d0beb00b2c6ff783",
    "signal, numbers beside": "314ca02f5079928b",
    "spectrum, int16": "98aff30c204fece2",
    "spectrum, kernels in turns": "6451d38b525826d5",
    "spectrum, uint8, no stream": "0d5fa7b16c5d7dd6",
    "spectrum, numbers beside": "b877b5cb85277ffc",
    "spectrum, planes": "dbb0d03498fe5c09",
    "spectrum, planes of a stream": "f017ba6a56985ae8",
    "offset, int16": "4e96004a8d515477",
    "offset, numbers beside": "f394a873282a4bb1",
    "offset, int8, no stream": "3c426cb6ff22a744",
    "frame, grey": "123c63c85a6e72ec",
    "frame, convolutions": "dca00d3002d645c3",
    "convolutions, 4-bit taps": "629dd633a0ab87cc",
    "convolutions, 8-bit taps, averaged, hidden layer": "b665357048594bd4",
    "dense, table of floats": "6f578ccf14391eb6",
    "dense, image, averaged": "d24db0c1625f0775",
    "separable, one block": "160d46e9af5ade8e",
    "separable, mixed twice, patches, flat, hidden layer": "c7f25102cb5db4c3",
    "table, calibrated: known": "da4a8b54ddc22d27",
    "signal, calibrated: novelty": "54faba94f319053f",
    "one class, table": "68045c69ca5e44e5",
    "one class, signal": "ed7dd06f0693dcbc",
    "values, signal": "8c408131e9abd134",
    "trees": "e27ff33d49df34c6",
    "trees, floats, vectors": "e93feda336a0d6d9",
    "trees beside a linear part": "e077a4d94b67e454",
}


def digest_of(model: IntegerModel) -> str:
    """Return a digest of what is generated, without includes: the runtime may be cut otherwise."""
    files = render_sources(model, "golden")
    files |= render_selftest(model, "golden", generated_inputs(model, 2)) | render_web(
        model, "golden"
    )
    made = {path: data for path, data in files.items() if not path.startswith("lib/")}
    parts = (re.sub(rb"#include .*\n", b"", made[path]) for path in sorted(made))
    return sha256(b"".join(parts)).hexdigest()[:16]


@pytest.mark.parametrize("kind", DIGESTS)
def test_generated_bytes(kind: str) -> None:
    """Who means to change what is generated changes the line of each kind that it touches."""
    assert digest_of(EVERY[kind]()) == DIGESTS[kind]


def test_every_piece_has_bytes() -> None:
    """Whoever adds a stage or a read-out gives a model of it a line."""
    seen = {piece.KIND for kind in DIGESTS for piece in EVERY[kind]().pieces}
    assert {piece.KIND for piece in (*STAGES, *PARTS)} == seen
