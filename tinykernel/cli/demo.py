"""The whole way on scikit-learn's digits: train, export, verify, report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tinykernel.cli.check import print_report, print_verification, verification_json
from tinykernel.cli.export import write_project
from tinykernel.cli.group import FAILED, fail
from tinykernel.cli.options import ForceOption, JsonOption, QuietOption, check_output_folder
from tinykernel.cli.output import percent, print_json, size
from tinykernel.cli.train import train_model

__all__ = ["demo_command"]

_TARGET = "cortex-m4"
_NAME = "digits"
_TEST_SIZE = 0.25
_SEED = 0


def demo_command(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="folder for the project")
    ] = Path("digits-cortex-m4"),
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train on scikit-learn's digits, export for a Cortex-M4, verify all test rows, report."""
    check_output_folder(output, force=force)
    from sklearn.datasets import load_digits

    from tinykernel.data import split_data
    from tinykernel.measure.report import report
    from tinykernel.verify import verify

    X, y = load_digits(return_X_y=True)
    dataset = split_data(
        X.astype("uint8"), y, source="digits of scikit-learn", test_size=_TEST_SIZE, seed=_SEED
    )
    training = train_model(dataset, {"random_state": _SEED}, target=_TARGET, quiet=quiet)
    integer = training.integer
    assert dataset.X_test is not None
    verified = verify(integer, dataset.X_test, dataset.y_test)
    memory = report(integer, _TARGET)
    project = write_project(
        integer, _TARGET, output, name=_NAME, vectors=dataset.X_test[:8], force=force
    )
    if as_json:
        print_json(
            {
                "train": training.summary(),
                "export": project,
                "verify": verification_json(verified),
                "report": memory.to_dict(),
            }
        )
    elif not quiet:
        test = training.accuracies
        typer.echo(f"1. trained on {dataset.source}: {dataset.split}")
        typer.echo(
            f"   {training.seconds:.1f} s; test accuracy {percent(test['test_float'])} in floats, "
            f"{percent(test['test'])} in integers"
        )
        typer.echo(f"2. exported to {output} ({size(project['bytes'])} of sources)")
        typer.echo("3. compared the C with Python on this computer:")
        print_verification([verified], "the test rows")
        typer.echo("4. memory:")
        print_report([memory])
        typer.echo(f"\nBuild it with 'pio run' in {output}, or flash it: tinykernel flash {output}")
    if not verified.ok:
        fail(f"the C differs from Python: {verified.first_difference}")
    if not memory.fits:
        fail("; ".join(memory.problems))
    if not (verified.ok and memory.fits):
        raise typer.Exit(FAILED)
