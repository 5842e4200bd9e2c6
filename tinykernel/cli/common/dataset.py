"""The rows that ``train`` and ``tune`` are given: read, cut, chosen."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tinykernel.cli.settings.table import SETTINGS
from tinykernel.progress import report as say

if TYPE_CHECKING:
    from tinykernel.data.partition import Dataset, Rows
    from tinykernel.data.pictures import PictureReading
    from tinykernel.data.recordings import Windows
    from tinykernel.data.selection import Selection


_MANY_CLIPS = 20
_OF_RECORDINGS = (
    "label",
    "groups",
    "inputs",
    "window",
    "hop",
    "rate",
    "time",
    "mixed",
    "name",
    "short",
    "beside",
)
_NOT_OF_PICTURES = (
    "inputs",
    "drop",
    "missing",
    "input_type",
    "window",
    "hop",
    "rate",
    "time",
    "mixed",
    "short",
    "beside",
    "window_shape",
)


def is_cut(options: Mapping[str, Any]) -> bool:
    """Say whether DATA are recordings to cut; refuse what only recordings have otherwise."""
    from tinykernel.data.paths import is_pictures, is_recording

    if options["window"] is not None or is_recording(options["data"]):
        return True
    if is_pictures(options["data"]):
        return False
    for name in ("rate", "time", "mixed", "name", "short"):
        if name == "rate" and options["window_shape"] is not None:
            continue  # for a spectrum
        if options[name] != SETTINGS[name].default:
            hint = SETTINGS[name].hint
            raise typer.BadParameter("for recordings: give --window", param_hint=hint)
    return False


def cutting_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return how recordings are read and cut, as `windows` takes it."""
    missing = options["missing"] or "error"
    if isinstance(options["beside"], int):
        raise typer.BadParameter("recordings have columns: name them", param_hint="--set beside")
    if missing not in ("drop", "error"):
        raise typer.BadParameter(
            f"{missing!r}: write drop or error for windows of recordings", param_hint="--missing"
        )
    kept = {name: options[name] for name in _OF_RECORDINGS}
    kept["beside"] = tuple(kept["beside"] or ())
    return kept | {"drop": options["drop"] or (), "missing": missing}


def pictures_of(options: Mapping[str, Any]) -> PictureReading | None:
    """Return how pictures are read; None where DATA are none, and what has no use is refused."""
    from tinykernel.data.paths import is_pictures
    from tinykernel.data.pictures import PictureReading

    is_there = is_pictures(options["data"])
    for name in _NOT_OF_PICTURES if is_there else ("broken",):
        if options[name] != SETTINGS[name].default:
            words = "not for pictures" if is_there else "only for pictures"
            raise typer.BadParameter(words, param_hint=SETTINGS[name].hint)
    if not is_there:
        return None
    kept = {name: options[name] for name in ("name", "label", "groups", "broken")}
    return PictureReading(options["image_shape"], frame=options.get("frame"), **kept)


def dataset_for(
    options: Mapping[str, Any], parameters: dict[str, Any]
) -> tuple[Dataset, Windows | None, dict[str, Any]]:
    """Load rows, or cut recordings; also what the model is to remember of it."""
    from tinykernel.data.load import load_data
    from tinykernel.data.signals import load_recordings

    say("reading", 0, None, options["data"])
    data, by_values = options["data"], options["task"] == "numbers"
    test = options["test"]
    has_file = isinstance(test, str)
    split = {"test_size": 0.0 if has_file else test, "seed": options["seed"]}
    if is_cut(options):
        for name in ("window_shape", "image_shape", "input_type"):
            if options[name] is not None:
                raise typer.BadParameter("not for recordings", param_hint=SETTINGS[name].hint)
        if by_values:
            raise typer.BadParameter(
                "takes rows with numbers, as in .csv or .npz; recordings have labels",
                param_hint="--task",
            )
        dataset, cut, kept = load_recordings(
            data, **cutting_of(options), **split, test=test if has_file else None
        )
        parameters |= {"hop": cut.hop, "rate": cut.rate}
        if cut.numbers:
            parameters |= {"beside": len(cut.numbers), "window_shape": dataset.shape}
        return dataset, cut, kept
    pictures = pictures_of({**options, "image_shape": parameters.get("image_shape")})
    if pictures is not None:
        dataset = load_data(data, pictures=pictures, values=by_values, **split)
        parameters["image_shape"] = pictures.shape if pictures.frame else dataset.shape
        if has_file:
            dataset = _with_test_rows(dataset, options)
        return dataset, None, {"pictures": pictures.remembered}
    if isinstance(options["beside"], list):
        hint = SETTINGS["beside"].hint
        raise typer.BadParameter("rows: say how many values at their end", param_hint=hint)
    if options["window_shape"] is not None:
        parameters["rate"] = options["rate"]
    if options["hop"] is not None:
        parameters["hop"] = _hop_of_rows(options)
    selection = selection_of(options)
    dataset = load_data(
        data,
        label=options["label"],
        groups=options["groups"],
        selection=selection,
        input_type=options["input_type"],
        values=by_values,
        **split,
    )
    if dataset.beside:
        dataset = _with_numbers(dataset, options)
        parameters["beside"] = dataset.beside
    if has_file:
        dataset = _with_test_rows(dataset, options)
    # Later tables may have other columns, too, or have had some left out.
    kept = {"missing": selection.missing, "medians": dataset.medians, "inputs": dataset.columns}
    if dataset.coding is not None:
        kept["coding"] = dataset.coding.written()
    return dataset, None, kept


