"""C against Python, bit for bit: build the exported C, run every row, compare every score."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.build import emulators
from tinykernel.codegen.literals import check_name
from tinykernel.codegen.sources import render_sources
from tinykernel.codegen.targets import Target, find_target
from tinykernel.errors import TinykernelError
from tinykernel.model import IntegerModel, as_integer_model
from tinykernel.resources import folder

__all__ = ["WARNING_FLAGS", "Difference", "VerifyResult", "find_host_compiler", "verify"]

#: The language and the warnings that generated C is clean under; each is an error here.
WARNING_FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow",
                 "-Werror")  # fmt: skip
_NAME = "model"
_TIMEOUT_SECONDS = 600.0
_ENTRIES = ("raw", "quantized")


@dataclass(frozen=True)
class Difference:
    """One value that C and Python disagree on.

    Parameters
    ----------
    entry : {"raw", "quantized", "quantize"}
        Through which function of the C: scores and label from raw inputs, from quantised inputs,
        or the quantisation of inputs.
    row : int
        Row of the data, from 0.
    what : str
        ``"score of class 'x'"``, ``"label"`` or ``"input 3"``.
    expected, got : int
        Python's value and the C's.
    """

    entry: str
    row: int
    what: str
    expected: int
    got: int

    def __str__(self) -> str:
        """Say it in one line."""
        return (
            f"row {self.row}, {self.entry} inputs, {self.what}: "
            f"Python {self.expected}, C {self.got}"
        )


@dataclass(frozen=True)
class VerifyResult:
    """What `verify` compared, and what it found.

    Parameters
    ----------
    target : str
        Where the C ran.
    compiler : str
        The compiler's name and version.
    rows, scores : int
        How many rows were run, and how many scores they have: rows times classes. Each was
        compared twice, from raw and from quantised inputs.
    differences : int
        How many scores, labels and quantised inputs differ.
    first_difference : Difference or None
    accuracy : float or None
        Share of the rows that the C labels right, 0 to 1; None without labels.
    emulator, core : str
        On what the C ran; empty for the host.
    note : str
        What the run does not prove about the target; mostly empty.
    """

    target: str
    compiler: str
    rows: int
    scores: int
    differences: int
    first_difference: Difference | None
    accuracy: float | None
    emulator: str = ""
    core: str = ""
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether every value was equal."""
        return self.differences == 0


def find_host_compiler() -> tuple[str, ...]:
    """Find a C compiler for this computer.

    Returns
    -------
    tuple of str
        How to start it: the first of gcc, cc and clang on the PATH, else zig of the PyPI package
        ``ziglang``.

    Raises
    ------
    TinykernelError
        If there is none.
    """
    for program in ("gcc", "cc", "clang"):
        found = shutil.which(program)
        if found is not None:
            return (found,)
    try:
        import ziglang
    except ImportError:
        zig = shutil.which("zig")
    else:
        zig = shutil.which("zig", path=str(Path(ziglang.__file__).parent))
    if zig is not None:
        return (zig, "cc")
    raise TinykernelError(
        "no C compiler found (looked for gcc, cc, clang and zig); "
        "install one, for instance with 'pip install ziglang'"
    )


