"""A rehearsal: a second process compiles what a training is about to need.

On a computer that has compiled nothing yet, a training spends half of its time in the compiler,
which takes one thread of a process. So the second process trains each kind on a few of the rows,
the costliest first, while the first begins with the cheapest. Who needs a function that the other
compiles waits for it (`tinykernel.base.compiled`). Nothing else of a rehearsal is used: models are
the same without.
"""

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any, BinaryIO

from tinykernel.base.compiled import calling_once_compiling
from tinykernel.base.errors import TinykernelError
from tinykernel.kinds.kind import AnyKind, Problem
from tinykernel.kinds.pace import Pace
from tinykernel.kinds.selection import KINDS, select
from tinykernel.learn.options import Effort

# Rows of each class, of which some are held out, and of any.
_ROWS_OF_A_CLASS, _ROWS = 8, 128
# So few trainings call all that a search calls.
_EFFORT = Effort(share=0.02, trials=3, final=0.02)
# Seconds in which a process ends; an exit within a finalizer, say, has no effect.
_LONGEST_END = 10.0
_BETWEEN_LOOKS = 1.0
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from {0} import _main; _main(sys.stdin.buffer)"


@contextmanager
def compiling_beside(problem: Problem, kinds: Sequence[AnyKind]) -> Iterator[None]:
    """Rehearse from the first function on that must be compiled, until the context ends.

    Nothing is done with one thread, as the second process would take the time of the first, nor
    inside a program that is no Python itself.
    """
    processes: list[subprocess.Popen[bytes]] = []

    def begin() -> None:
        # Labels may be objects that cannot be pickled.
        not_pickled = pickle.PicklingError, AttributeError, TypeError
        with suppress(OSError, *not_pickled), tempfile.TemporaryFile() as script:
            few = problem.few_of_each(_ROWS_OF_A_CLASS, _ROWS)
            fields = few.data, few.options, few.shape, few.limits, few.target
            pickle.dump((os.getpid(), fields, [kind.name for kind in kinds]), script)
            script.seek(0)
            command = [sys.executable, "-c", _PROGRAM.format(__name__), *sys.path]
            quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            processes.append(subprocess.Popen(command, stdin=script, **quiet))

    if problem.n_threads < 2 or not Path(sys.executable or "").name.startswith("python"):
        yield
        return
    with calling_once_compiling(begin):
        try:
            yield
        finally:
            for process in processes:
                process.terminate()
                with suppress(TimeoutExpired):
                    process.wait(_LONGEST_END)
                process.kill()
                process.wait()


def _main(script: BinaryIO) -> None:
    """Rehearse a problem that the first process has written."""
    # Leaves no half-written file in the cache.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    parent, fields, names = pickle.load(script)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    rehearse(Problem(*fields), [kind for kind in KINDS if kind.name in names])


def _end_with(parent: int) -> None:
    """End soon after the first process, which tells nothing where it was killed."""
    while os.getppid() == parent:
        time.sleep(_BETWEEN_LOOKS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_BETWEEN_LOOKS)  # the compiler may take much longer to notice
    os._exit(1)


def rehearse(problem: Problem, kinds: Sequence[AnyKind]) -> None:
    """Search settings for each kind, and train it."""
    problem = replace(problem, options=replace(problem.options, n_jobs=1))
    for kind in sorted(kinds, key=lambda kind: -kind.cost):
        with suppress(TinykernelError):
            pace = Pace(_EFFORT)
            selection = select(problem, [kind], pace)
            kind.fit(selection.spec, problem, pace).machine.predict(problem.data.X)
