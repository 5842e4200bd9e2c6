"""Recordings as the command line takes them: cut, split, and cut again as a model remembers.

A model file remembers how the recordings of its training were cut. So later recordings are cut the
same way, and others are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.data.faults import shown
from tinykernel.data.partition import Dataset, Rows
from tinykernel.data.paths import SOUNDS, find_data, is_recording
from tinykernel.data.recordings import Windows, windows
from tinykernel.data.recordings.files import Reading, read_recording
from tinykernel.data.recordings.names import is_background
from tinykernel.data.splits import as_dataset, split_recordings
from tinykernel.errors import TinykernelError
from tinykernel.text import listed

if TYPE_CHECKING:
    from tinykernel.model import IntegerModel

_TABLES = (".csv", ".tsv", ".parquet")


def cutting_of(cut: Windows, how: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a model file is to remember of windows, as JSON types; `how` is a `Reading`."""
    if cut.hop is None:
        return {}
    names = ("label", "groups", "time", "mixed", "missing", "name", "short")
    cutting = {name: getattr(Reading(**how), name) for name in names}
    cutting |= {"window": cut.X.shape[1], "hop": cut.hop, "rate": cut.rate}
    cutting["channels"] = list(cut.channels)
    return {"recordings": cutting | ({"beside": list(cut.numbers)} if cut.numbers else {})}


def load_recordings(
    path: str, *, test_size: float, seed: int, test: str | None = None, **how: Any
) -> tuple[Dataset, Windows, dict[str, Any]]:
    """Cut recordings of a file or folder to train on, and keep whole ones aside, or cut others.

    `test` is a file or folder of recordings to test on; then none are kept aside.
    Size and seed are those of `split_recordings`, further parameters those of `windows`. Returned
    are the dataset, the windows, and what `remembered` takes, empty for windows that were ready.
    """
    cut = windows(path, **how)
    shape = cut.X.shape[1], len(cut.channels)
    dataset = replace(as_dataset(cut, 0.0 if test else test_size, seed), shape=shape)
    cutting = cutting_of(cut, how)
    return dataset if test is None else _tested_on(test, dataset, cut, how), cut, cutting


def _tested_on(path: str, dataset: Dataset, cut: Windows, how: Mapping[str, Any]) -> Dataset:
    """Test on the windows of other recordings, which are cut as those of the training."""
    if cut.hop is None:
        raise TinykernelError(f"{path}: {cut.source} holds ready windows; put test windows into it")
    same = {"window": cut.X.shape[1], "hop": cut.hop, "inputs": cut.channels, "drop": ()}
    other = windows(path, **{**how, **same}, labels_needed=False)
    if other.y is None:
        raise TinykernelError(f"{path}: has no labels; --test needs them")
    if (other.y.dtype.kind == "U") != (dataset.y_train.dtype.kind == "U"):
        raise TinykernelError(f"{path}: its labels and those of {cut.source} are of two kinds")
    X, kind = other.inputs, dataset.X_train.dtype
    if not np.array_equal(X.astype(kind), X):
        raise TinykernelError(f"{path}: its values do not fit {kind}, the type of {cut.source}")
    n, n_test = len(dataset.y_train), len(X)
    split = f"{n} training windows, {n_test} test windows (all of {other.source})"
    return replace(
        dataset, X_test=X.astype(kind), y_test=other.y, group_test=other.groups, split=split
    )


def remembered(about: Mapping[str, Any], model: IntegerModel) -> Reading | None:
    """Return how a model's recordings were cut, or None for a model of other inputs.

    A file that does not say it leaves window and hop to the model, and channels to the recording.
    """
    if not model.input.is_signal:
        return None
    own: dict[str, Any] = {"window": model.input.rows, "hop": model.hop}
    cutting = about.get("recordings")
    if not isinstance(cutting, dict):
        return Reading(**own, labels_needed=False)
    cutting = {"channels": [], "beside": [], **own, **cutting}
    lists = [cutting.pop("channels"), cutting.pop("beside")]
    known = {field.name: cutting[field.name] for field in fields(Reading) if field.name in cutting}
    if (
        {name: known[name] for name in own} != own
        or not all(isinstance(names, list) for names in lists)
        or len(lists[0]) not in (0, model.input.channels)
        or len(lists[1]) != model.n_numbers
    ):
        raise TinykernelError("the model file does not say of its own model how it was cut")
    channels, beside = (tuple(map(str, names)) for names in lists)
    return Reading(**known | {"labels_needed": False}, inputs=channels or None, beside=beside)


