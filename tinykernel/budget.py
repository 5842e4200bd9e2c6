"""Train the best model that fits: find what the flash allows, train, quantize, measure."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel import progress
from tinykernel.checks import check_choice
from tinykernel.codegen.packing import pack
from tinykernel.codegen.targets import find_target
from tinykernel.errors import TinykernelError
from tinykernel.estimator import TernaryKernelClassifier
from tinykernel.hadamard import padded_dimension
from tinykernel.measure.capacity import (
    MOST_CHOSEN,
    MOST_KERNELS,
    allowed_bytes,
    enlarged,
    least_size,
    most_components,
    most_kernels,
    random_layout,
    some_rows,
)
from tinykernel.measure.report import Report, parse_size, report
from tinykernel.model import IntegerModel
from tinykernel.model.machine import KernelMachine
from tinykernel.model.quantize import as_integer_model
from tinykernel.training.layouts import LAYOUTS, components_within
from tinykernel.training.options import LINEAR_BITS, TrainerOptions, form_of, parts_of

__all__ = ["DEFAULT_BUDGET", "METHODS", "SEARCHED_LAYOUTS", "TrainResult", "train"]

DEFAULT_BUDGET = "30KB"
METHODS = ("learned", "paper")
#: Layouts that are weighed against each other unless one is asked for. At equal bytes one of these
#: was ahead of "windows" on MNIST, USPS, HAR and covtype.
SEARCHED_LAYOUTS = ("compact", "phases", "pruned")
_WORD = 32
# A linear part beside components, and what it adds to the code, about.
_BESIDE, _LINEAR_CODE = 4, 260
# With fewer components a linear part is better, where nothing is compared.
_FEW_COMPONENTS = 128
# Widths of weights on counts: with two bits there are more kernels, which pays where they are few.
_COUNT_BITS, _FEW_KERNELS = (4, 2), 16
# Instructions on Cortex-M4: most of them a byte of the budget, and those of a kernel a position.
_A_BYTE, _A_POSITION = 84.0, 11.5
# Chosen by a search, and no parameters of the classifier.
_FOUND_ONLY = ("slope", "dropout")
# Options that only components have.
_OF_COMPONENTS = ("layout", "sigma", "noise")


@dataclass(frozen=True, eq=False)
class TrainResult:
    """A trained model and what it takes.

    Parameters
    ----------
    model : IntegerModel
        What the firmware computes.
    classifier : TernaryKernelClassifier or PaperClassifier
        Fitted; the float machine, and how it came about.
    memory : Report or None
        Flash, RAM and stack on the target. With a budget from the linked program where there is a
        compiler for it, otherwise estimated. None for the target "host".
    budget : int or None
        Bytes of flash that were allowed.
    method : {"learned", "paper"}
    trainings : int
        How often it was trained until it fitted.
    seconds : float
        Time of all this.
    """

    model: IntegerModel
    classifier: Any
    memory: Report | None
    budget: int | None
    method: str
    trainings: int
    seconds: float

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the training; the best model until then was kept."""
        return _interrupted(self.classifier, self.method)


