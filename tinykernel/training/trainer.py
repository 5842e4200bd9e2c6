"""Joint training: phase windows, diagonals and weights learned together, as they are stored.

The model is that of Lei & Lan 2021 (001), (3)-(6), with everything but B and P learned::

    u = P H B x'                                        once for all blocks
    y = H (G_b * u)                                     one block of d projections
    z = sign(cos(S y + b) + t)                          one bit a row
    f = (a / sqrt(p)) W z + offset                      W in {-1, 1} or {-1, 0, 1}

One layout has rows without any weight: it leaves out those of each block that weigh least.
The loss is the cross-entropy of softmax(f), or the squared hinge of each output. Both
non-differentiable steps are crossed by straight-through gradients: of the sign by
``g(s) = k / (1 + (k s)^2 / 2)^2`` (`joint_kernels`), of W by that of its float shadow. Gaussian
noise on u and dropout of bits regularise; Adam follows one cycle. In the last part of the training
the forward pass uses the integer values of G, S, start and width that the firmware stores, so that
they are learned as they are exported.

What a feature costs is decided by a `Layout`; sigma, noise, slope, dropout and the format
are chosen on rows held out of the training rows (`joint_choice`), then all rows are trained on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel import progress
from tinykernel.errors import TinykernelError
from tinykernel.hadamard import fwht
from tinykernel.model.machine import KernelMachine
from tinykernel.model.scaling import InputScaling, raw_dtype_of, to_raw
from tinykernel.training.folds import keep_aside, trial_folds
from tinykernel.training.inputs import SharedTransform, draw_transform, fit_joint_scaling
from tinykernel.training.learner import JointLearner, Validation
from tinykernel.training.options import LAYOUTS, JointOptions
from tinykernel.training.problem import FirmwareArithmetic
from tinykernel.training.search import Trial, TrialData, choose_options
from tinykernel.training.start import aligned_permutation
from tinykernel.training.windows import Arithmetic

__all__ = ["LAYOUTS", "JointOptions", "JointResult", "fit_joint", "train_joint"]

_SEARCHED_OPTIONS = ("sigma_multiple", "noise", "slope", "dropout")


@dataclass(frozen=True, eq=False)
class JointResult:
    """A trained machine and how it came about.

    Parameters
    ----------
    machine : KernelMachine
    options : JointOptions
        Given and chosen.
    sigma : float
        Kernel width at the start of training, in scaled inputs.
    trials : list of Trial
        The short trainings by which hyper-parameters were chosen.
    history : list of dict
        Loss, seconds and, with validation rows, accuracy of each epoch.
    """

    machine: KernelMachine
    options: JointOptions
    sigma: float
    trials: list[Trial]
    history: list[dict[str, float]]


def train_joint(
    X: ArrayLike, y: ArrayLike, *, n_components: int = 4096, random_state: int = 0, **named: Any
) -> KernelMachine:
    """Train and return the machine only; the arguments are those of `fit_joint`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = train_joint(X, y, n_components=64, epochs=20, search=False)
    >>> machine.n_blocks
    2
    """
    return fit_joint(X, y, n_components=n_components, random_state=random_state, **named).machine


def fit_joint(
    X: ArrayLike, y: ArrayLike, *, n_components: int = 4096,
    capacity: Mapping[str, int] | None = None,
    epochs: int | None = None, search: bool = True, random_state: int = 0, n_threads: int = 2,
    sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None,
    validation: tuple[ArrayLike, ArrayLike] | float | None = None, patience: int | None = None,
    teacher: ArrayLike | None = None, teacher_share: float = 0.5,
    image_shape: tuple[int, int] | None = None, augment_shift: int = 0, scaler_scope: str = "auto",
    input_bits: int | None = None, firmware: FirmwareArithmetic | None = None, **options: Any,
) -> JointResult:  # fmt: skip
    """Train a machine by gradient.

    Parameters
    ----------
    X : array-like, shape (n, n_features)
        Raw, finite rows.
    y : array-like, shape (n,)
        Labels of at least two classes.
    n_components : int
        p; ignored where `capacity` is given.
    capacity : mapping of str to int, optional
        For each format that may be chosen, how many components fit.
    epochs : int, optional
        By default from 6 to 120, fewer for more rows.
    search : bool
        Whether to choose sigma, noise, slope and dropout (where not given in `options`) by short
        trainings; without, only the format is chosen, where there are several.
    random_state : int
    n_threads : int
        Changes nothing but the time.
    sample_weight : array-like, shape (n,), optional
    groups : array-like, shape (n,), optional
        Rows of a group stay together when rows are held out for the search.
    validation : (X, y) or float, optional
        Rows by which the best epoch is chosen, or the share of the rows that is kept aside for
        that: whole groups, or rows of every class.
    patience : int, optional
        With `validation`: epochs without improvement before training ends.
    teacher : array-like, shape (n, n_classes), optional
        Probability of each class, mixed with the labels in `teacher_share`.
    teacher_share : float
    image_shape : (height, width), optional
    augment_shift : int
        Images are moved by up to this number of pixels, at random for each row and epoch.
    scaler_scope : {"auto", "feature", "global"}
        See `fit_joint_scaling`.
    input_bits : {8, 16}, optional
        By default 8 where one scale serves all features or the raw type has 8 bits, else 16.
    firmware : FirmwareArithmetic, optional
        `tinykernel.model.arithmetic.FIRMWARE`. With it, inputs are those of the firmware, and
        what is trained in the last part of the training is exactly the integer model; without it
        the rounding of the transforms is left out.
    **options
        Fields of `JointOptions`; those given are not searched.

    Returns
    -------
    JointResult

    Raises
    ------
    TinykernelError
        If the arguments do not fit together.
    """
    raw = np.asarray(X)
    raw_dtype = raw_dtype_of(raw.dtype)
    rows = to_raw(raw, raw_dtype)
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    if classes.size < 2 or rows.ndim != 2 or rows.shape[0] != codes.size:
        raise TinykernelError("X and y: give a row of X for each label, of two classes at least")
    bits, scaling = _scaling(rows, raw_dtype, input_bits, scaler_scope)
    transform = draw_transform(
        scaling, bits, np.random.default_rng([random_state, 0]), raw_dtype, firmware
    )
    given = JointOptions(
        **{"n_components": n_components, "batch_rows": _batch_rows(rows.shape[0]),
           "epochs": epochs or _epochs(rows.shape[0]), **options},
        seed=random_state, n_threads=n_threads, input_bits=bits,
    )  # fmt: skip
    if given.candidates > 1:
        drawn = np.random.default_rng([random_state, 3])
        transform = aligned_permutation(transform, rows, codes, given.candidates, drawn)
    weight = _weights(sample_weight, codes.size)
    targets = _targets(codes, classes.size, given.smoothing)
    if teacher is not None:
        soft = _soft_targets(teacher, (codes.size, classes.size), targets.shape[1])
        targets += np.float32(teacher_share) * (soft - targets)
    mixed = transform.mixed(rows)
    data = TrialData(mixed, targets, weight, codes, trial_folds(codes, groups, random_state))
    chosen, trials = _choose(data, given, dict(capacity or {}), search, frozenset(options))
    del data
    held = None
    if isinstance(validation, tuple | list):
        held = _validation(validation, transform, raw_dtype, classes, _class_means(weight, codes))
    elif validation:
        out = keep_aside(codes, groups, validation, random_state)
        held = Validation(mixed[out], codes[out], weight[out])
        rows, mixed, targets, weight = rows[~out], mixed[~out], targets[~out], weight[~out]
    arithmetic = _arithmetic(transform, chosen, firmware)
    learner = _learner(mixed, targets, weight, chosen, arithmetic)
    if held is not None:
        np.subtract(held.mixed, learner.mean, out=held.mixed)
    shifted = None
    if augment_shift:
        shifted = _shifter(rows, transform, image_shape, augment_shift, learner.mean)
    history = learner.run(held, patience, augmented=shifted)
    machine = _machine(learner, transform, classes, raw_dtype)
    return JointResult(machine, chosen, learner.sigma, trials, history)


# -- preparation ----------------------------------------------------------------------------------


def _scaling(
    rows: NDArray[Any], raw_dtype: str, bits: int | None, scope: str
) -> tuple[int, InputScaling]:
    """Choose the width of the quantised inputs, and fit the scaler."""
    if bits is None:
        scaling = fit_joint_scaling(rows, 8, scope)
        one_scale = np.unique(scaling.scale[scaling.scale > 0]).size <= 1
        bits = 8 if one_scale or raw_dtype in ("uint8", "int8") else 16
    return bits, fit_joint_scaling(rows, bits, scope)


def _choose(
    data: TrialData, given: JointOptions, capacity: dict[str, int], search: bool,
    fixed: frozenset[str],
) -> tuple[JointOptions, list[Trial]]:  # fmt: skip
    """Choose what is not fixed; without rows to judge by, the first format and the defaults."""
    if "layout" in fixed:
        capacity = {name: p for name, p in capacity.items() if name == given.layout}
    first = next(iter(capacity), given.layout)
    chosen = replace(given, layout=first)
    trials: list[Trial] = []
    if (search or len(capacity) > 1) and data.folds:
        if not search:
            fixed |= set(_SEARCHED_OPTIONS)
        chosen, trials = choose_options(data, chosen, capacity, fixed)
    elif search:
        progress.report("choosing hyper-parameters", 0, None, "too few rows; defaults are taken")
    return replace(chosen, n_components=capacity.get(chosen.layout, given.n_components)), trials


def _class_means(weight: NDArray[np.float32], codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the mean weight of the rows of each class."""
    return np.asarray(np.bincount(codes, weights=weight) / np.bincount(codes))


