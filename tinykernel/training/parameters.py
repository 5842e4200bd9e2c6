"""Checks of those parameters of the classifier that only the learned trainer has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tinykernel.checks import check_count
from tinykernel.errors import TinykernelError
from tinykernel.training.options import LAYOUTS

__all__ = [
    "MOST_COMPONENTS",
    "check_image_shape",
    "checked_augmentation",
    "checked_components",
    "checked_fraction",
    "checked_image_shape",
    "checked_share",
]

#: Training would take days, and no target has the flash.
MOST_COMPONENTS = 65536
_DEFAULT_FORMAT = "compact"


def checked_components(layout: str | None, n_components: object) -> tuple[str, int, dict[str, int]]:
    """Bring the parameters ``layout`` and ``n_components`` together.

    Parameters
    ----------
    layout : str or None
        A layout that exists.
    n_components : object
        A number, or a mapping of layouts to numbers.

    Returns
    -------
    layout : str
    n_components : int
    capacity : dict of str to int
        The formats to choose from; empty where there is one only.

    Raises
    ------
    TinykernelError
        If a number is not from 1 to `MOST_COMPONENTS`, a format is unknown, or both contradict.

    Examples
    --------
    >>> checked_components(None, {"phases": 64})
    ('phases', 64, {})
    """
    if not isinstance(n_components, Mapping):
        return layout or _DEFAULT_FORMAT, _number("n_components", n_components), {}
    unknown = [name for name in n_components if name not in LAYOUTS]
    if unknown or not n_components:
        what = repr(unknown[0]) if unknown else "an empty mapping"
        raise TinykernelError(f"n_components: {what}; its layouts are {', '.join(LAYOUTS)}")
    capacity = {name: _number(f"n_components[{name!r}]", p) for name, p in n_components.items()}
    if layout is not None:
        if layout not in capacity:
            raise TinykernelError(
                f"layout={layout!r} but n_components has a number for {', '.join(capacity)} "
                "only; leave layout out or name it there"
            )
        capacity = {layout: capacity[layout]}
    first = next(iter(capacity))
    return first, capacity[first], capacity if len(capacity) > 1 else {}


def _number(name: str, value: object) -> int:
    number = check_count(name, value)
    if number > MOST_COMPONENTS:
        raise TinykernelError(f"{name} must be at most {MOST_COMPONENTS}; got {number}")
    return number


def checked_augmentation(augment: object) -> tuple[int, float | None]:
    """Read the parameter ``augment``.

    Parameters
    ----------
    augment : object
        None or a mapping with some of "shift" and "noise".

    Returns
    -------
    shift : int
        Pixels; 0 for none.
    noise : float or None
        None where it is to be searched.

    Raises
    ------
    TinykernelError
        If it is something else.

    Examples
    --------
    >>> checked_augmentation({"shift": 1})
    (1, None)
    """
    if augment is None:
        return 0, None
    if not isinstance(augment, Mapping):
        raise TinykernelError('augment: give a mapping such as {"shift": 1, "noise": 0.3} or None')
    unknown = [name for name in augment if name not in ("shift", "noise")]
    if unknown:
        raise TinykernelError(f"augment: {unknown[0]!r} is not known; give shift or noise")
    shift, noise = augment.get("shift", 0), augment.get("noise")
    shift = check_count("augment: shift", shift, 0)
    if noise is None:
        return shift, None
    number = isinstance(noise, (int, float, np.integer, np.floating))
    if isinstance(noise, bool) or not number or not 0 <= noise <= 10:
        raise TinykernelError(f"augment: noise must be a number from 0 to 10; got {noise!r}")
    return shift, float(noise)


def checked_image_shape(image_shape: object, *, needed: bool) -> tuple[int, int] | None:
    """Read the parameter ``image_shape``.

    Parameters
    ----------
    image_shape : object
        None or (height, width).
    needed : bool
        Whether images are to be moved.

    Returns
    -------
    pair of int, or None

    Raises
    ------
    TinykernelError
        If it is something else, or missing where it is needed.

    Examples
    --------
    >>> checked_image_shape((8, 8), needed=True)
    (8, 8)
    """
    if image_shape is None:
        if needed:
            raise TinykernelError("augment: shift needs the image_shape, e.g. (28, 28)")
        return None
    if isinstance(image_shape, str) or not isinstance(image_shape, Sequence | np.ndarray):
        raise TinykernelError(f"image_shape: {image_shape!r}; give (height, width)")
    if len(image_shape) != 2:
        raise TinykernelError(f"image_shape: {image_shape!r}; give (height, width)")
    height, width = (check_count("image_shape", side) for side in image_shape)
    return height, width


def check_image_shape(image_shape: tuple[int, int] | None, n_features: int, shift: int = 0) -> None:
    """Refuse an image shape that does not make up a row, and a shift that leaves little of it.

    Parameters
    ----------
    image_shape : pair of int, or None
    n_features : int
    shift : int
        By how many pixels images are moved: at most half of their larger side.

    Raises
    ------
    TinykernelError

    Examples
    --------
    >>> check_image_shape((8, 8), 64)
    """
    if image_shape is not None and image_shape[0] * image_shape[1] != n_features:
        height, width = image_shape
        raise TinykernelError(
            f"image_shape: {height} x {width} makes {height * width} pixels, but rows have "
            f"{n_features} features"
        )
    if image_shape is not None and shift > max(image_shape) // 2:
        raise TinykernelError(
            f"augment: a shift of {shift} pixels moves images of {image_shape[0]} x "
            f"{image_shape[1]} out of sight; give at most {max(image_shape) // 2}"
        )


def checked_share(name: str, value: object) -> float:
    """Return a share.

    Parameters
    ----------
    name : str
        Of the parameter.
    value : object

    Returns
    -------
    float

    Raises
    ------
    TinykernelError
        If it is no number from 0 to 1.

    Examples
    --------
    >>> checked_share("teacher_share", 0.5)
    0.5
    """
    number = isinstance(value, (int, float, np.integer, np.floating))
    if isinstance(value, bool) or not number or not 0 <= value <= 1:  # type: ignore[operator]
        raise TinykernelError(f"{name} must be a number from 0 to 1; got {value!r}")
    return float(value)  # type: ignore[arg-type]


def checked_fraction(name: str, value: object) -> float:
    """Return a share of rows to keep aside.

    Parameters
    ----------
    name : str
        Of the parameter.
    value : object
        None for none.

    Returns
    -------
    float
        0 for none.

    Raises
    ------
    TinykernelError
        If it is no number above 0 and below 0.5.

    Examples
    --------
    >>> checked_fraction("validation_fraction", 0.1)
    0.1
    """
    if value is None:
        return 0.0
    number = isinstance(value, (int, float, np.integer, np.floating))
    if isinstance(value, bool) or not number or not 0 < value < 0.5:  # type: ignore[operator]
        raise TinykernelError(f"{name} must be a number above 0 and below 0.5; got {value!r}")
    return float(value)  # type: ignore[arg-type]
