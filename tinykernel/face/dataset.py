"""Data of ``train`` and ``tune``: read, cut, select."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinykernel.base.errors import DataError, OptionError
from tinykernel.base.progress import report as say
from tinykernel.base.text import count
from tinykernel.data.paths import is_pictures, kind_of
from tinykernel.face.arguments import misuse
from tinykernel.face.settings import SETTINGS

if TYPE_CHECKING:
    from tinykernel.data.cutting import Windows
    from tinykernel.data.partition import Dataset, Rows
    from tinykernel.data.pictures import PictureReading
    from tinykernel.data.tables import Selection

# Most inputs of rows with a shape, without --image-shape; a search takes minutes.
_MOST_PLAIN = 8192
_OF_RECORDINGS = (
    *("label", "groups", "inputs", "window", "hop"),
    *("rate", "time", "name", "short", "beside", "background"),
)
_NOT_OF_PICTURES = (
    *("inputs", "drop", "missing", "input_type", "window", "hop", "rate", "time", "short"),
    *("beside", "window_shape"),
)
_LEAST_SECONDS = 1.0  # of a training, where reading took all the time.
_NOT_CUT = "not an option for recordings; leave it out"


def _refuse(options: Mapping[str, Any], names: Iterable[str], problem: str) -> None:
    """Refuse settings that differ from their default."""
    for name in names:
        if options[name] != SETTINGS[name].default:
            raise misuse(SETTINGS[name].hint, problem)


def is_cut(options: Mapping[str, Any]) -> bool:
    """Whether DATA are recordings to cut; if not, options of recordings are refused."""
    kind = kind_of(options["data"])
    if options["window"] is not None or kind == "recordings":
        return True
    if kind == "pictures":
        return False
    names = ["time", "name", "short"]
    if options["window_shape"] is None:
        names.append("rate")  # with a window_shape, rate is for the spectrum
    _refuse(options, names, "only for recordings; give --window")
    return False


def cutting_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of `windows`."""
    missing = options["missing"] or "error"
    if isinstance(options["beside"], int):
        raise misuse("--set beside", "recordings have columns; name them")
    if missing not in ("drop", "error"):
        raise misuse("--missing", f"{missing!r}: choose drop or error for recordings")
    cutting = {name: options[name] for name in _OF_RECORDINGS}
    cutting |= {name: tuple(cutting[name] or ()) for name in ("beside", "background")}
    return cutting | {"drop": options["drop"] or (), "missing": missing}


def pictures_of(options: Mapping[str, Any]) -> PictureReading | None:
    """Return how pictures are read, or None for other DATA; refuse options without effect."""
    from tinykernel.data.pictures import PictureReading

    if not is_pictures(options["data"]):
        return None
    _refuse(options, _NOT_OF_PICTURES, "not an option for pictures; leave it out")
    places = {name: options[name] for name in ("name", "label", "groups")}
    return PictureReading(options["image_shape"], frame=options.get("frame"), **places)


def dataset_for(
    options: Mapping[str, Any], parameters: dict[str, Any], *, choose_size: bool = False
) -> tuple[Dataset, Windows | None, dict[str, Any]]:
    """Load rows or cut recordings, add to `parameters`; return entries for the file, too."""
    say("reading", 0, None, options["data"])
    test = options["test"]
    split = {"test_size": 0.0 if isinstance(test, str) else test, "seed": options["seed"]}
    if is_cut(options):
        return _cut(options, parameters, split)
    pictures = pictures_of({**options, "image_shape": parameters.get("image_shape")})
    if pictures is None:
        dataset, remembered = _tables(options, parameters, split)
    else:
        dataset = _pictures(options, parameters, pictures, split, choose_size)
        parameters["image_shape"] = pictures.shape if pictures.frame else dataset.shape
        remembered = {"pictures": pictures.remembered}
    if isinstance(test, str):
        if dataset.X_test is not None:
            raise OptionError(f"{options['data']}: has a test part; leave out --test FILE")
        rows = other_rows(test, options, dataset)
        assert rows.y is not None
        n, place = len(dataset.y_train), f"{rows.part} of {rows.source}"
        dataset = replace(
            dataset,
            X_test=rows.X,
            y_test=rows.y,
            group_test=rows.group,
            split=f"{count(n, 'training row')}, {count(len(rows.y), 'test row')} ({place})",
        )
    return dataset, None, remembered


