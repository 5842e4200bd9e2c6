"""The first training on a computer: another process compiles a part of what it needs."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import numpy as np

from tinykernel.checks import thread_count
from tinykernel.compiled import never_compiled
from tinykernel.estimator import TernaryKernelClassifier
from tinykernel.training.components.steps import learn_slot

_PROGRAM = "from tinykernel.budget.ahead import compile_all; compile_all()"
_started: list[subprocess.Popen[bytes]] = []


def start(n_jobs: int | None) -> None:
    """Start the process if nothing was compiled yet; functions are shared by the cache on disk.

    The training begins with trees, the process with components, and each waits for the other.
    """
    is_python = Path(sys.executable or "").stem.startswith("python")
    if not is_python or _started or thread_count(n_jobs) < 2 or not never_compiled(learn_slot):
        return
    with contextlib.suppress(OSError):
        none = subprocess.DEVNULL
        command = [sys.executable, "-c", _PROGRAM]
        # Modules in the folder of the user would be imported in place of others.
        started = subprocess.Popen(command, cwd=sys.prefix, stdin=none, stdout=none, stderr=none)
        _started.append(started)


def compile_all() -> None:
    """Train and run small models of each kind."""
    X = np.random.default_rng(0).normal(size=(96, 4)).astype(np.float32)
    y = np.arange(96) % 3
    of_components = {"n_components": 64, "linear": 8, "epochs": 4}
    for options in (of_components, {"n_components": 0, "linear": 8}, {"model": "trees"}):
        TernaryKernelClassifier(effort="quick", random_state=0, **options).fit(X, y).predict(X)
