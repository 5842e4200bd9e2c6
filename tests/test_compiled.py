"""The cache of compiled functions: used where it is whole, done without where it is not."""

import gc
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import numpy as np
import pytest
from numba.core import config
from numba.core.caching import _CacheLocator
from numba.core.errors import TypingError
from sklearn.datasets import load_iris

from tests.conftest import ROOT
from tinykernel import Classifier
from tinykernel.base import compiled
from tinykernel.base.compiled import njit, part
from tinykernel.kinds import rehearsal
from tinykernel.kinds.rehearsal import compiling_beside
from tinykernel.kinds.selection import kinds_for


def triple() -> Any:
    """Compile a function anew, as another process would."""

    @njit(nogil=True)
    def times_three(x):
        return 3 * x

    return times_three


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def entries(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("*") if path.is_file()]


def test_functions_are_compiled_once(cache) -> None:
    """A second process loads what the first one compiled; other types are another entry."""
    assert triple()(2) == 6
    (entry,) = entries(cache)
    again = triple()
    assert again(2) == 6
    assert sum(again.stats.cache_hits.values()) == 1
    assert again(0.5) == 1.5
    assert len(entries(cache)) == 2
    assert entry.suffix == ".tkc"


@pytest.mark.slow
def test_a_second_process_rehearses_once_something_must_be_compiled(cache, monkeypatch) -> None:
    """It compiles what a training needs, ends with it, and does nothing where all is compiled."""
    X, y = load_iris(return_X_y=True)
    problem, _ = Classifier(model="linear", n_jobs=2).problem(X, y)
    processes = []

    def begin(*arguments, **options):
        processes.append(subprocess.Popen(*arguments, **options))
        return processes[-1]

    monkeypatch.setattr(rehearsal, "subprocess", SimpleNamespace(Popen=begin, DEVNULL=-3))
    with compiling_beside(problem, kinds_for(problem.options)):
        triple()(2)
        assert processes[0].wait() == 0
    with compiling_beside(problem, kinds_for(problem.options)):
        triple()(2)
    with compiling_beside(problem.alone(), kinds_for(problem.options)):
        triple()(0.5)
    assert len(processes) == 1
    with compiling_beside(problem, kinds_for(problem.options)):
        triple()(np.float32(1))
    assert processes[1].returncode is not None
    stuck = Mock(wait=Mock(side_effect=[subprocess.TimeoutExpired("", 1), 0]))
    monkeypatch.setattr(rehearsal.subprocess, "Popen", lambda *_, **options: stuck)
    with compiling_beside(problem, kinds_for(problem.options)):
        triple()(1j)
    stuck.kill.assert_called_once_with()


def test_a_rehearsal_ends_after_the_first_process(monkeypatch) -> None:
    """One that was killed tells nothing; the second compiled on for minutes."""
    pretended = Mock(getppid=Mock(side_effect=[7, 7, 1]), getpid=Mock(return_value=8))
    monkeypatch.setattr(rehearsal, "os", pretended)
    monkeypatch.setattr(rehearsal, "_BETWEEN_LOOKS", 0.0)
    rehearsal._end_with(7)
    assert pretended.mock_calls[-2:] == [call.kill(8, rehearsal.signal.SIGTERM), call._exit(1)]


def test_the_collector_rests_while_functions_are_compiled(cache, monkeypatch) -> None:
    """It looks at objects again and again, and runs afterwards, also where compiling fails."""
    rests, store = [], compiled.dumps

    def look_and_store(item: Any) -> Any:
        rests.append(gc.isenabled())
        return store(item)

    monkeypatch.setattr(compiled, "dumps", look_and_store)
    assert triple()(2) == 6
    assert rests == [False]
    assert gc.isenabled()
    monkeypatch.setattr(compiled, "fcntl", None)  # as where nothing can be locked
    with pytest.raises(TypingError):
        njit()(lambda x: x.no_such)(1)
    assert gc.isenabled()
    assert not compiled._CLOCK._running


def test_import_works_where_no_folder_can_be_written(cache, monkeypatch) -> None:
    """Read-only containers have no place for a cache: functions are compiled in every process."""
    monkeypatch.setattr(
        _CacheLocator,
        "ensure_cache_path",
        Mock(side_effect=PermissionError(13, "Permission denied")),
    )
    assert triple()(2) == 6
    assert entries(cache) == []


