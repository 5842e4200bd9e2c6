"""Say whether a device in the field sees what held-out rows showed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.cli.common.arguments import (
    JsonOption,
    ModelArgument,
    QuietOption,
    flag,
    share_option,
)
from tinykernel.cli.common.memory import Remembered, remembered
from tinykernel.cli.common.output import percent, print_json, print_pairs, print_table
from tinykernel.cli.common.rows import rows_to_judge

if TYPE_CHECKING:
    from tinykernel.decisions import Drift, Expected
    from tinykernel.model import IntegerModel

_LARGEST_FILE = 1 << 20
_WHAT = {
    "labels": "shares of the classes",
    "margin": "mean margin",
    "saturated": "saturated values",
}


def drift_command(
    model: ModelArgument,
    counters: Annotated[
        Path,
        typer.Argument(
            metavar="COUNTERS",
            help="bytes of NAME_counters_t as the device has them in memory",
            show_default=False,
        ),
    ],
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="DATA",
            help="held-out rows to compare with, instead of those that calibrate remembered",
        ),
    ] = None,
    false_alarms: Annotated[
        Any,
        share_option(
            "--false-alarms", "risk of a difference where there is none", show_default="1%"
        ),
    ] = 0.01,
    independent: Annotated[
        bool,
        flag("--independent", words="count each decision, as for parts on a belt, not a stream"),
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = None,
) -> None:
    """Compare the counters of a device with the figures of held-out rows.

    Ends with status 1 where they differ by more than chance, and where the device has too few
    decisions to say.
    """
    from tinykernel.decisions import Counters, drift, expected_counts
    from tinykernel.errors import TinykernelError
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import load

    integer, memory = as_integer_model(load(model)), remembered(model)
    try:
        counted = Counters.from_bytes(integer, _bytes_of(counters))
    except TinykernelError as error:
        raise TinykernelError(f"{counters}: {error}") from None
    if data is None:
        expected = _expected(model, integer, memory)
    else:
        rows = rows_to_judge(model, integer, data, needs_labels=False, unseen=True).rows
        expected = expected_counts(integer, rows.X)
    found = drift(counted, expected, false_alarm=false_alarms, independent=independent)
    if as_json:
        about = {"model": model, "counters": counters, "expected": expected.to_dict()}
        print_json(about | found.to_dict())
    elif not quiet:
        _print(integer, found, expected)
    if found.differs or not found.enough:
        raise typer.Exit(1)


def _bytes_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_LARGEST_FILE)


def _expected(model: Path, integer: IntegerModel, memory: Remembered) -> Expected:
    """Return what the model file remembers of the rows of its calibration."""
    from tinykernel.decisions import Expected
    from tinykernel.errors import TinykernelError

    found = Expected.from_dict(memory.everything.get("held_out"), integer.n_classes)
    if found is None:
        raise TinykernelError(
            f"{model}: does not say what held-out rows gave; calibrate the model, or give rows "
            "that it was not trained on with --data"
        )
    return found


def _print(model: IntegerModel, found: Drift, expected: Expected) -> None:
    """Print shares side by side, and the verdict."""
    names = [*map(str, model.classes), "refused"]
    pairs = zip(names, found.shares, found.shares_expected, strict=True)
    rows = [(name, percent(here), percent(there)) for name, here, there in pairs]
    rows.append(("mean margin", f"{found.margin:.1f}", f"{found.margin_expected:.1f}"))
    rows.append(("saturated values", f"{found.saturated:.3g}", f"{found.saturated_expected:.3g}"))
    columns = ("decision", "device", "held-out rows")
    print_table(columns, rows, right=columns[1:])
    typer.echo()
    count = f"{found.decisions}, which count as {found.independent:.0f} independent ones"
    print_pairs(
        [
            ("decisions", count),
            ("held-out rows", str(expected.rows)),
            ("chi-square", f"{found.chi_square:.1f} with {found.degrees} degrees of freedom"),
            (
                "by chance",
                f"shares {found.p_labels:.2g}, margin {found.p_margin:.2g}, "
                f"saturated values {found.p_saturated:.2g}",
            ),
            ("verdict", _verdict(found)),
        ]
    )


def _verdict(found: Drift) -> str:
    from tinykernel.decisions.drift import LEAST_DECISIONS

    if not found.enough:
        return f"too few independent decisions to say anything: {LEAST_DECISIONS} are needed"
    if found.differs:
        return "the device differs: " + ", ".join(_WHAT[name] for name in found.differs)
    return "no difference beyond chance"