def _epochs(n_rows: int) -> int:
    return int(np.clip(round(30 * np.sqrt(60000 / n_rows)), 6, 120))


def _batch_rows(n_rows: int) -> int:
    return 64 if n_rows < 4000 else 128 if n_rows < 200000 else 256


def _weights(given: ArrayLike | None, n_rows: int) -> NDArray[np.float32]:
    """Return the weights of the rows, of mean 1."""
    weight = np.ones(n_rows) if given is None else np.asarray(given, dtype=np.float64)
    if weight.shape != (n_rows,) or weight.min() < 0 or weight.sum() <= 0:
        raise TinykernelError("sample_weight: give a weight of at least 0 for each row, not all 0")
    return np.asarray(weight / weight.mean(), dtype=np.float32)


def _targets(codes: NDArray[np.int64], n_classes: int, smoothing: float) -> NDArray[np.float32]:
    hot = np.zeros((codes.size, n_classes), dtype=np.float32)
    hot[np.arange(codes.size), codes] = 1.0
    hot *= np.float32(1 - smoothing)
    hot += np.float32(smoothing / n_classes)
    return np.ascontiguousarray(hot[:, 1:] if n_classes == 2 else hot)


def _soft_targets(
    teacher: ArrayLike, shape: tuple[int, int], n_outputs: int
) -> NDArray[np.float32]:
    """Return the teacher's probabilities, shape (n, n_outputs)."""
    soft = np.asarray(teacher, dtype=np.float32)
    if soft.shape != shape:
        raise TinykernelError(
            f"teacher: its probabilities have shape {soft.shape}; needed is {shape}, one column "
            "for each class"
        )
    return soft[:, 1:] if n_outputs == 1 else soft


