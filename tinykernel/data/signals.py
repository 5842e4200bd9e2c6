"""Recordings on the command line: cut, split, and cut again as for a model; normal rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import DataError, FormatError, ModelError, ShapeError, TinykernelError
from tinykernel.base.text import count, listed, visible
from tinykernel.data.binary import read_parts
from tinykernel.data.columns import without_needless
from tinykernel.data.cutting import Windows
from tinykernel.data.faults import checked_part
from tinykernel.data.labels import NO_SPAN, background_among, backgrounds_among, is_background
from tinykernel.data.partition import Dataset, Rows
from tinykernel.data.paths import SOUNDS, find_data, is_recording
from tinykernel.data.recording_files import Reading, read_recording
from tinykernel.data.recordings import windows
from tinykernel.data.splits import as_dataset, split_recordings
from tinykernel.data.tables import Selection, no_column
from tinykernel.data.tracks import check_channels

if TYPE_CHECKING:
    from tinykernel.model.integer import IntegerModel

ADVICE_ON_EVENTS = (
    "no window lies within an event; 'calibrate --false-alarms 1/h' makes a model of events, which "
    "'evaluate' judges along time"
)
ADVICE_ON_SILENCE = (
    "no class is background, so silence and noise become one of the words; add recordings called "
    "silence, or let the model refuse: tinykernel calibrate"
)


@dataclass(frozen=True, eq=False)
class NormalRows:
    """Normal rows."""

    X: NDArray[Any]  # (n, n_inputs) or (n, samples, channels)
    group: NDArray[Any] | None  # (n,)
    columns: tuple[str, ...] | None  # names of the inputs.
    source: str  # name of the file or folder.
    hop: int  # of recordings; 0 of rows.
    about: dict[str, Any]  # settings that the model file stores.
    notes: tuple[str, ...] = ()  # changes to the rows, one line each.


def normal_rows(path: str | os.PathLike[str], selection: Selection) -> NormalRows:
    """Load all rows of a file; labels are optional, but several classes are refused."""
    file = find_data(path)
    parts = read_parts(file, selection, labels_needed=False, keep_all=True)
    part = parts.train or parts.any_part
    wanted = {selection.label: part.y, selection.groups: part.group}
    _refuse_lacking(file, wanted, part.columns)
    notes = part.notes
    if selection.inputs is None and part.columns is not None:
        part, column_notes = without_needless(part)
        notes += column_notes
    part = checked_part(part)
    _check_one(file.name, part.y)
    if part.beside:
        raise ShapeError(f"{file}: a model of one class takes no numbers beside windows; drop them")
    if part.texts:
        raise DataError(
            f"{file}: column {next(iter(part.texts))!r} holds text; a model of one class takes "
            "numbers; leave the column out with --set drop=NAME"
        )
    about = {"inputs": list(part.columns)} if part.columns else {}
    return NormalRows(part.X, part.group, part.columns, file.name, 0, about, notes)


def normal_recordings(path: str | os.PathLike[str], **how: Any) -> NormalRows:
    """Cut recordings into windows; `how` are parameters of `windows`."""
    cut = windows(path, labels_needed=False, **how)
    _refuse_lacking(path, {how.get("label"): cut.y, how.get("groups"): cut.groups}, cut.channels)
    _check_one(cut.source, cut.y)
    normal = NormalRows(cut.X, cut.groups, None, cut.source, cut.hop, cutting_of(cut, how))
    if cut.X.dtype.kind != "f":
        return normal
    note = (
        "samples are floats, which have no spectrum: record whole numbers, such as the counts of "
        "the sensor, so that one competes"
    )
    return replace(normal, notes=(*normal.notes, note))


def _refuse_lacking(
    file: object, wanted: Mapping[str | None, Any], columns: Sequence[str] | None
) -> None:
    """Refuse a name of labels or groups, optional for one class, that no column has."""
    for name, values in wanted.items():
        if name is not None and values is None:
            raise no_column(file, name, columns or ())


def _check_one(source: str, labels: Sequence[Any] | NDArray[Any] | None) -> None:
    """Refuse rows of several classes."""
    classes = [] if labels is None else np.unique(np.asarray(labels)).tolist()
    if len(classes) > 1:
        shown = listed(classes, 3, repr)
        raise DataError(
            f"{source}: has rows of {len(classes)} classes ({shown}); give normal rows only"
        )


_TABLES = (".csv", ".tsv", ".parquet")


def cutting_of(cut: Windows, how: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of cutting for a model file, as JSON types; `how` is a `Reading`."""
    names = ("label", "groups", "time", "mixed", "missing", "name", "short")
    cutting = {name: getattr(Reading(**how), name) for name in names}
    cutting |= {"window": cut.X.shape[1], "hop": cut.hop, "rate": cut.rate}
    cutting["channels"] = list(cut.channels)
    return {"recordings": cutting | ({"beside": list(cut.numbers)} if cut.numbers else {})}


