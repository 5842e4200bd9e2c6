"""What a teacher in a file says of training rows: an own larger model, or probabilities."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.budget.successor import check_rows_alike
from tinykernel.data.paths import find_data
from tinykernel.decisions.confidence import fit_temperature
from tinykernel.errors import TinykernelError
from tinykernel.model import as_integer_model
from tinykernel.model.answers.decision import softmax
from tinykernel.modelfile import load

# Probabilities of models are multiples of this, so that every processor learns from the same.
_STEP = 2.0**-12


def probabilities_of(
    path: str | os.PathLike[str], X: ArrayLike, y: ArrayLike, names: tuple[str, ...] | None = None
) -> NDArray[np.float64]:
    """Return the probability of each class for each training row.

    Parameters
    ----------
    path : path-like
        A model (``.tkm``), whose scores become probabilities by softmax with the temperature that
        is likeliest on these rows (`fit_temperature`). Or probabilities: ``.npy``, or ``.csv``
        with commas, one row for each row of `X` and one column for each class, in the order of
        the sorted labels.
    X : array-like, shape (n, n_inputs)
        Raw rows.
    y : array-like, shape (n,)
        Labels.
    names : tuple of str, optional
        Names of the inputs.

    Returns
    -------
    ndarray of float64, shape (n, n_classes)

    Raises
    ------
    TinykernelError
        If there is no such file, it is of another kind, or does not fit the rows.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/soft.npy", [[0.5, 0.5], [0.1, 0.9]])
    ...     probabilities_of(f"{folder}/soft.npy", [[0], [1]], ["a", "b"]).tolist()
    [[0.5, 0.5], [0.1, 0.9]]
    """
    file = find_data(path)
    kind = file.suffix.lower()
    if kind not in (".tkm", ".npy", ".csv"):
        raise TinykernelError(f"{file}: a teacher is a .tkm, or probabilities as .npy or .csv")
    try:
        if kind == ".tkm":
            return _of_model(file, X, y, names)
        return _of_array(file, (len(np.asarray(y)), np.unique(y).size))
    except TinykernelError as error:
        words = str(error).removeprefix(f"{file}: ")
        raise TinykernelError(f"teacher: {file}: {words}") from None


def _of_model(
    file: Path, X: ArrayLike, y: ArrayLike, names: tuple[str, ...] | None
) -> NDArray[np.float64]:
    model = as_integer_model(load(file))
    if model.is_regressor or model.is_one_class:
        raise TinykernelError("tells no classes apart")
    check_rows_alike(model, X, y, names)
    decisions = np.asarray(model.decision_function(X), dtype=np.float64)
    if decisions.ndim == 1:  # a margin is the log odds
        decisions = np.stack([np.zeros_like(decisions), decisions], axis=1)
    order = np.argsort(np.asarray(model.classes))
    codes = np.unique(y, return_inverse=True)[1]
    soft = softmax(decisions[:, order], fit_temperature(decisions[:, order], codes))
    return np.asarray(np.rint(soft / _STEP) * _STEP, dtype=np.float64)


def _of_array(file: Path, needed: tuple[int, int]) -> NDArray[np.float64]:
    try:
        if file.suffix.lower() == ".npy":
            found = np.load(file, allow_pickle=False)
        else:
            found = np.loadtxt(file, delimiter=",", ndmin=2)
        soft = np.asarray(found, dtype=np.float64)
    except (ValueError, OSError, EOFError, TypeError):
        raise TinykernelError("holds no array of numbers") from None
    if soft.shape != needed:
        raise TinykernelError(
            f"has the shape {soft.shape}; needed are {needed[0]} training rows and {needed[1]} "
            "classes (with --test 0 or --test FILE every row of the data is a training row)"
        )
    return soft
