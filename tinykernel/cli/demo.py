"""The full workflow on scikit-learn's digits: train, export, verify, report."""

import shlex
import tempfile
from pathlib import Path

import typer

from tinykernel.cli.common.arguments import FORCE, QUIET, check_output_folder, option

# As images, so that one can draw on the page; one kind of model, since a choice would take longer.
_KIND = ("--set", "model=separable", "--set", "epochs=20")
_HOW = ("--image-shape", "8x8", "--budget", "8KB", "--effort", "quick", *_KIND)


def demo_command(
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

    from tinykernel.cli import app

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
            status = app([*command, *["-q"] * quiet], standalone_mode=False)
            if status:
                raise typer.Exit(status)
    if not quiet:
        typer.echo(f"\nNext: 'pio run' in {output} builds it, tinykernel flash {output} flashes it")
        typer.echo(f"Try it in a browser: {page}")
