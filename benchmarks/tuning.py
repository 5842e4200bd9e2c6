"""A session of ``tinykernel tune`` on digits: its output, its picture, and the same through Dask.

Run with ``python benchmarks/tuning.py [--write FOLDER] [--effort quick] [--dask] [--keep FOLDER]``.
Tunes scikit-learn's digits up to 8 KB on cortex-m0plus; with ``--dask`` again on a cluster of two
workers, and compares model and curve. ``--write FOLDER`` leaves ``tuning.md`` and ``tuning.svg``
there, ``--keep FOLDER`` what is trained, so that it is continued. Ends with status 1 when the two
differ, or when the model does not verify or is over its size.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from _environment import describe_machine
from sklearn.datasets import load_digits

from tinykernel.files import write_bytes_atomically


def run(folder: Path, *arguments: str) -> str:
    """Run the command line; return what it prints on stdout."""
    command = [sys.executable, "-m", "tinykernel", *arguments]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def same_with_dask(folder: Path, words: tuple[str, ...]) -> bool:
    """Tune again on a cluster of two workers; say whether model and curve have the same bytes."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        run(
            folder,
            *words,
            "-o",
            "dask.tkm",
            "--set",
            "csv=dask.csv",
            "--set",
            "journal=dask.tune",
            "--set",
            "backend=dask",
            "--set",
            f"scheduler={cluster.scheduler_address}",
        )
    pairs = (("dask.tkm", "best.tkm"), ("dask.csv", "curve.csv"))
    return all((folder / a).read_bytes() == (folder / b).read_bytes() for a, b in pairs)


def session(folder: Path, effort: str, with_dask: bool) -> tuple[str, bool]:
    """Run all commands; return the page and whether everything holds."""
    X, y = load_digits(return_X_y=True)
    np.savez(folder / "digits.npz", X=X.astype(np.uint8), y=y)
    words = ("tune", "digits.npz", "--target", "cortex-m0plus", "--budget", "8KB")
    words += ("--set", f"effort={effort}")
    outputs = ("-o", "best.tkm", "--set", "csv=curve.csv", "--set", "plot=curve.svg")
    text = run(folder, *words, *outputs)
    picked = run(folder, *words, "-o", "small.tkm", "--pick", "4KB").splitlines()[-1]
    verified = json.loads(run(folder, "verify", "best.tkm", "digits.npz", "-t", "host", "--json"))
    memory = json.loads(run(folder, "report", "best.tkm", "--json"))
    holds = not verified["differences"] and memory["fits"]
    lines = [
        "# A session of tune",
        "",
        f"`python benchmarks/tuning.py --effort {effort}`, {describe_machine()}.",
        "What the columns mean stands in [judging.md](../judging.md#the-smallest-good-model).",
        "",
        "```text",
        f"$ tinykernel {shlex.join([*words, *outputs])}",
        *text.splitlines(),
        "```",
        "",
        "![accuracy against flash and against instructions](tuning.svg)",
        "",
        f"The recommended model takes {memory['flash']} bytes of flash ({memory['source']}, "
        f"{memory['compiler'] or 'no compiler'}); {verified['differences']} of "
        f"{verified['scores']} scores differ between its C and Python. "
        f'`--pick 4KB -o small.tkm` trained nothing: "{picked}".',
    ]
    if with_dask:
        same = same_with_dask(folder, words)
        holds = holds and same
        lines += [
            "",
            "On a Dask cluster of two workers model and curve are "
            f"{'the same bytes' if same else 'NOT THE SAME'}.",
        ]
    table = (folder / "curve.csv").read_text().splitlines()
    lines += ["", "The curve as CSV:", "", "```text", *table, "```", ""]
    return "\n".join(lines), holds


def main() -> None:
    """Run the session and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    parser.add_argument("--effort", default="normal")
    parser.add_argument("--dask", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = given.keep or Path(name)
        page, holds = session(folder, given.effort, given.dask)
        print(page)
        if given.write is not None:
            write_bytes_atomically(given.write / "tuning.md", page.encode())
            picture = (folder / "curve.svg").read_bytes()
            write_bytes_atomically(given.write / "tuning.svg", picture)
    if not holds:
        sys.exit(1)


if __name__ == "__main__":
    main()
