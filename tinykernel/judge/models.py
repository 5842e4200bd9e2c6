"""Judge a model on labelled rows, with baselines and cautions."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.checks import as_groups
from tinykernel.base.errors import ShapeError
from tinykernel.base.frames import in_numbers
from tinykernel.base.resizing import area_sums
from tinykernel.judge import figures
from tinykernel.judge.baselines import label_baselines, value_baselines
from tinykernel.judge.cautions import cautions, far_groups, from_few_groups
from tinykernel.judge.decisions import decision_figures
from tinykernel.judge.figures import accuracy_interval
from tinykernel.judge.ranges import outside
from tinykernel.model.answers import Values
from tinykernel.model.integer import IntegerModel
from tinykernel.model.pipelines import as_integer_model
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Stage

# Values that simple models learn from, of images; and how many of these are resized at a time.
_MOST_VALUES, _IMAGES_AT_ONCE = 1024, 256


def evaluate(
    model: object,
    X: ArrayLike,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    train: tuple[ArrayLike, ...] | None = None,
    class_weight: str | None = None,
) -> figures.Evaluation:
    """Judge a model in the arithmetic of the firmware.

    Parameters
    ----------
    model : IntegerModel or what `tinykernel.quantize` takes
    X : array-like, shape (n, n_features)
        Rows that the model was not trained on.
    y : array-like, shape (n,)
        Their labels, or values.
    groups : array-like, shape (n,), optional
        Which person, record or batch each row belongs to.
    train : (X, y) or (X, y, groups), optional
        The training rows, for the baselines and cautions. Where the model begins with a spectrum,
        the baselines learn from its levels; of images of more values from 1024 means of areas.
    class_weight : {None, "balanced"}
        Class weights of the training, for the baselines.

    Returns
    -------
    LabelEvaluation, or ValueEvaluation of a regressor

    Raises
    ------
    TinykernelError
        If the rows are not of the model's width, or there are none.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tinykernel import TernaryKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TernaryKernelClassifier(n_components=64, effort="quick", random_state=0)
    >>> judged = evaluate(model.fit(X[::2], y[::2]), X[1::2], y[1::2], train=(X[::2], y[::2]))
    >>> judged.accuracy > 0.9, judged.baselines["linear"].n_bytes
    (True, 12)
    """
    # The baselines see what the model sees, and no digit more.
    integer = as_integer_model(model)
    X = integer.as_raw(in_numbers(model, X))
    # The names of the channels of a signal are not in the model; the command line knows them.
    doubts = () if integer.input.is_signal else outside(integer, X)
    group = as_groups(groups, len(X))
    judged: figures.Evaluation
    if integer.is_regressor:
        judged = _of_values(integer, X, np.asarray(y, dtype=np.float64), group)
    else:
        true, predicted = np.asarray(y), integer.predict(X)
        judged = figures.compare(true, predicted, integer.classes, group)
        if group is not None:
            doubts += from_few_groups(true, group) + far_groups(true == predicted, group)
        decisions = decision_figures(
            integer,
            X,
            true,
            lambda rows, wrong: accuracy_interval(wrong, None if group is None else group[rows]),
        )
        judged = replace(judged, decisions=decisions)
    judged = replace(judged, cautions=doubts)
    if train is None:
        return judged
    if len(train) not in (2, 3) or np.shape(train[1]) != np.shape(train[0])[:1]:
        raise ShapeError("train: give (X, y) or (X, y, groups), of as many labels as rows")
    train = in_numbers(model, train[0]), *train[1:]
    return with_baselines(judged, integer, X, y, train, groups=group, class_weight=class_weight)


def with_baselines(
    judged: figures.Evaluation,
    model: IntegerModel,
    X: ArrayLike,
    y: ArrayLike,
    train: tuple[ArrayLike, ...],
    *,
    groups: ArrayLike | None = None,
    class_weight: str | None = None,
) -> figures.Evaluation:
    """Return what `evaluate` found without `train`, with the baselines and cautions of these."""
    X, y, rows = model.as_raw(X), np.asarray(y), model.as_raw(train[0])
    view, truth = _View(model), np.asarray(train[1])
    simple, tested = view.of(rows), view.of(X)
    if isinstance(judged, figures.ValueEvaluation):
        floats = (simple, truth.astype(np.float64)), (tested, y.astype(np.float64))
        baselines = value_baselines(*floats, _middle(model, X), groups=groups)
        return replace(judged, baselines=view.named(baselines))
    assert isinstance(judged, figures.LabelEvaluation)
    options: dict[str, Any] = {"groups": groups, "class_weight": class_weight}
    baselines = label_baselines((simple, truth), (tested, y), model.predict(X), **options)
    is_table, names = model.input.is_table, model.feature_names
    doubts = cautions(judged, rows, truth, X, names=names, samples=not is_table)
    of_train = as_groups(train[2], len(truth)) if len(train) > 2 else None
    if of_train is not None:
        doubts += from_few_groups(truth, of_train, "training ")
    return replace(judged, baselines=view.named(baselines), cautions=(*judged.cautions, *doubts))


def _of_values(
    model: IntegerModel, X: NDArray[Any], y: NDArray[np.float64], groups: ArrayLike | None
) -> figures.ValueEvaluation:
    """Compare values; of several quantiles the middle one."""
    assert isinstance(model.answers, Values)
    judged = figures.compare_values(y, _middle(model, X), groups)
    outputs = np.asarray(model.predict(X)).reshape(len(y), -1)
    if outputs.shape[1] > 1:
        below = zip(model.answers.names, outputs.T, strict=True)
        judged = replace(judged, coverage={name: float(np.mean(y <= at)) for name, at in below})
    return judged


def _middle(model: IntegerModel, X: NDArray[Any]) -> NDArray[np.float64]:
    """Return the predicted values, of several quantiles the middle one."""
    outputs = np.asarray(model.predict(X)).reshape(len(X), -1)
    middle: NDArray[np.float64] = outputs[:, outputs.shape[1] // 2]
    return middle


@dataclass(frozen=True)
class _View:
    """What simple models learn from: levels of a spectrum, few pixels, or rows as they are.

    A linear model of 16,000 samples says nothing about words, and takes long; so does one of the
    bytes of a frame.
    """

    model: IntegerModel

    @cached_property
    def first(self) -> Stage | None:
        """The stage in front of the simple models."""
        first = self.model.stages[0] if self.model.stages else None
        return None if first is None or first.SIMPLER is None else first

    @cached_property
    def size(self) -> tuple[Grid, int, int]:
        """The values behind it, and the rows and columns of pixels that are left of them."""
        grid = self.model.input if self.first is None else self.first.gives(self.model.input)
        side = grid.size if grid.size <= _MOST_VALUES else isqrt(_MOST_VALUES // grid.channels)
        return grid, min(grid.rows, side), min(grid.columns, side)

    def of(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return rows as the simple models see them."""
        grid, rows, columns = self.size
        X = X if self.first is None else np.asarray(self.first.run(X, self.model.input))
        if grid.kind != "image" or (rows, columns) == (grid.rows, grid.columns):
            return X
        small = []
        for part in np.array_split(X, -(-len(X) // _IMAGES_AT_ONCE)):
            pixels = part.reshape(-1, grid.rows, grid.columns, grid.channels)
            sums = area_sums(pixels.transpose(1, 2, 0, 3), rows).transpose(1, 2, 0, 3)
            small.append(area_sums(sums, columns).transpose(1, 2, 0, 3).reshape(len(part), -1))
        return np.concatenate(small)

    def named(self, simple: dict[str, figures.Baseline]) -> dict[str, figures.Baseline]:
        """Say of baselines what they learn from."""
        grid, rows, columns = self.size
        is_small = grid.kind == "image" and (rows, columns) != (grid.rows, grid.columns)
        where = f"on {columns} x {rows} pixels, " if is_small else ""
        where = (self.first and self.first.SIMPLER) or where
        return {
            key: replace(each, name=f"{where}{each.name}") if each.n_bytes else each
            for key, each in simple.items()
        }


def evaluate_clips(
    model: IntegerModel,
    X: ArrayLike,
    y: ArrayLike,
    clip: NDArray[np.int64],
    groups: ArrayLike | None = None,
) -> figures.LabelEvaluation | None:
    """Judge one answer a clip, by the sum of scores; None without several windows a clip."""
    true = np.asarray(y)
    _, first, where = np.unique(clip, return_index=True, return_inverse=True)
    if len(first) == len(clip) or (true != true[first][where]).any():
        return None
    scores = model.scores(X)
    total = np.zeros((len(first), scores.shape[1]), np.int64)
    np.add.at(total, where, scores.astype(np.int64))
    answers = np.array(model.classes)[total.argmax(axis=1)]
    group = None if groups is None else np.asarray(groups)[first]
    return figures.compare(true[first], answers, model.classes, group)
