"""Change the code in thirty places, one at a time, and see whether the tests notice.

``python -m tests.mutations`` works on a copy of the checkout. Each change is a small one that
matters: a shift, a bound, a sign, an order of bytes, a rule of choice, an exit status. The tests
that have to notice it are those of `make test` in the files that stand beside it. ``--all`` runs
all of `make test` for each; ``-k WORD`` takes only changes of files whose name has it.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
_KINDS = "tests/firmware/test_kinds.py::test_every_kind_of_model_by_zig[{}-host]"


class Mutation(NamedTuple):
    """A change of one place in a file, and the tests that have to notice it."""

    file: str
    old: str
    new: str
    tests: str


def read_mutations() -> list[Mutation]:
    """Return the changes of `mutations.txt`."""
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    found = []
    for change in text.split("\n\n")[1:]:
        head, old, new = (line.strip("\n") for line in change.strip("\n").split("\n"))
        file, _, tests = head.partition(": ")
        tests = tests if "/" in tests else _KINDS.format(tests)
        found.append(Mutation(file, old.removeprefix("- "), new.removeprefix("+ "), tests))
    return found


def copy_checkout(folder: Path) -> None:
    """Copy what is in the repository, with the times of the files."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def run_tests(folder: Path, paths: list[str]) -> subprocess.CompletedProcess[str]:
    """Run the tests of `make test` in some files of a copy, up to the first that fails."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "quick", "-p", "no:cacheprovider"]
    variables = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        [*command, *paths], cwd=folder, env=variables, capture_output=True, text=True
    )


def caught_by(folder: Path, mutation: Mutation, paths: list[str]) -> str:
    """Return the first test that fails with a change; empty if none does."""
    file = folder / mutation.file
    before, times = file.read_text(encoding="utf-8"), file.stat()
    assert before.count(mutation.old) >= 1, f"{mutation.file} has no {mutation.old!r}"
    file.write_text(before.replace(mutation.old, mutation.new, 1), encoding="utf-8")
    try:
        done = run_tests(folder, paths)
    finally:
        file.write_text(before, encoding="utf-8")
        # What numba compiled from the unchanged file counts again.
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    failed = [
        line.split()[1]
        for line in done.stdout.splitlines()
        if line.startswith(("FAILED ", "ERROR "))
    ]
    return "" if done.returncode == 0 else (failed or [f"status {done.returncode}"])[0]


def main() -> int:
    """Apply the changes; return 1 if the tests miss one."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-k", default="", metavar="WORD", help="only files whose name has it")
    parser.add_argument("--all", action="store_true", help="run all of 'make test' for each")
    chosen = parser.parse_args()
    missed = []
    with tempfile.TemporaryDirectory(prefix="mutations-") as temporary:
        folder = Path(temporary) / "checkout"
        copy_checkout(folder)
        mutations = [one for one in read_mutations() if chosen.k in one.file]
        paths = sorted({path for one in mutations for path in one.tests.split()})
        unchanged = run_tests(folder, [] if chosen.all else paths)
        if unchanged.returncode != 0:
            print(unchanged.stdout[-4000:])
            print("the tests fail without a change, too")
            return 1
        for number, one in enumerate(mutations, 1):
            begin = time.monotonic()
            test = caught_by(folder, one, [] if chosen.all else one.tests.split())
            found = f"caught by {test}" if test else "MISSED"
            print(f"{number:2} {one.file}: {one.old!r} -> {one.new!r}: {found}", end="")
            print(f" ({time.monotonic() - begin:.0f} s)", flush=True)
            missed += [] if test else [one.file]
    print(f"{len(mutations) - len(missed)} of {len(mutations)} changes were caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