def _with_numbers(dataset: Dataset, options: Mapping[str, Any]) -> Dataset:
    """Note numbers that the file has beside windows; refuse them where they would be inputs."""
    from tinykernel.data.recordings import count
    from tinykernel.errors import TinykernelError

    words = f"{options['data']}: has an array beside, of {count(dataset.beside, 'number')} a window"
    if options["window_shape"] is None:
        raise TinykernelError(f"{words}; give --window-shape with it, or put them into X")
    if options["beside"] not in (None, dataset.beside):
        raise TinykernelError(f"{words}; leave out --set beside={options['beside']}")
    note = f"{count(dataset.beside, 'number')} beside each window, the array beside"
    return replace(dataset, notes=(*dataset.notes, note))


def _with_test_rows(dataset: Dataset, options: Mapping[str, Any]) -> Dataset:
    """Test on the rows of another file, as an official split has it."""
    from tinykernel.errors import TinykernelError

    if dataset.X_test is not None:
        raise TinykernelError(f"{options['data']}: has a test part; leave out --test FILE")
    rows = other_rows(options["test"], options, dataset, "--test")
    assert rows.y is not None
    n = len(dataset.y_train)
    return replace(
        dataset,
        X_test=rows.X,
        y_test=rows.y,
        group_test=rows.group,
        split=f"{n} training rows, {len(rows.y)} test rows ({rows.part} of {rows.source})",
    )


def _hop_of_rows(options: Mapping[str, Any]) -> int:
    """Read --hop where rows are windows, of which no rate is known."""
    window = options["window_shape"]
    if window is None:
        raise typer.BadParameter("for recordings: give --window", param_hint="--hop")
    is_whole = re.fullmatch(r"\d{1,9}", options["hop"]) is not None
    if not is_whole or not 0 < int(options["hop"]) <= window[0]:
        raise typer.BadParameter(
            f"{options['hop']!r}: give samples, from 1 to the window's {window[0]}",
            param_hint="--hop",
        )
    return int(options["hop"])


def shape_hint(dataset: Dataset, options: Mapping[str, Any]) -> str:
    """Say that a shape would help, where rows look like images or were windows in the file."""
    given = (options[name] for name in ("image_shape", "window_shape", "window"))
    if options["method"] != "learned" or any(value is not None for value in given):
        return ""
    if dataset.X_train.ndim > 2:
        return ""
    if dataset.shape is not None and len(dataset.shape) in (2, 3):
        text = "x".join(map(str, dataset.shape))
        window = f"--window-shape {text} (a signal) or " if len(dataset.shape) == 2 else ""
        return f"rows have a shape; {window}--image-shape {text} would make use of it"
    side = math.isqrt(dataset.X_train.shape[1])
    square = dataset.columns is None and side >= 8 and side**2 == dataset.X_train.shape[1]
    if not square:
        return ""
    from tinykernel.model.quantization.scaling import choose_scope

    if choose_scope(dataset.X_train, "auto") == "global":  # one unit, as the trainer sees it
        return f"rows look like images; --image-shape {side}x{side} would make use of it"
    return ""


def is_by_group(options: Mapping[str, Any], dataset: Dataset, cut: Windows | None) -> bool:
    """Whether whole groups are left out: those that are named, recordings, and of pictures."""
    of_pictures = options["name"] is not None and dataset.group_train is not None
    return options["groups"] is not None or cut is not None or of_pictures


def groups_hint(cut: Windows | None, dataset: Dataset) -> str:
    """Say that groups are mixed, or that files, each a group of its own, may belong together."""
    if "groups mixed" in dataset.split:
        return (
            "rows of one group are in both parts; name their array, as in --groups group, to keep "
            "whole groups aside, or the accuracy is that of groups that were seen before"
        )
    if cut is None or cut.hop is None or cut.groups is None:
        return ""
    n = len(cut.recordings)
    if n < _MANY_CLIPS or len(cut.X) > 2 * n or set(cut.groups) != set(cut.recordings):
        return ""
    return (
        f"each of the {n} files is taken for a group of its own; if several are of one person or "
        "machine, name it, as in --name '{label}_{person}_*', or the accuracy is that of persons "
        "who were heard before"
    )


def selection_of(options: Mapping[str, Any]) -> Selection:
    """Return what is taken of a table."""
    from tinykernel.data.selection import Selection

    inputs, drop, missing = (options[name] for name in ("inputs", "drop", "missing"))
    chosen = tuple(inputs) if inputs else None
    return Selection(chosen, tuple(drop or ()), missing)


def other_rows(file: str, options: Mapping[str, Any], dataset: Dataset, option: str) -> Rows:
    """Load the rows of another file, with labels, as those of the training."""
    import numpy as np

    from tinykernel.data.load import load_rows
    from tinykernel.data.paths import is_pictures
    from tinykernel.errors import TinykernelError

    values = dataset.y_train.dtype.kind == "f"
    classes = None if values else sorted(set(dataset.y_train.tolist()))
    selection = selection_of(options)
    inputs = None if Path(file).suffix.lower() in (".npz", ".npy") else dataset.columns
    same = replace(
        selection, inputs=inputs, drop=(), medians=dataset.medians, coding=dataset.coding
    )
    pictures = None
    if is_pictures(file) and dataset.X_train.dtype == np.uint8 and len(dataset.shape or ()) == 3:
        shape = options["image_shape"] if options.get("frame") else dataset.shape
        pictures = pictures_of({**options, "data": file, "image_shape": shape})
    rows = load_rows(
        file,
        label=options["label"],
        groups=options["groups"],
        n_features=dataset.X_train.shape[1],
        feature_names=dataset.columns,
        classes=classes,
        selection=same,
        values=values,
        pictures=pictures,
    )
    if rows.y is None:
        raise TinykernelError(f"{file}: has no labels; {option} needs them")
    return rows
