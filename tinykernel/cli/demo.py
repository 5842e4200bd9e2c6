"""The full workflow on scikit-learn's digits: train, export, verify, report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tinykernel.cli.common.arguments import ForceOption, QuietOption, check_output_folder, option
from tinykernel.cli.common.bars import showing_progress
from tinykernel.cli.common.output import FAILED, fail, percent, size
from tinykernel.cli.common.rows import accuracy_of
from tinykernel.cli.project.export import write_project
from tinykernel.cli.report import print_report
from tinykernel.cli.verify import print_verification

if TYPE_CHECKING:
    from tinykernel.data.partition import Dataset

_TARGET, _SEED = "cortex-m4", 0


def demo_command(
    output: Annotated[Path, option("--output -o DIR", "folder for the project")] = Path("demo"),
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train on digits, export for a Cortex-M4, and verify.

    Digits are scikit-learn's; every test row is verified, and sizes are reported.
    """
    force = check_output_folder(output, force=force)

    def say(line: str) -> None:
        if not quiet:
            typer.echo(line)

    from tinykernel.budget import train
    from tinykernel.build.parity import verify
    from tinykernel.measure.report import report

    dataset = _digits()
    say(f"1. train on {dataset.source}: {dataset.split}")
    # Default sigma and noise are good for this data set; a search would take longer.
    with showing_progress(quiet):
        trained = train(
            dataset.X_train,
            dataset.y_train,
            target=_TARGET,
            n_components=1024,
            epochs=60,
            effort="quick",
            random_state=_SEED,
        )
    model, X_test, y_test = trained.model, dataset.X_test, dataset.y_test
    say(f"   {trained.seconds:.1f} s; test accuracy {percent(accuracy_of(model, X_test, y_test))}")
    assert X_test is not None
    say(f"2. export for {_TARGET}")
    vectors = X_test[:8]
    project = write_project(model, _TARGET, output, name="digits", vectors=vectors, force=force)
    say(f"   {output}: {len(project['files'])} files, {size(project['bytes'])}")
    say("3. compare the C with Python on this computer, all test rows")
    verified = verify(model, X_test, y_test)
    if not quiet:
        print_verification([verified], "the test rows")
    say("4. memory")
    sizes = report(model, _TARGET)
    if not quiet:
        print_report([sizes])
    say(f"Next: build it with 'pio run' in {output}, or flash it: tinykernel flash {output}")
    if not verified.ok:
        fail(f"the C differs from Python: {verified.first_difference}")
    if not sizes.fits:
        fail("; ".join(sizes.problems))
    if not (verified.ok and sizes.fits):
        raise typer.Exit(FAILED)


def _digits() -> Dataset:
    """Load the digits as bytes, as the firmware takes them."""
    from sklearn.datasets import load_digits

    from tinykernel.data.formats import Part
    from tinykernel.data.partition import split_part

    X, y = load_digits(return_X_y=True)
    return split_part(
        Part(Path("digits of scikit-learn"), "X", X.astype("uint8"), y), y, 0.25, _SEED
    )