def verify(
    model: object,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    target: str = "host",
    compiler: str | Sequence[str] | None = None,
    flags: Sequence[str] | None = None,
) -> VerifyResult:
    """Build the C of a model, run every row through it, and compare all scores with Python's.

    Both entries are compared: raw inputs and quantised ones, each through the scores and the
    predict function, and the quantisation by itself.

    Parameters
    ----------
    model : IntegerModel, KernelMachine or fitted classifier
    X : array-like, shape (n_rows, n_features)
        Raw inputs that the model's raw type can hold; at least one row.
    y : array-like, shape (n_rows,), optional
        Labels, for the accuracy.
    target : str
        Where to run: ``"host"``, or a target of `tinykernel.codegen.targets`, on an emulated board.
    compiler : str or sequence of str, optional
        Host only: how to start the compiler; found by `find_host_compiler` by default.
    flags : sequence of str, optional
        Optimisation and other options; by default ``-O2`` on the host and ``-Os`` on boards.

    Returns
    -------
    VerifyResult

    Raises
    ------
    TinykernelError
        If the data do not fit the model, there is no compiler or emulator, or the C does not
        compile or run.
    """
    row = find_target(target)
    integer = as_integer_model(model)
    raw = integer.scaler.as_raw(X)
    labels = None if y is None else np.asarray(y)
    quantized = integer.quantize_inputs(raw)
    if raw.shape[0] == 0:
        raise TinykernelError("verify: the data have no rows")
    if labels is not None and labels.shape != (raw.shape[0],):
        raise TinykernelError(f"verify: {labels.shape} labels for {raw.shape[0]} rows")
    if row.family != "host":
        if compiler is not None:
            raise TinykernelError(f"verify: the compiler for {row.name} cannot be chosen")
        return _verify_on_boards(integer, raw, quantized, labels, row, flags or ("-Os",))
    command = find_host_compiler() if compiler is None else _as_command(compiler)
    with tempfile.TemporaryDirectory(prefix="tinykernel-") as temporary:
        program = build_harness(integer, Path(temporary), command, flags or ("-O2",))
        outputs = {
            "raw": run_harness(program, "raw", raw),
            "quantized": run_harness(program, "quantized", quantized),
            "quantize": run_harness(program, "quantize", raw),
        }
    return compare(integer, outputs, quantized, labels, target, compiler_title(command))


def _verify_on_boards(
    model: IntegerModel, raw: NDArray[Any], quantized: NDArray[Any],
    labels: NDArray[Any] | None, target: Target, flags: Sequence[str],
) -> VerifyResult:  # fmt: skip
    """Verify on every emulated core that stands for the target; differences add up."""
    given = {"raw": raw, "quantized": quantized, "quantize": raw}
    runs = {
        entry: emulators.run_all(model, target, rows, entry=entry, flags=flags)
        for entry, rows in given.items()
    }
    results = []
    for on_raw, on_quantized, quantize in zip(*runs.values(), strict=True):
        outputs = {
            "raw": _as_bytes(on_raw),
            "quantized": _as_bytes(on_quantized),
            "quantize": np.asarray(quantize.quantized).tobytes(),
        }
        found = compare(model, outputs, quantized, labels, target.name, on_raw.compiler)
        results.append(replace(found, emulator=on_raw.emulator, core=on_raw.core, note=on_raw.note))
    wrong = [result for result in results if not result.ok]
    return replace(
        (wrong or results)[0],
        differences=sum(result.differences for result in results),
        compiler=" and ".join(dict.fromkeys(result.compiler for result in results)),
        emulator=" and ".join(dict.fromkeys(result.emulator for result in results)),
        core=" and ".join(dict.fromkeys(result.core for result in results)),
        note=" ".join(dict.fromkeys(result.note for result in results if result.note)),
    )


def _as_bytes(run: emulators.EmulatorRun) -> bytes:
    """Return the scores and labels of a run as the host harness writes them."""
    return np.column_stack([run.scores, run.labels]).astype("<i4").tobytes()


def _as_command(compiler: str | Sequence[str]) -> tuple[str, ...]:
    return (compiler,) if isinstance(compiler, str) else tuple(compiler)


def compiler_title(command: Sequence[str]) -> str:
    """Return the first line that a compiler prints of its version."""
    finished = _run([*command, "--version"])
    lines = finished.stdout.decode(errors="replace").splitlines()
    return lines[0].strip() if finished.returncode == 0 and lines else Path(command[0]).name


