"""The command line: parses, calls the package and prints.

The modules that need scikit-learn and numba are imported inside the commands, so that ``--help``,
``targets`` and shell completion answer at once.
"""

from __future__ import annotations

import sys
import warnings
from typing import Annotated

import typer

from tinykernel.cli.bench import bench_command
from tinykernel.cli.board.emulate import emulate_command
from tinykernel.cli.board.monitor import monitor_command
from tinykernel.cli.board.ports import ports_command
from tinykernel.cli.board.record import record_command
from tinykernel.cli.calibrate import calibrate_command
from tinykernel.cli.common.failures import (
    FAILED,
    INTERRUPTED,
    ErrorGroup,
    fail,
    hear_interrupts_once,
)
from tinykernel.cli.common.output import escape_what_cannot_be_shown, finish_output
from tinykernel.cli.demo import demo_command
from tinykernel.cli.drift import drift_command
from tinykernel.cli.evaluate import evaluate_command
from tinykernel.cli.inspect import inspect_command
from tinykernel.cli.options import options_command
from tinykernel.cli.predict import predict_command
from tinykernel.cli.project.export import export_command
from tinykernel.cli.project.flash import flash_command
from tinykernel.cli.report import report_command
from tinykernel.cli.targets import targets_command
from tinykernel.cli.train import train_command
from tinykernel.cli.tune import tune_command
from tinykernel.cli.verify import verify_command
from tinykernel.text import visible

__all__ = ["app", "main"]

app = typer.Typer(
    name="tinykernel",
    cls=ErrorGroup,
    help="Train a small kernel classifier and turn it into C99 firmware that computes the same "
    "scores, bit for bit.",
    epilog="A session: tinykernel train data.npz -o model.tkm, then verify, report, export.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _show_version(asked: bool) -> None:
    if asked:
        from tinykernel import __version__

        typer.echo(f"tinykernel {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", callback=_show_version, is_eager=True, help="show the version"
        ),
    ] = False,
) -> None:
    pass


for _name, _command in (
    ("train", train_command),
    ("tune", tune_command),
    ("verify", verify_command),
    ("report", report_command),
    ("bench", bench_command),
    ("export", export_command),
    ("flash", flash_command),
    ("record", record_command),
    ("monitor", monitor_command),
    ("emulate", emulate_command),
    ("ports", ports_command),
    ("predict", predict_command),
    ("evaluate", evaluate_command),
    ("calibrate", calibrate_command),
    ("drift", drift_command),
    ("inspect", inspect_command),
    ("targets", targets_command),
    ("options", options_command),
    ("demo", demo_command),
):
    # Rich keeps the ends of lines of all but the first paragraph.
    _paragraphs = (_command.__doc__ or "").split("\n\n")
    app.command(_name, help="\n\n".join(" ".join(p.split()) for p in _paragraphs))(_command)


def main() -> None:
    """Run the command line; the entry point of the command ``tinykernel``.

    Leaves with status 0 when what was asked holds, 1 for an error or a result that does not hold,
    2 for wrong usage, 130 after Ctrl-C.
    """
    warnings.formatwarning = _one_line
    for category in (DeprecationWarning, FutureWarning):
        warnings.simplefilter("ignore", category)
    # Of scikit-learn, for rows with very many classes; it doubts that they are classes.
    warnings.filterwarnings("ignore", message="The number of unique classes is greater")
    escape_what_cannot_be_shown()
    hear_interrupts_once()
    status = FAILED
    try:
        status = app(standalone_mode=False)
    except KeyboardInterrupt:
        fail("interrupted")
        status = INTERRUPTED
    finally:
        status = finish_output(status)
    sys.exit(status)


def _one_line(message: Warning | str, *_: object, **__: object) -> str:
    return f"warning: {visible(' '.join(str(message).split()))}\n"
