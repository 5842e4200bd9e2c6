"""A board on this computer: the program that answers, and a recording as its sensor."""

import contextlib
import itertools
import os
import select
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tinykernel.base.errors import OptionError, TargetError, ToolError
from tinykernel.base.files import source_folder
from tinykernel.compile.projects import exported_files
from tinykernel.compile.sources import generated_inputs
from tinykernel.compile.targets import Target, find_target
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.record import raw_values
from tinykernel.run import program as programs
from tinykernel.run.checking import check_model, push
from tinykernel.run.emulated import Machine, machines_for
from tinykernel.run.link import ConnectedBoard, Link
from tinykernel.run.program import Platform, Program

_NAME = "model"
# The UART and the clock of SysTick, as firmware/boards/arm/console.c takes them.
_MPS2 = ("-DTK_UART=0x40004000u", "-DTK_CLOCK=25000000u")
_UARTS = {
    "microbit": ("-DTK_UART=0x40002000u", "-DTK_UART_NRF51=1", "-DTK_CLOCK=16000000u"),
    "mps2-an385": _MPS2,
    "mps2-an386": _MPS2,
    "mps2-an500": _MPS2,
    "mps2-an505": ("-DTK_UART=0x40200000u", "-DTK_CLOCK=20000000u"),
    "virt-rv32": (),
}
#: Movements of the emulated sensor, see firmware/boards/host/sensor.c.
MOVEMENTS = ("still", "shaking", "turning")


@dataclass(frozen=True)
class EmulatedBoard:
    """A running emulated board: its port, as pyserial opens it, and a description."""

    port: str
    name: str
    note: str = ""  # where another core stands for that of the target.


def _platforms(target: Target) -> list[Platform]:
    """List compilers and emulators for a target, the closest first; at least one."""
    if target.family == "host":
        return programs.find_platforms(target)
    machines = [machine for machine in machines_for(target) if machine.name in _UARTS]
    if not machines:
        raise TargetError(f"{target.name}: no emulated board has a serial port; use --target host")
    rows = [programs.find_platform(target, machine, "qemu") for machine in machines]
    platforms = [platform for platform in rows if platform is not None]
    if not platforms:
        raise ToolError(
            f"{target.name}: no compiler, or no emulator with a serial port; install its gcc and "
            "QEMU, or use --target host"
        )
    return platforms


def board_name(machine: Machine | None) -> str:
    """Return the answer of an emulated board to ``name``."""
    return "this computer" if machine is None else f"emulated {machine.name}"


def build_program(model: IntegerModel, target: str | Target, folder: Path) -> Program:
    """Build the program of an export that answers, for an emulated board or this computer."""
    # A model that is too large for the first board is built for the next one of its target.
    row = find_target(target)
    platforms = _platforms(row)
    return programs.on_closest(platforms, lambda platform: _build(model, row, platform, folder))


def _build(model: IntegerModel, target: Target, platform: Platform, folder: Path) -> Program:
    machine = platform.machine
    files = exported_files(model, target, name=_NAME, vectors=generated_inputs(model))
    include = programs.write_sources(folder, files)
    project = folder / "src"
    sources = [
        folder / f"lib/{_NAME}/src/{_NAME}.c",
        project / f"{_NAME}_selftest.c",
        project / "tk_protocol.c",
        project / "tk_selftest.c",
    ]
    flags = [*programs.WARNING_FLAGS, "-Os", f'-DTK_BOARD_NAME="{board_name(machine)}"']
    if machine is None:
        sources += [project / "main.c", project / "tk_board.c"]
    else:
        bare = source_folder("templates") / "platformio" / "bare" / "src"
        boards = source_folder("firmware") / "boards" / machine.family
        sources += [bare / "main.c", boards / "console.c"]
        sources += [bare / "tk_board.c"] if machine.family == "arm" else []
        flags += [*_UARTS[machine.name], '-DTK_BOARD_NEWLINE="\\r\\n"']
    return programs.build(platform, sources, folder, include=include, flags=flags)


@contextmanager
def emulated_board(model: IntegerModel, target: str | Target = "host") -> Iterator[EmulatedBoard]:
    """Build and start the program that answers for a model, until the end of the ``with`` block."""
    with tempfile.TemporaryDirectory(prefix="tinykernel-") as folder:
        program = build_program(model, target, Path(folder))
        machine, command = program.platform.machine, [str(program.path), "answer"]
        if machine is not None:
            command = [*machine.qemu, "-display", "none", "-monitor", "none", "-serial", "stdio"]
            command += ["-kernel", str(program.path)]
        with _at_port(command) as port:
            yield EmulatedBoard(port, board_name(machine), program.platform.note)


