"""Rows for a finished model: read, cut and split as in its training."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tinykernel.cli.common.memory import ModelFile
from tinykernel.errors import TinykernelError
from tinykernel.progress import report as say
from tinykernel.text import listed, visible

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tinykernel.data.partition import Dataset, Rows
    from tinykernel.data.recordings import Windows
    from tinykernel.data.recordings.spans import Recordings
    from tinykernel.model import IntegerModel

_LABELS_SHOWN = 2
_ROWS_A_BATCH = 4096


@dataclass(frozen=True)
class Judged:
    """Rows to judge a model on."""

    rows: Rows
    y: NDArray[Any] | None  # None without labels that a model of one class knows.
    train: tuple[NDArray[Any], NDArray[Any]] | None  # training rows, where known.
    class_weight: str | None


def rows_to_judge(
    file: ModelFile,
    data: str,
    *,
    train: str | None = None,
    needs_labels: bool = True,
    unseen: bool = False,
) -> Judged:
    """Load the test part of DATA, or the rows held out by training, else all rows.

    Rows that equal training rows are dropped, except from a test part, unless `unseen`. `train` is
    the file of the training rows, if not `data`. Labels none of which is a class are refused.
    """
    from tinykernel.data.partition import TEST_PART

    training = own_training(file, data)
    rows = rows_for(file, data, held_out=training is not None)
    if rows.y is None and needs_labels:
        where = f"{file.label!r}" if file.label else "label, target, class or y"
        raise TinykernelError(f"{data}: has no labels; {where} is where the training had them")
    if train is not None:
        training = training_part(file, train)
    labels = labels_to_judge_by(file.model, data, rows.y)
    seen = _seen(rows, training, file)
    if seen.any() and not seen.all() and (unseen or (rows.part != TEST_PART and training is None)):
        note = f"left out: {int(seen.sum())} of {len(seen)} rows, which equal training rows"
        rows, labels = rows.at(~seen), None if labels is None else labels[~seen]
        rows = replace(rows, notes=(*rows.notes, note))
    trained = None if training is None else (training.X_train, training.y_train)
    weight = file.about.get("class_weight")
    return Judged(rows, labels, trained, weight if weight == "balanced" else None)


def _seen(rows: Rows, training: Dataset | None, file: ModelFile) -> NDArray[np.bool_]:
    """Return a mask of rows that equal known training rows; False for windows."""
    import numpy as np

    from tinykernel.data.trained_rows import equal_rows, rows_among

    if rows.streams:
        return np.zeros(len(rows.X), bool)
    if training is not None:
        return rows_among(rows.X, training.X_train)
    seen = equal_rows(rows.X, file.about.get("training_rows"))
    return np.zeros(len(rows.X), bool) if seen is None else seen


def accuracy_of(model: Any, X: NDArray[Any] | None, y: NDArray[Any] | None) -> float | None:
    """Return the accuracy of a model, or R2; None without rows."""
    if X is None or y is None:
        return None
    with warnings.catch_warnings():
        # The columns of the file are already checked.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        answers = in_batches(model.predict, X)
    if y.dtype.kind == "f":  # values; labels are never floats
        from sklearn.metrics import r2_score

        columns = answers.reshape(len(y), -1)
        return float(r2_score(y, columns[:, columns.shape[1] // 2])) if len(y) > 1 else None
    return float((answers == y).mean())


def in_batches(
    function: Callable[[NDArray[Any]], NDArray[Any]], rows: NDArray[Any]
) -> NDArray[Any]:
    """Apply a function to batches of rows, to limit memory."""
    import numpy as np

    starts = range(0, len(rows), _ROWS_A_BATCH)
    return np.concatenate([function(rows[at : at + _ROWS_A_BATCH]) for at in starts])


def rows_for(file: ModelFile, data: str, *, held_out: bool = False, keep_all: bool = False) -> Rows:
    """Load the test part of DATA, or all rows, or with `held_out` the test rows of the training."""
    from tinykernel.data.load import load_rows
    from tinykernel.data.signals import signal_rows

    say("reading", 0, None, data)
    integer = file.model
    size, seed = file.test_size or None if held_out else None, file.seed or 0
    cut = recordings_for(file, data)
    if cut is not None:
        return signal_rows(cut, size, seed)
    return load_rows(
        data,
        **file.names(data),
        n_features=integer.n_inputs,
        feature_names=integer.feature_names,
        classes=integer.classes or None,
        values=integer.is_regressor,
        test_size=size,
        seed=seed,
        keep_all=keep_all,
    )


def recordings_for(file: ModelFile, data: str, *, mixed: str | None = None) -> Windows | None:
    """Cut recordings as for the training; None for other DATA. `mixed` overrides the setting."""
    from tinykernel.data import signals

    cutting = signals.remembered(file.about, file.model)
    if cutting is None or not signals.takes_recordings(data, file.model, file.about):
        return None
    return signals.cut_for(data, file.model, cutting, mixed=mixed)


def training_part(file: ModelFile, data: str, test_size: float = 0.0, seed: int = 0) -> Dataset:
    """Return rows with a split: those of a file, or windows of recordings."""
    from tinykernel.data.load import load_data
    from tinykernel.data.splits import as_dataset

    say("reading", 0, None, data)
    cut = recordings_for(file, data)
    if cut is not None:
        return as_dataset(cut, test_size, seed)
    names = file.names(data)
    return load_data(data, test_size=test_size, seed=seed, values=file.model.is_regressor, **names)


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
    theirs, known = (visible(listed(each, _LABELS_SHOWN)) for each in (labels, integer.classes))
    raise TinykernelError(
        f"{data}: none of its labels ({theirs}) is a class of the model ({known}); give the labels "
        "it was trained on"
    )


def own_training(file: ModelFile, data: str) -> Dataset | None:
    """Return the data with the split of the training, if they are the same rows."""
    from tinykernel.data.splits import keep_for_calibration
    from tinykernel.data.trained_rows import record_of

    record = file.about.get("training_rows")
    if not isinstance(record, dict):
        return None
    aside, seed = file.about.get("calibration_kept"), file.seed or 0
    try:
        dataset = training_part(file, data, file.test_size or 0.0, seed)
        if isinstance(aside, dict) and isinstance(aside.get("size"), float):
            # Without the rows that training held out to calibrate on.
            by_group = aside.get("by_group") is True
            dataset, _ = keep_for_calibration(dataset, aside["size"], seed, by_group=by_group)
    except TinykernelError:  # rows without labels, of one class, too few to be split
        return None
    digests = record_of(dataset.X_train)
    # The record has further entries.
    here = {"rows": len(dataset.X_train), "all": digests["all"], "digests": digests["digests"]}
    return dataset if all(record.get(name) == value for name, value in here.items()) else None


def without_training(file: ModelFile, data: str, held: Recordings) -> Recordings:
    """Leave out recordings that were trained on, where DATA are those of the training."""
    training = own_training(file, data) if held.source == file.data else None
    if training is None or training.group_train is None or training.X_test is None:
        return held
    seen = set(training.group_train.tolist())
    rest = [each for each in held.recordings if each.groups[0].label not in seen]
    source = f"recordings held out of {held.source}"
    return replace(held, recordings=tuple(rest), source=source)
