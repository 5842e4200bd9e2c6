"""Rows to judge a model on: those that its training kept aside, where DATA is what it learned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinykernel.cli.common.options import recordings_for, rows_for
from tinykernel.cli.common.remembered import Names, Remembered, remembered
from tinykernel.errors import TinykernelError
from tinykernel.text import visible

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tinykernel.data.load import Dataset, Rows
    from tinykernel.model import IntegerModel

_LABELS_SHOWN = 2


@dataclass(frozen=True)
class Judged:
    """Rows to judge a model on.

    Parameters
    ----------
    rows : Rows
        With labels.
    y : ndarray or None
        Their labels; None where a model of one class knows none of them.
    train : (X, y) or None
        The rows that the model was trained on, where they are known.
    class_weight : {None, "balanced"}
        As the model was trained.
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
    label: str | None = None,
    groups: str | None = None,
    missing: str | None = None,
    test_size: float | None = None,
    seed: int | None = None,
) -> Judged:
    """Load the test part of DATA, what training kept aside of it, or else all its rows.

    Parameters
    ----------
    model : pathlib.Path
        The model's file, which remembers its training.
    integer : IntegerModel
    data : str
    train : str, optional
        Where the training rows are, if not in `data`.
    label, groups, missing : str, optional
        Instead of those of the training.
    test_size, seed : optional
        Instead of those of the training.

    Returns
    -------
    Judged

    Raises
    ------
    TinykernelError
        If the rows do not fit the model, have no labels, or only labels that it does not know.
    """
    memory = remembered(model)
    names = memory.names(data, label, groups, missing)
    training = partial(_training, model, integer, missing=missing)
    own = _own_training(partial(training, data, names), memory)
    size, number = test_size, memory.seed if seed is None else seed
    if own is not None and test_size is None:
        size = memory.test_size or None
    rows = rows_for(
        model, integer, data, **names, missing=missing, test_size=size, seed=number or 0
    )
    if rows.y is None:
        raise TinykernelError(f"{data}: has no labels; name their column with --label")
    labels = labels_to_judge_by(integer, data, rows.y)
    if train is not None:
        own = training(train, memory.names(train, label, groups, missing), 0.0, 0)
    trained = None if own is None else (own.X_train, own.y_train)
    weight = memory.everything.get("class_weight")
    return Judged(rows, labels, trained, weight if weight == "balanced" else None)


def labels_to_judge_by(
    integer: IntegerModel, data: str, y: NDArray[Any] | None
) -> NDArray[Any] | None:
    """Refuse labels of which none is a class: nothing could be right.

    A model of one class never saw labels: those that it does not know are not judged by.

    Parameters
    ----------
    integer : IntegerModel
    data : str
        Where the rows are from.
    y : ndarray, shape (n,), or None
        Their labels, where they have some; or values.

    Returns
    -------
    ndarray, shape (n,), or None

    Raises
    ------
    TinykernelError
        If there are labels, and none is a class of the model.
    """
    if y is None or integer.values is not None:
        return y
    found = list(dict.fromkeys(y.tolist()))
    if not found or not set(integer.classes).isdisjoint(found):
        return y
    if integer.prototypes is not None:
        return None
    theirs, own = (_listed(labels) for labels in (found, integer.classes))
    raise TinykernelError(
        f"{data}: none of its labels ({theirs}) is a class of the model ({own}); give the labels "
        "it was trained on"
    )


def _listed(labels: Sequence[Any]) -> str:
    said = [visible(str(label)) for label in labels[:_LABELS_SHOWN]]
    return ", ".join(said + ["..."] * (len(labels) > _LABELS_SHOWN))


def _training(
    model: Path,
    integer: IntegerModel,
    data: str,
    names: Names,
    test_size: float,
    seed: int,
    *,
    missing: str | None,
) -> Dataset:
    """Return rows with a split of the training: those of a file, or windows of recordings."""
    from tinykernel.data.load import load_data
    from tinykernel.data.splits import as_dataset

    cut = recordings_for(
        model, integer, data, label=names["label"], groups=names["groups"], missing=missing
    )
    if cut is not None:
        return as_dataset(cut, test_size, seed)
    return load_data(
        data, test_size=test_size, seed=seed, values=integer.values is not None, **names
    )


def _own_training(training: Callable[[float, int], Dataset], memory: Remembered) -> Dataset | None:
    """Return the data with the split of the training, where they are the very same rows."""
    from tinykernel.data.seen import record_of

    record = memory.everything.get("training_rows")
    if not isinstance(record, dict):
        return None
    try:
        dataset = training(memory.test_size or 0.0, memory.seed or 0)
        dataset = _without_calibration(dataset, memory)
    except TinykernelError:  # rows without labels, of one class, too few to be split
        return None
    here = {"rows": len(dataset.y_train), **record_of(dataset.X_train)}
    # The file says more of its rows than what identifies them here.
    same = all(record.get(name) == value for name, value in here.items())
    return dataset if same else None


def _without_calibration(dataset: Dataset, memory: Remembered) -> Dataset:
    """Leave out the rows that the training kept aside to calibrate on."""
    from tinykernel.data.splits import keep_for_calibration

    kept = memory.everything.get("calibration_kept")
    if not isinstance(kept, dict) or not isinstance(kept.get("size"), float):
        return dataset
    by_group = kept.get("by_group") is True
    rest, _ = keep_for_calibration(dataset, kept["size"], memory.seed or 0, by_group=by_group)
    return rest
