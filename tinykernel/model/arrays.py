"""Checked, read-only arrays for the frozen dataclasses of this package, and labels of scores."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.errors import DataError, ModelError, ShapeError


def wrong_shape(name: str, have: tuple[int, ...], want: tuple[int | None, ...]) -> str:
    """Say what is wrong with a shape, or nothing; None stands for any length of at least 1."""
    if len(have) == len(want) and all(
        length > 0 if expected is None else length == expected
        for length, expected in zip(have, want, strict=True)
    ):
        return ""
    expected_text = ", ".join("any" if length is None else str(length) for length in want)
    return f"{name} has shape {have}, expected ({expected_text})"


def checked_array(
    name: str, value: object, dtype: str, shape: tuple[int | None, ...]
) -> NDArray[Any]:
    """Return a read-only contiguous copy of `value`, of exactly this type and shape."""
    # None in a shape stands for any length of at least 1. A TinykernelError names the array.
    try:
        values = np.asarray(value)
    except (TypeError, ValueError):
        raise ModelError(f"integer model: {name} is not an array of numbers") from None
    if values.dtype.kind not in "biuf":
        raise ModelError(f"integer model: {name} is not an array of numbers")
    problem = wrong_shape(name, values.shape, shape)
    if problem:
        raise ModelError(f"integer model: {problem}")
    with np.errstate(invalid="ignore", over="ignore"):
        array = np.array(values, dtype=np.dtype(dtype), order="C", copy=True)
        unchanged = np.array_equal(array, values)
    if not unchanged or not np.all(np.isfinite(array)):
        raise ModelError(f"integer model: {name} holds a value that is not a finite {dtype}")
    array.setflags(write=False)
    return array


def raw_values(X: ArrayLike, dtype: str) -> NDArray[Any]:
    """Convert inputs, shape (n_rows, n), to a raw type that the firmware takes."""
    # Floats are rounded to float32; an integer that does not fit is an error.
    values = np.asarray(X)
    if values.dtype.kind in "cmM":
        raise ShapeError(f"inputs: values of type {values.dtype}; give real numbers")
    if values.dtype.kind not in "biuf":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError):
            raise ShapeError(
                "inputs: not an array of numbers; for a frame with text use the fitted estimator, "
                "which codes text as numbers"
            ) from None
    with np.errstate(invalid="ignore", over="ignore"):
        raw = values.astype(dtype)
        wrong = np.zeros(1, dtype=bool) if dtype == "float32" else raw != values
    if np.any(wrong):
        row, column = np.argwhere(wrong)[0][:2]
        raise DataError(
            f"inputs: row {row}, column {column} is {values[row, column]}, which is not {dtype} "
            "as in training; convert it"
        )
    return np.ascontiguousarray(raw)


def chosen_labels(decisions: NDArray[Any]) -> NDArray[np.int64]:
    """Return the place of the first largest value of each row; of one column, 1 if positive."""
    if decisions.shape[1] == 1:
        return (decisions[:, 0] > 0).astype(np.int64)
    return np.asarray(decisions.argmax(axis=1), dtype=np.int64)
