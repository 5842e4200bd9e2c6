"""Arguments, options and settings of commands, and checks before long work.

An option is the default of its parameter; those that several commands share are named here.
Settings come from options, ``--set`` and ``tinykernel.toml``.
"""

import inspect
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from tinykernel.base import files
from tinykernel.base.errors import FileError, FormatError, LinkError, OptionError, TinykernelError
from tinykernel.base.options import SUCCESSORS
from tinykernel.base.reading import as_text, number, share
from tinykernel.base.text import similar
from tinykernel.compile.targets import find_targets
from tinykernel.data.paths import data_folder, find_data, kind_of
from tinykernel.face.output import as_typed
from tinykernel.face.settings import (
    PARTS,
    SETTINGS,
    Setting,
    bounds,
    complete_assignments,
    complete_targets,
)
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
LABEL = option("COLUMN", "column, array or file of the labels")
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
    files.refuse_inputs(path, inputs)
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
    files.refuse_inputs(path, inputs)
    force = force or not files.changed_files(path)
    try:
        files.refuse_occupied(path, force=force)
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
        raise files.unwritable(path, error) from None


_HINTS = {name: setting.hint for name, setting in SETTINGS.items()}
_FILE, _LARGEST_FILE = "tinykernel.toml", 1 << 20
_NOT_HERE = "is not an option of this command; leave it out"
_Command = TypeVar("_Command", bound=Callable[..., None])

SET = option(
    "--set NAME=VALUE",
    "another setting, see 'tinykernel options'",
    [],
    autocompletion=complete_assignments,
)
CONFIG = option("FILE", "file of settings, not tinykernel.toml")
SAVE_CONFIG = option("FILE", "write the settings to a file for --config")


def has_settings(*names: str) -> Callable[[_Command], _Command]:
    """Replace the parameter `settings` of a command by options for these settings."""

    def decorate(command: _Command) -> _Command:
        signature = inspect.signature(command, eval_str=True)
        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            if parameter.name == "settings":
                parameters += [_parameter(SETTINGS[name]) for name in names]
            elif parameter.kind is not parameter.VAR_KEYWORD:
                parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY))
        vars(command)["__signature__"] = signature.replace(parameters=parameters)
        return command

    return decorate


def _parameter(setting: Setting) -> inspect.Parameter:
    is_target = setting.name == "target"
    declared = typer.Option(
        *(setting.option, *["-t"] * is_target),
        help=setting.help,
        metavar=setting.form,
        show_default=False,
        autocompletion=complete_targets if is_target else None,
    )
    return inspect.Parameter(
        setting.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[str | None, declared],
    )