def _learner(
    mixed: NDArray[np.float32], targets: NDArray[np.float32], weight: NDArray[np.float32],
    options: JointOptions, arithmetic: Callable[[NDArray[np.int8]], Arithmetic] | None,
) -> JointLearner:  # fmt: skip
    """Subtract the mean where the starts can take it up; `mixed` is changed."""
    mean = np.zeros(mixed.shape[1], dtype=np.float32)
    if options.format.learns_start:
        mean = mixed.mean(axis=0)
        mixed -= mean
    return JointLearner(mixed, targets, weight, options, mean, arithmetic)


def _arithmetic(
    transform: SharedTransform, options: JointOptions, firmware: FirmwareArithmetic | None
) -> Callable[[NDArray[np.int8]], Arithmetic] | None:
    """Return a function that tells how the firmware computes with some levels of G."""
    if firmware is None:
        return None
    kind = _diagonal_kind(options, exact=True)

    def arithmetic(levels: NDArray[np.int8]) -> Arithmetic:
        _, halve = firmware.schedules(
            transform.live_sign, transform.input_bits, transform.permutation, levels, kind
        )
        return Arithmetic(transform.unit, halve)

    return arithmetic


def _diagonal_kind(options: JointOptions, exact: bool) -> str:
    """Return how a machine holds G; 8-bit levels are kept where training kept to them."""
    if options.format.diagonal_top == 7:
        return "int4"
    return "int8" if exact else "gaussian"


