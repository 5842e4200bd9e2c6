"""Print results: tables for people, JSON for programs."""

from __future__ import annotations

import csv
import errno
import io
import json
import math
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinykernel.cli.common.failures import FAILED, fail
from tinykernel.files import write_bytes_atomically
from tinykernel.text import percent as percent
from tinykernel.text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WIDTH_OF_A_FILE = 160
_WIDTH_OF_A_TABLE = 10000  # in a file: nothing is wrapped


def console(*, stderr: bool = False) -> Console:
    """Return a console without highlighting or markup."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDTH_OF_A_FILE
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def size(n_bytes: int) -> str:
    """Format a number of bytes; KB = 1024 bytes."""
    return f"{n_bytes} B" if n_bytes < 1024 else f"{n_bytes / 1024:.1f} KB"


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table to a .csv file atomically."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_bytes_atomically(path, text.getvalue().encode("utf-8", "backslashreplace"))


def print_json(value: Any) -> None:
    """Print one JSON value on stdout; NumPy values become plain ones, NaN becomes null."""
    text = json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)
    if not text.isprintable():
        text = "".join(sign if sign.isprintable() else json.dumps(sign)[1:-1] for sign in text)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(_plain(value), allow_nan=False)
    print(text, flush=True)


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
