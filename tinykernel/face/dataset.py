"""Data of ``train`` and ``tune``: read, cut, select. It imports what takes long."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import DataError, OptionError, ShapeError
from tinykernel.base.progress import report as say
from tinykernel.base.text import count, join
from tinykernel.data.labels import says_group
from tinykernel.data.load import PictureSource, TableSource
from tinykernel.data.partition import Dataset
from tinykernel.data.paths import kind_of
from tinykernel.data.pictures import PictureReading, usual_sides
from tinykernel.data.reading import Reading
from tinykernel.data.recording_files import find_recordings
from tinykernel.data.recordings import RecordingSource
from tinykernel.data.sources import Source
from tinykernel.data.tables import Selection
from tinykernel.face.arguments import misuse
from tinykernel.face.settings import SETTINGS

if TYPE_CHECKING:
    from tinykernel.learn.signals.clips import Clips

# Most inputs of rows with a shape, without --image-shape; a search takes minutes.
_MOST_PLAIN = 8192
_OF_RECORDINGS = (
    *("label", "groups", "inputs", "window", "hop"),
    *("rate", "time", "name", "short", "label_at", "axes", "beside", "background", "clips"),
)
_NOT_OF_PICTURES = (
    *("inputs", "drop", "missing", "input_type", "window", "hop", "rate", "time", "short"),
    *("label_at", "axes", "beside", "window_shape", "clips"),
)
WORST = "worst.csv"  # the list of `judge.events`, which is no recording.
_LEAST_SECONDS = 1.0  # of a training, where reading took all the time.
_NOT_CUT = "not an option for recordings; leave it out"


def _refuse(options: Mapping[str, Any], names: Iterable[str], problem: str) -> None:
    """Refuse settings that differ from their default."""
    for name in names:
        if options[name] != SETTINGS[name].default:
            raise misuse(SETTINGS[name].hint, problem)


def source_of(options: Mapping[str, Any], image_shape: tuple[int, ...] | None = None) -> Source:
    """Decide which sort of data DATA are, and refuse options without effect on it."""
    data, kind, of_values = options["data"], kind_of(options["data"]), options["task"] == "numbers"
    if options["window"] is not None or kind == "recordings":
        return RecordingSource(data, _reading_of(options))
    if kind == "pictures":
        return PictureSource(data, _pictures_of(options, image_shape), of_values)
    window, hop = options["window_shape"], options["hop"]
    names = ["time", "name", "short", "label_at", "axes", "clips"]
    if window is None:
        names.append("rate")  # with a window_shape, rate is for the spectrum
    _refuse(options, names, "only for recordings; give --window")
    if isinstance(options["beside"], list):
        problem = "rows have no named columns; give the number of values at their end"
        raise misuse(SETTINGS["beside"].hint, problem)
    if hop is not None and window is None:
        raise misuse("--hop", "only for recordings; give --window")
    if hop is not None and (re.fullmatch(r"\d{1,9}", hop) is None or not 0 < int(hop) <= window[0]):
        raise misuse("--hop", f"{hop!r}: give samples, 1 to {window[0]} (the window)")
    return TableSource(data, selection_of(options), of_values, options.get("input_type"))


def _reading_of(options: Mapping[str, Any]) -> Reading:
    """Return how recordings are cut."""
    _refuse(options, ("window_shape", "image_shape", "input_type"), _NOT_CUT)
    if options["task"] == "numbers":
        raise misuse("--task", "numbers need rows, as in .csv or .npz; recordings have labels")
    missing = options["missing"] or "error"
    if isinstance(options["beside"], int):
        raise misuse("--set beside", "recordings have columns; name them")
    if missing not in ("drop", "error"):
        raise misuse("--missing", f"{missing!r}: choose drop or error for recordings")
    cutting = {name: options[name] for name in _OF_RECORDINGS}
    is_other = options["task"] == "novelty"
    is_other = is_other or options.get("model") not in (None, "auto", "separable")
    if cutting["clips"] == "auto" and (is_other or options.get("n_kernels")):
        cutting["clips"] = "windows"  # what others learn
    cutting |= {name: tuple(cutting[name] or ()) for name in ("beside", "background")}
    return Reading(**cutting, drop=options["drop"] or (), missing=missing)


def _pictures_of(options: Mapping[str, Any], shape: tuple[int, ...] | None) -> PictureReading:
    """Return how pictures are read; refuse options without effect."""
    from tinykernel.pieces.frame.spec import Frame  # takes a second

    _refuse(options, _NOT_OF_PICTURES, "not an option for pictures; leave it out")
    places = {name: options[name] for name in ("name", "label", "groups")}
    frame = options.get("frame")
    camera = None if frame is None else Frame.of(frame, (1, 1, 1))  # of an image of any shape
    return PictureReading(shape, camera=camera, **places)


def training_data(
    options: Mapping[str, Any], parameters: dict[str, Any], *, choose_size: bool = False
) -> Dataset:
    """Read DATA with the split of the options, and add to `parameters`.

    With `choose_size`, and without a shape, pictures are as large as serves training rows.
    """
    say("reading", 0, None, options["data"])
    source, test = source_of(options, parameters.get("image_shape")), options["test"]
    split = (0.0 if isinstance(test, str) else test), options["seed"]
    how = source.how if isinstance(source, PictureSource) and choose_size else None
    is_open = how is not None and how.shape is None and options["task"] == "classes"
    if isinstance(source, PictureSource) and is_open and options["effort"] != "quick":
        dataset = _of_best_size(source, options, parameters, split)
    else:
        dataset = source.train_rows(*split)
    _add_parameters(parameters, options, dataset)
    if isinstance(test, str):
        dataset = _test_part(test, options, dataset)
    if options.get("also") is not None:
        dataset = _with_also(options["also"], dataset)
    background, pictures = options["background"], dataset.origin.pictures
    if pictures is not None and options.get("frame"):
        pictures = {**pictures, "frame": options["frame"]}
    origin = replace(
        dataset.origin,
        data=dataset.source,
        split=dataset.split,
        **{name: options[name] for name in ("label", "groups", "seed")},
        test_size=split[0],
        class_weight="balanced" if options["class_weight"] == "balanced" else None,
        background=None
        if background is None
        else (*background, *_class_of_background(dataset, background)),
        pictures=pictures,
    )
    return replace(dataset, origin=origin)


def _class_of_background(dataset: Dataset, background: Sequence[str]) -> tuple[str, ...]:
    """Return the class of all background, where words are in clips and no such label was named."""
    labels = {str(label) for _, label, _ in dataset.clips} - set(dataset.words)
    return tuple(sorted(labels - set(background)))


def is_by_group(options: Mapping[str, Any], dataset: Dataset) -> bool:
    """Whether whole groups are held out: named groups, recordings, those of pictures or a file."""
    of_pictures = options["name"] is not None and dataset.group_train is not None
    is_cut = dataset.origin.recordings is not None
    return options["groups"] is not None or is_cut or of_pictures or dataset.splits_groups


def clips_of(dataset: Dataset, options: Mapping[str, Any]) -> Clips | None:
    """Return whole recordings in which words are somewhere, and noise; None without such words."""
    from tinykernel.learn.signals.clips import Clips

    noise = options["noise"]
    if not dataset.clips:
        if noise is not None:
            raise misuse("--noise", "only for words in clips longer than a window; leave it out")
        return None
    sounds: list[Any] | None = None if noise == "off" else []
    if noise not in (None, "off"):
        cut = dataset.origin.recordings
        assert cut is not None
        reading = Reading(rate=cut.rate, labels_needed=False)
        heard = RecordingSource(noise, reading).uncut().recordings
        sounds = [each.X[:, :1] for each in heard if np.ptp(each.X[:, 0])]
        if not sounds:
            raise DataError(f"{noise}: holds silence alone; give sounds of noise")
    samples, labels, _ = zip(*dataset.clips, strict=True)
    return Clips(samples, labels, frozenset(dataset.words), sounds)


def _add_parameters(
    parameters: dict[str, Any], options: Mapping[str, Any], dataset: Dataset
) -> None:
    """Add what the data say to the parameters of a training."""
    cut, window = dataset.origin.recordings, options["window_shape"]
    if cut is not None:
        parameters |= {"hop": cut.hop, "rate": cut.rate}
        window = dataset.shape
    elif dataset.origin.pictures is not None:
        if not options.get("frame"):
            parameters["image_shape"] = dataset.shape
    else:
        if window is not None:
            parameters["rate"] = options["rate"]
        if options["hop"] is not None:
            parameters["hop"] = int(options["hop"])
        if dataset.beside and (window is None or options["beside"] not in (None, dataset.beside)):
            raise DataError(
                f"{options['data']}: has an array beside of {dataset.beside} numbers a window; "
                "give --window-shape, and no other --set beside"
            )
    if dataset.beside:
        parameters |= {"beside": dataset.beside, "window_shape": window}


def _with_also(path: str, dataset: Dataset) -> Dataset:
    """Return the dataset with the windows of other recordings among the training rows."""
    cut = dataset.origin.recordings
    if cut is None or kind_of(path) != "recordings":
        raise misuse("--also", "takes a folder of recordings, for a training on recordings")
    files = [file for file in find_recordings(path)[0] if file.name != WORST]
    own: dict[str, Any] = {"drop": (), "labels_needed": False, "short": "pad"}
    own |= dict.fromkeys(("name", "label", "groups", "time"))
    extra = RecordingSource(files, replace(cut, **own)).windows()
    known = set(dataset.y_train.tolist())
    if extra.y is None or not set(extra.y.tolist()) <= known:
        there = "no labels" if extra.y is None else f"labels {join(sorted(set(extra.y.tolist())))}"
        raise DataError(f"{path}: has {there}; give recordings of {join(sorted(known))}")
    groups, clips = np.char.add("also ", extra.groups), dataset.clips
    note = f"{path}: {count(len(extra.y), 'window')} are trained on, too"
    if clips:  # the training learns from them, and not from windows
        clips += (more := extra.clips(set(extra.groups.tolist())))
        note = f"{path}: {count(len(more), 'recording')} are trained on, too"
    return replace(
        dataset,
        X_train=np.concatenate([dataset.X_train, _of_type(extra.inputs, dataset, path)]),
        y_train=np.concatenate([dataset.y_train, extra.y]),
        group_train=np.concatenate([np.asarray(dataset.group_train), groups]),
        clips=clips,
        notes=(*dataset.notes, note),
    )


def _of_type(X: NDArray[Any], dataset: Dataset, path: str) -> NDArray[Any]:
    """Convert windows to the type of the training; refuse those that it does not hold."""
    fit = X.astype(dataset.X_train.dtype)
    if not np.array_equal(fit, X):
        raise ShapeError(
            f"{path}: its values do not fit {fit.dtype}, the type of {dataset.source}; convert them"
        )
    return fit


def _test_part(path: str, options: Mapping[str, Any], dataset: Dataset) -> Dataset:
    """Return the dataset with the labelled rows of other data as test rows."""
    if dataset.X_test is not None:
        raise OptionError(f"{options['data']}: has a test part; leave out --test FILE")
    rows = _source_like(path, options, dataset).rows()
    if rows.y is None:
        raise DataError(f"{path}: has no labels; --test needs them")
    X, unit, place = rows.X, "row", f"{rows.part} of {rows.source}"
    if dataset.origin.recordings is not None:
        X, unit, place = _of_type(X, dataset, path), "window", f"all of {rows.source}"
        if (rows.y.dtype.kind == "U") != (dataset.y_train.dtype.kind == "U"):
            raise DataError(
                f"{path}: its labels and those of {dataset.source} differ in type; give text or "
                "numbers"
            )
    n, n_test = len(dataset.y_train), len(rows.y)
    split = f"{count(n, f'training {unit}')}, {count(n_test, f'test {unit}')} ({place})"
    return replace(dataset, X_test=X, y_test=rows.y, group_test=rows.group, split=split)


def _source_like(path: str, options: Mapping[str, Any], dataset: Dataset) -> Source:
    """Return other data in the form of the training rows."""
    cut = dataset.origin.recordings
    if cut is not None:
        return RecordingSource(path, replace(cut, drop=(), labels_needed=False))
    values = dataset.y_train.dtype.kind == "f"
    classes = None if values else sorted(set(dataset.y_train.tolist()))
    if kind_of(path) == "pictures":
        is_image = dataset.X_train.dtype == np.uint8 and len(dataset.shape or ()) == 3
        shape = options["image_shape"] if options.get("frame") else dataset.shape
        how = _pictures_of(options, shape) if is_image else None
        return PictureSource(path, how, values, classes)
    inputs = None if Path(path).suffix.lower() in (".npz", ".npy") else dataset.columns
    chosen = replace(selection_of(options), inputs=inputs, drop=(), coding=dataset.coding)
    inputs_of = dataset.X_train.shape[1], dataset.columns, classes
    return TableSource(path, chosen, values, None, *inputs_of)


def time_limit(options: Mapping[str, Any]) -> float | None:
    """Return what is left of --max-time, of which sizes of pictures take."""
    limit: float | None = options["max_time"]
    if limit is None:
        return None
    return float(max(limit - (time.monotonic() - options["begun"]), _LEAST_SECONDS))


def _of_best_size(
    source: PictureSource,
    options: Mapping[str, Any],
    parameters: Mapping[str, Any],
    split: tuple[float, int],
) -> Dataset:
    from tinykernel.kinds.train.picture_size import choose_side

    how = source.how or PictureReading()
    sides = usual_sides(source.path)
    dataset = replace(source, how=replace(how, side=sides[-1])).train_rows(*split)
    assert dataset.shape is not None
    side, reason = choose_side(
        dataset.X_train.reshape(-1, *dataset.shape),
        dataset.y_train,
        sides,
        min(how.side, sides[-1]),
        groups=dataset.group_train,
        **{name: options[name] for name in ("seed", "budget", "target")},
        max_time=time_limit(options),
        **parameters,
    )
    if side != sides[-1]:
        del dataset  # may be large
        dataset = replace(source, how=replace(how, side=side)).train_rows(*split)
    return replace(dataset, notes=(*dataset.notes, *([reason] if reason else [])))


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


def groups_hint(dataset: Dataset) -> str:
    """Return a hint if rows of one group are in both parts, or seem to be."""
    names = () if dataset.group_train is not None else dataset.columns or ()
    for name in (each for each in names if says_group(each)):
        return f"column {name} is an input; --groups {name} holds out whole groups instead"
    if "groups mixed" not in dataset.split:
        return ""
    return (
        "rows of one group are in both parts; name their array, as in --groups group, to hold out "
        "whole groups, or the accuracy is that of groups that were seen in training"
    )


def selection_of(options: Mapping[str, Any]) -> Selection:
    """Return what to take from a file as labels, groups and inputs."""
    inputs = tuple(options["inputs"]) if options["inputs"] else None
    names = {name: options[name] for name in ("missing", "label", "groups")}
    return Selection(inputs, tuple(options["drop"] or ()), **names)
