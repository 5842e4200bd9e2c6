"""Run all fuzzing: readers of files, the C under sanitizers, random models from end to end,
and hostile input through whole commands.

Every batch is a process of its own, so that a crash is a finding and memory can be measured, unless
``--batch`` names them. What goes wrong is printed with the command that repeats it; files are kept
in ``fuzz-findings/``. The last line has the counts, and the status is 0 only if nothing was found.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib import import_module
from typing import Any, NamedTuple

from tests.fuzz.batch import ROOT, Batch, limit_memory
from tests.processes import captured

#: What a full run does, in parts and batches: part, number of batches, size of one.
FULL = (
    *(("system", 20, 50), ("kernels", 30, 6), ("guided", 8, 5), ("field", 1, 20000)),
    *(("proofs", 10, 2000), ("models", 25, 2000), ("data", 10, 1000), ("coverage", 8, 4000)),
    *(("hostile", 4, 80), ("serial", 4, 100), ("names", 4, 100)),
    ("promises", 4, 250),
)
#: Of a batch, so that it can be repeated.
ENVIRONMENT = {"PYTHONHASHSEED": "0", "NUMBA_NUM_THREADS": "1", **os.environ}
_SECONDS = 1200
_FINDINGS = ("crashes", "uncaught exceptions", "sanitizer reports", "differences")
_COUNTS = (
    "kernel inputs",
    "guided inputs",
    "saved states",
    "proofs",
    "mutated files",
    "data files",
    "files by coverage",
    "hostile checks",
    "commands",
    "refused commands",
    "streams",
    "serial devices",
    "headers",
    "refused names",
    "promises",
    "refused promises",
    "models",
    "refused models",
    *_FINDINGS,
)


class Task(NamedTuple):
    part: str
    seed: int
    size: int

    def command(self) -> list[str]:
        return [sys.executable, "-m", "tests.fuzz", "--batch", *map(str, self)]


def tasks(scale: float, seed: int, parts: list[str]) -> list[Task]:
    """Share out the work: in batches as large as those of a full run, or one."""
    found = []
    for part, batches, size in FULL:
        wanted = max(1, math.ceil(batches * size * scale))
        n_batches = max(1, math.ceil(batches * scale))
        if part in parts:
            found += [Task(part, seed + i, -(-wanted // n_batches)) for i in range(n_batches)]
    return found


def run_batch(task: Task) -> Batch:
    """Do the work of one batch, in the process that is there for it."""
    limit_memory()
    batch = Batch(task.part, task.seed)
    import_module(f"tests.fuzz.{task.part}").run(batch, task.size)
    return batch


def start(task: Task) -> dict[str, Any]:
    """Run a batch as a process; one that ends without a result has crashed."""
    try:
        done = captured(task.command(), cwd=ROOT, env=ENVIRONMENT, timeout=_SECONDS)
        return dict(json.loads(done.stdout.splitlines()[-1]))
    except (subprocess.TimeoutExpired, ValueError, IndexError) as error:
        stderr = getattr(locals().get("done"), "stderr", "") or str(error)
        note = f"{' '.join(task.command()[1:])}: {stderr[-2000:]}"
        return {"counts": {"crashes": 1}, "notes": [note]}


def summary(counts: Counter[str], memory: int, seconds: float) -> str:
    """Return the last line."""
    parts = [f"{counts[name]} {name}" for name in _COUNTS]
    return "; ".join(
        [*parts, f"largest memory of a load {memory >> 20} MiB", f"longest load {seconds:.2f} s"]
    )


def run_all(work: list[Task], workers: int) -> int:
    counts: Counter[str] = Counter()
    memory, longest, begin = 0, 0.0, time.monotonic()
    with ThreadPoolExecutor(workers) as pool:
        for number, future in enumerate(as_completed([pool.submit(start, t) for t in work]), 1):
            found = future.result()
            counts.update(found["counts"])
            memory = max(memory, found.get("memory", 0))
            longest = max(longest, found.get("seconds", 0.0))
            for note in found["notes"]:
                print(note)
            done = f"[{number}/{len(work)}, {time.monotonic() - begin:.0f} s]"
            print(done, summary(counts, memory, longest), flush=True)
    print(summary(counts, memory, longest))
    return int(any(counts[name] for name in _FINDINGS))


def main() -> int:
    names = [part for part, _, _ in FULL]
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="share of a full run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="processes at a time")
    parser.add_argument("--only", choices=names, action="append", help="a part; repeat it")
    words, again = ("PART", "SEED", "SIZE"), "one batch, in this process; repeat it"
    parser.add_argument("--batch", nargs=3, action="append", metavar=words, help=again)
    given = parser.parse_args()
    if given.batch:
        for part, seed, size in given.batch:
            print(run_batch(Task(part, int(seed), int(size))).to_json(), flush=True)
        return 0
    return run_all(tasks(given.scale, given.seed, given.only or names), given.workers)


if __name__ == "__main__":
    sys.exit(main())
