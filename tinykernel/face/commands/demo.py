"""The full workflow on scikit-learn's digits; try a model in a browser."""

import shlex
import tempfile
import webbrowser
from pathlib import Path

import typer

from tinykernel.base.errors import ModelError, ToolError
from tinykernel.base.files import write_bytes_atomically
from tinykernel.compile.compilers import zig_command
from tinykernel.face import arguments as args
from tinykernel.face.arguments import FORCE, QUIET, check_output_folder, option
from tinykernel.face.commands.report import page_of
from tinykernel.face.output import showing_progress
from tinykernel.face.rows import open_model

# As images, so that one can draw on the page; one kind of model, since a choice would take longer.
_KIND = ("--set", "model=separable", "--set", "epochs=20")
_HOW = ("--image-shape", "8x8", "--budget", "8KB", "--effort", "quick", *_KIND)


def demo_command(
    ctx: typer.Context,
    output: Path = option("--output -o DIR", "folder for the project", value=Path("demo")),
    force: bool = FORCE,
    quiet: bool = QUIET,
) -> None:
    """Train on digits, export for a Cortex-M4, and verify.

    Uses the digits of scikit-learn, verifies every test row, reports the sizes, and writes a page
    to try the model in a browser.
    """
    force = check_output_folder(output, force=force)
    import numpy as np
    from sklearn.datasets import load_digits

    page = output.with_name(f"{output.name}.html")

    X, y = load_digits(return_X_y=True)
    with tempfile.TemporaryDirectory() as folder:
        data, model = str(Path(folder, "digits.npz")), str(Path(folder, "digits.tkm"))
        np.savez(data, X=X.astype("uint8"), y=y)
        for command in (
            ("train", data, "-o", model, "--test", "0.25", *_HOW),
            ("export", model, "--data", data, "-o", str(output), *["--force"] * force),
            ("verify", model, data),
            ("report", model, "--html", str(page), "--data", data),
        ):
            if not quiet:
                typer.echo(f"\n$ tinykernel {shlex.join(command)}")
            root = ctx.find_root()
            arguments = [*command, *["-q"] * quiet]
            status = root.command.main(arguments, root.info_name, standalone_mode=False)
            if status:
                raise typer.Exit(status)
    if not quiet:
        typer.echo(f"\nNext: 'pio run' in {output} builds it, tinykernel flash {output} flashes it")
        typer.echo(f"Try it in a browser: {page}")


def try_command(
    model: Path = args.MODEL,
    data: str | None = args.option("--data DATA", "rows to step through"),
    output: Path | None = args.option(
        "--output -o FILE", "page to write", default="a temporary file"
    ),
    serve: bool = args.flag(
        "--serve",
        "serve the page on 127.0.0.1 until Ctrl-C: some browsers allow camera and "
        "microphone only there",
    ),
    quiet: bool = args.QUIET,
) -> None:
    """Open a page that runs the firmware of a model in a browser.

    Move the inputs of a table, draw an image, speak, or drop a file. The page is that of report
    --html, and proves itself by test vectors when it opens. It needs zig: pip install ziglang.
    """
    from tinykernel.face.pages.chip import serve_page

    if zig_command() is None:
        raise ToolError("zig is missing, which compiles for browsers: pip install ziglang")
    if output is not None:
        if serve:
            raise args.misuse("-o", "a page that is served is no file; leave it out")
        args.check_output_file(output, (".html", ".htm"), [model])
    file = open_model(model)
    with showing_progress(quiet):
        options = {"data": data, "compiler": "auto", "clock": None, "budget": None}
        report = page_of(file, [file.target or "cortex-m4"], options)
    if report.chip is None:
        raise ModelError(report.without_chip)
    page = report.to_html().encode("utf-8")
    if serve:
        # The port is free by chance, so that its address is said in any case.
        serve_page(page, lambda address: _open(address, False))
        return
    place = output or Path(tempfile.mkdtemp(prefix="tinykernel-"), f"{model.stem}.html")
    write_bytes_atomically(place, page)
    _open(place.absolute().as_uri(), quiet, str(place))


def _open(address: str, quiet: bool, place: str = "") -> None:
    if not quiet:
        typer.echo(place or f"{address}, until Ctrl-C")
    webbrowser.open(address)
