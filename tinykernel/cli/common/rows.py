"""Rows to run a model on: read, cut and split as its file remembers of its training."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tinykernel.cli.common.memory import ModelFile
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
    file: ModelFile,
    data: str,
    *,
    train: str | None = None,
    needs_labels: bool = True,
    unseen: bool = False,
) -> Judged:
    """Load the test part of DATA, what training held out of it, or else all its rows.

    A test part stays whole, as its figures are published; a note says what rows that equal training
    rows change. They are left out of other rows, and where only `unseen` ones will do.
    The file of the model remembers its training; `train` says where its rows are, if not in `data`.
    Refuses rows that do not fit, of whose labels the model knows none, or without any that are
    needed.
    """
    from tinykernel.data.partition import TEST_PART

    training = _own_training(file, data)
    rows = rows_for(file, data, held_out=training is not None)
    if rows.y is None and needs_labels:
        where = f"{file.label!r}" if file.label else "label, target, class or y"
        raise TinykernelError(f"{data}: has no labels; {where} is where the training had them")
    if train is not None:
        training = training_part(file, train)
    labels = labels_to_judge_by(file.model, data, rows.y)
    seen = _seen(rows, training, file)
    if seen.any() and not seen.all():
        if unseen or (training is None and rows.part != TEST_PART):
            note = f"left out: {int(seen.sum())} of {len(seen)} rows, which equal training rows"
            rows, labels = rows.at(~seen), None if labels is None else labels[~seen]
        else:
            note = "" if labels is None else repeated(file.model, rows.X, labels, seen)
        rows = replace(rows, notes=(*rows.notes, *([note] if note else [])))
    trained = None if training is None else (training.X_train, training.y_train)
    weight = file.about.get("class_weight")
    return Judged(rows, labels, trained, weight if weight == "balanced" else None)


def _seen(rows: Rows, training: Dataset | None, file: ModelFile) -> NDArray[np.bool_]:
    """Return which rows equal training rows, as far as these are known; no windows."""
    import numpy as np

    from tinykernel.data.trained_rows import equal_rows, rows_among

    if rows.streams:
        return np.zeros(len(rows.X), bool)
    if training is not None:
        return rows_among(rows.X, training.X_train)
    seen = equal_rows(rows.X, file.about.get("training_rows"))
    return np.zeros(len(rows.X), bool) if seen is None else seen


def accuracy_of(model: Any, X: NDArray[Any] | None, y: NDArray[Any] | None) -> float | None:
    """Return the share of rows that a model labels right, or R2; None where there are none."""
    if X is None or y is None:
        return None
    with warnings.catch_warnings():
        # The columns of the file were checked when it was read.
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
    """Apply a function to some rows at a time, so that memory does not grow with their number."""
    import numpy as np

    starts = range(0, len(rows), _ROWS_A_BATCH)
    return np.concatenate([function(rows[at : at + _ROWS_A_BATCH]) for at in starts])


def repeated(model: IntegerModel, X: NDArray[Any], y: NDArray[Any], seen: NDArray[Any]) -> str:
    """Say how many of the test rows equal training rows, and how good the model is without."""
    share = accuracy_of(model, X[~seen], y[~seen]) or 0.0
    figure = f"R2 is {share:.4f}" if model.is_regressor else f"the accuracy is {percent(share)}"
    return f"{int(seen.sum())} of {len(seen)} test rows equal training rows; without them {figure}"


def rows_for(file: ModelFile, data: str, *, held_out: bool = False, keep_all: bool = False) -> Rows:
    """Load rows as those of the training: the test part of DATA, or all its rows.

    With `held_out` only the rows that training held out; with `keep_all` rows without a label,
    too.
    """
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
    """Cut recordings as those that a model was trained on; None where DATA are rows.

    `mixed` takes the place of what training did with windows of several labels.
    """
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
    """Refuse labels of which none is a class: nothing could be right.

    A model of one class never saw labels: those that it does not know are not judged by.
    """
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


def _own_training(file: ModelFile, data: str) -> Dataset | None:
    """Return the data with the split of the training, where they are the very same rows."""
    from tinykernel.data.trained_rows import record_of

    record = file.about.get("training_rows")
    if not isinstance(record, dict):
        return None
    try:
        dataset = training_part(file, data, file.test_size or 0.0, file.seed or 0)
        dataset = _without_calibration(dataset, file)
    except TinykernelError:  # rows without labels, of one class, too few to be split
        return None
    digests = record_of(dataset.X_train)
    # The file says more of its rows than what identifies them here.
    here = {"rows": len(dataset.X_train), "all": digests["all"], "digests": digests["digests"]}
    return dataset if all(record.get(name) == value for name, value in here.items()) else None


def known_rows(file: ModelFile, data: str) -> Dataset:
    """Return the training part of DATA: what training learned from it, or else all its rows."""
    training = _own_training(file, data)
    return training_part(file, data) if training is None else training


def _without_calibration(dataset: Dataset, file: ModelFile) -> Dataset:
    """Leave out the rows that the training held out to calibrate on."""
    from tinykernel.data.splits import keep_for_calibration

    record = file.about.get("calibration_kept")
    if not isinstance(record, dict) or not isinstance(record.get("size"), float):
        return dataset
    by_group = record.get("by_group") is True
    rest, _ = keep_for_calibration(dataset, record["size"], file.seed or 0, by_group=by_group)
    return rest