def _run(arguments: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    """Run a program; a missing one or one that hangs is an error of one line."""
    try:
        return subprocess.run(
            arguments, capture_output=True, timeout=_TIMEOUT_SECONDS, stdin=subprocess.DEVNULL
        )
    except OSError as error:
        raise TinykernelError(
            f"{arguments[0]}: cannot be started ({error.strerror}); is it installed?"
        ) from None
    except subprocess.TimeoutExpired:
        raise TinykernelError(
            f"{Path(arguments[0]).name}: no end after {_TIMEOUT_SECONDS:.0f} seconds; stopped"
        ) from None


def write_project(files: dict[str, bytes], root: Path) -> None:
    """Write rendered files below `root`, which is a temporary folder."""
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def build_harness(
    model: IntegerModel, root: Path, command: Sequence[str], flags: Sequence[str]
) -> Path:
    """Render a model into the folder `root` and compile it with the harness; return the program."""
    write_project(render_sources(model, check_name(_NAME)), root)
    program = root / ("harness.exe" if os.name == "nt" else "harness")
    arguments = [
        *command, *WARNING_FLAGS, *flags,
        f"-I{root / 'include'}", f"-I{root / 'lib' / 'tinykernel' / 'src'}",
        f'-DPREFIX_HEADER="{_NAME}.h"', f"-DPREFIX={_NAME}", f"-DPREFIX_UPPER={_NAME.upper()}",
        str(folder("firmware") / "host" / "harness.c"), str(root / "src" / f"{_NAME}.c"),
        "-o", str(program),
    ]  # fmt: skip
    finished = _run(arguments)
    if finished.returncode != 0:
        lines = finished.stderr.decode(errors="replace").splitlines()
        wrong = [line for line in lines if "error" in line] or lines or ["no message"]
        raise TinykernelError(f"the generated C does not compile: {wrong[0].strip()}")
    return program


def run_harness(program: Path, mode: str, rows: NDArray[Any]) -> bytes:
    """Run the harness over rows of inputs and return the content of its output file."""
    given, result = (program.with_name(f"{mode}.{suffix}") for suffix in ("in", "out"))
    little_endian = rows.astype(rows.dtype.newbyteorder("<"))
    given.write_bytes(np.ascontiguousarray(little_endian).tobytes())
    finished = _run([str(program), mode, str(given), str(result)])
    if finished.returncode != 0:
        lines = finished.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise TinykernelError(
            f"the compiled model failed with status {finished.returncode}: {lines[0]}"
        )
    return result.read_bytes()


def compare(
    model: IntegerModel, outputs: dict[str, bytes], quantized: NDArray[Any],
    labels: NDArray[Any] | None, target: str, compiler: str,
) -> VerifyResult:  # fmt: skip
    """Compare what the harness wrote with what Python computes.

    Parameters
    ----------
    model : IntegerModel
    outputs : dict of str to bytes
        Of the modes raw, quantized and quantize.
    quantized : ndarray, shape (n_rows, n_features)
        Python's quantised inputs.
    labels : ndarray, shape (n_rows,), or None
    target, compiler : str
        For the result.

    Returns
    -------
    VerifyResult
    """
    scores = model.scores_quantized(quantized)
    expected = np.column_stack([scores, scores.argmax(axis=1)]).astype(np.int32)
    results = {entry: _as_rows(outputs[entry], "<i4", expected.shape) for entry in _ENTRIES}
    inputs = _as_rows(outputs["quantize"], quantized.dtype.newbyteorder("<"), quantized.shape)
    pairs = [(entry, expected, results[entry]) for entry in _ENTRIES]
    pairs.append(("quantize", quantized, inputs))
    n_differences, first = 0, None
    for entry, wanted, got in pairs:
        places = np.argwhere(wanted != got)
        n_differences += len(places)
        if len(places) and first is None:
            row, column = (int(index) for index in places[0])
            what = _what(model, entry, column)
            first = Difference(entry, row, what, int(wanted[row, column]), int(got[row, column]))
    return VerifyResult(
        target=target,
        compiler=compiler,
        rows=scores.shape[0],
        scores=scores.size,
        differences=n_differences,
        first_difference=first,
        accuracy=_accuracy(model, results["raw"][:, -1], labels),
    )


def _as_rows(output: bytes, dtype: Any, shape: tuple[int, int]) -> NDArray[Any]:
    values = np.frombuffer(output, dtype=dtype)
    if values.size != shape[0] * shape[1]:
        raise TinykernelError(
            f"the compiled model wrote {values.size} values instead of {shape[0] * shape[1]}"
        )
    return values.reshape(shape)


def _what(model: IntegerModel, entry: str, column: int) -> str:
    if entry == "quantize":
        return f"input {column}"
    return "label" if column == model.n_classes else f"score of class {model.classes[column]!r}"


def _accuracy(
    model: IntegerModel, predicted: NDArray[Any], labels: NDArray[Any] | None
) -> float | None:
    """Return the share of right labels; an index that is no class is wrong, not an error."""
    if labels is None:
        return None
    valid = (predicted >= 0) & (predicted < model.n_classes)
    classes = np.array(model.classes)
    named = classes[np.where(valid, predicted, 0)]
    return float(np.mean((named == labels) & valid))
