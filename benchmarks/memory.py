"""Peak memory of the whole command `tinykernel train`, against the size of the data.

Run with ``python benchmarks/memory.py --data DIR [--sets covtype,100000:int16] [--write FOLDER]``,
where DIR holds ``covtype.npz``. ``N:TYPE`` stands for N rows made of those of covtype, with ten
inputs moved at random, in an ``.npy`` of that type. Each training is a process of its own, which is
measured with its children; it makes one epoch, as more take no more memory. The limit is four times
the data as float32, and 400 MB, but never more than 2 GB. ``--write FOLDER`` leaves ``memory.md``
there and every finished row in ``numbers/memory.json``; rows that are there are not measured again.
Ends with status 1 where a row is over the limit.
"""

import json
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from _data import ARGUMENTS
from _environment import describe_machine
from _page import page_arguments, rendered
from _rows import FinishedRows

from tinykernel.base.files import write_bytes_atomically

BUDGETS = ("4KB", "8KB", "30KB")
SETS = ("covtype", "100000:int16", "1000000:int16", "4000000:int16", "10000000:float32")
TIMES, BESIDE, MOST = 4, 400e6, 2e9
_AT_ONCE = 100_000
_MOVED, _BY = 10, 3.0


def make_rows(folder: Path, source: Path, n: int, kind: str) -> Path:
    """Write n rows drawn from those of a data set, a few inputs of them moved at random."""
    with np.load(source) as archive:
        X, y = archive["X"], archive["y"]
    rng = np.random.default_rng(0)
    shape, file = (n, X.shape[1]), folder / f"{n}-{kind}_X.npy"
    out, labels = np.lib.format.open_memmap(file, "w+", kind, shape), np.empty(n, y.dtype)
    for first in range(0, n, _AT_ONCE):
        part = rng.integers(0, len(X), min(_AT_ONCE, n - first))
        rows = X[part].astype(np.float32)
        rows[:, :_MOVED] += np.rint(_BY * rng.standard_normal((len(part), _MOVED)))
        if kind == "float32":
            rows[:, :_MOVED] += np.float32(
                0.25
            )  # no whole numbers, which would take a smaller type
        out[first : first + len(part)], labels[first : first + len(part)] = rows, y[part]
    out.flush()
    np.save(folder / f"{n}-{kind}_y.npy", labels)
    return file


def resident(process: int, above: bytes = b"") -> int:
    """Return the bytes of a process and of all below it, as Linux counts them.

    A child that still is a copy of the command `above` shares its pages, and does not count.
    """
    total, folder = 0, Path(f"/proc/{process}")
    with suppress(OSError):
        command = (folder / "cmdline").read_bytes()
        if command == above:
            return 0
        for line in (folder / "status").read_text().splitlines():
            total += 1024 * int(line.split()[1]) if line.startswith("VmRSS") else 0
        for below in (folder / "task" / str(process) / "children").read_text().split():
            total += resident(int(below), command)
    return total


def run(command: list[str]) -> tuple[int, dict[str, Any]]:
    """Run a command to its end; return its peak memory in bytes, and what it printed as JSON."""
    peak = 0
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as out,
        subprocess.Popen(command, stdout=out) as child,
    ):
        while child.poll() is None:
            peak = max(peak, resident(child.pid))
            time.sleep(0.05)
        if child.returncode:
            raise SystemExit(f"{' '.join(command)}: status {child.returncode}")
        out.seek(0)
        return peak, json.load(out)


def measure(source: Path, name: str, budget: str, effort: str) -> dict[str, Any]:
    """Train in a child; return its peak memory and the size of the data, in bytes."""
    options = [*ARGUMENTS.get(name, ()), "--budget", budget, "--effort", effort]
    options += ["--set", "epochs=1", "--quiet", "--json"]
    with tempfile.TemporaryDirectory() as work:
        file = source / f"{name}.npz"
        if ":" in name:
            n, kind = name.split(":")
            file = make_rows(Path(work), source / "covtype.npz", int(n), kind)
            shape: tuple[int, ...] = np.load(file, mmap_mode="r").shape
        else:
            with np.load(file) as archive:
                shape = archive["X"].shape
        train = [sys.executable, "-m", "tinykernel", "train", str(file), *options]
        peak, printed = run([*train, "-o", str(Path(work) / "m.tkm")])
    return {
        "data": 4 * int(np.prod(shape)),
        "peak": peak,
        "shape": " x ".join(map(str, shape)),
        "effort": effort,
        "model": printed["model_kind"],
        "rows": printed["drawn"],
        "test": printed["test_accuracy"],
        "seconds": printed["seconds"],
        "measured": describe_machine(),
    }


def limit_of(row: dict[str, Any]) -> float:
    """Return the most bytes that a row may take."""
    return min(float(TIMES * row["data"] + BESIDE), MOST)


def page(rows: dict[str, dict[str, Any]]) -> str:
    """Write the page."""
    lines = []
    for key, row in rows.items():
        name, budget = key.split()
        lines.append(
            f"{name.replace(':', ' ')} | {row['shape']} | {row['data'] / 1e6:.0f} MB "
            f"| {budget} | {row['peak'] / 1e6:.0f} MB | {limit_of(row) / 1e6:.0f} MB "
            f"| {'MISSED' if row['peak'] > limit_of(row) else ''} | {row['model']} "
            f"| {row['rows'] or 'all'} | {100 * row['test']:.2f} % | {row['seconds']:.0f} s"
        )
    where = "; ".join(dict.fromkeys(row["measured"] for row in rows.values()))
    return "\n".join((*rendered("memory", rows=lines, where=where), ""))


def main() -> None:
    """Measure what is missing; print and write the table."""
    parser = page_arguments(__doc__, ",".join(SETS), "a folder for the page, e.g. docs/results")
    parser.add_argument("--budgets", default=",".join(BUDGETS))
    parser.add_argument("--effort", default="normal")
    arguments = parser.parse_args()
    rows = FinishedRows(arguments.write, "memory")
    for name in arguments.sets.split(","):
        for budget in arguments.budgets.split(","):
            rows.measure(
                f"{name} {budget}", measure, arguments.data, name, budget, arguments.effort
            )
    text = page(rows)
    print(text)
    if arguments.write is not None:
        write_bytes_atomically(arguments.write / "memory.md", text.encode())
    if any(row["peak"] > limit_of(row) for row in rows.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
