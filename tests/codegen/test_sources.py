"""Rendering the C of a model."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.random_models import random_model
from tests.refusals import refused
from tinykernel.base.errors import TinykernelError
from tinykernel.compile.plan import FORMAT
from tinykernel.compile.sources import render_sources, render_vectors
from tinykernel.run.program import write_sources

pytestmark = pytest.mark.usefixtures("page")


@pytest.mark.slow
def test_the_same_bytes_every_time(checkout: Path) -> None:
    """Two processes render equal bytes, whatever Python's hash seed."""
    script = (
        "import hashlib; from tests.random_models import random_model;"
        "from tinykernel.compile.sources import render_sources;"
        "files = render_sources(random_model(1, kept='some'), 'gesture');"
        "print(hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=checkout,
            check=True,
            capture_output=True,
            env={"PYTHONHASHSEED": seed, "PATH": "/usr/bin:/bin"},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_source_is_tidy_ascii() -> None:
    """Lines are short, without trailing blanks, in ASCII, and end with one line end."""
    model = random_model(1, n_features=300, n_blocks=2, n_classes=12)
    files = render_sources(model, "gesture") | render_vectors(model, "gesture", [[1] * 300] * 3)
    for path in ("include/gesture.h", "src/gesture.c", "include/gesture_vectors.h"):
        text = files[path].decode("ascii")
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
        for line in text.splitlines():
            assert len(line) <= 110, line
            assert line == line.rstrip()
            assert "\t" not in line


def test_scratch_is_two_vectors_and_the_scores() -> None:
    """RAM is 4 bytes per padded input and per class, and bits of blocks counted at once."""
    for options, words in (
        ({"n_features": 784}, 1024 + 10),
        ({"n_features": 64, "n_blocks": 1}, 64 + 10),
        ({"n_features": 64, "n_blocks": 3}, 64 + 6 + 10),
        ({"n_features": 64, "n_blocks": 30}, 64 + 28 + 10),
    ):
        files = render_sources(random_model(1, n_classes=10, **options), "digit")
        assert f"#define DIGIT_SCRATCH_WORDS {words}\n" in files["include/digit.h"].decode()


def test_another_format_does_not_compile(require_tool, tmp_path):
    """A model laid out for another runtime is refused: its scores would be wrong."""
    gcc = require_tool("gcc")
    write_sources(tmp_path, render_sources(random_model(1), "gesture"))
    source = tmp_path / "src" / "gesture.c"
    text = source.read_text()
    line = next(line for line in text.splitlines() if line.startswith("#define TK_FORMAT"))
    for number, message in (
        (f"#define TK_FORMAT {FORMAT + 1}", "different formats"),
        ("", "older"),
    ):
        source.write_text(text.replace(line, number))
        command = [
            *(gcc, "-std=c99", f"-I{tmp_path / 'include'}"),
            *(f"-I{tmp_path / 'lib/tinykernel/src'}", "-c", str(source), "-o"),
            str(tmp_path / "object.o"),
        ]
        finished = subprocess.run(command, capture_output=True, text=True)
        assert finished.returncode != 0
        assert message in finished.stderr


def test_licence_travels_with_the_code(checkout: Path) -> None:
    """Every file says its licence, its text comes along, and the tables are the user's."""
    files = render_sources(random_model(1), "gesture")
    assert files["lib/tinykernel/LICENSE"] == (checkout / "LICENSE").read_bytes()
    for path, data in files.items():
        if path.endswith((".c", ".h")):
            assert b"SPDX-License-Identifier: Apache-2.0" in data, path
    assert b"they are yours" in files["src/gesture.c"]


def test_header_names_the_inputs() -> None:
    """A model that knows its columns tells the order of the inputs, whatever their names are."""
    model = random_model(1)
    plain = render_sources(model, "gesture")["include/gesture.h"]
    names = tuple(f"*/ axis {i} ☃ ??/" for i in range(model.n_features))
    header = render_sources(replace(model, feature_names=names), "gesture")["include/gesture.h"]
    assert b"Inputs:" not in plain
    assert b"Inputs:" in header
    assert b"*/ axis" not in header
    assert b"??/" not in header
    for i in range(model.n_features):
        assert header.count(b"GESTURE_AXIS_%d = %d" % (i, i)) == 1
    assert max(map(len, header.splitlines())) <= 100


@pytest.mark.parametrize(
    "X", [np.zeros((0, 20)), np.zeros((257, 20)), np.full((1, 20), np.nan), np.zeros((1, 19))]
)
def test_vectors_refuse_unfit_rows(X: np.ndarray) -> None:
    """Rows that make no test vectors give one clear line."""
    refused(TinykernelError, render_vectors, random_model(4, raw_dtype="float32"), "gesture", X)
