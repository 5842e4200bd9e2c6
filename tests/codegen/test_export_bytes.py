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
    "table, windows by row": "4a073df66eca4a33",
    "table, compact": "342626fdfa46ec12",
    "table, packed weights": "8ced6762409a4241",
    "linear, 4 bits, few inputs": "d6fbcb4c1340d773",
    "linear, 2 bits, components": "07a28d059ed28bdb",
    "signal, averaged": "6fc9d84ccbfd14df",
    "signal, events": "176acfd20a6ba3db",
    "signal, no stream": "f151ddc14a0f0330",
    "signal, numbers beside": "ae9f54557b8da593",
    "spectrum, int16": "e2b35ea2f31a2804",
    "spectrum, kernels in turns": "1ed992ec28f29f10",
    "spectrum, uint8, no stream": "8d701cc0386d38ce",
    "spectrum, numbers beside": "d0718dd85c29bcdd",
    "spectrum, planes": "1019b8840e78ba80",
    "spectrum, planes of a stream": "14af7a8849b9c456",
    "offset, int16": "9b97ffd2fe1cb541",
    "offset, numbers beside": "5292ef757dacb481",
    "offset, int8, no stream": "cee590d476de67ce",
    "frame, grey": "b2e2162fbedfef23",
    "frame, convolutions": "69b985e4800a744e",
    "convolutions, 4-bit taps": "39b8c9516dcbb0b8",
    "convolutions, 8-bit taps, averaged, hidden layer": "26529c1bbba7459b",
    "dense, table of floats": "2e7f42abd064d8dd",
    "dense, image, averaged": "0c14be5e858568b9",
    "separable, one block": "9a9d9d2f5affd38b",
    "separable, mixed twice, patches, flat, hidden layer": "12ba28567d5bfcfc",
    "filters, groups, sums and curves": "0c15becc43469081",
    "table, calibrated: known": "f4e898565d552871",
    "signal, calibrated: novelty": "12d43871293b8cd8",
    "one class, table": "bd9a8a7eb44d99ca",
    "one class, signal": "104f84dcabe72d35",
    "values, signal": "558386440e3db460",
    "trees": "112c518d89b38888",
    "trees, floats, vectors": "013cec9f20660ba8",
    "trees beside a linear part": "a326b5656512d44d",
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