def time_limit(options: Mapping[str, Any]) -> float | str | None:
    """Return what is left of --max-time, or of the usual time, of which sizes of pictures take."""
    from tinykernel.kinds.train.fitting import USUAL_SECONDS

    limit = options["max_time"]
    if limit is None:
        is_whole = os.environ.get("TINYKERNEL_MAX_TIME") == "none" or options["epochs"]
        limit = math.inf if is_whole else USUAL_SECONDS[0]
        if not is_whole and not is_pictures(options["data"]):
            return "auto"
    left = limit - (time.monotonic() - options["begun"])
    return None if limit == math.inf else max(left, _LEAST_SECONDS)


def _pictures(
    options: Mapping[str, Any],
    parameters: Mapping[str, Any],
    pictures: PictureReading,
    split: dict[str, Any],
    choose_size: bool,
) -> Dataset:
    """Load pictures; with `choose_size`, and without a shape, as large as serves training rows."""
    from tinykernel.data.load import load_data
    from tinykernel.data.pictures import usual_sides

    load = partial(load_data, options["data"], values=options["task"] == "numbers", **split)
    is_open = pictures.shape is None and options["task"] == "classes"
    if not (choose_size and is_open) or options["effort"] == "quick":
        return load(pictures=pictures)
    from tinykernel.kinds.train.picture_size import choose_side

    sides = usual_sides(options["data"])
    dataset = load(pictures=replace(pictures, side=sides[-1]))
    assert dataset.shape is not None
    side, reason = choose_side(
        dataset.X_train.reshape(-1, *dataset.shape),
        dataset.y_train,
        sides,
        min(pictures.side, sides[-1]),
        groups=dataset.group_train,
        **{name: options[name] for name in ("seed", "budget", "target")},
        max_time=time_limit(options),
        **parameters,
    )
    if side != sides[-1]:
        del dataset  # may be large
        dataset = load(pictures=replace(pictures, side=side))
    return replace(dataset, notes=(*dataset.notes, *([reason] if reason else [])))


def _cut(
    options: Mapping[str, Any], parameters: dict[str, Any], split: dict[str, Any]
) -> tuple[Dataset, Windows, dict[str, Any]]:
    from tinykernel.data.signals import load_recordings

    _refuse(options, ("window_shape", "image_shape", "input_type"), _NOT_CUT)
    if options["task"] == "numbers":
        raise misuse("--task", "numbers need rows, as in .csv or .npz; recordings have labels")
    test = options["test"] if isinstance(options["test"], str) else None
    dataset, cut, remembered = load_recordings(
        options["data"], **cutting_of(options), **split, test=test
    )
    parameters |= {"hop": cut.hop, "rate": cut.rate}
    if cut.numbers:
        parameters |= {"beside": len(cut.numbers), "window_shape": dataset.shape}
    return dataset, cut, remembered


