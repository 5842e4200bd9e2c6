"""Print results as tables or JSON, progress, and every problem as one line with an exit code."""

from __future__ import annotations

import csv
import errno
import io
import json
import math
import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from tinykernel.base.errors import TinykernelError, in_python
from tinykernel.base.files import write_bytes_atomically
from tinykernel.base.progress import PLAN, Observer, Progress, observing, observing_all_threads
from tinykernel.base.reading import as_text
from tinykernel.base.text import percent as percent
from tinykernel.base.text import size as size
from tinykernel.base.text import visible
from tinykernel.data.paths import as_packed
from tinykernel.face.settings import SETTINGS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID
    from rich.table import Table

FAILED, USAGE, INTERRUPTED = 1, 2, 130
_SECONDS = 1.0
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ADVICE = {errno.ENOENT: "check the path", errno.EACCES: "check its permissions"}


class ErrorGroup(TyperGroup):
    """The root command: exit code 1, 2 or 130; TINYKERNEL_DEBUG shows tracebacks."""

    has_said_so = False

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line and leave with the exit code of the command."""
        standalone = kwargs.get("standalone_mode", True)
        self.has_said_so = False
        try:
            result = super().main(*args, **(kwargs | {"standalone_mode": False}))
        except typer.Abort:
            result = INTERRUPTED
        except Exception as error:
            # Wrong options: typer's classes for this are not public in every version.
            if not hasattr(error, "format_message"):
                raise
            _say_usage(error)
            result = USAGE
        status = result if isinstance(result, int) else 0
        if status == INTERRUPTED and not self.has_said_so:
            # Ctrl-C while the options were read.
            fail("interrupted")
        if standalone:
            sys.exit(status)
        return status

    def invoke(self, ctx: Any) -> Any:
        """Run a command; problems that the user can fix end it with one line."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            fail("interrupted")
            self.has_said_so = True
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            message = _explain(error, _options_of(self, ctx))
            if message is None or os.environ.get("TINYKERNEL_DEBUG"):
                raise
            fail(message)
            raise typer.Exit(FAILED) from None


def hear_interrupts_once() -> None:
    """Ignore a second Ctrl-C within a second, which would stop saving the work so far."""
    last = -math.inf

    def interrupt(*_: object) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _SECONDS:
            last = now
            raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)


def fail(message: str) -> None:
    """Print one line that begins with ``error:`` on stderr; line breaks become spaces."""
    prefix = typer.style("error:", fg=typer.colors.RED, bold=True)
    typer.echo(f"{prefix} {visible(' '.join(as_packed(message).split()))}", err=True)


def fail_if_any(problems: Iterable[str]) -> None:
    """Print the problems of a check that failed; end with status 1 if there are any."""
    lines = list(problems)
    for line in lines:
        fail(line)
    if lines:
        raise typer.Exit(FAILED)


def as_typed(options: Mapping[str, str], name: str, value: Any) -> str:
    """Return an option as it is typed, or as in Python if the command has none of this name.

    >>> options = {"image_shape": "--image-shape", "rate": "--set rate"}
    >>> as_typed(options, "rate", 16000), as_typed(options, "image_shape", (8, 8))
    ('--set rate=16000', '--image-shape 8x8')
    """
    if name not in options or value is None or value is True:
        return options.get(name) or in_python(name, value)
    is_shape = isinstance(value, tuple)
    text = "x".join(map(str, value)) if is_shape else as_text(value)
    return f"{options[name]}{'=' if options[name].startswith('--set ') else ' '}{text}"


def _options_of(group: Any, ctx: Any) -> dict[str, str]:
    """Return the options of the running command, by parameter of Python."""
    command = group.commands.get(ctx.invoked_subcommand)
    options = {
        str(option.name): next(name for name in option.opts if name.startswith("--"))
        for option in getattr(command, "params", ())
        if any(name.startswith("--") for name in option.opts)
    }
    if "assignments" in options:
        options = {name: f"--set {name}" for name in SETTINGS} | options
    settings = [(SETTINGS[name], option) for name, option in options.items() if name in SETTINGS]
    return options | {setting.parameter: option for setting, option in settings}


def _explain(error: Exception, options: Mapping[str, str]) -> str | None:
    """Return the line to print, or None for a fault of the program."""
    if isinstance(error, TinykernelError):
        return error.said(partial(as_typed, options))
    if isinstance(error, MemoryError):
        return "not enough memory; use fewer rows, or a smaller model"
    if isinstance(error, OSError) and error.filename is None and error.errno in _FULL:
        # Without a file name it is a temporary file or stdout.
        return (
            f"the output, or a temporary file in {tempfile.gettempdir()}, cannot be written "
            f"({error.strerror}); make room, or set TMPDIR to another folder"
        )
    if isinstance(error, OSError) and error.errno != errno.EPIPE:
        place = error.filename or "output"
        advice = _ADVICE.get(error.errno or 0, "check the path and its permissions")
        return f"{place}: {error.strerror or error}; {advice}"
    if isinstance(error, ValueError):
        names = [str(f.f_globals.get("__name__", "")) for f, _ in walk_tb(error.__traceback__)]
        if names and names[-1].startswith("sklearn."):  # the module that raised
            return str(error).strip().splitlines()[0]
    return None


def _say_usage(error: Any) -> None:
    ctx = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError" and ctx is not None:
        text = error.format_message()  # empty where rich has printed it already
        if text:
            typer.echo(text, err=True)
        return
    command = ctx.command_path if ctx is not None else "tinykernel"
    message = re.sub(r"^(Invalid value for) '(-.*?)'", r"\1 \2", error.format_message().rstrip("."))
    name = str(getattr(error, "option_name", "")).lstrip("-").replace("-", "_")
    params = [] if ctx is None else ctx.command.params
    if name in SETTINGS and any(param.name == "assignments" for param in params):
        message = f"{error.option_name} is a setting: --set {name}={SETTINGS[name].form}"
    fail(f"{message} (see '{command} --help')")


