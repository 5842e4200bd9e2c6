"""List all settings of ``train``, ``tune`` and ``export``."""

import typer

from tinykernel.face.arguments import JSON, argument
from tinykernel.face.gathering import known
from tinykernel.face.output import print_json, print_pairs, print_table
from tinykernel.face.settings import METHODS, PARTS, SETTINGS, TASKS, Setting, complete_settings


def options_command(
    names: list[str] | None = argument(
        "NAME", "settings to show in full", value=None, autocompletion=complete_settings
    ),
    as_json: bool = JSON,
) -> None:
    """List all settings, or show some in full.

    Give settings with --set NAME=VALUE, or in a file: --config FILE, by default tinykernel.toml
    next to the data (for export, next to the model). Its tables are [data], [train], [tune] and
    [export]. The command line takes precedence over the file.
    """
    chosen = [known(name, name) for name in names] if names else list(SETTINGS.values())
    if as_json:
        print_json([_facts(setting) for setting in chosen])
    elif names:
        for setting in chosen:
            print_pairs(_in_full(setting))
    else:
        columns = ("setting", "value", "default", "")
        for part in PARTS:
            rows = [_row(setting) for setting in chosen if setting.part == part]
            typer.echo(f"[{part}]")
            print_table(columns, rows)
            typer.echo()
        typer.echo("'tinykernel options NAME' shows one in full")


def _row(setting: Setting) -> tuple[str, ...]:
    default = "-" if setting.usual is None else str(setting.usual)
    return setting.name, setting.form, default, setting.summary


def _facts(setting: Setting) -> dict[str, object]:
    names = {"kind": "form", "default": "usual", "text": "description"}
    same = ("name", "part", "tasks", "methods", "chosen")
    facts = {name: getattr(setting, names.get(name, name)) for name in (*same, *names)}
    return facts | {"range": setting.range or None}


def _in_full(setting: Setting) -> list[tuple[str, str]]:
    return [
        (setting.name, setting.description),
        ("value", setting.form),
        ("range", setting.range),
        ("default", setting.usual_text),
        ("table", f"[{setting.part}]"),
        ("tasks", "" if setting.tasks == TASKS else ", ".join(setting.tasks)),
        ("method", "" if setting.methods == METHODS else ", ".join(setting.methods)),
    ]
