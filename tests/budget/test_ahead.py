"""The process that compiles beside the first training: only where it saves time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tinykernel.budget import ahead
from tinykernel.compiled import never_compiled
from tinykernel.training.components.steps import learn_slot

_TRAINING = """
import numpy as np
from tinykernel.budget import ahead, train
from tinykernel.training.components.steps import learn_slot
ahead.compile_all()
compiled = set(learn_slot.signatures)
X = np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32)
train(X, X[:, 0] * X[:, 1] > 0, budget="1KB", epochs=1, random_state=0, link=False)
assert compiled and set(learn_slot.signatures) == compiled
"""


@pytest.fixture
def started(monkeypatch) -> list[list[str]]:
    commands: list[list[str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: commands.append(command))
    monkeypatch.setattr(ahead, "_started", [])
    monkeypatch.setattr(ahead, "thread_count", lambda n_jobs: n_jobs or 2)
    return commands


@pytest.mark.parametrize("is_first", [True, False])
def test_a_process_is_started_once_for_a_computer(started, monkeypatch, is_first) -> None:
    """Before anything is compiled, not for one thread, and not by a program with Python inside."""
    monkeypatch.setattr(ahead, "never_compiled", lambda _: is_first)
    ahead.start(1)
    assert started == []
    ahead.start(2)
    ahead.start(None)
    assert [command[:2] for command in started] == [[sys.executable, "-c"]] * is_first
    monkeypatch.setattr(sys, "executable", "/usr/bin/program")
    monkeypatch.setattr(ahead, "_started", [])
    ahead.start(2)
    assert len(started) == is_first


@pytest.mark.slow
def test_a_training_takes_what_the_process_compiled(tmp_path, monkeypatch) -> None:
    """Both compile for the same types; in an empty folder nothing was compiled."""
    done = subprocess.run([sys.executable, "-c", _TRAINING], cwd=ROOT, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    assert not never_compiled(learn_slot)
    monkeypatch.setattr(type(learn_slot._cache), "cache_path", str(tmp_path))
    assert never_compiled(learn_slot)
