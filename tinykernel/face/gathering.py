"""Settings from the options of a command, ``--set`` and ``tinykernel.toml``."""

import inspect
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from tinykernel.base.errors import FormatError, OptionError, TinykernelError
from tinykernel.base.files import write_bytes_atomically
from tinykernel.base.options import SUCCESSORS
from tinykernel.base.reading import as_text
from tinykernel.base.text import similar
from tinykernel.face.arguments import check_output_file, misuse, option
from tinykernel.face.output import as_typed
from tinykernel.face.settings import (
    PARTS,
    SETTINGS,
    Setting,
    complete_assignments,
    complete_targets,
)

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
            if known(name, place).part != part:
                raise OptionError(f"{place}: belongs in [{SETTINGS[name].part}]; move it there")
            texts[name] = (as_text(value), place)
    return texts


def known(name: str, place: str) -> Setting:
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
    write_bytes_atomically(path, "".join(f"{line}\n" for line in lines).encode("utf-8"))


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
            setting = known(name, name)
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
