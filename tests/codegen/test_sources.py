"""Rendering the C of a model."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.random_models import balanced, random_model, random_raw, tree_model
from tests.refusals import refused_for
from tinykernel.compile.plan import FORMAT, pack
from tinykernel.compile.sources import render_sources, render_vectors
from tinykernel.learn.calibration import calibrate
from tinykernel.run.parity import verify
from tinykernel.run.program import write_sources


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


def test_labels_cannot_end_a_comment_or_a_string() -> None:
    """Class names of any characters leave the C intact."""
    model = random_model(1, n_classes=3)
    object.__setattr__(model.answers, "classes", ("*/ #error", 'quo"te\\', "naïve ☃"))
    files = render_sources(model, "gesture")
    assert files["include/gesture.h"].count(b"*/ #error") == 0
    assert b'"quo\\"te\\\\"' in files["src/gesture.c"]
    assert b"na\\303\\257ve" in files["src/gesture.c"]


@pytest.mark.parametrize(("n_classes", "end"), [(3, '"2"'), (10, '"5", ..')])
def test_a_list_of_classes_ends_in_three_dots_at_most(n_classes: int, end: str) -> None:
    """The sentence ends with one full stop, or with the three of what is left out."""
    header = render_sources(random_model(1, n_classes=n_classes), "m")["include/m.h"].decode()
    line = next(line for line in header.splitlines() if "labels are 0 to" in line)
    assert line.endswith(f"{end}. */")
    assert "...." not in line


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
    ("X", "message"),
    [
        (np.zeros((0, 20)), "0 rows"),
        (np.zeros((257, 20)), "257 rows"),
        (np.full((1, 20), np.nan), "not finite"),
        (np.zeros((1, 19)), "shape"),
    ],
)
def test_vectors_refuse_unfit_rows(X: np.ndarray, message: str) -> None:
    """Rows that make no test vectors give one clear line."""
    refused_for(message, render_vectors, random_model(4, raw_dtype="float32"), "gesture", X)


def test_trees_with_thresholds_by_class_compile(require_tool: Callable[[str], str]) -> None:
    """The tables of the trees and of the decisions have names of their own."""
    require_tool("gcc")
    model = balanced(tree_model(1))
    X = random_raw(model, 0, 400)
    sure = calibrate(model, X, model.predict(X), coverage=0.5, per_class=True).model
    assert np.ptp(sure.decision.thresholds) > 0
    found = verify(sure, X[:50], target="host")
    assert found.ok
    assert found.differences == 0


def test_names_that_are_not_unique_are_not_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage or part whose table has the name of another one ends where C is rendered."""
    packed = pack(random_model(1))
    twice = replace(packed, tables=(*packed.tables, packed.tables[0]))
    monkeypatch.setattr("tinykernel.compile.plan.pack", lambda _: twice)
    with pytest.raises(AssertionError, match="names that are not unique"):
        render_sources(random_model(1), "gesture")
