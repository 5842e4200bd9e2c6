"""Rows to run a model on: read, cut and split as its file remembers of its training."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinykernel.cli.common.memory import Remembered, remembered
from tinykernel.cli.common.output import percent
from tinykernel.errors import TinykernelError
from tinykernel.progress import report as say
from tinykernel.text import listed, visible

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tinykernel.data.partition import Dataset, Rows
    from tinykernel.data.recordings import Windows
    from tinykernel.model import IntegerModel

_LABELS_SHOWN = 2
_ROWS_A_BATCH = 4096


@dataclass(frozen=True)
class Judged:
    """Rows to judge a model on.

    `y` is None where there are no labels, or a model of one class knows none of them; `train` are
    the rows that the model was trained on, where they are known.
    """

    rows: Rows
    y: NDArray[Any] | None
    train: tuple[NDArray[Any], NDArray[Any]] | None
    class_weight: str | None


def rows_to_judge(
    model: Path,
    integer: IntegerModel,
    data: str,
    *,
    train: str | None = None,
    needs_labels: bool = True,
    unseen: bool = False,
) -> Judged:
    """Load the test part of DATA, what training kept aside of it, or else all its rows.

    A test part stays whole, as its figures are published; a note says what rows that equal training
    rows change. They are left out of other rows, and where only `unseen` ones will do.
    The file of the model remembers its training; `train` says where its rows are, if not in `data`.
    Refuses rows that do not fit, of whose labels the model knows none, or without any that are
    needed.
    """
    from tinykernel.data.partition import TEST_PART

    memory = remembered(model)
    own = _own_training(model, integer, data, memory)
    rows = rows_for(model, integer, data, held_out=own is not None)
    if rows.y is None and needs_labels:
        where = f"{memory.label!r}" if memory.label else "label, target, class or y"
        raise TinykernelError(f"{data}: has no labels; {where} is where the training had them")
    if train is not None:
        own = training_part(model, integer, train)
    labels = labels_to_judge_by(integer, data, rows.y)
    seen = _seen(rows, own, memory)
    if seen.any() and not seen.all():
        if unseen or (own is None and rows.part != TEST_PART):
            note = f"left out: {int(seen.sum())} of {len(seen)} rows, which equal training rows"
            rows, labels = rows.at(~seen), None if labels is None else labels[~seen]
        else:
            note = "" if labels is None else repeated(integer, rows.X, labels, seen)
        rows = replace(rows, notes=(*rows.notes, *([note] if note else [])))
    trained = None if own is None else (own.X_train, own.y_train)
    weight = memory.everything.get("class_weight")
    return Judged(rows, labels, trained, weight if weight == "balanced" else None)


def _seen(rows: Rows, own: Dataset | None, memory: Remembered) -> NDArray[np.bool_]:
    """Return which rows equal training rows, as far as these are known; no windows."""
    import numpy as np

    from tinykernel.data.trained_rows import equal_rows, rows_among

    if rows.streams:
        return np.zeros(len(rows.X), bool)
    if own is not None:
        return rows_among(rows.X, own.X_train)
    seen = equal_rows(rows.X, memory.everything.get("training_rows"))
    return np.zeros(len(rows.X), bool) if seen is None else seen


def accuracy_of(model: Any, X: NDArray[Any] | None, y: NDArray[Any] | None) -> float | None:
    """Return the share of rows that a model labels right, or R2; None where there are none."""
    if X is None or y is None:
        return None
    with warnings.catch_warnings():
        # The columns of the file were checked when it was read.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        found = in_batches(model.predict, X)
    if y.dtype.kind == "f":  # values; labels are never floats
        from sklearn.metrics import r2_score

        columns = found.reshape(len(y), -1)
        return float(r2_score(y, columns[:, columns.shape[1] // 2])) if len(y) > 1 else None
    return float((found == y).mean())


def in_batches(
    function: Callable[[NDArray[Any]], NDArray[Any]], rows: NDArray[Any]
) -> NDArray[Any]:
    """Apply a function to some rows at a time, so that memory does not grow with their number."""
    import numpy as np

    starts = range(0, len(rows), _ROWS_A_BATCH)
    return np.concatenate([function(rows[at : at + _ROWS_A_BATCH]) for at in starts])


def repeated(model: IntegerModel, X: NDArray[Any], y: NDArray[Any], seen: NDArray[Any]) -> str:
    """Say how many of the test rows equal training rows, and how good the model is without."""
    share = accuracy_of(model, X[~seen], y[~seen]) or 0.0
    figure = f"R2 is {share:.4f}" if model.is_regressor else f"the accuracy is {percent(share)}"
    return f"{int(seen.sum())} of {len(seen)} test rows equal training rows; without them {figure}"


def rows_for(
    model: Path,
    integer: IntegerModel,
    data: str,
    *,
    held_out: bool = False,
    keep_all: bool = False,
) -> Rows:
    """Load rows as those of the training: the test part of DATA, or all its rows.

    With `held_out` only the rows that training kept aside; with `keep_all` rows without a label,
    too.
    """
    from tinykernel.data.load import load_rows
    from tinykernel.data.signals import signal_rows

    say("reading", 0, None, data)
    memory = remembered(model)
    size, seed = memory.test_size or None if held_out else None, memory.seed or 0
    cut = recordings_for(model, integer, data)
    if cut is not None:
        return signal_rows(cut, size, seed)
    return load_rows(
        data,
        **memory.names(data, integer),
        n_features=integer.n_inputs,
        feature_names=integer.feature_names,
        classes=integer.classes or None,
        values=integer.is_regressor,
        test_size=size,
        seed=seed,
        keep_all=keep_all,
    )


def recordings_for(
    model: Path, integer: IntegerModel, data: str, *, mixed: str | None = None
) -> Windows | None:
    """Cut recordings as those that a model was trained on; None where DATA are rows.

    `mixed` takes the place of what training did with windows of several labels.
    """
    from tinykernel.data import signals

    memory = remembered(model)
    cutting = signals.remembered(memory.everything, integer)
    if cutting is None or not signals.takes_recordings(data, integer, memory.everything):
        return None
    return signals.cut_for(data, integer, cutting, mixed=mixed)


def training_part(
    model: Path, integer: IntegerModel, data: str, test_size: float = 0.0, seed: int = 0
) -> Dataset:
    """Return rows with a split: those of a file, or windows of recordings."""
    from tinykernel.data.load import load_data
    from tinykernel.data.splits import as_dataset

    say("reading", 0, None, data)
    cut = recordings_for(model, integer, data)
    if cut is not None:
        return as_dataset(cut, test_size, seed)
    names = remembered(model).names(data, integer)
    return load_data(data, test_size=test_size, seed=seed, values=integer.is_regressor, **names)


def labels_to_judge_by(
    integer: IntegerModel, data: str, y: NDArray[Any] | None
) -> NDArray[Any] | None:
    """Refuse labels of which none is a class: nothing could be right.

    A model of one class never saw labels: those that it does not know are not judged by.
    """
    if y is None or integer.is_regressor:
        return y
    found = list(dict.fromkeys(y.tolist()))
    if not found or not set(integer.classes).isdisjoint(found):
        return y
    if integer.is_one_class:
        return None
    theirs, own = (visible(listed(labels, _LABELS_SHOWN)) for labels in (found, integer.classes))
    raise TinykernelError(
        f"{data}: none of its labels ({theirs}) is a class of the model ({own}); give the labels "
        "it was trained on"
    )


def _own_training(
    model: Path, integer: IntegerModel, data: str, memory: Remembered
) -> Dataset | None:
    """Return the data with the split of the training, where they are the very same rows."""
    from tinykernel.data.trained_rows import record_of

    record = memory.everything.get("training_rows")
    if not isinstance(record, dict):
        return None
    try:
        split = (memory.test_size or 0.0, memory.seed or 0)
        dataset = _without_calibration(training_part(model, integer, data, *split), memory)
    except TinykernelError:  # rows without labels, of one class, too few to be split
        return None
    rows = dataset.X_train
    found = record_of(rows)
    here = {"rows": len(rows), "all": found["all"], "digests": found["digests"]}
    # The file says more of its rows than what identifies them here.
    same = all(record.get(name) == value for name, value in here.items())
    return dataset if same else None


def known_rows(model: Path, integer: IntegerModel, data: str) -> Dataset:
    """Return the training part of DATA: what training learned from it, or else all its rows."""
    own = _own_training(model, integer, data, remembered(model))
    return training_part(model, integer, data) if own is None else own


def _without_calibration(dataset: Dataset, memory: Remembered) -> Dataset:
    """Leave out the rows that the training kept aside to calibrate on."""
    from tinykernel.data.splits import keep_for_calibration

    kept = memory.everything.get("calibration_kept")
    if not isinstance(kept, dict) or not isinstance(kept.get("size"), float):
        return dataset
    by_group = kept.get("by_group") is True
    rest, _ = keep_for_calibration(dataset, kept["size"], memory.seed or 0, by_group=by_group)
    return rest
