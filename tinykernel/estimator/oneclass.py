"""Novelty detection: a model of normal rows alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from tinykernel.checks import check_count
from tinykernel.decisions.novelty import Alarms, alarms, as_levels, nearest_means, places
from tinykernel.errors import TinykernelError
from tinykernel.estimator.machines import flat
from tinykernel.model import IntegerModel
from tinykernel.model.answers.labels import Labels
from tinykernel.model.grid import Grid
from tinykernel.model.quantization.scale import quantize_scaler
from tinykernel.model.quantization.scaling import raw_dtype_of, to_raw
from tinykernel.model.readouts.prototypes import LARGEST_MARGIN_LINE, Prototypes, coarse, distances
from tinykernel.model.readouts.readout import Readout
from tinykernel.model.stage import Stage
from tinykernel.training.inputs import choose_scaling
from tinykernel.training.options import TrainerOptions
from tinykernel.training.signals.normal import SEGMENTS, anomalies, band_stages
from tinykernel.training.signals.training import KernelSettings, pooled_signals

#: Classes of the integer model, in this order.
CLASSES = ("normal", "novel")
_Front = tuple[Grid, tuple[Stage, ...]]  # what stages take, and the stages
_PATTERNS = 128
# The share of windows that simulated anomalies are made of, at most and at least how many windows.
_JUDGED, _MOST_JUDGED, _FEWEST_WINDOWS = 0.25, 300, 20
_ALIKE = 0.005
_ROWS_PER_PROTOTYPE = 25
_MOST_BYTES = 4096


@dataclass(eq=False, repr=False)
class NoveltyDetector(OutlierMixin, BaseEstimator):
    """Detects inputs unlike the training rows, all of which are normal.

    The novelty of a row is its squared distance to the nearest prototype. Prototypes are means of
    clusters of the training rows, in 4 bits per input. Python and C compute the same integers;
    ``NAME_predict`` returns 0 for normal and 1 for novel.

    Parameters
    ----------
    n_prototypes : int or None
        Each takes half a byte an input. None takes one for 25 rows, at most 4096 bytes in all.
    false_alarms : float
        Largest share of normal rows reported as novel, above 0 and below 1.
    calibration_size : float
        Share of the rows, or of groups, held out to set the threshold.
    window_shape : (int, int) or None
        Samples and channels, where rows are windows of a signal. Kernels as those of
        `tinykernel.Classifier` then count patterns in them, or how loud bands of frequencies are:
        what finds more simulated anomalies among a quarter of the windows.
    n_kernels : int or None
        Number of kernels that count patterns in windows. None means 128, and lets the bands of
        windows of whole numbers compete.
    hop : int
        Samples from one window of a stream to the next; 0 for no stream.
    random_state : int, RandomState or None

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only when `X` had column names.
    model_ : IntegerModel
    alarms_ : tinykernel.decisions.novelty.Alarms or None
        The guarantee; None where the held-out rows were too few. The threshold is then the
        largest novelty among them.
    refusal_ : str
        Why there is no guarantee; else empty.
    offset_ : float
        The threshold with the sign of `score_samples`.
    areas_ : dict of str to float
        Of windows, what was compared, and the mean area under the ROC curve of simulated anomalies:
        windows that are mixed, scaled, clipped, have impulses or miss a channel.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> watch = NoveltyDetector(false_alarms=0.05, random_state=0).fit(X[y < 5])
    >>> float(np.mean(watch.predict(X[y < 5]) < 0)) < 0.06
    True
    >>> float(np.mean(watch.predict(X[y >= 5]) < 0)) > 0.3
    True
    """

    n_prototypes: int | None = None
    false_alarms: float = 0.01
    calibration_size: float = 0.2
    window_shape: tuple[int, int] | None = None
    n_kernels: int | None = None
    hop: int = 0
    random_state: Any = None

    def fit(
        self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None
    ) -> NoveltyDetector:
        """Learn what is normal.

        Parameters
        ----------
        X : array-like, shape (n, n_features) or (n, samples, channels)
            Raw inputs of normal rows, finite. Their dtype decides what the firmware takes.
        y : object
            Ignored, for scikit-learn.
        groups : array-like, shape (n,), optional
            Which person, record or batch each row belongs to. Whole groups are held out, and the
            guarantee is for new groups.

        Returns
        -------
        self

        Raises
        ------
        TinykernelError
            If a parameter is out of range.
        ValueError
            From scikit-learn's checks of `X`.
        """
        self._check()
        X, sides = flat(X)
        shape = self.window_shape if sides is None else sides
        rows = validate_data(self, X, dtype="numeric", ensure_min_samples=2)
        raw_dtype = raw_dtype_of(rows.dtype)
        raw = to_raw(rows, raw_dtype)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        rng = np.random.default_rng([seed, 7])
        names = None if groups is None else np.asarray(groups)
        if names is not None and names.shape != (len(raw),):
            raise TinykernelError(
                f"groups: shape {names.shape} for {len(raw)} rows; give one per row"
            )
        held_out = _held_out(len(raw), names, self.calibration_size, rng)
        units = None if names is None else names[~held_out]
        self.areas_: dict[str, float] = {}
        model = self._fit_prototypes(raw[~held_out], raw_dtype, shape, seed, rng, units)
        self.alarms_: Alarms | None = None
        self.refusal_ = ""
        try:
            known = raw[held_out], self.false_alarms
            units = None if names is None else names[held_out]
            model, self.alarms_ = calibrate_one_class(model, *known, groups=units)
        except TinykernelError as error:
            self.refusal_ = str(error).removeprefix("calibrate: ")
            model = _with_threshold(model, int(_novelty(model, raw[held_out]).max()))
        self.model_, self.offset_ = model, float(model.readout.offset[0])
        return self

    def _check(self) -> None:
        for name in ("false_alarms", "calibration_size"):
            value = getattr(self, name)
            if not 0 < value < 1:
                raise TinykernelError(f"{name}: {value}; give a share above 0 and below 1")
        if self.n_prototypes is not None:
            check_count("n_prototypes", self.n_prototypes)
        if self.n_kernels is not None:
            check_count("n_kernels", self.n_kernels)
        check_count("hop", self.hop, 0)
        if self.hop and self.window_shape is None:
            raise TinykernelError("hop: give signals, with a window_shape, e.g. (128, 6)")

    def _fit_prototypes(
        self,
        raw: NDArray[Any],
        raw_dtype: str,
        shape: tuple[int, ...] | None,
        seed: int,
        rng: np.random.Generator,
        groups: NDArray[Any] | None,
    ) -> IntegerModel:
        """Fit scaler or kernels, and prototypes, to normal rows."""
        grid, names = Grid.table(raw_dtype, raw.shape[1]), None
        stages: tuple[Stage, ...]
        if shape is None:
            bits, scaling = choose_scaling(raw, raw_dtype, "auto", "auto")
            stages = (quantize_scaler(scaling, raw_dtype, bits).scaler,)
            names = getattr(self, "feature_names_in_", None)
        else:
            options = TrainerOptions(hop=self.hop, random_state=seed)
            settings = KernelSettings(n_kernels=self.n_kernels or _PATTERNS)
            if len(shape) != 2 or np.prod(shape) != raw.shape[1]:
                raise TinykernelError(
                    f"window_shape: {shape} for rows of {raw.shape[1]} values; windows have "
                    "samples and channels, and images have no kernels here"
                )

            def patterns(rows: NDArray[Any]) -> _Front:
                return pooled_signals(rows, raw_dtype, options, settings, shape)

            grid, stages = self._front(patterns, raw, raw_dtype, shape, groups)
        return self._with_prototypes((grid, stages), raw, rng, names)

    def _front(
        self,
        patterns: Callable[[NDArray[Any]], _Front],
        raw: NDArray[Any],
        raw_dtype: str,
        shape: tuple[int, ...],
        groups: NDArray[Any] | None,
    ) -> _Front:
        """Return the stages that tell simulated anomalies best from held-out windows."""
        rng = np.random.default_rng(0)
        units = 0 if groups is None else np.unique(groups).size
        if self.n_kernels is not None or units == 1 or len(raw) < _FEWEST_WINDOWS:
            return patterns(raw)
        fronts: dict[str, Callable[[NDArray[Any]], _Front | None]] = {"patterns": patterns}
        for length in SEGMENTS:
            bands = partial(band_stages, raw_dtype=raw_dtype, shape=shape, hop=self.hop)
            fronts[f"bands of {length} samples"] = partial(bands, length=length)
        outside = _held_out(len(raw), groups, _JUDGED, rng)
        judged = raw[outside][rng.permutation(int(outside.sum()))[:_MOST_JUDGED]]
        simulated = anomalies(judged, shape, rng).values()
        for name, made in fronts.items():
            front = made(raw[~outside])
            if front is not None:
                model = self._with_prototypes(front, raw[~outside], np.random.default_rng(0))
                usual = _novelty(model, judged)
                areas = [places(usual, _novelty(model, rows)).mean() for rows in simulated]
                self.areas_[name] = float(np.mean(areas))
        least = max(self.areas_.values()) - _ALIKE
        # Of those that are alike the longest segments, which separate most frequencies.
        chosen = [name for name, area in self.areas_.items() if area >= least][-1]
        front = fronts[chosen](raw)
        assert front is not None
        return front

    def _with_prototypes(
        self,
        front: _Front,
        raw: NDArray[Any],
        rng: np.random.Generator,
        names: NDArray[Any] | None = None,
    ) -> IntegerModel:
        """Return the model of these stages, with the prototypes of rows."""
        grid, stages = front
        output = grid
        for stage in stages:
            output = stage.gives(output)
        none = Prototypes(np.zeros((1, output.size), np.int8))
        model = IntegerModel(
            input=grid,
            stages=stages,
            readout=Readout((none,), np.zeros(1, np.int32)),
            answers=Labels(CLASSES),
            hop=self.hop,
            feature_names=None if names is None else tuple(names.tolist()),
        )
        inputs = model.quantize_inputs(raw)
        n_prototypes = self.n_prototypes or min(
            max(1, len(raw) // _ROWS_PER_PROTOTYPE),
            max(1, _MOST_BYTES // (4 * -(-inputs.shape[1] // 8))),
        )
        prototypes = Prototypes(as_levels(nearest_means(coarse(inputs), n_prototypes, rng)))
        return replace(model, readout=replace(model.readout, parts=(prototypes,)))

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the negative novelty of rows; larger is more normal.

        Parameters
        ----------
        X : array-like

        Returns
        -------
        ndarray of float64, shape (n,)
        """
        check_is_fitted(self)
        rows = validate_data(self, flat(X)[0], dtype="numeric", reset=False)
        if self.model_.raw_dtype == "float32":
            rows = to_raw(rows, "float32")
        return -_novelty(self.model_, rows).astype(np.float64)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the threshold minus the novelty; negative for novel rows.

        Parameters
        ----------
        X : array-like

        Returns
        -------
        ndarray of float64, shape (n,)
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return 1 for normal and -1 for novel rows.

        Parameters
        ----------
        X : array-like

        Returns
        -------
        ndarray of int64, shape (n,)
        """
        return np.where(self.decision_function(X) < 0, -1, 1).astype(np.int64)

    def quantize(self) -> IntegerModel:
        """Return the integer model, to save and to export.

        Returns
        -------
        IntegerModel
            With the classes "normal" and "novel".
        """
        check_is_fitted(self)
        return self.model_


def calibrate_one_class(
    model: IntegerModel,
    X: ArrayLike,
    false_alarms: float,
    *,
    confidence: float = 0.95,
    groups: ArrayLike | None = None,
) -> tuple[IntegerModel, Alarms]:
    """Set the threshold of a model of one class on normal rows that it was not trained on.

    At most the share `false_alarms` of such rows is reported as novel, at a `confidence`; with
    groups, of rows of new groups. A TinykernelError if the model has several classes or the rows
    are too few for this.
    """
    names = None if groups is None else np.asarray(groups)
    guarantee = alarms(_novelty(model, X), names, false_alarms, 1 - confidence)
    return _with_threshold(model, guarantee.threshold), guarantee


def _novelty(model: IntegerModel, X: ArrayLike) -> NDArray[np.int32]:
    """Return the distance of rows to the nearest prototype."""
    prototypes = model.find(Prototypes)
    if prototypes is None:
        raise TinykernelError("calibrate: not a model of one class; use tinykernel.calibrate")
    return distances(model.quantize_inputs(X), prototypes.levels)


def _with_threshold(model: IntegerModel, threshold: int) -> IntegerModel:
    """Return the model with a positive score of "novel" above a distance."""
    offset = np.array([-min(threshold, LARGEST_MARGIN_LINE)], np.int32)
    return replace(model, readout=replace(model.readout, offset=offset))


def _held_out(
    n: int, groups: NDArray[Any] | None, share: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Return a mask of rows, or whole groups, to hold out: at least one, and not all."""
    units = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    number = int(units.max()) + 1
    if number < 2:
        raise TinykernelError("groups: all rows are in one group; give at least two groups")
    chosen = rng.permutation(number)[: int(np.clip(round(share * number), 1, number - 1))]
    return np.asarray(np.isin(units, chosen))