def train(
    X: ArrayLike,
    y: ArrayLike,
    *,
    budget: str | int | None = None,
    target: str = "cortex-m4",
    groups: ArrayLike | None = None,
    validation: tuple[ArrayLike, ArrayLike] | None = None,
    sample_weight: ArrayLike | None = None,
    teacher: object = None,
    method: str = "learned",
    feature_names: Sequence[str] | None = None,
    **parameters: Any,
) -> TrainResult:
    """Train the best model that fits a budget of flash.

    Parameters
    ----------
    X : array-like, shape (n, n_features)
        Raw inputs, finite; their dtype decides what the firmware takes.
    y : array-like, shape (n,)
        Labels of at least two classes.
    budget : str or int, optional
        Flash that the model may add to the program on `target`, runtime included: bytes, or text
        such as ``"8KB"``. By default ``"30KB"``, and no limit where ``n_components`` is given or
        the target is "host".
    target : str, default="cortex-m4"
        Processor that the budget is for.
    groups : array-like, shape (n,), optional
        Which person, record or batch each row belongs to. Whole groups are left out to choose
        hyper-parameters.
    validation : (X, y), optional
        Rows by which the best epoch is chosen.
    sample_weight : array-like, shape (n,), optional
        Not negative.
    teacher : fitted scikit-learn classifier or array-like, shape (n, n_classes), optional
        See `TernaryKernelClassifier.fit`.
    method : {"learned", "paper"}, default="learned"
        "learned" trains a `TernaryKernelClassifier`; "paper" a `tinykernel.papers.PaperClassifier`,
        which takes neither `validation` nor `teacher`.
    feature_names : sequence of str, optional
        Names of the inputs, where `X` is no DataFrame that has them.
    **parameters
        Of the classifier; those that are None have its defaults. Without ``n_components`` the
        largest number that keeps to the budget is found, for each of several layouts where
        ``layout`` is not given, and the layout that does best is chosen; with ``search=False`` it
        is "compact". Where the trained model is over the budget all the same, it is trained again
        with fewer components and everything else that was found.

    Returns
    -------
    TrainResult

    Raises
    ------
    TinykernelError
        If an argument is wrong or the budget cannot be met: with an ``n_components`` for which
        that is clear, before the training. If Ctrl-C ended a training whose model is over the
        budget, it is not repeated.

    Warns
    -----
    ConvergenceWarning
        If Ctrl-C ended the training; see `TernaryKernelClassifier.fit`.
    UserWarning
        If the trained model could not be linked, so that its size is an estimate.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> found = train(X, y, budget="4KB", epochs=20, search=False, random_state=0)
    >>> found.memory.flash <= 4096
    True
    >>> float((found.model.predict(X) == y).mean()) > 0.9
    True
    """
    check_choice("method", method, METHODS)
    started, trainings = time.perf_counter(), 0
    extra = {"groups": groups, "validation": validation, "teacher": teacher}
    extra = {name: value for name, value in extra.items() if value is not None}
    if method == "paper" and extra.keys() - {"groups"}:
        raise TinykernelError(f'{max(extra.keys() - {"groups"})}: only for method "learned"')
    given = {name: value for name, value in parameters.items() if value is not None}
    if method == "paper" and "n_kernels" in given:
        raise TinykernelError('n_kernels: only for method "learned"')
    shape, asked = _shape(X, method, given), given.get("linear", "auto")
    open_size = not {"n_components", "n_kernels"} & given.keys()
    limit = _limit(budget, target, chosen=open_size)
    chosen_here = limit is not None and open_size
    if limit is not None and chosen_here:
        given |= _fitting(X, y, method, given, limit, target, shape)
        if isinstance(given.get("n_components"), Mapping):
            given.pop("linear", None)  # the forms say it
    elif limit is not None:
        _check_size(X, y, method, given, limit, target, shape)
    while True:
        classifier = _fitted(method, given, X, y, sample_weight, **extra)
        trainings += 1
        if feature_names is not None and shape is None:
            # As fit does it for a DataFrame: the model then knows its inputs by name.
            classifier.feature_names_in_ = np.array(feature_names, dtype=object)
        model = as_integer_model(classifier)
        memory = _measured(model, target, limit)
        if limit is None or memory is None or memory.flash <= limit:
            seconds = time.perf_counter() - started
            return TrainResult(model, classifier, memory, limit, method, trainings, seconds)
        over, stopped = memory.flash - limit, _interrupted(classifier, method)
        smaller = _smaller(classifier, method, model, over, asked)
        if not chosen_here or stopped or smaller is None:
            raise _over(memory, limit, stopped, chosen_here)
        given |= smaller


def _limit(budget: str | int | None, target: str, *, chosen: bool) -> int | None:
    """Read the budget, or take the default where there is to be one."""
    on_chip = find_target(target).family != "host"
    if budget is None:
        return parse_size(DEFAULT_BUDGET) if chosen and on_chip else None
    if not on_chip:
        raise TinykernelError(f"budget: {target} has no flash to measure; choose a microcontroller")
    return parse_size(budget)