def cut_for(
    path: str, model: IntegerModel, reading: Reading, *, mixed: str | None = None
) -> Windows:
    """Cut recordings as those that a model was trained on.

    `mixed` takes the place of what `reading` says. Refuses what `windows` refuses, and other
    channels, another rate, or labels that the model does not know.
    """
    if not reading.hop:
        raise TinykernelError(
            "the model has no hop, so it takes windows and no recordings; train it with --hop"
        )
    cut = windows(path, **vars(reading) | {"mixed": mixed or reading.mixed})
    if len(cut.channels) != model.input.channels:
        raise TinykernelError(
            f"{cut.source}: has {len(cut.channels)} channels, the model takes "
            f"{model.input.channels}"
        )
    return replace(cut, y=_as_classes(cut, model, in_names=mixed is not None))


def _as_classes(cut: Windows, model: IntegerModel, in_names: bool) -> NDArray[Any] | None:
    """Return labels of the kind of the classes; None where the recordings have none.

    Where none is a class of the model, they say nothing about it: another column, or other names.
    With `in_names`, a sound may lie in any folder; only a folder of background says something: it
    is the model's background, whatever either is called.
    """
    if cut.y is None:
        return None
    texts = isinstance(model.classes[0], str)
    y = cut.y.astype(np.str_) if texts and cut.y.dtype.kind != "U" else cut.y
    background = next((label for label in model.classes if is_background(label)), None)
    if in_names and background is not None:
        other = [label not in model.classes and is_background(label) for label in y.tolist()]
        y = np.where(other, background, y)
    if not set(y.tolist()) & set(model.classes):
        if in_names and all(Path(name).suffix.lower() in SOUNDS for name in cut.recordings):
            return y if any(map(is_background, y.tolist())) else None
        labels, known = (
            listed(labels, show=shown) for labels in (np.unique(y).tolist(), model.classes)
        )
        raise TinykernelError(
            f"{cut.source}: no label ({labels}) is a class of the model ({known}); name the column "
            "of the labels with --label, or give the labels the names of the classes"
        )
    return y


def signal_rows(cut: Windows, test_size: float | None = None, seed: int = 0) -> Rows:
    """Return windows as rows: all, or those that training keeps aside."""
    test, where = np.ones(len(cut.X), bool), "all windows"
    if test_size is not None:
        _, test = split_recordings(cut, test_size, seed)
        where = f"recordings held out, {100 * test.mean():.3g} % of the windows, seed {seed}"
    y, group = (None if array is None else array[test] for array in (cut.y, cut.groups))
    # Of a recording without a window that counts, its labels are mixed, all samples stay.
    aside = set() if cut.groups is None or test.all() else set(cut.groups[~test])
    streams = tuple(stretch.X for stretch in cut.stretches if stretch.group not in aside)
    clip, starts = cut.recording[test], cut.starts[test].tolist()
    # Of ready windows the number, of recordings the first sample.
    names = tuple(f"{cut.recordings[i]}:{at}" for i, at in zip(clip.tolist(), starts, strict=True))
    return Rows(
        cut.inputs[test], y, cut.source, where, group, cut.notes, streams, clip=clip, names=names
    )


def stretch(cut: Windows, n: int) -> NDArray[Any]:
    """Return n windows that follow each other without a gap, where there are most labels.

    Side by side they are a piece of a recording, or windows one after the other where no such piece
    is long enough.
    """
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
    """Whether a file or folder holds recordings for a model of signals, and no ready windows."""
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
        return False  # the reader of rows says what is wrong
    return not table.window and len(table.columns) != model.n_inputs