@contextmanager
def emulated_sensor(movement: str) -> Iterator[EmulatedBoard]:
    """Start a sensor that prints x, y and z of a movement, a hundred times a second."""
    if movement not in MOVEMENTS:
        raise OptionError(f"sensor: {movement!r}; choose from {', '.join(MOVEMENTS)}")
    source = source_folder("firmware") / "boards" / "host" / "sensor.c"
    (platform,) = programs.find_platforms(find_target("host"))
    with tempfile.TemporaryDirectory(prefix="tinykernel-") as folder:
        compiled, path = Path(folder, "sensor.o"), Path(folder, "sensor")
        platform.chain.compile(source, compiled, flags=programs.WARNING_FLAGS)
        platform.chain.link([compiled], path)
        with _at_port([str(path), movement, str(os.getpid())]) as port:
            yield EmulatedBoard(port, f"a sensor of something {movement}")


@contextmanager
def _at_port(command: list[str]) -> Iterator[str]:
    """Start a program at a pseudo terminal, or a socket where there is none; give its name."""
    try:
        import pty  # noqa: F401
    except ImportError:  # on Windows
        with _at_socket(command) as port:
            yield port
        return
    with (
        terminal() as (here, _, port),
        subprocess.Popen(
            command, stdin=here, stdout=here, stderr=subprocess.DEVNULL, start_new_session=True
        ) as process,
    ):
        try:
            yield port
        finally:
            process.kill()


@contextmanager
def terminal() -> Iterator[tuple[int, int, str]]:
    """Open a pseudo terminal: both ends, and the name of the second one."""
    try:
        import pty
        import tty
    except ImportError:
        raise ToolError(
            "this needs pseudo terminals, which this system lacks; use Linux, macOS or WSL"
        ) from None
    here, there = pty.openpty()
    # Raw from the beginning, and open here, so that a client may come and go.
    tty.setraw(there)
    try:
        yield here, there, os.ttyname(there)
    finally:
        os.close(here)
        os.close(there)


@contextmanager
def _at_socket(command: list[str]) -> Iterator[str]:
    """Start a program that reads and prints what is sent over a socket; give its URL."""
    pipe, clients = subprocess.PIPE, list[socket.socket]()

    def send() -> None:
        while data := os.read(process.stdout.fileno(), 4096):  # type: ignore[union-attr]
            with suppress(OSError, IndexError):  # nobody listens
                clients[-1].sendall(data)

    def serve() -> None:
        with suppress(OSError):  # the socket was closed
            while True:
                clients.append(server.accept()[0])
                while data := clients[-1].recv(4096):
                    os.write(process.stdin.fileno(), data)  # type: ignore[union-attr]

    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process,
    ):
        for task in (send, serve):
            threading.Thread(target=task, daemon=True).start()
        try:
            yield f"socket://127.0.0.1:{server.getsockname()[1]}"
        finally:
            process.terminate()


_LOOK = 0.1  # seconds between looks for somebody who listens


@contextmanager
def stream_into(
    board: EmulatedBoard,
    model: IntegerModel,
    blocks: Callable[[], Iterable[NDArray[Any]]],
    rate: float,
) -> Iterator[EmulatedBoard]:
    """Push samples into a board again and again, and print its decisions at a port of its own.

    `blocks` gives the samples from the beginning; they are pushed `rate` a second, as a sensor
    would, from the moment on when somebody opens the port and writes.
    """
    with terminal() as (here, _, port), Link(board.port) as link:
        connected, over = ConnectedBoard(link), threading.Event()
        check_model(connected, model)

        def run() -> None:
            while not over.wait(_LOOK) and not select.select([here], [], [], 0)[0]:
                pass
            connected.ask("stream")
            begun, sent = time.monotonic(), 0
            for X in (block for _ in itertools.count() for block in blocks()):
                for first in range(0, len(X), model.hop):
                    part = raw_values(X[first : first + model.hop], model.raw_dtype)
                    if over.wait(max(0.0, begun + (sent + len(part)) / rate - time.monotonic())):
                        return
                    sent += len(part)
                    for row in push(connected, model, part):
                        # Who does not read gets no more than the terminal holds.
                        with contextlib.suppress(BlockingIOError):
                            os.write(here, f"m-results-[{','.join(map(str, row))}]\r\n".encode())

        thread = threading.Thread(target=run, daemon=True)
        os.set_blocking(here, False)
        thread.start()
        try:
            yield replace(board, port=port)
        finally:
            over.set()
            thread.join()
