"""A session of ``tinykernel tune`` on digits: its output, its picture, and the same through Dask.

Run with ``python benchmarks/tuning.py [--write FOLDER] [--effort quick]``. Tunes scikit-learn's
digits up to 8 KB on cortex-m0plus, then again on a Dask cluster of two workers, and compares model
and curve. ``--write FOLDER`` leaves ``tuning.md`` and ``tuning.svg`` there. Ends with status 1 when
the two differ, or when the model does not verify or is over its size.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _environment import describe_machine
from distributed import LocalCluster
from sklearn.datasets import load_digits

from tinykernel.files import write_bytes_atomically


def run(folder: Path, *arguments: str) -> str:
    """Run the command line; return what it prints on stdout."""
    command = [sys.executable, "-m", "tinykernel", *arguments]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def main() -> None:
    """Run the session, compare, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    parser.add_argument("--effort", default="normal")
    given = parser.parse_args()
    X, y = load_digits(return_X_y=True)
    words = ("tune", "digits.npz", "--target", "cortex-m0plus", "--budget", "8KB",
             "--effort", given.effort)  # fmt: skip
    outputs = ("-o", "best.tkm", "--csv", "curve.csv", "--plot", "curve.svg")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "digits.npz", X=X.astype(np.uint8), y=y)
        started = time.perf_counter()
        text = run(folder, *words, *outputs)
        seconds = time.perf_counter() - started
        print(text, flush=True)
        table, picture = (folder / "curve.csv").read_text(), (folder / "curve.svg").read_bytes()
        first = (folder / "best.tkm").read_bytes()
        picked = run(folder, *words, "-o", "small.tkm", "--pick", "4KB").splitlines()[-1]
        verified = json.loads(
            run(folder, "verify", "best.tkm", "--data", "digits.npz", "-t", "host", "--json")
        )
        memory = json.loads(run(folder, "report", "best.tkm", "--json"))
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
            started = time.perf_counter()
            run(folder, *words, "-o", "dask.tkm", "--csv", "dask.csv", "--journal", "dask.tune",
                "--backend", "dask", "--scheduler", cluster.scheduler_address)  # fmt: skip
            with_dask = time.perf_counter() - started
        same = (folder / "dask.tkm").read_bytes() == first
        same = same and (folder / "dask.csv").read_text() == table
    lines = [
        "# A session of tune",
        "",
        f"`python benchmarks/tuning.py --effort {given.effort}`, {describe_machine()}.",
        "What the columns mean stands in [tuning.md](../tuning.md).",
        "",
        "```text",
        f"$ tinykernel {shlex.join([*words, *outputs])}",
        *text.splitlines(),
        "```",
        "",
        "![accuracy against flash and against instructions](tuning.svg)",
        "",
        f"Run alone it took {seconds:.0f} s, on a Dask cluster of two workers {with_dask:.0f} s "
        f"(a busy computer). Model and curve are {'the same bytes' if same else 'NOT THE SAME'}. "
        f"The recommended model takes {memory['flash']} bytes of flash ({memory['source']}, "
        f"{memory['compiler'] or 'no compiler'}); "
        f"{verified['differences']} of {verified['scores']} scores differ between its C and "
        f'Python. `--pick 4KB -o small.tkm` trained nothing: "{picked}".',
        "",
        "The curve as CSV:",
        "",
        "```text",
        *table.splitlines(),
        "```",
        "",
    ]
    page = "\n".join(lines)
    print(page)
    if given.write is not None:
        write_bytes_atomically(given.write / "tuning.md", page.encode())
        write_bytes_atomically(given.write / "tuning.svg", picture)
    if not same or verified["differences"] or not memory["fits"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
