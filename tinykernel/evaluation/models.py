"""Judge a model on labelled rows, with baselines and cautions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.coding.frames import in_numbers
from tinykernel.data.ranges import outside
from tinykernel.decisions.figures import decision_figures
from tinykernel.evaluation import figures
from tinykernel.evaluation.baselines import label_baselines, value_baselines
from tinykernel.evaluation.cautions import cautions, from_few_groups
from tinykernel.evaluation.intervals import accuracy_interval
from tinykernel.model import IntegerModel, as_integer_model
from tinykernel.model.answers.values import Values
from tinykernel.model.stages.spectrum import Spectrum


def evaluate(
    model: object,
    X: ArrayLike,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    train: tuple[ArrayLike, ArrayLike] | None = None,
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
    train : (X, y), optional
        The training rows, for the baselines and cautions. Where the model begins with a spectrum,
        the baselines learn from its levels.
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
    if train is not None:
        train = integer.as_raw(in_numbers(model, train[0])), np.asarray(train[1])
    if integer.is_regressor:
        values = _of_values(integer, X, np.asarray(y, dtype=np.float64), groups, train)
        return replace(values, cautions=doubts)
    true, predicted = np.asarray(y), integer.predict(X)
    group = None if groups is None else np.asarray(groups)
    doubts += () if group is None else from_few_groups(true, group)
    judged = replace(
        figures.compare(true, predicted, integer.classes, groups),
        cautions=doubts,
        decisions=decision_figures(
            integer,
            X,
            true,
            lambda rows, wrong: accuracy_interval(wrong, None if group is None else group[rows]),
        ),
    )
    if train is None:
        return judged
    learned, held = (_levels(integer, train[0]), train[1]), (_levels(integer, X), true)
    baselines = label_baselines(learned, held, predicted, groups=groups, class_weight=class_weight)
    return replace(
        judged,
        baselines=_named(integer, baselines),
        cautions=doubts
        + cautions(
            judged, *train, X, names=integer.feature_names, samples=not integer.input.is_table
        ),
    )


def _of_values(
    model: IntegerModel,
    X: NDArray[Any],
    y: NDArray[np.float64],
    groups: ArrayLike | None,
    train: tuple[NDArray[Any], NDArray[Any]] | None,
) -> figures.ValueEvaluation:
    """Compare values; of several quantiles the middle one."""
    assert isinstance(model.answers, Values)
    outputs = np.asarray(model.predict(X)).reshape(len(y), -1)
    middle = outputs[:, outputs.shape[1] // 2]
    judged = figures.compare_values(y, middle, groups)
    if outputs.shape[1] > 1:
        below = zip(model.answers.names, outputs.T, strict=True)
        judged = replace(judged, coverage={name: float(np.mean(y <= at)) for name, at in below})
    if train is None:
        return judged
    learned = _levels(model, train[0]), train[1].astype(np.float64)
    rows = learned, (_levels(model, X), y)
    return replace(judged, baselines=_named(model, value_baselines(*rows, middle, groups=groups)))


def _levels(model: IntegerModel, X: NDArray[Any]) -> NDArray[Any]:
    """Return the levels of the spectrum of windows; rows as they are where there is no spectrum.

    A linear model of 16,000 samples says nothing about words, and takes long.
    """
    first = model.stages[0] if model.stages else None
    return first.run(X, model.input) if isinstance(first, Spectrum) else X


def _named(model: IntegerModel, simple: dict[str, figures.Baseline]) -> dict[str, figures.Baseline]:
    """Say of baselines that learn from a spectrum that they do."""
    if not model.find(Spectrum):
        return simple
    return {
        key: each if not each.n_bytes else replace(each, name=f"on the spectrum, {each.name}")
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
