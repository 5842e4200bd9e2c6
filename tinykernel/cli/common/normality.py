"""``train --task novelty``: learn what is normal, and the threshold above which it is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tinykernel.cli.common.bars import showing_progress
from tinykernel.cli.common.output import print_json, print_pairs, size
from tinykernel.progress import report as say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tinykernel.data.one_class import NormalRows
    from tinykernel.decisions.novelty import Alarms
    from tinykernel.estimator import TernaryKernelNovelty
    from tinykernel.measure.limits import Limits
    from tinykernel.measure.report import Report
    from tinykernel.model import IntegerModel


def _levels(model: IntegerModel) -> NDArray[np.int8]:
    """Return the levels of the prototypes."""
    from tinykernel.model.readouts.prototypes import Prototypes

    part = model.find(Prototypes)
    assert part is not None
    return part.levels


def train_novelty(options: Mapping[str, Any]) -> None:
    """Train, save and say what the threshold promises; status 1 where it promises nothing."""
    from tinykernel.errors import TinykernelError
    from tinykernel.modelfile import save

    output = Path(options["output"])
    with showing_progress(options["quiet"]):
        rows = _rows(options)
        say("training", 0, None)
        watch, memory = _fitted(rows, options, options["budget"])
    model = watch.quantize()
    save(model, output, _about(rows, watch, options))
    if watch.alarms_ is None:
        raise TinykernelError(
            f"{rows.source}: {watch.refusal_}. {output} holds the trained model all the same: "
            "novel to it is what is farther than all rows that were kept aside"
        )
    threshold = -int(model.readout.offset[0])
    found = {
        "data": rows.source,
        "rows": len(rows.X),
        "features": model.n_inputs,
        "prototypes": _levels(model).shape[0],
        "threshold": threshold,
        "novelty": None if watch.alarms_ is None else watch.alarms_.to_dict(),
        "report": None if memory is None else memory.to_dict(),
        "file": str(output),
    }
    if options["as_json"]:
        print_json(found)
    elif not options["quiet"]:
        for note in rows.notes:
            typer.echo(f"note: {note}")
        pairs = [
            ("data", f"{len(rows.X)} rows of {rows.source}"),
            (
                "model",
                f"{found['prototypes']} prototypes of {model.n_features} "
                f"{'inputs' if model.input.is_table else 'counts'}",
            ),
            *normal_in_words(watch.alarms_, threshold),
        ]
        if memory is not None:
            pairs.append(
                (
                    memory.target,
                    f"{size(memory.flash)} of flash, {size(memory.ram)} of RAM ({memory.source})",
                )
            )
        print_pairs([*pairs, ("file", str(output))])


def _rows(options: Mapping[str, Any]) -> NormalRows:
    """Load rows, or cut recordings."""
    from tinykernel.cli.common.dataset import cutting_of, is_cut, selection_of
    from tinykernel.data.one_class import normal_recordings, normal_rows
    from tinykernel.data.paths import is_pictures
    from tinykernel.errors import TinykernelError

    data = options["data"]
    say("reading", 0, None, data)
    if is_cut(options):
        return normal_recordings(data, **cutting_of(options))
    if is_pictures(data):
        raise TinykernelError(f"{data}: a model of one class takes rows or recordings, no pictures")
    if options["missing"] is not None:
        raise typer.BadParameter("not for rows of one class", param_hint="--missing")
    if options["hop"] is not None:
        raise typer.BadParameter("for recordings: give --window", param_hint="--hop")
    names = {name: options[name] for name in ("label", "groups")}
    return normal_rows(data, selection=selection_of(options), **names)


def _fitted(
    rows: NormalRows, options: Mapping[str, Any], limits: Limits | None
) -> tuple[TernaryKernelNovelty, Report | None]:
    """Train, with fewer prototypes until the linked model keeps to the budget."""
    from tinykernel.codegen.targets import find_target
    from tinykernel.errors import TinykernelError
    from tinykernel.estimator import TernaryKernelNovelty
    from tinykernel.measure.report import report

    target, number = options["target"], options["n_prototypes"]
    more = {} if options["n_kernels"] is None else {"n_kernels": options["n_kernels"]}
    while True:
        watch = TernaryKernelNovelty(
            n_prototypes=number,
            false_alarms=options["false_alarms"],
            calibration_size=options["calibration_size"],
            hop=rows.hop,
            window_shape=rows.X.shape[1:] if rows.X.ndim == 3 else options["window_shape"],
            random_state=options["seed"],
            **more,
        )
        watch.fit(rows.X, groups=rows.group)
        if rows.columns is not None:
            watch.model_ = replace(watch.model_, feature_names=rows.columns)
        if find_target(target).family == "host":
            return watch, None
        found = report(watch.model_, target, limits)
        most = None if limits is None else limits.flash
        if most is None or found.flash <= most:
            return watch, found
        has, each = len(_levels(watch.model_)), 4 * -(-watch.model_.n_features // 8)
        number = has + (most - found.flash) // each
        if options["n_prototypes"] is not None or number < 1:
            raise TinykernelError(
                f"the model needs {found.flash} bytes of flash on {target}, over the budget of "
                f"{most}; give a larger budget, or fewer n_prototypes"
            )


def _about(
    rows: NormalRows, watch: TernaryKernelNovelty, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what the model file is to remember."""
    import numpy as np

    from tinykernel.data.trained_rows import hash_of, record_of

    flat = rows.X.reshape(len(rows.X), -1)
    found = {
        "data": rows.source,
        "one_class": True,
        **{name: options[name] for name in ("label", "groups", "seed", "target")},
        "training_rows": {
            "rows": len(flat),
            "sha256": hash_of(flat, np.zeros(len(flat))),
            **record_of(flat),
        },
        "calibration": None if watch.alarms_ is None else said(watch.alarms_),
        **rows.about,
    }
    return {name: value for name, value in found.items() if value is not None}


def said(found: Alarms) -> dict[str, Any]:
    """Return the promise as a file remembers it."""
    return {"statement": found.statement.removeprefix("; "), **found.to_dict()}


def normal_in_words(found: Alarms | None, threshold: int) -> list[tuple[str, str]]:
    """Return the threshold and what it promises as names and values for `print_pairs`."""
    if found is None:
        return [("novel", f"above {threshold}"), ("promise", "none")]
    return [
        ("novel", f"above {threshold}: {found.alarms} of the rows that were kept aside"),
        ("promise", found.statement.removeprefix("; ")),
    ]
