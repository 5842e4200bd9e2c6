"""Judge a model on labelled rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tinykernel.cli.common.judging import print_all, print_notes, seen_in_words
from tinykernel.cli.common.options import (
    LARGEST_SEED,
    DataArgument,
    GroupsOption,
    JsonOption,
    LabelOption,
    MissingOption,
    ModelArgument,
    QuietOption,
    recordings_for,
    rows_for,
)
from tinykernel.cli.common.output import print_json, print_pairs
from tinykernel.cli.common.remembered import Names, Remembered, remembered

if TYPE_CHECKING:
    from tinykernel.data.load import Dataset
    from tinykernel.model import IntegerModel

__all__ = ["evaluate_command"]


def evaluate_command(
    model: ModelArgument,
    data: DataArgument,
    train: Annotated[
        str | None,
        typer.Option(
            "--train",
            metavar="DATA",
            help="the rows that the model was trained on, for the baselines; found by themselves "
            "where DATA holds them",
            show_default=False,
        ),
    ] = None,
    label: LabelOption = None,
    groups: GroupsOption = None,
    missing: MissingOption = None,
    test_size: Annotated[
        float | None,
        typer.Option(
            "--test-size",
            min=0.001,
            max=0.99,
            help="only the rows that train keeps aside for this size, --seed and --groups",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, max=LARGEST_SEED, help="see --test-size")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Say how good a model is: by class, with an interval, beside the majority and a linear model.

    Takes the test part of DATA; where DATA is what the model was trained on, the rows that were
    kept aside; otherwise all its rows. Label and groups are those of the training unless given.
    """
    from tinykernel.errors import TinykernelError
    from tinykernel.evaluation import evaluate
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import load

    integer, memory = as_integer_model(load(model)), remembered(model)
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
    if train is not None:
        own = training(train, memory.names(train, label, groups, missing), 0.0, 0)
    trained = None if own is None else (own.X_train, own.y_train)
    weight = memory.everything.get("class_weight")
    found = evaluate(
        integer, rows.X, rows.y, groups=rows.group, train=trained,
        class_weight=weight if weight == "balanced" else None,
    )  # fmt: skip
    seen = memory.share_seen(rows.X)
    if as_json:
        part = {"data": rows.source, "part": rows.part, "notes": list(rows.notes),
                "seen_in_training": seen}  # fmt: skip
        print_json(part | found.to_dict())
    elif not quiet:
        print_pairs([("data", f"{rows.part} of {rows.source}")])
        print_all(found)
        print_notes(rows)
        if seen:
            typer.echo(f"{seen_in_words(seen)}: the accuracy on new ones may be lower")
        if trained is None:
            typer.echo("--train DATA, with the training rows, shows a linear model beside it")


def _training(
    model: Path, integer: IntegerModel, data: str, names: Names, test_size: float, seed: int, *,
    missing: str | None,
) -> Dataset:  # fmt: skip
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
    from tinykernel.errors import TinykernelError

    record = memory.everything.get("training_rows")
    if not isinstance(record, dict):
        return None
    try:
        dataset = training(memory.test_size or 0.0, memory.seed or 0)
    except TinykernelError:  # rows without labels, of one class, too few to be split
        return None
    here = {"rows": len(dataset.y_train), **record_of(dataset.X_train)}
    return dataset if here == record else None