def _measured(model: IntegerModel, target: str, limit: int | None) -> Report | None:
    """Tell the memory; without a budget nobody waits for a compiler."""
    if find_target(target).family == "host":
        return None
    if limit is None:
        found = _estimated(model, target, limit)
        if found is not None:
            return found
    try:
        return report(model, target, limit)
    except (KeyboardInterrupt, OSError, TinykernelError) as error:
        # A finished training is worth more than an exact figure.
        reason = str(error) or "interrupted"
        found = _estimated(model, target, limit)
        known = "its size is not known" if found is None else "its size is an estimate"
        warnings.warn(f"not linked, so {known} ({reason})", stacklevel=3)
        return found


def _estimated(model: IntegerModel, target: str, limit: int | None) -> Report | None:
    """Return what a model takes without a compiler; None where its code was not measured."""
    try:
        return report(model, target, limit, compiler="none")
    except TinykernelError:
        return None


def _over(memory: Report, limit: int, stopped: bool, chosen_here: bool) -> TinykernelError:
    what, advice = "the trained model", "use fewer n_components"
    if stopped:
        what = "training was interrupted and is not repeated with fewer components; the model"
    elif chosen_here:
        advice = "give a larger budget"
    return TinykernelError(
        f"{what} needs {memory.flash} bytes of flash on {memory.target} ({memory.source}), "
        f"{memory.flash - limit} over the budget of {limit}; {advice}"
    )


# -- how large a model fits ----------------------------------------------------------------------


