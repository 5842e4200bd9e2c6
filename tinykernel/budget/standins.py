"""The request to `train`, and untrained models of the same size as trained ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_X_y

from tinykernel import progress
from tinykernel.estimator import TernaryKernelClassifier, TernaryKernelRegressor
from tinykernel.measure.capacity import decisive_report, needed_bytes, some_rows
from tinykernel.measure.limits import Limits
from tinykernel.model import IntegerModel, as_integer_model
from tinykernel.model.stages.components import Components
from tinykernel.model.stages.spectrum import Spectrum
from tinykernel.training.options import TrainerOptions, form_of
from tinykernel.training.options.declarations import TABLES
from tinykernel.training.options.regression import BITS_BESIDE, RegressorOptions
from tinykernel.training.signals.spectrum import spectrum_of
from tinykernel.training.signals.training import fit_windows
from tinykernel.training.trainer import check_width
from tinykernel.training.trainset import prepare, strata

#: The method of this package. Any other is a class of classifiers, whose components are drawn.
LEARNED = "learned"
_OF_LOCAL = tuple(
    each.name
    for each in fields(TrainerOptions)
    if each.metadata["reads"] and not set(each.metadata["reads"]) & set(TABLES)
)
_SHORTLY = {"epochs": 1, "effort": "quick", "random_state": 0, "n_jobs": 1}


def input_shape(X: ArrayLike, method: Any, chosen: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Return the shape of an input that goes through a local stage."""
    if method != LEARNED:
        return None
    kind = RegressorOptions if "loss" in chosen else TrainerOptions
    options = kind(**chosen)
    options.check()
    n_dimensions = getattr(X, "ndim", 2)
    shape = options.input_shape(np.shape(X)[1:] if n_dimensions in (3, 4) else None)
    options.check_for(shape)
    if n_dimensions == 2 and (options.image_shape or options.window_shape):
        check_width(options, np.shape(X)[1])
    return shape


@dataclass(frozen=True, eq=False)
class Asked:
    """The request to `train`, with few rows, from which the size of a model is predicted.

    `rows` and `labels` are some of every class, or of every stratum of values; `options` are those
    of the estimator that were given; `shape` is that of an input of a local stage; `n_rows` is the
    number of all rows.
    """

    rows: NDArray[Any]
    labels: NDArray[Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    target: str = "cortex-m4"
    shape: tuple[int, ...] | None = None
    method: Any = LEARNED
    n_rows: int = 0

    @staticmethod
    def few(X: ArrayLike, y: ArrayLike, options: Mapping[str, Any], **more: Any) -> Asked:
        """Take a few of the rows."""
        inputs, labels = np.asarray(X), np.asarray(y)
        shape: tuple[int, ...] = more.get("shape") or ()
        codes = strata(labels.astype(np.float64)) if "loss" in options else None
        rows = inputs.reshape(len(inputs), -1)
        # A channel has one scale, whatever the pixel or the sample; frames of a camera are bytes.
        whole = bool(shape) and rows.shape[1] == math.prod(shape)
        n_channels = shape[-1] if whole else 1 if len(shape) == 3 else None
        few = some_rows(rows, labels, codes, n_channels)
        return Asked(*few, options, **more, n_rows=len(inputs))

    def but(self, **options: Any) -> Asked:
        """Return this request with other options."""
        return replace(self, options={**self.options, **options})

    def get(self, name: str, default: Any = "auto") -> Any:
        """Return an option."""
        return self.options.get(name, default)

    @property
    def flash(self) -> int:
        """The limit of flash, in bytes."""
        assert self.limits.flash is not None
        return self.limits.flash

    def spectrum(self) -> tuple[Spectrum | None, str]:
        """Return the spectrum of windows, and why sounds have none; see `spectrum_of`."""
        assert self.shape is not None
        names = {each.name for each in fields(TrainerOptions)}
        known = {name: value for name, value in self.options.items() if name in names}
        return spectrum_of(TrainerOptions(**known), self.shape, self.rows.dtype.name)

    def size(self, model: IntegerModel) -> int:
        """Return the bytes of flash that a model needs."""
        return needed_bytes(decisive_report(model, self.target))

    def components(self, layout: str, n_components: int) -> IntegerModel:
        """Make a model of random values with so many components."""
        values = "loss" in self.options
        form = form_of(layout, BITS_BESIDE if values else None)
        size: dict[str, Any] = {"n_components": {form: n_components}}
        if self.get("loss", None) == "squared":
            size["loss"] = "absolute"  # as large, and takes no smooth fit
        names = ("scaler_scope", "code", "loss")
        model = as_integer_model(self._fitted(names, size))
        components = model.find(Components)
        assert components is not None
        # Training gives each block a scale of its own, which takes a table.
        factor = np.random.default_rng(0).uniform(0.7, 1.0, components.n_blocks)
        blocks = np.nonzero(components.row_kept)[0]
        scale = np.maximum(np.rint(components.scale * factor[blocks]), 1).astype(np.uint8)
        other = replace(components, scale=scale)
        stages = (other if stage is components else stage for stage in model.stages)
        return replace(model, stages=tuple(stages))

    def integers(self, **size: Any) -> IntegerModel:
        """Make a model of a linear part, behind kernels where there is a shape."""
        if self.shape is not None:
            size["window_shape" if len(self.shape) == 2 else "image_shape"] = self.shape
            if len(self.shape) == 2 and "loss" not in self.options:
                return self._windows(size)
        names = ("scaler_scope", *_OF_LOCAL, "linear", "loss")
        return as_integer_model(self._fitted(names, size))

    def _windows(self, size: Mapping[str, Any]) -> IntegerModel:
        """Make a model of random kernels and weights for classes of windows."""
        assert self.shape is not None
        local = {key: self.options[key] for key in (*_OF_LOCAL, "linear") if key in self.options}
        options = TrainerOptions(**{**local, "random_state": 0, "n_jobs": 1, **size})
        rows, labels = check_X_y(self.rows, self.labels, dtype="numeric")
        with progress.observing(None):
            return fit_windows(
                prepare(rows, labels)[1], options, self.shape, untrained=True
            ).machine

    def trees(self) -> IntegerModel:
        """Make a model of few trees."""
        size = {"model": "trees", "tree_bytes": 64, "epochs": None}
        return as_integer_model(self._fitted(("scaler_scope", "loss"), size))

    def _fitted(self, names: tuple[str, ...], size: Mapping[str, Any]) -> Any:
        """Train with the shortest training, some of the options, and this size."""
        chosen = {name: self.options[name] for name in names if name in self.options}
        with progress.observing(None):
            return fitted(LEARNED, {**chosen, **_SHORTLY, **size}, self.rows, self.labels)


def fitted(
    method: Any, parameters: Mapping[str, Any], X: ArrayLike, y: ArrayLike, *args: Any, **named: Any
) -> Any:
    """Train the classifier of a method; what is taken from elsewhere are no options."""
    if method != LEARNED:
        return method(**parameters).fit(X, y, *args, **named)
    if "loss" in parameters:
        return TernaryKernelRegressor(**parameters)._fit(X, y, *args, **named)
    return TernaryKernelClassifier(**parameters).fit(X, y, *args, **named)
