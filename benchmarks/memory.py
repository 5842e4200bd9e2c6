"""Peak memory of the whole command `tinykernel train`, against the size of the data.

Run with ``python benchmarks/memory.py --data DIR [--sets covtype] [--write FOLDER]``, where DIR
holds ``covtype.npz``. Each training is a process of its own, whose largest resident set is read
when it ends; it makes one epoch, as more take no more memory. The limit is four times the data as
float32, and 300 MB. ``--write FOLDER`` leaves ``memory.md`` there and every finished row in
``numbers/memory.json``; rows that are there are not measured again. Ends with status 1 where a row
is over the limit.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from _data import ARGUMENTS
from _environment import describe_machine
from _rows import FinishedRows

from tinykernel.files import write_bytes_atomically

SETS, BUDGETS = ("covtype",), ("4KB",)
TIMES, BESIDE = 4, 300e6


def measure(folder: Path, name: str, budget: str, effort: str) -> dict[str, Any]:
    """Train in a child; return its peak memory and the size of the data, in bytes."""
    with np.load(folder / f"{name}.npz") as archive:
        sizes = {key: archive[key].shape for key in archive.files if key.startswith("X")}
    data = 4 * sum(int(np.prod(shape)) for shape in sizes.values())
    with tempfile.TemporaryDirectory() as work:
        command = [
            sys.executable,
            "-m",
            "tinykernel",
            "train",
            str(folder / f"{name}.npz"),
            "-o",
            str(Path(work) / "m.tkm"),
            "--budget",
            budget,
            "--effort",
            effort,
            "--set",
            "epochs=1",
            "--quiet",
            *ARGUMENTS[name],
        ]
        with subprocess.Popen(command) as child:
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{name}: status {child.returncode}")
    unit = 1 if sys.platform == "darwin" else 1024
    shape = "; ".join(" x ".join(map(str, shape)) for shape in sizes.values())
    return {
        "data": data,
        "peak": usage.ru_maxrss * unit,
        "shape": shape,
        "effort": effort,
        "options": " ".join(ARGUMENTS[name]),
        "measured": describe_machine(),
    }


def is_over(row: dict[str, Any]) -> bool:
    """Say whether a row is over the limit."""
    return bool(row["peak"] > TIMES * row["data"] + BESIDE)


def page(rows: dict[str, dict[str, Any]]) -> str:
    """Write the page."""
    lines = [
        "# Peak memory of a training",
        "",
        "Written by `python benchmarks/memory.py`: the largest resident set of the whole command "
        "`tinykernel train DATA --epochs 1`, reading and judging included. The limit is four times "
        "the data as float32, and 300 MB for Python, its libraries and compiled code.",
        "",
        "| data | values | as float32 | budget | effort | peak | limit | |",
        "|---|---|---:|---|---|---:|---:|---|",
    ]
    for key, row in rows.items():
        name, budget = key.split()
        limit = TIMES * row["data"] + BESIDE
        lines.append(
            f"| {name} | {row['shape']} | {row['data'] / 1e6:.0f} MB | {budget} | {row['effort']} "
            f"| {row['peak'] / 1e6:.0f} MB | {limit / 1e6:.0f} MB "
            f"| {'MISSED' if is_over(row) else ''} |"
        )
    where = "; ".join(dict.fromkeys(row["measured"] for row in rows.values()))
    return "\n".join([*lines, "", f"Measured on {where}.", ""])


def main() -> None:
    """Measure what is missing; print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    folder = os.environ.get("TINYKERNEL_DATA")
    parser.add_argument("--data", type=Path, default=folder, required=folder is None)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--budgets", default=",".join(BUDGETS))
    parser.add_argument("--effort", default="normal")
    parser.add_argument("--write", type=Path, help="a folder for the page, e.g. docs/results")
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
    if any(map(is_over, rows.values())):
        sys.exit(1)


if __name__ == "__main__":
    main()
