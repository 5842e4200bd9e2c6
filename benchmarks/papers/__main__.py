"""The tables and figures of the source papers, made again: paper, ours and the difference.

Run with ``python -m benchmarks.papers [TABLE ...] [--quick] [--data DIR]``. DIR holds ``usps.npz``,
``mnist.npz`` and so on; the pages go to ``docs/results/papers``, those of ``--quick`` (fewer rows
and draws) too if ``--write`` names another folder.
"""

from __future__ import annotations

import argparse
import importlib
import os
import time
import warnings
from pathlib import Path

from sklearn.exceptions import ConvergenceWarning, DataDimensionalityWarning

from benchmarks._environment import describe_machine
from benchmarks.papers.common import Run
from tinykernel.files import write_bytes_atomically

TABLES = {
    "fourier-features": "two_moons",
    "least-squares": "least_squares",
    "kernel-alignment": "kernel_alignment",
    "binary-embedding": "binary_embedding",
    "compact-maps": "compact_maps",
    "systems": "systems",
}


def main() -> None:
    """Write the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join(TABLES))
    parser.add_argument("--quick", action="store_true", help="fewer rows and draws: 5 minutes")
    parser.add_argument("--data", type=Path, default=os.environ.get("TINYKERNEL_DATA", "."))
    parser.add_argument("--write", type=Path, default=Path("docs/results/papers"))
    args = parser.parse_args()
    unknown = set(args.tables) - set(TABLES)
    if unknown:
        parser.error(f"{sorted(unknown)[0]}: choose from {', '.join(TABLES)}")
    args.write.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", DataDimensionalityWarning)  # BJLE has more columns than X
    for name in args.tables or TABLES:
        started = time.process_time()
        module = importlib.import_module(f"benchmarks.papers.{TABLES[name]}")
        lines = []
        for line in module.page(Run(Path(args.data), args.write, args.quick)):
            print(line, flush=True)
            lines.append(line)
        minutes = (time.process_time() - started) / 60
        command = f"python -m benchmarks.papers {name}{' --quick' * args.quick} --data DIR"
        lines += ["", f"Written by `{command}` in {minutes:.1f} minutes of processor time;"]
        lines += [f"{describe_machine()}."]
        write_bytes_atomically(args.write / f"{name}.md", ("\n".join(lines) + "\n").encode())


if __name__ == "__main__":
    main()
