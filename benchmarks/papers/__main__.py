"""Command line of the paper benchmarks."""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module
from pathlib import Path

PAPERS = ("binary-embedding",)


def main() -> int:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers",
        description="Re-run the tables and figures of the source papers; write Markdown and PNG.",
    )
    parser.add_argument("paper", nargs="+", choices=("all", *PAPERS))
    parser.add_argument("--data", type=Path, required=True, help="folder of usps.npz and others")
    parser.add_argument(
        "--out", type=Path, help="folder of the pages (docs/results; with --quick build/papers)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="few rows and repeats: a check of at most 5 minutes"
    )
    parser.add_argument("--fresh", action="store_true", help="measure again what is known already")
    options = parser.parse_args()
    if not options.data.is_dir():
        parser.error(f"--data {options.data}: no such folder")
    from benchmarks.papers.harness import Bench

    out = options.out or Path("build/papers" if options.quick else "docs/results")
    bench = Bench(options.data, out, options.quick, options.fresh)
    chosen = PAPERS if "all" in options.paper else tuple(dict.fromkeys(options.paper))
    for paper in chosen:
        begin = time.perf_counter()
        import_module(f"benchmarks.papers.{paper.replace('-', '_')}").run(bench)
        print(f"{paper}: {time.perf_counter() - begin:.0f} s, {out / paper}.md", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
