"""Models around one model of two classes, whose threshold they move."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tinykernel.base.errors import ConvertError
from tinykernel.conversion.ensemble import Ensemble
from tinykernel.model.integer import IntegerModel

_BISECTIONS = 1100  # until two float64 are neighbours
#: Objectives of boosters, whose probabilities are logistic functions of sums.
_LOGISTIC = (None, "binary", "binary:logistic", "cross_entropy", "reg:logistic", "xentropy")
_BOTH = {"predict_proba": "probability", "decision_function": "decision"}


@dataclass(frozen=True)
class Limit:
    """The second class is where a probability or a decision of a model is above a value."""

    value: float
    of: str  # "probability" or "decision"
    ties_up: bool = False  # whether the value itself is above

    def check(self, model: Any) -> None:
        """Refuse a probability that is another function of the sum of a model."""
        inner = model.estimators_[0] if type(model).__name__ == "OneVsRestClassifier" else model
        is_other = type(inner).__name__ in ("SVC", "NuSVC")  # whose probabilities are learned
        is_other |= getattr(inner, "loss", "") in ("exponential", "modified_huber")
        is_other |= inner.get_params().get("sigmoid", 1) != 1
        moved = getattr(inner, "get_probability_threshold", None)  # of CatBoost, in its sums
        is_other |= moved is not None and moved() != 0.5
        is_other &= self.of == "probability"
        if is_other or getattr(inner, "objective", None) not in _LOGISTIC:
            raise ConvertError(
                f"convert: the probability of this {type(inner).__name__} is no logistic function "
                "of its sum, or has a threshold of its own; set that back or "
                "response_method='decision_function', or train by the log loss"
            )

    def of_sum(self, size: float = 0.0) -> float:
        """Return the sum at the limit; shares of leaves are of `size` trees, or it is 0."""
        if self.of == "decision":
            return self.value
        if size:
            return size * (2 * self.value - 1)
        if not 0 < self.value < 1:
            raise ConvertError("convert: a threshold of 0 or 1 leaves one class")
        return float(np.log(self.value / (1 - self.value)))

    def on_trees(self, ensemble: Ensemble) -> Ensemble:
        """Return trees whose sum is above 0 where it was above the limit."""
        one, limit = ensemble.with_one_sum(), self.of_sum(ensemble.size)
        if self.of == "decision" and ensemble.share_of == "mean":  # a decision is the sum
            limit /= ensemble.n_trees
        share_of = "limit" if one.size else one.share_of
        return replace(one, base=one.base - limit, ties_up=self.ties_up, share_of=share_of)

    def on_weights(self, model: IntegerModel) -> IntegerModel:
        """Return a model of two classes whose output is above 0 where it was above the limit."""
        readout, step = model.readout, round(self.of_sum() / model.decision_scale)
        offset: Any = readout.offset.astype(np.int64) - step
        return replace(model, readout=replace(readout, offset=offset))


def model_within(model: Any) -> tuple[Any, Limit | None] | None:
    """Return the one model that another one is around, and its limit; None of other models."""
    kind = type(model).__name__
    if kind == "FrozenEstimator":
        return model.estimator, None
    if kind == "RANSACRegressor" and hasattr(model, "estimator_"):
        return model.estimator_, None
    is_around = kind in ("FixedThresholdClassifier", "TunedThresholdClassifierCV")
    if not is_around and kind != "CalibratedClassifierCV":
        return None
    if not hasattr(model, "classes_"):
        raise ConvertError(f"convert: the {kind} is not fitted")
    if len(model.classes_) != 2:
        raise ConvertError(
            f"convert: a {kind} of {len(model.classes_)} classes compares functions of sums; "
            "convert the classifier within, or train one of two classes"
        )
    return _threshold(model) if is_around else _calibration(model)


def _response(model: Any, names: list[str]) -> str:
    """Return the first of these methods that a model has, as `of` of a limit."""
    return next(_BOTH[name] for name in names if hasattr(model, name))


def _threshold(model: Any) -> tuple[Any, Limit]:
    """Return the model and the limit of a threshold that was chosen or tuned."""
    inner = getattr(model, "estimator_", model.estimator)
    method = model.response_method
    of = _response(inner, [*_BOTH] if method == "auto" else [method])
    positive = getattr(model, "pos_label", None)
    if hasattr(model, "best_threshold_"):
        value, positive = model.best_threshold_, model._curve_scorer._get_pos_label()
    elif isinstance(model.threshold, str):
        value = 0.5 if of == "probability" else 0.0
    else:
        value = model.threshold
    if positive is None or positive == model.classes_[1]:
        return inner, Limit(float(value), of, ties_up=True)
    return inner, Limit(float(1 - value if of == "probability" else -value), of)


def _calibration(model: Any) -> tuple[Any, Limit]:
    """Return the model and the limit at which its calibration passes one half."""
    if len(model.calibrated_classifiers_) != 1:
        raise ConvertError(
            f"convert: {len(model.calibrated_classifiers_)} calibrated models, whose probabilities "
            "have a mean, are no moved threshold; CalibratedClassifierCV(..., ensemble=False) is"
        )
    (one,) = model.calibrated_classifiers_
    of, calibrate = _response(one.estimator, [*_BOTH][::-1]), one.calibrators[0].predict
    if one.method == "temperature":
        return one.estimator, Limit(0.5 if of == "probability" else 0.0, of)
    ends = (0.0, 1.0) if of == "probability" else (-1e9, 1e9)
    return one.estimator, Limit(_passed(lambda x: calibrate(np.array([x]))[0] > 0.5, *ends), of)


def _passed(is_above: Callable[[float], bool], low: float, high: float) -> float:
    """Return the largest value that is not above."""
    if is_above(low) or not is_above(high):
        raise ConvertError("convert: the calibration gives one class, or falls with the scores")
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if is_above(middle) else (middle, high)
    return low
