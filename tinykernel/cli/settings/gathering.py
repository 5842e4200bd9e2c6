"""Settings from the options of a command, ``--set`` and ``tinykernel.toml``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from tinykernel.cli.settings.file import beside, known, read_file, to_toml
from tinykernel.cli.settings.table import SETTINGS, Setting
from tinykernel.errors import TinykernelError

_Command = TypeVar("_Command", bound=Callable[..., None])


def complete_setting(incomplete: str) -> list[tuple[str, str]]:
    """Offer the names of settings to the shell."""
    return [(f"{n}=", s.summary) for n, s in SETTINGS.items() if n.startswith(incomplete)]


SetOption = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="anything else: 'tinykernel options' lists all",
        autocompletion=complete_setting,
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="settings, instead of those of a tinykernel.toml beside it"
    ),
]


def has_settings(*names: str) -> Callable[[_Command], _Command]:
    """Give a command settings as options, in place of its parameter `settings`."""

    def decorate(command: _Command) -> _Command:
        own = inspect.signature(command, eval_str=True)
        parameters = []
        for parameter in own.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                continue
            each = [SETTINGS[name] for name in names] if parameter.name == "settings" else None
            parameters += [parameter] if each is None else list(map(_parameter, each))
        keyword = [p.replace(kind=p.KEYWORD_ONLY) for p in parameters]
        vars(command)["__signature__"] = own.replace(parameters=keyword)
        return command

    return decorate


def _parameter(setting: Setting) -> inspect.Parameter:
    from tinykernel.cli.common.arguments import complete_target

    short = {"target": ["-t"]}.get(setting.name, [])
    declared = typer.Option(
        setting.option,
        *short,
        help=setting.summary,
        metavar=setting.kind,
        show_default=False if setting.default is None else str(setting.default),
        autocompletion=complete_target if short else None,
    )
    return inspect.Parameter(
        setting.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[str | None, declared],
    )


def gather(
    options: Mapping[str, Any],
    parts: Iterable[str],
    source: str | Path,
    left_out: Iterable[str] = (),
) -> tuple[dict[str, Any], set[str]]:
    """Read and check all settings of a command.

    `options` are the parameters of the command: settings as text, ``assignments`` of ``--set``,
    ``config``, and ``save_config`` where it has that. It takes the settings of the tables `parts`
    without those `left_out`; ``tinykernel.toml`` may lie beside `source`.

    Returns a value for every setting, given or default, and the names of those given. Errors are in
    the words of the place where a setting was given.
    """
    parts = tuple(parts)
    taken = {n: s for n, s in SETTINGS.items() if s.part in parts and n not in set(left_out)}
    file = options.get("config") or beside(source)
    texts = {} if file is None else read_file(file)
    unused = [name for name in texts if SETTINGS[name].part in parts and name not in taken]
    if unused:
        raise TinykernelError(f"{texts[unused[0]][1]}: has no use here; leave it out")
    texts = {name: text for name, text in texts.items() if name in taken}
    texts |= _typed(options, taken)
    if options.get("save_config") is not None:
        _save(options["save_config"], {name: text for name, (text, _) in texts.items()})
    found = {name: setting.default for name, setting in taken.items()}
    for name, (text, place) in texts.items():
        try:
            found[name] = taken[name].read(text)
        except TinykernelError as error:
            words = str(error).removeprefix(name).removeprefix(":").strip()
            if place.startswith("--"):
                raise typer.BadParameter(words, param_hint=place) from None
            raise TinykernelError(f"{place}: {words}") from None
    given = {name for name in texts if found[name] is not None}
    _check_use(found, given, texts)
    return found, given


def _typed(options: Mapping[str, Any], taken: Mapping[str, Setting]) -> dict[str, tuple[str, str]]:
    """Return what stands on the command line, as text with its place."""
    found = {
        name: (options[name], setting.option)
        for name, setting in taken.items()
        if options.get(name) is not None
    }
    for assignment in options["assignments"]:
        name, equals, text = (part.strip() for part in assignment.partition("="))
        try:
            setting = known(name, name)
        except TinykernelError as error:
            raise typer.BadParameter(str(error), param_hint="--set") from None
        hint = f"--set {setting.name}"
        if not equals or not text:
            raise typer.BadParameter(f"{assignment!r}: write NAME=VALUE", param_hint="--set")
        if name not in taken:
            raise typer.BadParameter("has no use here; leave it out", param_hint=hint)
        if name in found:
            raise typer.BadParameter("is given twice", param_hint=hint)
        found[name] = (text, hint)
    return found


def _check_use(
    found: Mapping[str, Any], given: set[str], texts: Mapping[str, tuple[str, str]]
) -> None:
    """Refuse settings that the task or the method has no use for."""
    task, method = found.get("task") or "classes", found.get("method") or "learned"
    for name in sorted(given):
        setting, place = SETTINGS[name], texts[name][1]
        for what, chosen, allowed in (
            ("task", task, setting.tasks),
            ("method", method, setting.methods),
        ):
            if chosen not in allowed:
                words = f"only for {what} {' and '.join(allowed)}"
                raise typer.BadParameter(words, param_hint=place)


def _save(path: Path, texts: Mapping[str, str]) -> None:
    from tinykernel.files import write_bytes_atomically

    try:
        content = to_toml(texts).encode()
    except UnicodeEncodeError:
        raise TinykernelError(f"{path}: a setting is no text in UTF-8: not saved") from None
    write_bytes_atomically(path, content)