def _tables(
    options: Mapping[str, Any], parameters: dict[str, Any], split: dict[str, Any]
) -> tuple[Dataset, dict[str, Any]]:
    from tinykernel.data.load import load_data

    if isinstance(options["beside"], list):
        problem = "rows have no named columns; give the number of values at their end"
        raise misuse(SETTINGS["beside"].hint, problem)
    window, hop = options["window_shape"], options["hop"]
    if window is not None:
        parameters["rate"] = options["rate"]
    if hop is not None:
        if window is None:
            raise misuse("--hop", "only for recordings; give --window")
        if re.fullmatch(r"\d{1,9}", hop) is None or not 0 < int(hop) <= window[0]:
            raise misuse("--hop", f"{hop!r}: give samples, 1 to {window[0]} (the window)")
        parameters["hop"] = int(hop)
    dataset = load_data(
        options["data"],
        selection_of(options),
        input_type=options["input_type"],
        values=options["task"] == "numbers",
        **split,
    )
    if dataset.beside:
        if window is None or options["beside"] not in (None, dataset.beside):
            raise DataError(
                f"{options['data']}: has an array beside of {dataset.beside} numbers a window; "
                "give --window-shape, and no other --set beside"
            )
        parameters["beside"] = dataset.beside
    # Later tables may have further columns.
    remembered: dict[str, Any] = {"missing": options["missing"], "inputs": dataset.columns}
    if dataset.coding is not None:
        remembered["coding"] = dataset.coding.written()
    return dataset, remembered


def shape_hint(dataset: Dataset, options: Mapping[str, Any]) -> str:
    """Return a hint on shapes for rows that have one in the file."""
    shapes = (options[name] for name in ("image_shape", "window_shape", "window"))
    if options["method"] != "learned" or any(value is not None for value in shapes):
        return ""
    if dataset.X_train.ndim > 2:
        return ""
    if dataset.shape is not None and len(dataset.shape) in (2, 3):
        text = "x".join(map(str, dataset.shape))
        window = f"--window-shape {text} (a signal) or " if len(dataset.shape) == 2 else ""
        if dataset.X_train.shape[1] > _MOST_PLAIN:
            raise DataError(
                f"{options['data']}: rows of {text} are too many inputs for a search; give "
                f"{window}--image-shape {text}"
            )
        return f"rows have a shape; {window}--image-shape {text} uses it"
    return ""


def is_by_group(options: Mapping[str, Any], dataset: Dataset, cut: Windows | None) -> bool:
    """Whether whole groups are held out: named groups, recordings, or those of pictures."""
    of_pictures = options["name"] is not None and dataset.group_train is not None
    return options["groups"] is not None or cut is not None or of_pictures


def groups_hint(dataset: Dataset) -> str:
    """Return a hint if rows of one group are in both parts, or seem to be."""
    from tinykernel.data.labels import GROUPS

    names = () if dataset.group_train is not None else dataset.columns or ()
    for name in (each for each in names if each.lower() in GROUPS):
        return f"column {name} is an input; --groups {name} holds out whole groups instead"
    if "groups mixed" not in dataset.split:
        return ""
    return (
        "rows of one group are in both parts; name their array, as in --groups group, to hold out "
        "whole groups, or the accuracy is that of groups that were seen in training"
    )


def selection_of(options: Mapping[str, Any]) -> Selection:
    """Return what to take from a file as labels, groups and inputs."""
    from tinykernel.data.tables import Selection

    inputs = tuple(options["inputs"]) if options["inputs"] else None
    names = {name: options[name] for name in ("missing", "label", "groups")}
    return Selection(inputs, tuple(options["drop"] or ()), **names)


def other_rows(file: str, options: Mapping[str, Any], dataset: Dataset) -> Rows:
    """Load the labelled test rows of another file in the form of the training rows."""
    import numpy as np

    from tinykernel.data.load import load_rows

    values = dataset.y_train.dtype.kind == "f"
    inputs = None if Path(file).suffix.lower() in (".npz", ".npy") else dataset.columns
    pictures = None
    if is_pictures(file) and dataset.X_train.dtype == np.uint8 and len(dataset.shape or ()) == 3:
        shape = options["image_shape"] if options.get("frame") else dataset.shape
        pictures = pictures_of({**options, "data": file, "image_shape": shape})
    rows = load_rows(
        file,
        replace(selection_of(options), inputs=inputs, drop=(), coding=dataset.coding),
        n_features=dataset.X_train.shape[1],
        feature_names=dataset.columns,
        classes=None if values else sorted(set(dataset.y_train.tolist())),
        values=values,
        pictures=pictures,
    )
    if rows.y is None:
        raise DataError(f"{file}: has no labels; --test needs them")
    return rows
