"""Compare the counters of a device with held-out rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tinykernel.cli.common import arguments as args
from tinykernel.cli.common.output import percent, print_json, print_pairs, print_table
from tinykernel.cli.common.rows import open_model, rows_to_judge
from tinykernel.errors import ModelError, TinykernelError

if TYPE_CHECKING:
    from tinykernel.decisions import Drift, Expected
    from tinykernel.model import IntegerModel

_LARGEST_FILE = 1 << 20
_DIFFERENCES = {
    "labels": "shares of the classes",
    "margin": "mean margin",
    "saturated": "saturated values",
}


def drift_command(
    model: Path = args.MODEL,
    counters: Path = args.argument(
        "COUNTERS", "file with the bytes of NAME_counters_t from the device"
    ),
    data: str | None = args.option(
        "DATA", "held-out rows to compare with", default="those of calibrate"
    ),
    false_alarms: Any = args.share_option("risk of a false alarm", value=0.01, default="1%"),
    independent: bool = args.flag(
        "--independent", "treat decisions as independent, e.g. parts on a belt"
    ),
    as_json: bool = args.JSON,
    quiet: bool = args.QUIET,
) -> None:
    """Compare a device's counters with held-out rows.

    Ends with status 1 if they differ by more than chance, or if the device has too few decisions.
    """
    from tinykernel.decisions import Counters, Expected, drift, expected_counts

    opened = open_model(model)
    with counters.open("rb") as stream:
        content = stream.read(_LARGEST_FILE)
    try:
        counted = Counters.from_bytes(opened.model, content)
    except TinykernelError as error:
        raise type(error)(f"{counters}: {error}") from None
    if data is None:
        known = Expected.from_dict(opened.about.get("held_out"), opened.model.n_classes)
        if known is None:
            raise ModelError(
                f"{model}: has no counts of held-out rows; calibrate it, or give such rows with "
                "--data"
            )
        expected = known
    else:
        rows = rows_to_judge(opened, data, needs_labels=False, unseen=True).rows
        expected = expected_counts(opened.model, rows.X)
    result = drift(counted, expected, false_alarm=false_alarms, independent=independent)
    if as_json:
        about = {"model": model, "counters": counters, "expected": expected.to_dict()}
        print_json(about | result.to_dict())
    elif not quiet:
        _print(opened.model, result, expected)
    if result.differs or not result.enough:
        raise typer.Exit(1)


def _print(model: IntegerModel, result: Drift, expected: Expected) -> None:
    """Print shares side by side, and the verdict."""
    from tinykernel.decisions.drift import LEAST_DECISIONS

    verdict = "no difference beyond chance"
    if result.differs:
        verdict = "the device differs: " + ", ".join(_DIFFERENCES[name] for name in result.differs)
    if not result.enough:
        verdict = f"too few independent decisions: {LEAST_DECISIONS} are needed"
    names = [*map(str, model.classes), "refused"]
    pairs = zip(names, result.shares, result.shares_expected, strict=True)
    rows = [(name, percent(here), percent(there)) for name, here, there in pairs]
    rows.append(("mean margin", f"{result.margin:.1f}", f"{result.margin_expected:.1f}"))
    saturated = (result.saturated, result.saturated_expected)
    here, there = (f"{share:.3g}" for share in saturated)
    rows.append(("saturated values", here, there))
    columns = ("decision", "device", "held-out rows")
    print_table(columns, rows, right=columns[1:])
    typer.echo()
    count = f"{result.decisions}, which count as {result.independent:.0f} independent ones"
    chance = f"shares {result.p_labels:.2g}, margin {result.p_margin:.2g}, "
    freedom = f"{result.degrees} degrees of freedom"
    print_pairs(
        [
            ("decisions", count),
            ("held-out rows", str(expected.rows)),
            ("chi-square", f"{result.chi_square:.1f} with {freedom}"),
            ("by chance", f"{chance}saturated values {result.p_saturated:.2g}"),
            ("verdict", verdict),
        ]
    )
