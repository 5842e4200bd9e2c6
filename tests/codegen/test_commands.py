"""The commands that exports, pages and messages tell users are commands of this version."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import typer

from tests.board.kinds import KINDS
from tests.cli.tools import ROOT
from tinykernel.compile.projects import exported_files
from tinykernel.face import app

# Newer versions of typer have a click of their own.
UsageError: Any = typer.BadParameter.__base__
# Between marks, or alone on a line, which may be a comment.
_MARKED = re.compile(r"[`'\"]tinykernel ([a-z]+(?: [^`'\"]*)?)[`'\"]")
_ALONE = re.compile(r"^[ #*/$-]*(?:run: )?tinykernel ([a-z]+(?: [A-Z<{.-].*)?)$", re.MULTILINE)


def commands_of(text: str) -> list[str]:
    """Return the commands in a text, without the name of the program."""
    found = [*_MARKED.findall(text), *_ALONE.findall(text)]
    return [re.sub(r"\s+(#|-- ).*", "", command) for command in found]


@cache
def commands() -> Any:
    """Return the commands of this version."""
    return typer.main.get_command(app)


@cache
def parsed(command: str) -> None:
    """Raise an error where a command does not exist, or not its options."""
    name, *words = shlex.split(command.rstrip(".,:;"))
    group = commands()
    if name not in group.commands:
        raise UsageError(f"no command {name!r}")
    context = typer.Context(group.commands[name])
    group.commands[name].make_parser(context).parse_args(args=list(words))


def texts() -> Iterator[tuple[str, str]]:
    """Yield the texts of exports of every kind of model, of templates, and of the package."""
    for kind, make in KINDS.items():
        model = make()
        for form, target in (
            ("platformio", "host"),
            ("platformio", "cortex-m4"),
            ("library", None),
        ):
            files = exported_files(model, target, name="m", format=form, ci="github")
            for name, content in files.items():
                yield f"{form} of {kind}: {name}", content.decode("utf-8", "replace")
    for pattern in ("templates/report/*.j2", "tinykernel/**/*.py"):
        for path in ROOT.glob(pattern):
            yield str(path), path.read_text()


def test_every_command_in_a_generated_text_is_one() -> None:
    """Names and options are those of the command line, in READMEs, comments and messages."""
    seen, wrong = set(), []
    for place, text in texts():
        for command in commands_of(text):
            try:
                parsed(command)
                seen.add(command.split()[0])
            except (UsageError, ValueError) as error:
                wrong.append(f"{place}: {command}: {error}")
    assert wrong == []
    assert {"verify", "report", "emulate", "monitor", "record"} <= seen


def test_a_command_that_is_gone_is_found() -> None:
    """A text that was true once is no command any more."""
    (command,) = commands_of("    tinykernel bench MODEL --port PORT     # the time alone\n")
    with pytest.raises(UsageError):
        parsed(command)
    with pytest.raises(UsageError):
        parsed("frobnicate MODEL")