def _validation(
    given: Sequence[ArrayLike], transform: SharedTransform, raw_dtype: str,
    classes: NDArray[Any], class_weight: NDArray[np.float64],
) -> Validation:  # fmt: skip
    rows, labels = to_raw(np.asarray(given[0]), raw_dtype), np.asarray(given[1])
    if not np.isin(labels, classes).all():
        raise TinykernelError("validation: it holds labels that are not in the training rows")
    codes = np.searchsorted(classes, labels)
    return Validation(transform.mixed(rows), codes, class_weight[codes].astype(np.float32))


def _shifter(
    rows: NDArray[Any], transform: SharedTransform, image_shape: tuple[int, int] | None,
    most: int, mean: NDArray[np.float32],
) -> Callable[[NDArray[np.int64], np.random.Generator], NDArray[np.float32]]:  # fmt: skip
    """Return a function that moves images by up to `most` pixels; edges are repeated."""
    if image_shape is None or image_shape[0] * image_shape[1] != rows.shape[1]:
        raise TinykernelError(
            f"image_shape: {image_shape} does not make up {rows.shape[1]} features"
        )
    height, width = image_shape

    def shifted(chosen: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float32]:
        down, right = rng.integers(-most, most + 1, (2, chosen.size))
        i = np.clip(np.arange(height) - down[:, None], 0, height - 1)
        j = np.clip(np.arange(width) - right[:, None], 0, width - 1)
        pixels = i[:, :, None] * width + j[:, None, :]
        images = np.take_along_axis(rows[chosen], pixels.reshape(chosen.size, -1), axis=1)
        return transform.mixed(images) - mean

    return shifted


# -- the result -----------------------------------------------------------------------------------


def _machine(
    learner: JointLearner, transform: SharedTransform, classes: NDArray[Any], raw_dtype: str
) -> KernelMachine:
    """Write the learned parameters as a machine: phase windows in radians."""
    forward, form = learner.forward(), learner.options.format
    windows = forward.windows
    shape = (learner.n_blocks, learner.dimension)
    diagonal = windows.diagonal.astype(np.float64)
    rate = windows.rate.astype(np.float64).reshape(shape)
    half = np.arccos(np.clip(-windows.level.astype(np.float64), -1, 1)) / (2 * np.pi)
    start = windows.centre + half
    if windows.are_stored:
        diagonal, rate = diagonal * windows.level_worth, rate / windows.worth
        start, half = windows.start.astype(np.float64), windows.width.astype(np.float64) / 2
    elif form.learns_start:
        # The stored values are whole steps; only float32 arithmetic lies between.
        start = start - windows.rate * fwht(windows.diagonal * learner.mean).ravel()
        start, half = np.rint(256 * start) / 256, np.rint(512 * half) / 512
    scaling, n_outputs = transform.scaling, learner.n_outputs
    root = np.sqrt(learner.dimension)
    return KernelMachine(
        classes=tuple(classes.tolist()),
        raw_dtype=raw_dtype,
        input_offset=scaling.offset,
        input_scale=scaling.scale,
        input_low=scaling.low,
        input_high=scaling.high,
        sign=transform.sign,
        permutation=transform.permutation,
        diagonal=diagonal,
        diagonal_kind=_diagonal_kind(learner.options, windows.are_stored),
        row_scale=2 * np.pi / root * rate,
        start=(2 * np.pi * np.mod(start, 1.0)).reshape(shape),
        width=(4 * np.pi * half).reshape(shape),
        weights=forward.weights[:, :n_outputs].T.astype(np.int8),
        output_scale=np.full(n_outputs, float(forward.scale)),
        output_offset=forward.offset[:n_outputs].astype(np.float64),
        input_bits=transform.input_bits,
        trained_in_integers=windows.are_stored,
    )