@pytest.mark.parametrize("damage", ["cut", "turned", "empty", "folder"])
def test_commands_run_with_a_damaged_cache(cache, damage) -> None:
    """An entry that is not as it was written is neither run nor in the way."""
    triple()(2)
    (entry,) = entries(cache)
    content = entry.read_bytes()
    if damage == "folder":
        entry.unlink()
        entry.mkdir()
    else:
        middle = len(content) // 2
        turned = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        entry.write_bytes({"cut": content[:middle], "turned": turned, "empty": b""}[damage])
    again = triple()
    assert again(2) == 6
    assert sum(again.stats.cache_hits.values()) == 0
    if damage != "folder":
        assert triple()(2) == 6
        assert entry.read_bytes()[:32] != content[32:64]


@pytest.mark.slow
def test_processes_share_a_cache_that_is_being_written(tmp_path) -> None:
    """Of three at once each gets a function for its types, which one of them compiles."""
    lines = [
        "from tinykernel.base.compiled import njit",
        "@njit()",
        "def twice(x):",
        "    return 2 * x",
    ]
    (tmp_path / "twice.py").write_text("\n".join(lines), encoding="utf-8")
    script = "from twice import twice; print([twice(x) for x in (3, 0.5, True, 2j)]); "
    script += "print(sum(twice.stats.cache_misses.values()))"
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    variables = {**os.environ, "PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", script]
    started = [
        subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    told = [running.communicate()[0].splitlines() for running in started]
    assert {values for values, _ in told} == {"[6, 1.0, 2, 4j]"}
    assert sum(int(misses) for _, misses in told) == 4
    assert {path.suffix for path in entries(tmp_path / "cache")} == {".tkc"}
    assert len(entries(tmp_path / "cache")) == 4


def test_commands_run_with_a_full_cache_disk(cache, monkeypatch) -> None:
    """What cannot be kept is used all the same, and no part of it stays."""
    monkeypatch.setattr(os, "replace", Mock(side_effect=OSError(28, "No space left on device")))
    assert triple()(2) == 6
    assert entries(cache) == []


@pytest.mark.parametrize(
    ("inner", "call"),
    [
        ("@njit()\ndef times(x):\n    return {} * x\n", "times(x)"),
        ("@part()\ndef times(x):\n    return {} * x\n", "times(x)"),
        ("TIMES = {}\n", "TIMES * x"),
    ],
)
def test_a_change_in_another_file_compiles_again(cache, tmp_path, monkeypatch, inner, call) -> None:
    """Also where the file of what changed has its old time and size, as after unpacking."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    head = "from tinykernel.base.compiled import njit, part\n"
    name = re.split(r"\W", call)[0]
    outer = f"from inner_part import {name}\n@njit()\ndef whole(x):\n    return {call}\n"
    (tmp_path / "outer_part.py").write_text(head + outer, encoding="utf-8")
    for factor in (3, 7):
        (tmp_path / "inner_part.py").write_text(head + inner.format(factor), encoding="utf-8")
        os.utime(tmp_path / "inner_part.py", (1e9, 1e9))
        compiled._digest.cache_clear()  # as another process would begin
        for module in ("inner_part", "outer_part"):
            monkeypatch.delitem(sys.modules, module, raising=False)
        assert importlib.import_module("outer_part").whole(2) == 2 * factor


def test_parts_are_compiled_within_their_callers(cache) -> None:
    """A part has no entry and no machine code of its own, and Python runs its source."""

    @part()
    def twice(x):
        return 2 * x

    @njit(nogil=True)
    def whole(x):
        return twice(x) + 1

    assert (twice(3), whole(3), whole(1.5)) == (6, 7, 4.0)
    assert len(entries(cache)) == 2


def test_all_functions_use_this_cache() -> None:
    """Numba's own cache is used nowhere."""
    for path in (ROOT / "tinykernel").rglob("*.py"):
        if path.name != "compiled.py":
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"cache=True|from numba import .*jit|numba\.n?jit\(", text), path