_WIDTH_OF_A_FILE = 160
_WIDTH_OF_A_TABLE = 10000  # in a file: nothing is wrapped


def console(*, stderr: bool = False) -> Console:
    """Return a console without highlighting or markup."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDTH_OF_A_FILE
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table to a .csv file atomically."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_bytes_atomically(path, text.getvalue().encode("utf-8", "backslashreplace"))


def print_json(value: Any) -> None:
    """Print one JSON value on stdout; NumPy values become plain ones, NaN becomes null."""
    print(json.dumps(_plain(value), allow_nan=False), flush=True)


def print_json_list(name: str, parts: Iterable[Sequence[Any]]) -> None:
    """Print one JSON object with a list of all entries on stdout, as soon as they are there."""
    print(f'{{"{name}": [', end="")
    between = ""
    for entries in parts:
        for entry in entries:
            print(between + json.dumps(_plain(entry), allow_nan=False), end="")
            between = ", "
        sys.stdout.flush()
    print("]}", flush=True)


def finish_output(status: int) -> int:
    """Flush stdout and return the exit status: a full disk is an error, a closed pipe is quiet."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # Python would try to write the buffer again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if error.errno != errno.EPIPE:
            fail(f"output: {error.strerror}")
        return FAILED
    return status


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def print_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns, without empty values."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in pairs:
        if value:
            table.add_row(visible(name), visible(value))
    _print_grid(table)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()
) -> None:
    """Print a table on stdout; the columns in `right` are aligned right."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="bold")
    for name in columns:
        justify: Any = "right" if name in right else "left"
        table.add_column(visible(name), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*map(visible, row))
    _print_grid(table)


def _print_grid(table: Table) -> None:
    """Print a table; to a file or a pipe without trailing blanks."""
    output = console()
    if output.is_terminal:
        output.print(table)
        return
    output.width = _WIDTH_OF_A_TABLE
    with output.capture() as captured:
        output.print(table)
    lines = (line.rstrip() for line in captured.get().splitlines())
    output.file.write("".join(f"{line}\n" for line in lines))


_SECONDS_BETWEEN_LINES, _SECONDS_OF_A_PHASE, _SECONDS_OF_SILENCE = 5.0, 2.0, 15.0


@contextmanager
def showing_progress(quiet: bool) -> Iterator[None]:
    """Show progress within the ``with`` block, unless `quiet`."""
    with _show(quiet) as show:
        latest: list[Progress] = []

        def show_stage(progress: Progress) -> None:
            latest[:] = [progress] if progress.stage != PLAN else latest
            show(progress)

        def show_compilation(progress: Progress) -> None:
            # When it ends, the stage that it interrupted goes on.
            for shown in latest if progress.done else [progress]:
                show(shown)

        with observing(show_stage), observing_all_threads(show_compilation):
            yield


@contextmanager
def _show(quiet: bool) -> Iterator[Observer]:
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _bars() as observer:
            yield observer
    else:
        lines = PlainLines(lambda line: print(line, file=sys.stderr, flush=True))
        over = threading.Event()

        def run() -> None:
            while not over.wait(1.0):
                lines.tick()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield lines
        finally:
            over.set()
            thread.join()


class PlainLines:
    """An observer that writes a line every few seconds, none for short phases."""

    def __init__(
        self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write, self._clock = write, clock
        self._latest: Progress | None = None
        self._lines, self._begun = set[str](), dict[str, float]()  # begun: by stage
        self._entered = self._written = clock()

    def __call__(self, progress: Progress) -> None:
        """Receive a message."""
        if self._latest is None or self._latest.stage != progress.stage:
            self._entered = self._begun.setdefault(progress.stage, self._clock())
        if progress.stage == PLAN:
            self._write(progress.message)
            return
        self._latest = progress
        self.tick()

    def tick(self) -> None:
        """Write a line if it is due; also called by a clock, as long work may be silent."""
        now, latest = self._clock(), self._latest
        if latest is None or now - self._entered < _SECONDS_OF_A_PHASE:
            return
        line, silence = _line(latest), now - self._written
        is_new = line not in self._lines  # data may be read, and code compiled, more than once
        is_first = is_new and self._written <= self._entered
        if is_first or silence >= (_SECONDS_BETWEEN_LINES if is_new else _SECONDS_OF_SILENCE):
            self._lines.add(line)
            self._written = now
            self._write(line if is_new else f"{latest.stage}: {now - self._entered:.0f} s so far")


def _line(progress: Progress) -> str:
    count = str(progress.done or "")
    if progress.total is not None:
        count = f"{progress.done}/{progress.total}"
    return f"{progress.stage}: {count} {progress.message}".replace(":  ", ": ").rstrip(" :")


@contextmanager
def _bars() -> Iterator[Callable[[Progress], None]]:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    bars = Bars(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[message]}", markup=False),
        console=console(stderr=True),
        transient=True,
    )
    stages: dict[str, TaskID] = {}

    def observe(progress: Progress) -> None:
        if progress.stage == PLAN:
            bars.console.print(progress.message)
            return
        if progress.stage not in stages:
            for task in bars.tasks:  # a stage may end before its total
                bars.update(task.id, total=task.completed)
            stages[progress.stage] = bars.add_task(progress.stage, total=None, message="")
        bars.update(
            stages[progress.stage],
            completed=progress.done,
            total=progress.total,
            message=progress.message,
        )

    with bars:
        yield observe