def load_recordings(
    path: str, *, test_size: float, seed: int, test: str | None = None, **how: Any
) -> tuple[Dataset, Windows, dict[str, Any]]:
    """Cut recordings to train on, and hold out whole ones, or cut those of `test`."""
    # Size and seed are those of `split_recordings`, `how` parameters of `windows`. Returns the
    # dataset, the windows, and the settings for `remembered`.
    cut = windows(path, **how)
    shape = cut.X.shape[1], len(cut.channels)
    dataset = replace(as_dataset(cut, 0.0 if test else test_size, seed), shape=shape)
    if _are_sounds(cut) and not any(map(is_background, np.unique(dataset.y_train).tolist())):
        dataset = replace(dataset, notes=(*dataset.notes, ADVICE_ON_SILENCE))
    cutting = cutting_of(cut, how)
    return dataset if test is None else _tested_on(test, dataset, cut, how), cut, cutting


def _tested_on(path: str, dataset: Dataset, cut: Windows, how: Mapping[str, Any]) -> Dataset:
    """Return the dataset with test windows from other recordings, cut in the same way."""
    same = {"window": cut.X.shape[1], "hop": cut.hop, "inputs": cut.channels, "drop": ()}
    other = windows(path, **{**how, **same}, labels_needed=False)
    if other.y is None:
        raise DataError(f"{path}: has no labels; --test needs them")
    if (other.y.dtype.kind == "U") != (dataset.y_train.dtype.kind == "U"):
        raise DataError(
            f"{path}: its labels and those of {cut.source} differ in type; give text or numbers"
        )
    X, kind = other.inputs, dataset.X_train.dtype
    if not np.array_equal(X.astype(kind), X):
        raise ShapeError(
            f"{path}: its values do not fit {kind}, the type of {cut.source}; convert them"
        )
    n, n_test = len(dataset.y_train), len(X)
    split = f"{count(n, 'training window')}, {count(n_test, 'test window')} (all of {other.source})"
    return replace(
        dataset, X_test=X.astype(kind), y_test=other.y, group_test=other.groups, split=split
    )


def remembered(about: Mapping[str, Any], model: IntegerModel) -> Reading | None:
    """Return how a model's recordings were cut, or None for a model of other inputs."""
    if not model.input.is_signal:
        return None
    lengths: dict[str, Any] = {"window": model.input.rows, "hop": model.hop}
    still = tuple(map(str, background_of(model, about)))
    cutting = about.get("recordings")
    if not isinstance(cutting, dict):
        return Reading(**lengths, background=still, labels_needed=False)
    cutting = {"channels": [], "beside": [], **lengths, **cutting}
    lists = [cutting.pop("channels"), cutting.pop("beside")]
    known = {field.name: cutting[field.name] for field in fields(Reading) if field.name in cutting}
    # Events may be looked for more often than windows are cut.
    hops = {model.hop} if model.events is None else range(model.hop, model.input.rows + 1)
    if (
        known["window"] != model.input.rows
        or known["hop"] not in hops
        or not all(isinstance(names, list) for names in lists)
        or len(lists[0]) not in (0, model.input.channels)
        or len(lists[1]) != model.n_numbers
    ):
        raise FormatError("the model file's settings of recordings do not fit its model")
    channels, beside = (tuple(map(str, names)) for names in lists)
    known |= {"labels_needed": False, "inputs": channels or None, "beside": beside}
    return Reading(**known, background=still)


