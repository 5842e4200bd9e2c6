"""Running the generated C on emulated boards, over whole data sets."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel import resources
from tinykernel.build.boards import EXIT_FAULT, build, emulator_name, run_program
from tinykernel.build.machines import Machine, machines_for
from tinykernel.build.toolchains import Toolchain, find_toolchain
from tinykernel.codegen.sources import render_sources
from tinykernel.codegen.targets import Target, find_target
from tinykernel.errors import TinykernelError
from tinykernel.measure.footprint import write_files
from tinykernel.model import IntegerModel

__all__ = ["ENTRIES", "Emulation", "EmulatorRun", "build_model", "find_emulation", "run", "run_all"]

#: Entries of the generated C, in the order of firmware/boards/harness.c.
ENTRIES = ("raw", "quantized", "quantize")
_NAME = "tested"
_BACK_ENDS = (("gcc", "qemu"), ("zig", "unicorn"), ("gcc", "unicorn"), ("zig", "qemu"))


@dataclass(frozen=True)
class EmulatorRun:
    """What an emulated board computed.

    Parameters
    ----------
    scores : ndarray of int32, shape (n_rows, n_classes)
        Empty for the entry ``"quantize"``.
    labels : ndarray of int32, shape (n_rows,)
        Empty for the entry ``"quantize"``.
    compiler, emulator, core : str
        What built the program, what ran it, and the core that it ran on.
    machine : str
        Name of the emulated board.
    note : str
        Empty, or what this run does not prove about the target.
    stack : int
        Bytes of stack that one inference really used; 0 for the entry ``"quantize"``.
    quantized : ndarray of int8 or int16, shape (n_rows, n_features), or None
        Of the entry ``"quantize"`` only.
    """

    scores: NDArray[np.int32]
    labels: NDArray[np.int32]
    compiler: str
    emulator: str
    core: str
    machine: str
    note: str = ""
    stack: int = 0
    quantized: NDArray[Any] | None = None


@dataclass(frozen=True)
class Emulation:
    """A machine with the compiler that builds for it and the emulator that runs it."""

    machine: Machine
    chain: Toolchain
    back_end: str
    emulator: str


def find_emulation(
    target: str | Target, machine: Machine, back_end: str = "auto"
) -> Emulation | None:
    """Find a compiler and an emulator for a machine.

    In this order: GCC with QEMU; zig with Unicorn, which both come from PyPI; and the other pairs.

    Parameters
    ----------
    target : str or Target
    machine : Machine
    back_end : {"auto", "qemu", "unicorn"}, default="auto"

    Returns
    -------
    Emulation or None
        None when this computer has no such pair.
    """
    for kind, emulator in _BACK_ENDS:
        if back_end not in ("auto", emulator):
            continue
        chain = find_toolchain(machine.target or target, kind)
        name = emulator_name(machine, emulator)
        if chain is not None and not chain.stand_in and name is not None:
            return Emulation(machine, chain, emulator, name)
    return None


def build_model(
    model: IntegerModel, emulation: Emulation, folder: Path, flags: Sequence[str] = ("-Os",)
) -> Path:
    """Build a model with the harness that feeds it.

    Parameters
    ----------
    model : IntegerModel
    emulation : Emulation
    folder : Path
        Where sources, objects and the program go.
    flags : sequence of str, default=("-Os",)
        Optimisation and macros for the model; PlatformIO's frameworks build with -Os.

    Returns
    -------
    Path
        The ELF file.
    """
    include = write_files(folder, render_sources(model, _NAME))
    harness = resources.folder("firmware") / "boards" / "harness.c"
    names = [f"-DMODEL_HEADER={_NAME}.h", f"-DMODEL={_NAME}", f"-DMODEL_UPPER={_NAME.upper()}"]
    return build(
        emulation.machine,
        emulation.chain,
        [harness, folder / "src" / f"{_NAME}.c"],
        folder,
        include=include,
        flags=[*flags, "-std=c99", *names],
    )


def write_input(model: IntegerModel, X: ArrayLike, entry: str, path: Path) -> int:
    """Write the input file of the harness and return the number of rows."""
    if entry not in ENTRIES:
        raise TinykernelError(f"entry {entry!r}: choose one of {', '.join(ENTRIES)}")
    rows = np.asarray(X) if entry == "quantized" else model.scaler.as_raw(X)
    dtype = model.input_dtype if entry == "quantized" else np.dtype(model.raw_dtype)
    if rows.ndim != 2 or rows.shape[1] != model.n_features:
        raise TinykernelError(
            f"inputs: shape {rows.shape}, but the model takes rows of {model.n_features} features"
        )
    data = np.ascontiguousarray(rows, dtype=dtype.newbyteorder("<"))
    header = np.array([ENTRIES.index(entry)], dtype="<u4")
    path.write_bytes(header.tobytes() + data.tobytes())
    # The flags by which a program on the Xtensa machine asks for a new file depend on the version
    # of QEMU; those for writing to an existing one do not.
    path.with_name("out.bin").touch()
    return int(rows.shape[0])


def _read_output(
    model: IntegerModel, data: bytes, rows: int, entry: str, found: Emulation, note: str
) -> EmulatorRun:
    """Take the output file of the harness apart."""
    none = np.empty((0, model.n_classes), dtype=np.int32)
    width = 4 * (model.n_classes + 1)
    if entry == "quantize":
        width = model.n_features * model.input_dtype.itemsize
    if len(data) != rows * width + 4:
        raise TinykernelError(
            f"{found.machine.name}: the program wrote {len(data)} bytes instead of "
            f"{rows * width + 4}"
        )
    empty = EmulatorRun(
        scores=none,
        labels=none[:, 0],
        compiler=found.chain.title,
        emulator=found.emulator,
        core=found.machine.core,
        machine=found.machine.name,
        note=note,
    )
    if entry == "quantize":
        values = np.frombuffer(data[:-4], dtype=model.input_dtype.newbyteorder("<"))
        quantized = values.reshape(rows, -1).astype(model.input_dtype)
        return replace(empty, quantized=quantized)
    results = np.frombuffer(data[:-4], dtype="<i4").reshape(rows, -1).astype(np.int32)
    stack = int(np.frombuffer(data[-4:], dtype="<u4")[0])
    return replace(empty, scores=results[:, :-1], labels=results[:, -1], stack=stack)


def _note(target: Target, machine: Machine) -> str:
    """Say what a run on this machine does not prove about the target."""
    if target.emulated_as:
        return target.emulated_as
    if machine is not machines_for(target)[0]:
        return (
            f"the model needs more memory than the emulated {machines_for(target)[0].core} board "
            f"has; its code for {target.name} ran on a {machine.core}, which has the same "
            "instructions and more"
        )
    return ""


def run(
    model: IntegerModel,
    target: str | Target,
    X: ArrayLike,
    *,
    entry: str = "raw",
    machine: Machine | None = None,
    back_end: str = "auto",
    flags: Sequence[str] = ("-Os",),
) -> EmulatorRun:
    """Build a model for a target, run every row on an emulated board, and return its scores.

    Parameters
    ----------
    model : IntegerModel
    target : str or Target
        A microcontroller.
    X : array-like, shape (n_rows, n_features)
        Raw inputs, or quantised ones for the entry ``"quantized"``.
    entry : {"raw", "quantized", "quantize"}, default="raw"
        Which functions of the C: scores and predict from raw inputs, the same from quantised ones,
        or the quantisation alone.
    machine : Machine, optional
        One of `machines_for` the target; by default the closest one whose memory is large enough.
    back_end : {"auto", "qemu", "unicorn"}, default="auto"
    flags : sequence of str, default=("-Os",)
        Optimisation and macros for the compiler.

    Returns
    -------
    EmulatorRun

    Raises
    ------
    TinykernelError
        If a compiler or an emulator is missing, or the program stops early.
    """
    row = find_target(target)
    candidates = machines_for(row) if machine is None else (machine,)
    if not candidates:
        raise TinykernelError(f"target {row.name} is not emulated; it runs on this computer")
    for position, candidate in enumerate(candidates):
        found = find_emulation(row, candidate, back_end)
        if found is None:
            continue
        try:
            return _run_on(model, row, X, entry, found, flags)
        except TinykernelError as error:
            larger = "overflow" in str(error) or "will not fit" in str(error)
            if not larger or row.emulated_as or position + 1 == len(candidates):
                raise
    tools = "gcc-arm-none-eabi and qemu-system-arm" if row.family == "arm" else "its gcc and qemu"
    raise TinykernelError(
        f"no compiler and emulator for {row.name} found; install {tools}"
        + (", or 'pip install ziglang unicorn'" if row.zig else "")
    )


def _run_on(
    model: IntegerModel,
    target: Target,
    X: ArrayLike,
    entry: str,
    found: Emulation,
    flags: Sequence[str],
) -> EmulatorRun:
    with tempfile.TemporaryDirectory(prefix="tinykernel-") as name:
        folder = Path(name)
        rows = write_input(model, X, entry, folder / "in.bin")
        program = build_model(model, found, folder, flags)
        status, text = run_program(found.machine, program, folder, back_end=found.back_end)
        if status == EXIT_FAULT:
            raise TinykernelError(
                f"{found.machine.name}: the {found.machine.core} stopped the program: an "
                "instruction or an address that it does not have"
            )
        if status != 0:
            reason = text.strip().splitlines()[0] if text.strip() else "no message"
            raise TinykernelError(f"{found.machine.name}: exit status {status} ({reason})")
        data = (folder / "out.bin").read_bytes()
    return _read_output(model, data, rows, entry, found, _note(target, found.machine))


def run_all(
    model: IntegerModel,
    target: str | Target,
    X: ArrayLike,
    *,
    entry: str = "raw",
    back_end: str = "auto",
    flags: Sequence[str] = ("-Os",),
) -> tuple[EmulatorRun, ...]:
    """Run a model on every core that stands for a target.

    For most targets that is one core. For ESP32 and ESP32-S3 it is an Xtensa and a RISC-V core,
    as no emulator here has theirs; the note of each run says so.

    Parameters
    ----------
    model, target, X, entry, back_end, flags
        As for `run`.

    Returns
    -------
    tuple of EmulatorRun
        At least one.
    """
    row = find_target(target)
    if not row.emulated_as:
        return (run(model, row, X, entry=entry, back_end=back_end, flags=flags),)
    return tuple(
        run(model, row, X, entry=entry, machine=machine, back_end=back_end, flags=flags)
        for machine in machines_for(row)
    )