def read_file(path: Path) -> dict[str, tuple[str, str]]:
    """Read settings as text, each with its place for messages; refuse unknown ones."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    if not path.is_file() or path.stat().st_size > _LARGEST_FILE:
        raise FormatError(f"{path}: not a settings file of at most 1 MB; give another")
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FormatError(f"{path}: not valid TOML ({error}); correct it") from None
    except RecursionError:
        raise FormatError(f"{path}: nested too deeply; write NAME = VALUE") from None
    texts = {}
    for part, table in tables.items():
        if part not in PARTS or not isinstance(table, dict):
            raise OptionError(
                f"{path}: [{part}] is not a table of settings; choose from [{'], ['.join(PARTS)}]"
            )
        for name, value in table.items():
            place = f"{path}: [{part}] {name}"
            if find_setting(name, place).part != part:
                raise OptionError(f"{place}: belongs in [{SETTINGS[name].part}]; move it there")
            texts[name] = (as_text(value), place)
    return texts


def find_setting(name: str, place: str) -> Setting:
    """Return a setting by its name, or refuse with the most similar one."""
    if name in SETTINGS:
        return SETTINGS[name]
    hint = SUCCESSORS.get(name) or similar(name.replace("-", "_"), SETTINGS)
    hint = hint or "'tinykernel options' lists all"
    raise OptionError(f"{place}: no such setting; {hint}")


def gather(
    options: Mapping[str, Any],
    parts: Iterable[str],
    source: str | Path,
    left_out: Iterable[str] = (),
    before: Mapping[str, str] = {},
) -> tuple[dict[str, Any], set[str]]:
    """Read and check the settings of the tables `parts` for a command, except `left_out`.

    `options` are the parameters of the command: settings as text, ``assignments`` of ``--set``, and
    the files of ``--config`` and ``--save-config``. Without the first, ``tinykernel.toml`` may be
    beside `source`; settings of an earlier call, `before`, override it.
    Returns the values of all settings, and the names of those that are not defaults. Errors name
    the place.
    """
    parts = tuple(parts)
    taken = {n: s for n, s in SETTINGS.items() if s.part in parts and n not in set(left_out)}
    file = options["config"] or Path(source).parent / _FILE
    texts = read_file(file) if options["config"] or file.exists() else {}
    unused = [name for name in texts if SETTINGS[name].part in parts and name not in taken]
    if unused:
        raise OptionError(f"{texts[unused[0]][1]}: {_NOT_HERE}")
    texts = {name: text for name, text in texts.items() if name in taken}
    texts |= {name: (text, "the journal") for name, text in before.items() if name in taken}
    texts |= typed_settings(options, taken)
    values = {name: setting.default for name, setting in taken.items()}
    for name, (text, place) in texts.items():
        try:
            values[name] = taken[name].parse(text)
        except TinykernelError as error:
            problem = error.said(partial(as_typed, _HINTS)).removeprefix(taken[name].hint)
            problem = problem.removeprefix(name).removeprefix(":").strip()
            if place.startswith("--"):
                raise misuse(place, problem) from None
            raise OptionError(f"{place}: {problem}") from None
    typed = {name for name in texts if values[name] is not None}
    for name in sorted(typed):
        setting = SETTINGS[name]
        uses = ("task", "classes", setting.tasks), ("method", "learned", setting.methods)
        for kind, default, allowed in uses:
            if (values.get(kind) or default) not in allowed:
                names = " and ".join(allowed)
                raise misuse(texts[name][1], f"only for {kind} {names}; leave it out")
    if options.get("save_config") is not None:
        _write_file(options["save_config"], {name: texts[name][0] for name in texts})
    return values, typed


def _write_file(path: Path, texts: Mapping[str, str]) -> None:
    """Write settings as text, in the tables of their parts; replace only a file of settings."""
    check_output_file(path, (".toml",))
    if path.exists():
        read_file(path)
    lines = []
    for part in dict.fromkeys(SETTINGS[name].part for name in texts):
        lines.append(f"[{part}]")
        lines += [
            f"{name} = {json.dumps(text, ensure_ascii=False)}"
            for name, text in texts.items()
            if SETTINGS[name].part == part
        ]
    files.write_bytes_atomically(path, "".join(f"{line}\n" for line in lines).encode("utf-8"))


def typed_settings(
    options: Mapping[str, Any], taken: Mapping[str, Setting] = SETTINGS
) -> dict[str, tuple[str, str]]:
    """Return the settings of the command line, as text with their places."""
    texts = {
        name: (options[name], setting.option)
        for name, setting in taken.items()
        if options.get(name) is not None
    }
    for assignment in options["assignments"]:
        name, equals, text = (part.strip() for part in assignment.partition("="))
        try:
            setting = find_setting(name, name)
        except TinykernelError as error:
            raise misuse("--set", str(error)) from None
        hint = f"--set {setting.name}"
        if not equals or not text:
            raise misuse("--set", f"{assignment!r}: write NAME=VALUE")
        if name not in taken:
            raise misuse(hint, _NOT_HERE)
        if name in texts:
            raise misuse(hint, "is given twice; give it once")
        texts[name] = (text, hint)
    return texts