def background_of(model: IntegerModel, about: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the classes that make no event: those of the training, or those named so."""
    names = about.get("background")
    if isinstance(names, list):
        return tuple(label for label in model.classes if str(label) in names)
    return backgrounds_among(model.classes)


def cut_for(
    path: str, model: IntegerModel, reading: Reading, *, mixed: str | None = None
) -> Windows:
    """Cut recordings as for the training of a model; `mixed` overrides `reading.mixed`.

    Other channels and another rate are refused.
    """
    if not reading.hop:
        raise ModelError(
            "the model has no hop, so it takes windows, not recordings; train it with --hop"
        )
    cut = windows(path, **vars(reading) | {"mixed": mixed or reading.mixed})
    check_channels(cut.source, cut.channels, model.input.channels)
    if cut.y is None:
        return cut
    labels, of_window = np.unique(cut.y, return_inverse=True)
    classes = as_classes(labels.tolist(), model, reading, mixed is not None and _are_sounds(cut))
    if classes is None:
        return replace(cut, y=None)
    values = list(classes.values())
    kind = object if len(set(map(type, values))) > 1 else None
    return replace(cut, y=np.array(values, dtype=kind)[of_window])


def as_classes(
    labels: Iterable[object], model: IntegerModel, reading: Reading, in_names: bool
) -> dict[str, Any] | None:
    """Return the classes of labels, by the text of a label; one of no class stays as it is.

    A label of background, also that of what no span labels, becomes a class of background. With
    `in_names` labels are folders of sounds, which may have any name: None where none is a class.
    """
    classes = {str(label): label for label in model.classes}
    still = background_among(model.classes, reading.background) or ""
    texts, known = isinstance(model.classes[0], str), dict[str, Any]()
    for label in labels:
        name = str(label)
        is_still = name not in classes and still and is_background(label)
        known[name] = classes.get(still if is_still else name, name if texts else label)
    if in_names and not any(map(is_background, known)) and not set(known) & set(classes):
        return None
    return known


def _are_sounds(cut: Windows) -> bool:
    return all(Path(name).suffix.lower() in SOUNDS for name in cut.recordings)


def signal_rows(cut: Windows, test_size: float | None = None, seed: int = 0) -> Rows:
    """Return windows as rows: all, or the test windows of the training."""
    test, where = np.ones(len(cut.X), bool), "all windows"
    if test_size is not None:
        _, test = split_recordings(cut, test_size, seed)
        where = f"recordings held out, {100 * test.mean():.3g} % of the windows, seed {seed}"
    y = None if cut.y is None else cut.y[test]
    # Recordings without windows, because their labels are mixed, stay in the stream.
    train = set(cut.groups[~test])
    streams = tuple(stretch.X for stretch in cut.stretches if stretch.group not in train)
    clip, starts = cut.recording[test], cut.starts[test].tolist()
    names = tuple(f"{cut.recordings[i]}:{at}" for i, at in zip(clip.tolist(), starts, strict=True))
    held = (cut.inputs[test], y, cut.source, where, cut.groups[test])
    still = y is not None and cut.dropped["mixed"] and all(map(is_background, set(y.tolist())))
    notes = (*cut.notes, ADVICE_ON_EVENTS) if still else cut.notes
    return Rows(*held, notes, streams, clip=clip, names=names)


def without_background(rows: Rows, classes: Sequence[object]) -> Rows:
    """Leave out windows that no span labels, where no class of a model stands for them."""
    still = np.zeros(len(rows.X), bool) if rows.y is None else rows.y == NO_SPAN
    if not rows.streams or NO_SPAN in classes or not still.any() or still.all():
        return rows
    note = f"left out: {count(int(still.sum()), 'window')} of background, no class of the model"
    return replace(rows.at(~still), notes=(*rows.notes, note))


def labels_to_judge_by(
    integer: IntegerModel, data: str, y: NDArray[Any] | None
) -> NDArray[Any] | None:
    """Refuse labels none of which is a class; for a model of one class return None."""
    if y is None or integer.is_regressor:
        return y
    labels = list(dict.fromkeys(y.tolist()))
    if not labels or not set(integer.classes).isdisjoint(labels):
        return y
    if integer.is_one_class:
        return None
    advice = ADVICE_ON_EVENTS if labels == [NO_SPAN] else "give the labels it was trained on"
    theirs, known = (visible(listed(each, 2)) for each in (labels, integer.classes))
    raise DataError(
        f"{data}: none of its labels ({theirs}) is a class of the model ({known}); {advice}"
    )


def stretch(cut: Windows, n: int) -> NDArray[Any]:
    """Return n adjacent windows with the most labels, or the first n where none are adjacent."""
    window = cut.X.shape[1]
    place = {key: i for i, key in enumerate(zip(cut.segments, cut.starts, strict=True))}
    best, most = np.arange(min(n, len(cut.X))), 0
    for segment, start in place:
        places = [place.get((segment, start + k * window)) for k in range(n)]
        if None in places:
            continue
        rows = np.array(places)
        labels = 1 if cut.y is None else len(np.unique(cut.y[rows]))
        if labels > most:
            best, most = rows, labels
    return cut.inputs[best]


def takes_recordings(path: str, model: IntegerModel, about: Mapping[str, Any]) -> bool:
    """Whether a file or folder holds recordings for a model of signals, not ready windows."""
    if not model.input.is_signal:
        return False
    if is_recording(path):
        return True
    file = find_data(path)
    if file.suffix.lower() != ".npz":
        return "recordings" in about and file.suffix.lower() in _TABLES
    try:
        table = read_recording(file, Reading(labels_needed=False))
    except TinykernelError:
        return False  # the reader of rows reports the fault
    # The numbers of a window are in X, or in an array of their own.
    return len(table.columns) not in (model.n_inputs, model.n_inputs - model.n_numbers)
