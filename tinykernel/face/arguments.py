"""Arguments and options of commands, and checks before long work.

An option is the default of its parameter; those that several commands share are named here.
"""

import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, TypeVar

import typer

from tinykernel.base.errors import FileError, LinkError, TinykernelError
from tinykernel.base.files import changed_files, refuse_inputs, refuse_occupied, unwritable
from tinykernel.base.reading import number, share
from tinykernel.compile.targets import find_targets
from tinykernel.data.paths import data_folder, find_data, kind_of
from tinykernel.face.settings import bounds, complete_targets
from tinykernel.run.limits import parse_limits

_Result = TypeVar("_Result")
# First bytes of model files: a zip, a pickle.
_BEGINS = {".tkm": b"PK", ".pkl": b"\x80"}
MODEL_SUFFIXES = tuple(_BEGINS)


def parser(reader: Callable[[str], Any]) -> Callable[[Any], Any]:
    """Return a parser of options from a reader of settings."""

    def read(text: Any) -> Any:
        try:
            return reader(str(text))
        except TinykernelError as error:
            raise typer.BadParameter(str(error)) from None

    return read


def option(
    usage: str, text: str, value: Any = None, *, default: str = "", range: str = "", **more: Any
) -> Any:
    """Return an option, `value` if not given; `default` and `range` are for the help."""
    # `usage` is ``"--target -t TARGET"``, or ``"TARGET"`` where the name is that of the parameter.
    *names, metavar = usage.split()
    if default:
        more["show_default"] = False
    return typer.Option(value, *names, metavar=metavar, help=text + bounds(default, range), **more)


def share_option(text: str, value: float | None = None, *, default: str = "", **more: Any) -> Any:
    """Return an option that takes a share, such as 1%."""
    reader = parser(partial(share, **more))
    return option("SHARE", text, value, default=default, parser=reader)


def number_option(
    usage: str, text: str, low: float, high: float = inf, value: float | None = None, **more: Any
) -> Any:
    """Return an option that takes a number from `low` to `high`; a whole `low` takes whole ones."""
    known = f"{low} or more" if high == inf else f"{low} to {high}"
    wanted = f"a {'whole ' * isinstance(low, int)}number, {known}"
    reader = parser(number(low, high, wanted, type(low)))
    return option(usage, text, value, range=known, parser=reader, **more)


def argument(metavar: str, text: str, value: Any = ..., **more: Any) -> Any:
    """Return an argument of a command; it is required, as an option is whose value is ``...``."""
    return typer.Argument(value, metavar=metavar, help=text, show_default=False, **more)


def flag(names: str, text: str, **more: Any) -> Any:
    """Return an option without a value."""
    return typer.Option(False, *names.split(), metavar="", help=text, **more)


def misuse(option: str, problem: str) -> typer.BadParameter:
    """Return the error of an option that is used wrongly, for exit status 2."""
    return typer.BadParameter(problem, param_hint=option)


def existing_data(path: str | None) -> str | None:
    """Refuse missing data before anything heavy is imported."""
    if path is not None and data_folder(path) is None and kind_of(path) != "recordings":
        find_data(path)
    return path


def _existing_model(path: Path | None) -> Path | None:
    if path is not None and path.suffix.lower() in MODEL_SUFFIXES and not path.exists():
        raise FileError(f"{path}: no such file; make one with 'tinykernel train'")
    return path


DATA = argument(
    "DATA",
    "table, arrays, recordings or pictures; also from $TINYKERNEL_DATA",
    callback=existing_data,
)
MODEL = argument("MODEL", "model: .tkm or .pkl", callback=_existing_model)
TARGETS = option(
    "--target -t TARGET",
    "target processor, several separated by commas, or all",
    [],
    autocompletion=complete_targets,
)
BUDGET = option(
    "SIZE|LIMITS",
    "flash limit, e.g. 30KB, or limits: flash=30KB,ram=8KB,stack=512B,time=2ms@80MHz or "
    "instructions=200k",
    parser=parser(parse_limits),
)
JSON = flag("--json", "print the result as JSON on stdout")
QUIET = flag("--quiet -q", "no progress and no tables")
FORCE = flag("--force -f", "replace an export even if it was changed")
PORT = option(
    "PORT",
    "serial port of a board, e.g. /dev/ttyACM0, COM3 or socket://127.0.0.1:4000",
    default="the only board",
)
BAUD = number_option("BAUD", "speed of the serial port", 50, 20_000_000, 115_200, default="115200")
BOARD = option(
    "PORT",
    "serial port of a board that runs the export, e.g. /dev/ttyACM0, or auto for the only one",
)


def expand_targets(texts: Sequence[str], everything: Iterable[str]) -> tuple[list[str], bool]:
    """Parse a repeated ``--target``: return each target once, and whether several were asked."""
    asked = [name.strip() for text in texts for name in text.split(",") if name.strip()]
    if not asked:
        raise misuse("--target", "give a target")
    return find_targets(asked, everything), len(asked) > 1 or "all" in asked


def each_that_fits(
    names: Sequence[str], asked: Sequence[str], work: Callable[[str], _Result]
) -> tuple[list[_Result], list[str]]:
    """Do the work for each target; return results, and a line for each that is too small."""
    # Targets of ``all`` that are too small are only named.
    named = {name for value in asked for name in value.split(",")}
    results, too_small = list[_Result](), list[str]()
    for name in names:
        try:
            results.append(work(name))
        except LinkError as error:
            if len(names) == 1:
                raise
            line = f"{name}: skipped, the model is too large for the chip: {error}"
            if "all" in named and name not in named:
                typer.echo(line, err=True)
            else:
                too_small.append(line)
    return results, too_small


def check_output_file(
    path: Path, suffixes: Sequence[str] = (), inputs: Iterable[Path] = ()
) -> None:
    """Refuse an output file that cannot be written, with another suffix, or of the `inputs`."""
    refuse_inputs(path, inputs)
    if suffixes and path.suffix.lower() not in suffixes:
        known = " or ".join(suffixes)
        raise FileError(f"{path}: cannot write this file type; use {known}")
    if path.is_dir():
        raise FileError(f"{path}: is a folder; give a file name")
    begins = _BEGINS.get(path.suffix.lower())
    if begins is not None and path.is_file():
        with path.open("rb") as stream:
            if not stream.read(2).startswith(begins):
                raise FileError(f"{path}: is not a model, and is not replaced; choose another name")
    if not path.parent.is_dir():
        raise FileError(f"{path}: its folder does not exist; create it first")
    _check_writable(path.parent, path)


def check_output_folder(path: Path, *, force: bool, inputs: Iterable[Path] = ()) -> bool:
    """Refuse a folder that cannot be written or holds an input; return whether to replace it."""
    refuse_inputs(path, inputs)
    force = force or not changed_files(path)
    try:
        refuse_occupied(path, force=force)
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror})") from None
    parent = next(folder for folder in path.absolute().parents if folder.exists())
    if not parent.is_dir():
        raise FileError(f"{path}: {parent} is a file, not a folder; choose another folder")
    _check_writable(parent, path)
    return force


def _check_writable(folder: Path, path: Path) -> None:
    # Permission bits do not suffice: root ignores them, but not a read-only file system.
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise unwritable(path, error) from None
