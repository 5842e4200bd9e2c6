"""``train --task novelty``: learn what is normal, and a threshold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinykernel.base.errors import DataError
from tinykernel.base.progress import report as say
from tinykernel.base.text import count, size
from tinykernel.compile.targets import find_target
from tinykernel.face.arguments import misuse
from tinykernel.face.evaluation import print_notes
from tinykernel.face.output import print_json, print_pairs, showing_progress
from tinykernel.run.limits import Limits

if TYPE_CHECKING:
    from tinykernel.data.partition import Dataset
    from tinykernel.kinds.estimators.oneclass import NoveltyDetector
    from tinykernel.kinds.sizing import Usage
    from tinykernel.learn.novelty import Alarms
    from tinykernel.model.integer import IntegerModel
    from tinykernel.run.report import Report


def train_novelty(options: Mapping[str, Any]) -> None:
    """Train, save and print the guarantee; exit status 1 without one."""
    from tinykernel.model.file import save

    output = Path(options["output"])
    with showing_progress(options["quiet"]):
        rows = _read(options)
        say("training", 0, None)
        watch, sizes = _fitted(rows, options, options["budget"])
    model = watch.quantize()
    save(model, output, _about(rows, watch, options))
    if watch.alarms_ is None:
        raise DataError(
            f"{rows.source}: {watch.refusal_}; {output} holds the model anyway, to which a row is "
            "novel that is farther than all held-out rows"
        )
    threshold, n_prototypes = -int(model.readout.offset[0]), watch.n_prototypes_
    if options["as_json"]:
        print_json(
            {
                "data": rows.source,
                "rows": len(rows.X_train),
                "features": model.n_inputs,
                "prototypes": n_prototypes,
                "threshold": threshold,
                "compared": watch.areas_,
                "novelty": watch.alarms_.to_dict(),
                "report": None if sizes is None else sizes.to_dict(),
                "file": str(output),
            }
        )
    elif not options["quiet"]:
        print_notes(rows.notes)
        inputs = f"{model.n_features} {'inputs' if model.input.is_table else 'counts'}"
        pairs = [
            ("data", f"{count(len(rows.X_train), 'row')} of {rows.source}"),
            ("model", f"{count(n_prototypes, 'prototype')} of {inputs}"),
            ("compared", areas_in_words(watch.areas_)),
            *alarms_in_words(watch.alarms_, threshold),
        ]
        if sizes is not None:
            memory = f"{size(sizes.flash)} of flash, {size(sizes.ram)} of RAM ({sizes.source})"
            pairs.append((sizes.target, memory))
        print_pairs([*pairs, ("file", str(output))])


def _read(options: Mapping[str, Any]) -> Dataset:
    from tinykernel.data.load import PictureSource
    from tinykernel.data.normal import normal_rows, normal_windows
    from tinykernel.data.recordings import RecordingSource
    from tinykernel.face.dataset import selection_of, source_of

    data = options["data"]
    say("reading", 0, None, data)
    source = source_of(options)
    if isinstance(source, RecordingSource):
        return normal_windows(source)
    if isinstance(source, PictureSource):
        raise DataError(f"{data}: a model of one class takes rows or recordings, not pictures")
    if options["missing"] is not None:
        raise misuse("--missing", "not an option for rows of one class; leave it out")
    if options["hop"] is not None:
        raise misuse("--hop", "only for recordings; give --window")
    return normal_rows(data, selection_of(options))


def _fitted(
    rows: Dataset, options: Mapping[str, Any], limits: Limits | None
) -> tuple[NoveltyDetector, Report | None]:
    """Train, with fewer prototypes until the linked model keeps to the budget."""
    import numpy as np

    from tinykernel.kinds.estimators.oneclass import NoveltyDetector
    from tinykernel.kinds.sizing import usage
    from tinykernel.run.report import report

    target, cut = options["target"], rows.origin.recordings
    sizes: list[Report] = []
    watch = NoveltyDetector(
        false_alarms=options["false_alarms"],
        hop=0 if cut is None else int(cut.hop or 0),
        window_shape=rows.X_train.shape[1:] if rows.X_train.ndim == 3 else options["window_shape"],
        n_kernels=options["n_kernels"],
        budget=limits,
        target=target,
        random_state=options["seed"],
    )

    def linked(model: IntegerModel) -> Usage:
        sizes.append(report(model, target, limits))
        return usage(model, limits, target, sizes[-1])

    is_host = find_target(target).family == "host"
    watch.fit_within(rows.X_train, rows.group_train, *(() if is_host else (linked,)))
    if rows.columns is not None:
        watch.feature_names_in_ = np.array(rows.columns, dtype=object)
    return watch, sizes[-1] if sizes else None


def _about(rows: Dataset, watch: NoveltyDetector, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of the model file."""
    from tinykernel.data.splits import record_of_training

    flat = rows.X_train.reshape(len(rows.X_train), -1)
    record = record_of_training(flat, rows.y_train)
    names = {name: options[name] for name in ("label", "groups", "seed")}
    origin = replace(rows.origin, data=rows.source, training_rows=record, **names)
    entries = {
        "one_class": True,
        "target": options["target"],
        "calibration": None if watch.alarms_ is None else promise_of(watch.alarms_),
        **origin.entries(),
    }
    return {name: value for name, value in entries.items() if value is not None}


def promise_of(alarms: Alarms) -> dict[str, Any]:
    """Return the guarantee for the model file."""
    return {"statement": alarms.statement.removeprefix("; "), **alarms.to_dict()}


def areas_in_words(areas: Mapping[str, float]) -> str:
    """Return how well what was compared told simulated anomalies from held-out windows."""
    every = ", ".join(f"{name} {100 * area:.1f} %" for name, area in areas.items())
    return every and f"area under the ROC curve of simulated anomalies: {every}"


def alarms_in_words(alarms: Alarms, threshold: int) -> list[tuple[str, str]]:
    """Return the threshold and its guarantee for `print_pairs`."""
    return [
        ("novel", f"above {threshold}: {alarms.alarms} of the rows that were held out"),
        ("promise", alarms.statement.removeprefix("; ")),
    ]
