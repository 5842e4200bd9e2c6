"""The command line: parse arguments, call the package, print.

Commands import scikit-learn and numba inside, so that ``--help``, ``targets`` and shell completion
are fast.
"""

import io
import sys
import warnings
from collections.abc import Callable
from inspect import cleandoc

import typer

from tinykernel.base.text import visible
from tinykernel.face import output
from tinykernel.face.arguments import flag
from tinykernel.face.commands import (
    boards,
    calibrate,
    data,
    evaluate,
    export,
    inspect,
    predict,
    report,
    train,
)

__all__ = ["app", "main"]

app = typer.Typer(
    name="tinykernel",
    cls=output.ErrorGroup,
    help="Train a small model and turn it into C99 firmware that computes the same "
    "scores, bit for bit.",
    epilog="A session: tinykernel train data.npz -o model.tkm, then verify, report, export.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _show_version(asked: bool) -> None:
    if asked:
        from tinykernel.base.files import package_version

        typer.echo(f"tinykernel {package_version()}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = flag("--version", "show the version", callback=_show_version, is_eager=True),
) -> None:
    pass


_COMMANDS: dict[Callable[..., None], tuple[str, str]] = {
    train.train_command: (
        "train digits.npz -o digits.tkm --budget 8KB --image-shape 8x8",
        "train motion --window 2.56s --label activity -o motion.tkm",
    ),
    train.tune_command: (
        "tune digits.npz --budget 8KB --target cortex-m0plus -o best.tkm",
        "tune digits.npz --pick 4KB -o small.tkm",
    ),
    data.data_command: (
        "data motion --window 2s --label activity",
        "data motion --name '{label}_{person}_*' --html motion.html",
    ),
    evaluate.verify_command: (
        "verify digits.tkm digits.npz --target host,cortex-m4",
        "verify digits.tkm digits.npz --port auto",
    ),
    report.report_command: (
        "report digits.tkm --target cortex-m4 --budget 8KB",
        "report digits.tkm --data digits.npz --html digits.html",
    ),
    report.try_command: ("try digits.tkm", "try words.tkm --serve"),
    report.bench_command: ("bench digits.tkm", "bench digits.tkm --target cortex-m4 --clock 80MHz"),
    export.export_command: (
        "export digits.tkm --target cortex-m4 --data digits.npz -o firmware",
        "export digits.tkm --data digits.npz --check firmware",
    ),
    export.flash_command: ("flash firmware", "flash firmware --port /dev/ttyACM0"),
    boards.record_command: (
        "record --port auto --label walking -o motion",
        "record --port auto --label walking --seconds 30 -o motion",
    ),
    boards.monitor_command: (
        "monitor motion.tkm --port auto",
        "monitor motion.tkm --port auto --log decisions.csv",
    ),
    boards.emulate_command: ("emulate digits.tkm --target cortex-m4", "emulate --sensor shaking"),
    predict.predict_command: (
        "predict digits.tkm digits.npz -o labels.csv",
        "predict motion.tkm --stream motion/p1.csv",
    ),
    evaluate.evaluate_command: (
        "evaluate digits.tkm digits.npz",
        "evaluate digits.tkm new.npz --train digits.npz",
    ),
    calibrate.calibrate_command: (
        "calibrate digits.tkm new.npz --max-error 1% -o sure.tkm",
        "calibrate digits.tkm new.npz --coverage 95% -o sure.tkm",
    ),
    evaluate.drift_command: (
        "drift sure.tkm counters.bin",
        "drift digits.tkm counters.bin --data new.npz",
    ),
    inspect.convert_command: (
        "convert booster.txt -o gesture.tkm",
        "convert booster.ubj -o gesture.tkm",
    ),
    inspect.inspect_command: ("inspect digits.tkm", "inspect digits.tkm --proof digits.json"),
    inspect.targets_command: ("targets", "targets --fits digits.tkm"),
    inspect.options_command: ("options", "options epochs budget"),
    report.demo_command: ("demo", "demo -o digits --force"),
}
for _command, _examples in _COMMANDS.items():
    # Click joins the lines of a paragraph, but of one that begins with \b.
    app.command(
        _command.__name__.removesuffix("_command"),
        help=cleandoc(_command.__doc__ or ""),
        epilog="\n".join(("\b", "Examples:", *(f"  tinykernel {each}" for each in _examples))),
    )(_command)


def main() -> None:
    """Run the command line.

    Exit status: 0 for success, 1 for an error or a failed check, 2 for usage, 130 after Ctrl-C.
    """
    warnings.formatwarning = _one_line
    for category in (DeprecationWarning, FutureWarning):
        warnings.simplefilter("ignore", category)
    # scikit-learn warns of data with very many classes.
    warnings.filterwarnings("ignore", message="The number of unique classes is greater")
    for stream in (sys.stdout, sys.stderr):  # characters that the terminal's encoding lacks
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    output.hear_interrupts_once()
    status = output.FAILED
    try:
        status = app(standalone_mode=False)
    except KeyboardInterrupt:
        output.fail("interrupted")
        status = output.INTERRUPTED
    finally:
        status = output.finish_output(status)
    sys.exit(status)


def _one_line(message: Warning | str, *_: object, **__: object) -> str:
    return f"warning: {visible(' '.join(str(message).split()))}\n"
