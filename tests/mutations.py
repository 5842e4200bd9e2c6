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
_C = "firmware/tinykernel/src"
_PIECES = "tinykernel/pieces"
_DECIDE = "tests/firmware/test_decisions.py"


def _kinds(family: str) -> str:
    return f"tests/firmware/test_kinds.py::test_every_kind_of_model_by_zig[{family}-host]"


class Mutation(NamedTuple):
    """A change of one place in a file, and the tests that have to notice it."""

    file: str
    old: str
    new: str
    tests: str


MUTATIONS = (
    # Shifts, bounds and signs of the firmware.
    Mutation(
        f"{_PIECES}/trees/tk_trees.h",
        "value > tk_tree_thr",
        "value >= tk_tree_thr",
        _kinds("trees"),
    ),
    Mutation(
        f"{_PIECES}/trees/tk_trees.h",
        "(int32_t)1 << tree[1]",
        "(int32_t)2 << tree[1]",
        _kinds("trees"),
    ),
    Mutation(f"{_PIECES}/linear/tk_linear.h", "word << 2 * TK", "word << 1 * TK", _kinds("linear")),
    Mutation(
        f"{_PIECES}/kernels/tk_kernels_signal.h",
        "least - taken)",
        "least - taken - 1)",
        _kinds("signal"),
    ),
    Mutation(
        f"{_PIECES}/kernels/tk_kernels_signal.h",
        "(*count - place[-1])",
        "(*count + place[-1])",
        _kinds("signal"),
    ),
    Mutation(
        f"{_PIECES}/levels/tk_levels.h",
        "(16u + levels->shift)",
        "(15u + levels->shift)",
        _kinds("signal"),
    ),
    Mutation(
        f"{_PIECES}/offset/tk_offset.h",
        "sample[c] - means[c]",
        "sample[c] + means[c]",
        _kinds("offset"),
    ),
    Mutation(
        f"{_PIECES}/spectrum/tk_spectrum.h",
        "b[0] = x - real",
        "b[0] = real - x",
        _kinds("spectrum"),
    ),
    Mutation(
        f"{_PIECES}/separable/tk_separable_products.h",
        "(int32_t)unit >> 12",
        "(int32_t)unit >> 13",
        _kinds("separable"),
    ),
    Mutation(
        f"{_PIECES}/convolutions/tk_convolutions.h",
        "4u * l & 15u",
        "4u * l & 7u",
        _kinds("convolutions"),
    ),
    Mutation(
        f"{_PIECES}/dense/tk_dense.h",
        "(int32_t)word >> (32u",
        "(int32_t)(word) << 1 >> (32u",
        _kinds("convolutions"),
    ),
    Mutation(
        f"{_PIECES}/beside/tk_beside.h", "* k->factor) >> 8", "* k->factor) >> 7", _kinds("signal")
    ),
    Mutation(f"{_PIECES}/prototypes/tk_prototypes.h", "* 16 + 8", "* 16 + 7", _kinds("one")),
    Mutation(
        f"{_C}/tk_decide.h", "*margin < TK_THRESHOLD", "*margin <= TK_THRESHOLD", _kinds("table")
    ),
    Mutation(
        f"{_PIECES}/frame/tk_frame.h",
        "second << 8 | first;",
        "first << 8 | second;",
        _kinds("frame"),
    ),
    # Templates of what is generated.
    Mutation("templates/model/model.h.j2", "_REFUSED (-1)", "_REFUSED (-2)", _DECIDE),
    Mutation("templates/model/selftest.c.j2", "value /= 10u", "value /= 16u", _DECIDE),
    # What Python computes, packs, writes and reads.
    Mutation(
        *("tinykernel/pieces/scale/spec.py", ">> np.uint64(16)", ">> np.uint64(15)"),
        "tests/model/test_model.py",
    ),
    Mutation(
        "tinykernel/base/hadamard.py",
        "(left - right) >> shift",
        "(right - left) >> shift",
        "tests/test_hadamard.py",
    ),
    Mutation(
        *("tinykernel/pieces/tables.py", "(1 + np.arange(per_word))", "(per_word - 1)"),
        _kinds("linear"),
    ),
    Mutation(
        *("tinykernel/model/records.py", 'newbyteorder("<")), a', 'newbyteorder(">")), a'),
        "tests/modelfile/test_contents.py",
    ),
    Mutation(
        "tinykernel/model/counters.py",
        '"<u4").tobytes',
        '">u4").tobytes',
        "tests/decisions/test_field.py",
    ),
    Mutation("tinykernel/base/files.py", "os.replace(old, target)", "pass", "tests/test_files.py"),
    # Rules of choice, promises and training.
    Mutation(
        *("tinykernel/learn/choice.py", "<= margin * error", "<= -margin * error"),
        "tests/training/test_choice.py tinykernel/learn/choice.py",
    ),
    Mutation(
        *("tinykernel/learn/components/steps.py", "value[i] -= rate", "value[i] += rate"),
        "tests/training/test_trainer.py",
    ),
    Mutation("tinykernel/kinds/tune/curve.py", "all(a <= b", "all(a >= b", "tests/test_tune.py"),
    Mutation(
        "tinykernel/data/splits.py", "train[test] = False", "pass", "tests/data/test_splits.py"
    ),
    Mutation(
        *("tinykernel/model/answers.py", "(margin >= thresholds", "(margin > thresholds"),
        _kinds("table"),
    ),
    Mutation(
        "tinykernel/run/report.py",
        "needed > limit",
        "needed >= limit",
        "tests/cli/test_report.py",
    ),
    # Exit statuses.
    Mutation(
        "tinykernel/face/commands/evaluate.py",
        "fail_if_any(wrong + too_small)",
        "fail_if_any(too_small)",
        "tests/cli/test_verify.py",
    ),
    Mutation(
        "tinykernel/face/commands/report.py",
        "for result in reports if not result.fits)",
        "for result in reports if result.fits)",
        "tests/cli/test_report.py",
    ),
)


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
        mutations = [one for one in MUTATIONS if chosen.k in one.file]
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