def _shape(X: ArrayLike, method: str, given: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Return the shape of an input that goes through a local stage."""
    if method == "paper":
        return None
    options = TrainerOptions(**{k: v for k, v in given.items() if k not in _FOUND_ONLY})
    options.check()
    n_dimensions = getattr(X, "ndim", 2)
    shape = options.input_shape(np.shape(X)[1:] if n_dimensions in (3, 4) else None)
    options.check_for(shape)
    return shape


def _fitting(
    X: ArrayLike, y: ArrayLike, method: str, given: Mapping[str, Any], limit: int, target: str,
    shape: tuple[int, ...] | None,
) -> dict[str, Any]:  # fmt: skip
    """Return the parameters of models that use up the budget; the trainer chooses among these."""
    inputs = np.asarray(X)
    rows, labels = some_rows(inputs.reshape(len(inputs), -1), np.asarray(y))
    if method == "paper":
        return {"n_components": _paper_components(rows, labels, given, limit, target)}
    if shape is not None:
        return _kernels(rows, labels, given, limit, target, shape)
    found, least = _forms(rows, labels, given, limit, target)
    if found:
        return {"n_components": found}
    if given.get("scaler_scope", "auto") == "auto" and _linear_allowed(given):
        # The tables of a scaler for each input may be what is too much.
        one = {"scaler_scope": "global"}
        found, smaller = _forms(rows, labels, {**given, **one, "search": False}, limit, target)
        if found:
            return {"n_components": found, **one}
        least = min(least, smaller)
    raise _too_small(limit, target, least, "the smallest one")


def _paper_components(
    rows: NDArray[Any], labels: NDArray[Any], given: Mapping[str, Any], limit: int, target: str
) -> int:
    machine = _untrained_paper(rows, labels, given)
    layout = random_layout(machine)
    most = components_within(limit, layout, machine.dimension, len(machine.weights))
    machine = enlarged(machine, int(np.clip(most, _WORD, MOST_CHOSEN)))
    p, least = most_components(machine, layout, limit, target)
    if p == 0:
        raise _too_small(limit, target, least)
    return p


def _kernels(
    rows: NDArray[Any], labels: NDArray[Any], given: Mapping[str, Any], limit: int, target: str,
    shape: tuple[int, ...],
) -> dict[str, Any]:  # fmt: skip
    """Return the number of kernels, and the bits of the linear part on their counts."""
    most = MOST_KERNELS["signal" if len(shape) == 2 else "image"]
    if len(shape) == 3:
        # Or a small model of large images would take long: 700,000 instructions at 8 KB.
        most = int(np.clip(limit * _A_BYTE / (shape[0] * shape[1] * _A_POSITION), 8, most))
    least, found = [], {"n_kernels": 0}
    asked = given.get("linear", "auto")
    unknown: TinykernelError | None = None
    for bits in _COUNT_BITS if asked == "auto" else (asked,):
        try:
            n, size = most_kernels(
                lambda n, bits=bits: _untrained_integers(  # type: ignore[misc]
                    rows, labels, {**given, **_as_options(shape)}, {"n_kernels": n, "linear": bits}
                ),
                most, limit, target,
            )  # fmt: skip
        except TinykernelError as error:
            unknown = error
            continue
        least.append(size)
        if n > found["n_kernels"]:
            found = {"n_kernels": n, "linear": bits}
        if n >= _FEW_KERNELS:
            break
    if not least and unknown is not None:
        raise unknown
    if not found["n_kernels"]:
        raise _too_small(limit, target, min(least), "with the fewest kernels")
    return found


def _as_options(shape: tuple[int, ...]) -> dict[str, Any]:
    return {"window_shape": shape} if len(shape) == 2 else {"image_shape": shape}


def _forms(
    rows: NDArray[Any], labels: NDArray[Any], given: Mapping[str, Any], limit: int, target: str
) -> tuple[dict[str, int], int]:
    """Return the forms that keep to the budget with their components, and the least size measured.

    A form is a layout, a linear part, or both.
    """
    linear = _linear_sizes(rows, labels, given, target)
    allowed = allowed_bytes(limit, target)
    found, smallest = dict[str, int](), list(linear.values())
    unknown: TinykernelError | None = None
    for name in _layouts(given, rows.shape[1]):
        machine = _untrained(rows, labels, given, name, _by_tables(rows, labels, name, limit))
        try:
            p, least = most_components(machine, LAYOUTS[name], limit, target)
        except TinykernelError as error:
            # The size of one form may be unknown without a compiler; others may go on.
            unknown = error
            continue
        smallest.append(least)
        if p == 0:
            continue
        found[name] = p
        for bits in linear.keys() & {_BESIDE, given.get("linear")}:
            # The linear part takes the place of components.
            n_outputs, d = len(machine.weights), machine.dimension
            tables = LAYOUTS[name].table_bytes(p, d, n_outputs)
            beside = -(-rows.shape[1] * n_outputs * bits // 8) + _LINEAR_CODE
            fewer = components_within(tables - beside, LAYOUTS[name], d, n_outputs)
            if fewer >= _WORD:
                found[form_of(name, bits)] = fewer
    asked = given.get("linear", "auto")
    if asked not in ("auto", "off"):
        found = {form: p for form, p in found.items() if parts_of(form)[1] == asked}
    if not smallest and unknown is not None:
        raise unknown
    alone = [bits for bits, size in linear.items() if size <= allowed]
    if given.keys() & set(_OF_COMPONENTS):
        alone = []
    if given.get("search") is False and max(found.values(), default=0) < _FEW_COMPONENTS:
        found = {form_of(None, alone[0]): 0} if alone else found
    if found and given.get("search") is False:
        return dict([next(iter(found.items()))]), 0  # to choose takes short trainings
    found |= {form_of(None, bits): 0 for bits in alone[:2]}
    return found, min(smallest)


def _linear_allowed(given: Mapping[str, Any]) -> bool:
    """Whether a linear part may compete."""
    asked = given.get("linear", "auto")
    if asked == "auto":
        # No linear part moves images.
        return not {*_OF_COMPONENTS, "augment"} & given.keys()
    return bool(asked != "off")


def _linear_sizes(
    rows: NDArray[Any], labels: NDArray[Any], given: Mapping[str, Any], target: str
) -> dict[int, int]:
    """Return the widths that a linear part may have, widest first, and its size alone."""
    if not _linear_allowed(given):
        return {}
    asked = given.get("linear", "auto")
    if asked != "auto":
        return {asked: _linear_size(rows, labels, given, asked, target)}
    sizes = {}
    for bits in LINEAR_BITS[::-1]:
        # A width whose sums may pass 32 bits, or whose size is not known, does not compete.
        with suppress(TinykernelError):
            sizes[bits] = _linear_size(rows, labels, given, bits, target)
    return sizes


def _linear_size(
    rows: NDArray[Any], labels: NDArray[Any], given: Mapping[str, Any], bits: int, target: str
) -> int:
    """Return the bytes of a linear part alone."""
    size = {"n_components": 0, "linear": bits}
    return report(_untrained_integers(rows, labels, given, size), target).flash


def _layouts(given: Mapping[str, Any], n_features: int) -> list[str]:
    """Return the layouts to choose from."""
    if "layout" in given:
        check_choice("layout", given["layout"], tuple(LAYOUTS))
        return [given["layout"]]
    if given.get("search") is False:
        return ["compact"]  # to choose takes short trainings, too
    d = padded_dimension(n_features)
    # With blocks of 32 rows nothing is left out.
    return [name for name in SEARCHED_LAYOUTS
            if not LAYOUTS[name].prunes or LAYOUTS[name].leaves_out(d)]  # fmt: skip


def _by_tables(rows: NDArray[Any], labels: NDArray[Any], layout: str, limit: int) -> int:
    """Return how many components the tables alone would allow."""
    n_classes = np.unique(labels).size
    n_outputs = 1 if n_classes == 2 else n_classes
    most = components_within(limit, LAYOUTS[layout], padded_dimension(rows.shape[1]), n_outputs)
    return int(np.clip(most, _WORD, MOST_CHOSEN))


def _check_size(
    X: ArrayLike, y: ArrayLike, method: str, given: Mapping[str, Any], limit: int, target: str,
    shape: tuple[int, ...] | None,
) -> None:  # fmt: skip
    """Refuse a number of components or kernels that cannot fit, before the long training."""
    inputs = np.asarray(X)
    rows, labels = some_rows(inputs.reshape(len(inputs), -1), np.asarray(y))
    if shape is not None:
        model = _untrained_integers(rows, labels, {**given, **_as_options(shape)}, {})
        try:
            size = report(model, target)
        except TinykernelError:
            return  # not known without a compiler; the trained model is measured again
        if size.flash - (limit - allowed_bytes(limit, target)) > limit:
            raise TinykernelError(
                f"a model of {given.get('n_kernels', 'so many')} kernels needs {size.flash} bytes "
                f"of flash on {target}, {size.flash - limit} over the budget of {limit}; use fewer "
                "n_kernels or a larger budget"
            )
        return
    asked = given["n_components"]
    if not isinstance(asked, Mapping):
        asked = {given.get("layout", "compact"): asked}
    for name, p in asked.items():
        layout_name = parts_of(name)[0]
        if p == 0 or layout_name is None:
            continue
        if method == "paper":
            machine = enlarged(_untrained_paper(rows, labels, given), p)
            layout = random_layout(machine)
            # The penalty "l1" may leave as good as nothing.
            needed = least_size(
                machine, layout, _WORD if given.get("penalty") == "l1" else p, target
            )
        else:
            machine = _untrained(rows, labels, given, layout_name, p)
            try:
                needed = least_size(machine, LAYOUTS[layout_name], p, target)
            except TinykernelError:
                continue
        if needed > limit:
            raise TinykernelError(
                f"a model of {p} components needs at least {needed} bytes of flash on {target}, "
                f"{needed - limit} over the budget of {limit}; use fewer n_components or a larger "
                "budget"
            )


def _too_small(
    limit: int, target: str, needed: int, least: str = "the smallest one"
) -> TinykernelError:
    return TinykernelError(
        f"no model for this data fits into {limit} bytes on {target}: {least} needs about "
        f"{needed}; give a larger budget, or for signals and images their shape"
    )


# -- classifiers ----------------------------------------------------------------------------------


def _untrained(
    X: NDArray[Any], y: NDArray[Any], given: Mapping[str, Any], layout: str, n_components: int
) -> KernelMachine:
    """Make a machine of random values with so many components."""
    kept = {name: given[name] for name in ("scaler_scope", "input_bits") if name in given}
    kept |= {"layout": layout, "n_components": n_components, "epochs": 1, "search": False}
    kept |= {"random_state": 0, "n_jobs": 1}
    with progress.observing(None):
        machine: KernelMachine = _fitted("learned", kept, X, y).machine_
    # Training gives each block a scale of its own, which takes a table.
    factor = np.random.default_rng(0).uniform(0.7, 1.0, (machine.n_blocks, 1))
    return replace(machine, row_scale=machine.row_scale * factor)


def _untrained_integers(
    X: NDArray[Any], y: NDArray[Any], given: Mapping[str, Any], size: Mapping[str, Any]
) -> IntegerModel:
    """Make a model without components that has seen few rows."""
    names = ("scaler_scope", "input_bits", "window_shape", "image_shape", "local", "hop",
             "n_kernels", "linear")  # fmt: skip
    kept = {name: given[name] for name in names if name in given} | dict(size)
    kept |= {"epochs": 1, "search": False, "random_state": 0, "n_jobs": 1}
    with progress.observing(None):
        return as_integer_model(_fitted("learned", kept, X, y))


def _untrained_paper(X: NDArray[Any], y: NDArray[Any], given: Mapping[str, Any]) -> KernelMachine:
    """Make one block of the method "paper"."""
    few = {"n_components": padded_dimension(X.shape[1]), "max_iter": 1, "init": "random"}
    few |= {"sigma": given.get("sigma", 1.0), "regularization": 0.1}
    machine: KernelMachine = _fitted("paper", {**given, **few}, X, y).machine_
    return machine


def _interrupted(classifier: Any, method: str) -> bool:
    return method == "learned" and bool(classifier.interrupted_)


def _smaller(
    classifier: Any, method: str, model: IntegerModel, over: int, asked: int | str
) -> dict[str, Any] | None:
    """Return parameters for a smaller model that need no search; None where there is none.

    What was found is kept, and the width of a linear part that was `asked` for.
    """
    p = classifier.n_components_
    if model.local is not None:
        n = model.local.n_kernels
        tables = sum(pack(model).table_bytes().values())
        fewer = n - (-(-over * n // tables) + 1)
        return {"n_kernels": fewer} if fewer > 0 else None
    if p == 0:
        narrower = [bits for bits in LINEAR_BITS if bits < classifier.options_["bits"]]
        if asked != "auto" or not narrower:
            return None
        return {"n_components": 0, "linear": narrower[-1]}
    if p <= _WORD:
        return None
    tables = sum(pack(model).table_bytes().values())
    words = -(-over * p // max(1, tables) // _WORD) + 1
    found = {"n_components": max(p - words * _WORD, _WORD), "sigma": classifier.sigma_}
    if method == "paper":
        return found | {"regularization": classifier.regularization_}
    chosen = classifier.options_
    found |= {name: chosen[name] for name in ("layout", "noise", "slope", "dropout")}
    linear = "off" if chosen["linear_bits"] is None else chosen["linear_bits"]
    return found | {"search": False, "linear": linear}


def _fitted(
    method: str, parameters: Mapping[str, Any], X: ArrayLike, y: ArrayLike, *args: Any,
    **named: Any,
) -> Any:  # fmt: skip
    """Train the classifier of a method; slope and dropout of an earlier training are no options."""
    if method == "paper":
        from tinykernel.papers import PaperClassifier

        return PaperClassifier(**parameters).fit(X, y, *args, **named)
    given = dict(parameters)
    recipe = {name: given.pop(name) for name in _FOUND_ONLY if name in given}
    return TernaryKernelClassifier(**given)._fit(X, y, *args, recipe=recipe, **named)
