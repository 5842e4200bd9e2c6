"""Three sources of data, tables, recordings and pictures, behind one protocol."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from tinykernel.base.errors import FormatError, TinykernelError
from tinykernel.data.load import PictureSource, TableSource
from tinykernel.data.origin import Origin, Taker
from tinykernel.data.partition import Dataset, Rows
from tinykernel.data.paths import find_data, kind_of
from tinykernel.data.pictures import Camera, PictureReading
from tinykernel.data.reading import DAMAGED, Reading
from tinykernel.data.recording_files import read_recording
from tinykernel.data.recordings import RecordingSource
from tinykernel.data.tables import Selection

_TABLES, _ARRAYS = (".csv", ".tsv", ".parquet"), (".npz", ".npy")


class Source(Protocol):
    """Data of one sort: a table or arrays, recordings, or pictures."""

    def train_rows(self, test_size: float, seed: int) -> Dataset:
        """Read rows to train on, and hold out test rows; a `test_size` of 0 holds out none."""

    def rows(self, test_size: float | None = None, seed: int = 0) -> Rows:
        """Read the test part, else all rows, or those that `train_rows` holds out."""


def again(
    path: str,
    taker: Taker,
    origin: Origin,
    image: tuple[tuple[int, ...], Camera | None] | None = None,
    *,
    keep_all: bool = False,
) -> Source:
    """Return data for a finished model, read as those of its training.

    `image` is the shape of the images that it takes from pictures, and the camera before them.
    """
    kind = kind_of(path)
    if kind == "pictures":
        how = image and PictureReading(image[0], camera=image[1], **(origin.pictures or {}))
        return PictureSource(path, how, taker.is_regressor, taker.classes or None)
    reading = reading_again(origin, taker)
    if reading is not None and (kind == "recordings" or _is_recording(path, taker, origin)):
        return RecordingSource(path, reading, taker)
    axes = taker.input
    return TableSource(
        path,
        _selection_again(path, origin) if kind == "rows" else Selection(),
        taker.is_regressor,
        n_features=taker.n_inputs,
        feature_names=taker.feature_names,
        classes=taker.classes or None,
        keep_all=keep_all,
        takes_gaps=taker.takes_gaps,
        in_order=axes.in_order if axes.order and not taker.n_numbers else None,
    )


def _selection_again(path: str, origin: Origin) -> Selection:
    """Return what was taken from the file of the training."""
    file = find_data(path)
    suffix = file.suffix.lower()
    # The label of an .npy is a file, for the training rows alone.
    is_its_own = suffix != ".npy" or file.name == origin.data
    return Selection(
        inputs=None if suffix in _ARRAYS else origin.inputs or None,
        missing=origin.missing,
        coding=origin.coding,
        label=origin.label if is_its_own else None,
        groups=origin.groups if is_its_own else None,
    )


def reading_again(origin: Origin, taker: Taker) -> Reading | None:
    """Return how recordings are cut for a model, or None for a model of other inputs."""
    if not taker.input.is_signal:
        return None
    still = origin.background or tuple(map(str, origin.background_of(taker.classes)))
    classes = tuple(map(str, taker.classes))
    window, known = taker.input.rows, origin.recordings
    if known is None:
        return Reading(
            window=window, hop=taker.hop, background=still, labels_needed=False, classes=classes
        )
    hop, inputs = known.hop if known.hop is not None else taker.hop, known.inputs or ()
    # Events may be looked for more often than windows are cut.
    hops: Sequence[Any] = (taker.hop,) if taker.events is None else range(taker.hop, window + 1)
    if (
        known.window not in (None, window)
        or hop not in hops
        or len(inputs) not in (0, taker.input.channels)
        or len(known.beside) != taker.n_numbers
    ):
        raise FormatError(DAMAGED)
    return replace(known, window=window, hop=hop, background=still, classes=classes)


def _is_recording(path: str, taker: Taker, origin: Origin) -> bool:
    """Whether a file holds a recording for a model of signals, not ready windows."""
    file = find_data(path)
    if file.suffix.lower() != ".npz":
        return origin.recordings is not None and file.suffix.lower() in _TABLES
    try:
        table = read_recording(file, Reading(labels_needed=False))
    except TinykernelError:
        return False  # the reader of rows reports the fault
    # The numbers of a window are in X, or in an array of their own.
    return len(table.columns) not in (taker.n_inputs, taker.n_inputs - taker.n_numbers)
