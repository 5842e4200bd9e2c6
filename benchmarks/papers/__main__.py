"""The tables and figures of the source papers, made again: paper, ours and the difference.

Run with ``python -m benchmarks.papers [TABLE ...] [--quick] [--data DIR]``. DIR holds ``usps.npz``,
``mnist.npz`` and so on; the pages go to ``docs/results/papers``, those of ``--quick`` (fewer rows
and draws) too if ``--write`` names another folder.
"""

import argparse
import importlib
import os
import time
import warnings
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from sklearn.exceptions import ConvergenceWarning, DataDimensionalityWarning

from benchmarks._environment import describe_machine
from benchmarks.papers.common import Run
from tinykernel.base.files import write_bytes_atomically

#: Each is a module that computes it, and a text in ``pages``.
TABLES = (
    *("fourier-features", "least-squares", "kernel-alignment", "binary-embedding", "compact-maps"),
    "systems",
)


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
    loader = FileSystemLoader(Path(__file__).parent / "pages")
    pages = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True)
    for name in args.tables or TABLES:
        started = time.process_time()
        module = importlib.import_module(f"benchmarks.papers.{name.replace('-', '_')}")
        results = module.results(Run(Path(args.data), args.write, args.quick))
        minutes = (time.process_time() - started) / 60
        command = f"python -m benchmarks.papers {name}{' --quick' * args.quick} --data DIR"
        text = pages.get_template(f"{name}.md.j2").render(results)
        text += f"\n\nWritten by `{command}` in {minutes:.1f} minutes of processor time;\n"
        text += f"{describe_machine()}.\n"
        print(text, flush=True)
        write_bytes_atomically(args.write / f"{name}.md", text.encode())


if __name__ == "__main__":
    main()
