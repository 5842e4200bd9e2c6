"""Try a model in a browser before any board is flashed."""

import tempfile
import webbrowser
from pathlib import Path

import typer

from tinykernel.cli.common import arguments as args
from tinykernel.cli.common.bars import showing_progress
from tinykernel.cli.common.rows import open_model
from tinykernel.cli.report import page_of
from tinykernel.compilers import zig_command
from tinykernel.errors import ModelError, ToolError
from tinykernel.files import write_bytes_atomically


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
    from tinykernel.reporting.serving import serve_page

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
