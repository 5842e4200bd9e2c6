"""From what a user gives to `fit` to the problem that trainers take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.checks import check_choice, check_positive
from tinykernel.errors import TinykernelError
from tinykernel.model.scaling import fit_scaling, raw_dtype_of, to_raw
from tinykernel.training.canonical import canonical_rows
from tinykernel.training.problem import TrainingProblem

__all__ = ["prepare", "soft_labels"]

_Masks = tuple[NDArray[np.bool_], NDArray[np.bool_]]


def prepare(
    X: NDArray[Any],
    y: NDArray[Any],
    sample_weight: NDArray[np.float64],
    *,
    scaler: str,
    scaler_scope: str,
    class_weight: Mapping[Any, float] | str | None,
    splits: Sequence[_Masks] = (),
    groups: ArrayLike | None = None,
    validation: tuple[NDArray[Any], NDArray[Any]] | None = None,
    teacher: tuple[object, ArrayLike] | None = None,
) -> tuple[NDArray[Any], TrainingProblem]:
    """Bring checked rows into the canonical form, and everything that belongs to rows with them.

    Parameters
    ----------
    X : ndarray, shape (n, n_features)
        Finite numbers.
    y : ndarray, shape (n,)
        Labels.
    sample_weight : ndarray of float64, shape (n,)
        Not negative; rows of weight 0 are left out.
    scaler, scaler_scope, class_weight
        As in `tinykernel.TernaryKernelClassifier`.
    splits : sequence of pairs of ndarray of bool, shape (n,)
        Masks of the rows in training and left out.
    groups : array-like, shape (n,), optional
        Numbers or text. Equal rows of different groups are not merged.
    validation : pair of ndarray, shapes (k, n_features) and (k,), optional
        Rows and labels.
    teacher : pair, optional
        A fitted classifier or an array of probabilities, shape (n, n_classes), and the rows as the
        user gave them, for the classifier. Labels of rows that are merged are averaged by weight.

    Returns
    -------
    classes : ndarray, shape (n_classes,)
    problem : TrainingProblem

    Raises
    ------
    TinykernelError
        If something does not fit to the rows.
    """
    if not sample_weight.any():
        raise TinykernelError("sample_weight: all weights are 0; give some rows a weight")
    raw_dtype = raw_dtype_of(X.dtype)
    used = sample_weight > 0
    rows, labels, given = to_raw(X, raw_dtype), y, sample_weight
    if not used.all():
        rows, labels, given = rows[used], y[used], sample_weight[used]
    classes, codes = np.unique(labels, return_inverse=True)
    names = tuple(classes.tolist())
    if len(names) < 2:
        raise TinykernelError(
            f"y holds one class only ({names[0]!r}); a classifier needs two classes"
        )
    group = None if groups is None else _group_codes(groups, used)
    rows, codes, weight, position = canonical_rows(rows, codes.astype(np.int64), given, group)
    by_class = _class_weights(class_weight, names, codes, weight)[codes]

    def collect(chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        chosen_weight = np.where(chosen[used], given, 0.0)
        return by_class * np.bincount(position, weights=chosen_weight, minlength=codes.size)

    if group is not None:
        moved = np.empty(codes.size, dtype=np.int64)
        moved[position] = group
        group = moved
    soft = None
    if teacher is not None:
        soft = _averaged(soft_labels(*teacher, classes)[used], given, position, weight)
    held = None
    if validation is not None:
        held = _validation(*validation, raw_dtype, classes)
    return classes, TrainingProblem(
        X=rows,
        codes=codes,
        sample_weight=weight * by_class,
        classes=names,
        raw_dtype=raw_dtype,
        scaling=fit_scaling(rows, weight, scaler, scaler_scope),
        splits=tuple((collect(train), collect(test)) for train, test in splits),
        groups=group,
        validation=held,
        teacher=soft,
    )


def _group_codes(groups: ArrayLike, used: NDArray[np.bool_]) -> NDArray[np.int64]:
    names = np.asarray(groups)
    if names.shape != used.shape:
        raise TinykernelError(
            f"groups: shape {names.shape}; give a name or number for each of the {used.size} rows"
        )
    found, codes = np.unique(names[used], return_inverse=True)
    if found.size < 2:
        raise TinykernelError("groups: all rows are in one group; give at least two groups")
    return np.asarray(codes, dtype=np.int64)


def _class_weights(
    given: Mapping[Any, float] | str | None,
    classes: tuple[object, ...],
    codes: NDArray[np.int64],
    sample_weight: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the weight of every class."""
    weights = np.ones(len(classes))
    if given is None:
        return weights
    if isinstance(given, Mapping):
        known = {label: i for i, label in enumerate(classes)}
        for label, value in given.items():
            if label not in known:
                raise TinykernelError(f"class_weight: {label!r} is not a label in y")
            weights[known[label]] = check_positive(f"class_weight of {label!r}", value)
        return weights
    check_choice("class_weight", given, ("balanced",))
    totals = np.bincount(codes, weights=sample_weight)
    return np.asarray(totals.sum() / (totals.size * totals), dtype=np.float64)


