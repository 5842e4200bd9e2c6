"""Everything about a model on labelled rows: what is right, beside what, and with what caution."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from tinykernel.decisions.figures import decision_figures
from tinykernel.evaluation.beside import baselines
from tinykernel.evaluation.doubts import cautions
from tinykernel.evaluation.labels import Evaluation, accuracy_interval, compare
from tinykernel.residuals import ValueEvaluation, evaluate_values

#: What `evaluate` finds, of a classifier or of a regressor.
Judged: TypeAlias = Evaluation | ValueEvaluation


def evaluate(
    model: object,
    X: ArrayLike,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    train: tuple[ArrayLike, ArrayLike] | None = None,
    class_weight: str | None = None,
    float_accuracy: float | None = None,
) -> Judged:
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
    float_accuracy : float, optional
        Of the float machine on the same rows, to be compared.

    Returns
    -------
    Evaluation, or ValueEvaluation of a regressor

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
    from tinykernel.model import as_integer_model

    integer = as_integer_model(model)
    if integer.values is not None:
        return evaluate_values(integer, X, y, groups=groups, train=train)
    true, predicted = np.asarray(y), integer.predict(X)
    found = compare(true, predicted, integer.classes, groups)
    group = None if groups is None else np.asarray(groups)
    figures = decision_figures(
        integer,
        X,
        true,
        lambda rows, wrong: accuracy_interval(wrong, None if group is None else group[rows]),
    )
    found = replace(found, decisions=figures)
    if train is None:
        return found
    rows, labels = np.asarray(train[0]), np.asarray(train[1])
    flat, test = rows.reshape(len(rows), -1), np.asarray(X).reshape(len(true), -1)
    beside = baselines(
        flat, labels, test, true, predicted, groups=groups, class_weight=class_weight
    )
    lines = cautions(
        found, flat, labels, test, names=integer.feature_names, float_accuracy=float_accuracy
    )
    return replace(found, baselines=beside, cautions=lines)
