"""Rows to judge a model on: those that its training kept aside, where DATA is what it learned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinykernel.cli.common.options import recordings_for
from tinykernel.cli.common.remembered import Names, Remembered, remembered
from tinykernel.errors import TinykernelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tinykernel.data.load import Dataset, Rows
    from tinykernel.model import IntegerModel

__all__ = ["Judged", "own_training", "rows_to_judge"]


@dataclass(frozen=True)
class Judged:
    """Rows to judge a model on.

    Parameters
    ----------
    rows : Rows
    y : ndarray
        Their labels.
    train : (X, y) or None
        The rows that the model was trained on, where DATA holds them.
    class_weight : {None, "balanced"}
        As the model was trained.
    """

    rows: Rows
    y: NDArray[Any]
    train: tuple[NDArray[Any], NDArray[Any]] | None
    class_weight: str | None


def rows_to_judge(
    model: Path, integer: IntegerModel, data: str, label: str | None = None,
    groups: str | None = None, test_size: float | None = None, seed: int | None = None,
) -> Judged:  # fmt: skip
    """Load the test part of DATA, what training kept aside of it, or else all its rows.

    Parameters
    ----------
    model : pathlib.Path
        The model's file, which remembers its training.
    integer : IntegerModel
    data : str
    label, groups : str, optional
        Instead of those of the training.
    test_size, seed : optional
        Instead of those of the training.

    Returns
    -------
    Judged

    Raises
    ------
    TinykernelError
        If the rows do not fit the model or have no labels.
    """
    memory = remembered(model)
    names = memory.names(data, label, groups)
    number = (memory.seed or 0) if seed is None else seed
    weight = memory.everything.get("class_weight")
    found = _of_recordings(model, integer, memory, data, names, test_size, number)
    if found is None:
        found = _of_rows(integer, memory, data, names, test_size, number)
    rows, own = found
    if rows.y is None:
        raise TinykernelError(f"{data}: has no labels; name their column with --label")
    train = None if own is None else (own.X_train, own.y_train)
    return Judged(rows, rows.y, train, weight if weight == "balanced" else None)


def _of_recordings(
    model: Path, integer: IntegerModel, memory: Remembered, data: str, names: Names,
    test_size: float | None, seed: int,
) -> tuple[Rows, Dataset | None] | None:  # fmt: skip
    """Cut recordings; None where DATA are rows."""
    from tinykernel.data.load import Rows
    from tinykernel.data.splits import as_dataset

    cut = recordings_for(model, integer, data, label=names["label"], groups=names["groups"])
    if cut is None:
        return None
    kept = memory.test_size if test_size is None else test_size
    own = None
    if cut.y is not None and kept:
        try:
            split = as_dataset(cut, kept, seed)
        except TinykernelError:  # one recording, or one class
            split = None
        same = split is not None and _is_own(split, memory)
        own = split if same else None
        if split is not None and split.X_test is not None and (same or test_size is not None):
            part = replace(
                Rows(split.X_test, split.y_test, cut.source, f"kept aside: {split.split}"),
                group=split.group_test,
            )
            return part, own
    return Rows(cut.X, cut.y, cut.source, "all windows", cut.groups), own


def _of_rows(
    integer: IntegerModel, memory: Remembered, data: str, names: Names,
    test_size: float | None, seed: int,
) -> tuple[Rows, Dataset | None]:  # fmt: skip
    from tinykernel.data.load import load_rows

    own = own_training(data, names, memory)
    size = test_size
    if own is not None and test_size is None:
        size = memory.test_size or None
    rows = load_rows(
        data, n_features=integer.n_inputs, feature_names=integer.feature_names,
        classes=integer.classes, test_size=size, seed=seed, **names,
    )  # fmt: skip
    return rows, own


def own_training(data: str, names: Names, memory: Remembered) -> Dataset | None:
    """Return the data with the split of the training, where they are the very same rows."""
    from tinykernel.data.load import load_data

    if not isinstance(memory.everything.get("training_rows"), dict):
        return None
    try:
        dataset = load_data(
            data, test_size=memory.test_size or 0.0, seed=memory.seed or 0, **names
        )  # fmt: skip
    except TinykernelError:  # rows without labels, of one class, too few to be split
        return None
    return dataset if _is_own(dataset, memory) else None


def _is_own(dataset: Dataset, memory: Remembered) -> bool:
    from tinykernel.data.seen import record_of

    here = {"rows": len(dataset.y_train), **record_of(dataset.X_train)}
    return here == memory.everything.get("training_rows")
