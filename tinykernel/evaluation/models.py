"""Everything about a model on labelled rows: what is right, beside what, and with what caution."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.decisions.figures import decision_figures
from tinykernel.evaluation.baselines import label_baselines, value_baselines
from tinykernel.evaluation.cautions import cautions
from tinykernel.evaluation.comparison import Evaluation
from tinykernel.evaluation.intervals import accuracy_interval
from tinykernel.evaluation.labels import LabelEvaluation, compare
from tinykernel.evaluation.values import ValueEvaluation, compare_values
from tinykernel.model import IntegerModel, as_integer_model
from tinykernel.model.answers.values import Values


def evaluate(
    model: object,
    X: ArrayLike,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    train: tuple[ArrayLike, ArrayLike] | None = None,
    class_weight: str | None = None,
) -> Evaluation:
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
        The training rows: the baselines are trained on them, and the cautions look at them.
    class_weight : {None, "balanced"}
        Of the linear model, as the judged model had it.

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
    >>> found = evaluate(model.fit(X[::2], y[::2]), X[1::2], y[1::2], train=(X[::2], y[::2]))
    >>> found.accuracy > 0.9, found.baselines["linear"].n_bytes
    (True, 12)
    """
    integer = as_integer_model(model)
    if train is not None:
        train = np.asarray(train[0]), np.asarray(train[1])
        train = train[0].reshape(len(train[0]), -1), train[1]
    if integer.is_regressor:
        return _of_values(integer, X, np.asarray(y, dtype=np.float64), groups, train)
    true, predicted = np.asarray(y), integer.predict(X)
    found = _of_labels(integer, X, true, predicted, groups)
    if train is None:
        return found
    flat = np.asarray(X).reshape(len(true), -1)
    return replace(
        found,
        baselines=label_baselines(
            train, (flat, true), predicted, groups=groups, class_weight=class_weight
        ),
        cautions=cautions(
            found,
            *train,
            flat,
            names=integer.feature_names,
            samples=not integer.input.is_table,
        ),
    )


def _of_labels(
    model: IntegerModel,
    X: ArrayLike,
    y: NDArray[Any],
    predicted: NDArray[Any],
    groups: ArrayLike | None,
) -> LabelEvaluation:
    """Compare labels, and judge decisions where the model makes some."""
    group = None if groups is None else np.asarray(groups)
    figures = decision_figures(
        model,
        X,
        y,
        lambda rows, wrong: accuracy_interval(wrong, None if group is None else group[rows]),
    )
    return replace(compare(y, predicted, model.classes, groups), decisions=figures)


def _of_values(
    model: IntegerModel,
    X: ArrayLike,
    y: NDArray[np.float64],
    groups: ArrayLike | None,
    train: tuple[NDArray[Any], NDArray[Any]] | None,
) -> ValueEvaluation:
    """Compare values, of quantiles those of the one in the middle."""
    assert isinstance(model.answers, Values)
    outputs = np.asarray(model.predict(X)).reshape(len(y), -1)
    middle = outputs[:, outputs.shape[1] // 2]
    found = compare_values(y, middle, groups)
    if outputs.shape[1] > 1:
        below = zip(model.answers.names, outputs.T, strict=True)
        found = replace(found, coverage={name: float(np.mean(y <= at)) for name, at in below})
    if train is None:
        return found
    values = train[1].astype(np.float64)
    test = np.asarray(X).reshape(len(y), -1), y
    return replace(
        found, baselines=value_baselines((train[0], values), test, middle, groups=groups)
    )
