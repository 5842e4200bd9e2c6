"""The short variant of ``make fuzz``, and files that once went wrong."""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.firmware.compiling import put_runtime
from tests.fuzz import foreign, guided, promises, proofs
from tests.fuzz.__main__ import ENVIRONMENT, FULL, tasks
from tests.fuzz.batch import ROOT, Batch
from tests.fuzz.data import read
from tests.processes import captured
from tests.random_models import changed
from tinykernel.base.errors import TinykernelError
from tinykernel.compile.sources import render_sources
from tinykernel.model.file import load
from tinykernel.model.integer import IntegerModel

CRASHERS = sorted(Path(__file__).with_name("crashers").iterdir())


def test_random_models_of_other_libraries_are_what_they_were() -> None:
    """Labels and values of all families, at thresholds too; refusals have the words of a list."""
    counts = foreign.random_models(12, 4)
    assert not any(counts[fault] for fault in foreign.FAULTS), counts
    assert counts["rows compared"] > 5000


@pytest.mark.slow
def test_damaged_files_of_other_libraries_are_one_line() -> None:
    """No traceback, no process that ends, none that takes long."""
    counts = foreign.damaged(30, 3)
    assert not any(counts[fault] for fault in foreign.FAULTS), counts
    assert counts["refused"] + counts["accepted"] == 30


@pytest.mark.slow
def test_fuzzing_finds_nothing(require_tool: Callable[[str], str]) -> None:
    """A thousandth of the full run: readers, kernels under sanitizers, models from end to end."""
    for tool in ("gcc", "clang"):
        require_tool(tool)
    # One process for all: imports take longer than such small batches.
    command = [sys.executable, "-m", "tests.fuzz", "--scale", "0.001", "--only", "coverage"]
    done = captured(command, cwd=ROOT)
    assert done.returncode == 0, done.stdout
    parts = [part for part, _, _ in FULL if part != "coverage"]
    for task in (work := tasks(0.001, 0, parts)):
        command += ["--batch", *map(str, task)]
    done = captured(command, cwd=ROOT, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [batch["notes"] for batch in found] == [[]] * len(work)
    counts = sum((Counter(batch["counts"]) for batch in found), Counter())
    least = {"kernel inputs": 1001, "guided inputs": 5000, "saved states": 20, "models": 1}
    least |= {"mutated files": 50, "data files": 10}
    assert [name for name, number in least.items() if counts[name] < number] == []
    assert counts["headers"] + counts["refused names"] >= 1
    assert counts["promises"] + counts["refused promises"] >= 7


def test_guided_fuzzing_tells_kernels_apart(require_tool, tmp_path, monkeypatch):
    """A score that is off by one in one of the two builds is found, and its input kept."""
    require_tool("clang")
    assert guided.has_libfuzzer()

    def render(model: IntegerModel, name: str) -> dict[str, bytes]:
        wrong = changed(model, offset=model.readout.offset + np.int32(name == "plain"))
        return render_sources(wrong, name)

    monkeypatch.setattr("tests.fuzz.batch._FINDINGS", tmp_path)
    monkeypatch.setattr("tests.fuzz.batch.ROOT", tmp_path)
    monkeypatch.setattr(guided, "render_sources", render)
    batch = Batch("guided", 0)
    guided.run(batch, 1)
    assert batch.counts["differences"] == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_the_program_that_the_compiler_reads_has_all_structures(require_tool, tmp_path):
    """C without damage is the same to compiler and checker; structures are part of it."""
    require_tool("gcc")
    checker, source, structures = proofs.load_checker(), tmp_path / "m.c", set()
    put_runtime(tmp_path)
    for model in proofs.models():
        files = render_sources(model, "m")
        (tmp_path / "m.h").write_bytes(files["include/m.h"])
        source.write_bytes(files["src/m.c"])
        found, there = checker.Source(source), proofs.compiled(source)
        assert {name: there.get(name) for name in found.seen} == found.seen
        names = {name for name in found.seen if re.search(r"_\d$", name)}
        structures |= names
        if names:
            source.write_text(source.read_text().replace("u, /* top */", "0u, /* top */"))
            other = proofs.compiled(source)
            assert {name for name in there if there[name] != other.get(name)} & names
    first = {"tk_spectrum_0", "tk_offset_0", "tk_levels_0"}
    later = {"tk_kernels_1", "tk_beside_2", "tk_convolutions_1", "tk_dense_2"}
    assert structures >= first | later


def test_a_promise_that_is_broken_too_often_is_found(monkeypatch) -> None:
    """One of five is too many, one of twenty is what was said; so are averages of at most 1."""
    kinds = [
        (lambda rng: rng.random() < 0.8, 1),
        (lambda rng: rng.random() < 0.95, 0),
        (lambda rng: rng.exponential(1.3), 1),
        (lambda rng: rng.exponential(1.0), 0),
    ]
    for kind, findings in kinds:
        monkeypatch.setattr(promises, "KINDS", (kind,))
        batch = Batch("promises", 0)
        promises.run(batch, 400)
        assert batch.counts["differences"] == findings
        assert batch.counts["promises"] == 400


def test_a_full_run_is_as_large_as_promised() -> None:
    """Scaling shares the work out, and loses none of it to rounding."""
    for scale in (1.0, 0.01, 0.001):
        for part, batches, size in FULL:
            work = tasks(scale, 0, [part])
            assert sum(task.size for task in work) >= scale * batches * size
            assert len({task.seed for task in work}) == len(work) <= batches


def test_findings_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception or a message of two lines is a finding, a refusal in one line is none."""
    monkeypatch.setattr("tests.fuzz.batch._FINDINGS", tmp_path)
    monkeypatch.setattr("tests.fuzz.batch.ROOT", tmp_path)
    batch = Batch("models", 7)

    def fail(error: Exception) -> None:
        raise error

    for error in (TinykernelError("one line"), TinykernelError("two\nlines"), KeyError("x")):
        batch.load(lambda error=error: fail(error), b"content", ".tkm")
    assert batch.counts == {"uncaught exceptions": 2}
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"content"] * 2


@pytest.mark.parametrize("path", CRASHERS, ids=lambda path: path.name)
def test_files_that_went_wrong(path: Path) -> None:
    """Every file that fuzzing found is refused in one line, or read."""
    batch = Batch("crashers", 0)
    is_model = path.suffix in (".tkm", ".pkl")
    batch.load(lambda: load(path) if is_model else read(path, path.name.startswith("track")))
    assert batch.notes == []