def _validation(
    X: NDArray[Any], y: NDArray[Any], raw_dtype: str, classes: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Bring validation rows into the raw type and their labels into codes."""
    if X.dtype.kind == "f" and raw_dtype != "float32" and not np.array_equal(X, np.rint(X)):
        raise TinykernelError(
            f"validation: its rows are not whole numbers, but the training rows are {raw_dtype}; "
            "give both in one type"
        )
    unknown = np.setdiff1d(y, classes)
    if unknown.size:
        raise TinykernelError(
            f"validation: the label {unknown.tolist()[0]!r} is not in the training rows"
        )
    try:
        rows = to_raw(X, raw_dtype)
    except TinykernelError as error:
        raise TinykernelError(f"validation: {error}") from None
    return rows, np.searchsorted(classes, y).astype(np.int64)


# --- teachers ------------------------------------------------------------------------------------


def soft_labels(teacher: object, X: ArrayLike, classes: NDArray[Any]) -> NDArray[np.float64]:
    """Return what a teacher says: the probability of each class for each row.

    Parameters
    ----------
    teacher : fitted scikit-learn classifier or array-like, shape (n, n_classes)
        A classifier with ``predict_proba``, or with ``decision_function``, whose softmax is taken.
        It may know more classes. An array has a column for each of `classes`.
    X : array-like, shape (n, n_features)
        Rows in the form that the classifier takes.
    classes : ndarray, shape (n_classes,)

    Returns
    -------
    ndarray of float64, shape (n, n_classes)

    Raises
    ------
    TinykernelError
        If the teacher is neither, or its probabilities do not fit to the rows and classes.

    Examples
    --------
    >>> soft_labels([[0.25, 0.75]], [[1.0]], np.array(["a", "b"])).tolist()
    [[0.25, 0.75]]
    """
    if isinstance(teacher, type):
        raise TinykernelError("teacher: give a fitted classifier, not its class")
    known = classes
    if hasattr(teacher, "predict_proba") or hasattr(teacher, "decision_function"):
        soft = _probabilities(teacher, X)
        known = np.asarray(getattr(teacher, "classes_", classes))
    else:
        try:
            soft = np.asarray(teacher, dtype=np.float64)
        except (TypeError, ValueError):
            raise TinykernelError(
                "teacher: give a fitted classifier, or an array of probabilities, one row for each "
                "row of X and one column for each class"
            ) from None
    n_rows = np.asarray(X).shape[0]
    if soft.shape != (n_rows, len(known)):
        raise TinykernelError(
            f"teacher: its probabilities have shape {soft.shape}; needed are {n_rows} rows and "
            f"{len(known)} classes"
        )
    missing = np.setdiff1d(classes, known)
    if missing.size:
        raise TinykernelError(f"teacher: it does not know the class {missing.tolist()[0]!r}")
    soft = soft[:, [int(np.flatnonzero(known == label)[0]) for label in classes]]
    total = soft.sum(axis=1, keepdims=True)
    if not (np.all(soft >= 0) and np.all(np.isfinite(total)) and np.all(total > 0)):
        raise TinykernelError("teacher: a probability is negative or NaN, or all of a row are 0")
    return np.asarray(soft / total, dtype=np.float64)


def _probabilities(teacher: Any, X: ArrayLike) -> NDArray[np.float64]:
    if hasattr(teacher, "predict_proba"):
        return np.asarray(teacher.predict_proba(X), dtype=np.float64)
    values = np.asarray(teacher.decision_function(X), dtype=np.float64)
    if values.ndim == 1:
        # A margin m of two classes is the log odds: softmax of (0, m).
        values = np.stack([np.zeros_like(values), values], axis=1)
    soft = np.exp(values - values.max(axis=1, keepdims=True))
    return np.asarray(soft / soft.sum(axis=1, keepdims=True), dtype=np.float64)


def _averaged(
    soft: NDArray[np.float64],
    given: NDArray[np.float64],
    position: NDArray[np.int64],
    weight: NDArray[np.float64],
) -> NDArray[np.float32]:
    """Average the soft labels of the rows that became one row."""
    columns = [
        np.bincount(position, weights=given * column, minlength=weight.size) for column in soft.T
    ]
    return np.asarray(np.stack(columns, axis=1) / weight[:, None], dtype=np.float32)
