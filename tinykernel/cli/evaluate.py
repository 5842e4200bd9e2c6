"""Judge a model on labelled rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tinykernel.cli.common.judging import print_all, seen_in_words
from tinykernel.cli.common.options import (
    LARGEST_SEED,
    DataArgument,
    GroupsOption,
    JsonOption,
    LabelOption,
    ModelArgument,
    QuietOption,
)
from tinykernel.cli.common.output import print_json, print_pairs
from tinykernel.cli.common.remembered import Names, Remembered, remembered

if TYPE_CHECKING:
    from tinykernel.data.load import Dataset, Rows
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
    names = memory.names(data, label, groups)
    own = _own_training(data, names, memory, integer.values is not None)
    size, number = test_size, memory.seed if seed is None else seed
    if own is not None and test_size is None:
        size = memory.test_size or None
    rows = _rows(data, integer, names, size, number or 0)
    if rows.y is None:
        raise TinykernelError(f"{data}: has no labels; name their column with --label")
    if train is not None:
        own = _training(
            train, memory.names(train, label, groups), 0.0, 0, integer.values is not None
        )
    trained = None if own is None else (own.X_train, own.y_train)
    weight = memory.everything.get("class_weight")
    found = evaluate(
        integer, rows.X, rows.y, groups=rows.group, train=trained,
        class_weight=weight if weight == "balanced" else None,
    )  # fmt: skip
    seen = memory.share_seen(rows.X)
    if as_json:
        part = {"data": rows.source, "part": rows.part, "seen_in_training": seen}
        print_json(part | found.to_dict())
    elif not quiet:
        print_pairs([("data", f"{rows.part} of {rows.source}")])
        print_all(found)
        if seen:
            typer.echo(f"{seen_in_words(seen)}: the accuracy on new ones may be lower")
        if trained is None:
            typer.echo("--train DATA, with the training rows, shows a linear model beside it")


def _rows(
    data: str, integer: IntegerModel, names: Names, test_size: float | None, seed: int
) -> Rows:
    from tinykernel.data.load import load_rows

    return load_rows(
        data, n_features=integer.n_inputs, feature_names=integer.feature_names,
        classes=integer.classes or None, values=integer.values is not None, test_size=test_size,
        seed=seed, **names,
    )  # fmt: skip


def _training(data: str, names: Names, test_size: float, seed: int, values: bool) -> Dataset:
    from tinykernel.data.load import load_data

    return load_data(data, test_size=test_size, seed=seed, values=values, **names)


def _own_training(data: str, names: Names, memory: Remembered, values: bool) -> Dataset | None:
    """Return the data with the split of the training, where they are the very same rows."""
    from tinykernel.data.seen import record_of
    from tinykernel.errors import TinykernelError

    record = memory.everything.get("training_rows")
    if not isinstance(record, dict):
        return None
    try:
        dataset = _training(data, names, memory.test_size or 0.0, memory.seed or 0, values)
    except TinykernelError:  # rows without labels, of one class, too few to be split
        return None
    here = {"rows": len(dataset.y_train), **record_of(dataset.X_train)}
    return dataset if here == record else None
