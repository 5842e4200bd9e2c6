"""List all settings of ``train``, ``tune`` and ``export``."""

from __future__ import annotations

from typing import Annotated

import typer

from tinykernel.cli.common.arguments import JsonOption
from tinykernel.cli.common.output import print_json, print_pairs
from tinykernel.cli.settings import SETTINGS, Setting
from tinykernel.cli.settings.file import known
from tinykernel.cli.settings.table import PARTS, TASKS, TRAINER_DEFAULTS


def options_command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="these only", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List what --set NAME=VALUE and tinykernel.toml take: kind, default, range, text.

    tinykernel.toml lies beside the data (for export beside the model); its tables are data,
    train, tune and export. The command line goes before the file.
    """
    chosen = [known(name, name) for name in names] if names else list(SETTINGS.values())
    if as_json:
        print_json([_facts(setting) for setting in chosen])
        return
    for part in PARTS:
        inside = [setting for setting in chosen if setting.part == part]
        if inside:
            typer.echo(f"[{part}]")
            print_pairs((setting.name, _in_words(setting)) for setting in inside)
            typer.echo()


def _default(setting: Setting) -> object:
    return TRAINER_DEFAULTS.get(setting.name) if setting.of_trainer else setting.default


def _facts(setting: Setting) -> dict[str, object]:
    return {
        "name": setting.name,
        "part": setting.part,
        "kind": setting.kind,
        "default": _default(setting),
        "range": setting.range or None,
        "tasks": setting.tasks,
        "methods": setting.methods,
        "text": setting.text,
    }


def _in_words(setting: Setting) -> str:
    kind = setting.kind + (f" ({setting.range})" if setting.range else "")
    default = _default(setting)
    usual = "" if default is None else f", default {default}"
    only = "" if setting.tasks == TASKS else f" For --task {' and '.join(setting.tasks)}."
    only += " For method=paper." if setting.methods == ("paper",) else ""
    return f"{kind}{usual}. {setting.text}{only}"
