"""Train the best model that fits: find what the flash allows, train, quantize, measure."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.checks import check_choice
from tinykernel.codegen.packing import pack
from tinykernel.codegen.targets import find_target
from tinykernel.errors import TinykernelError
from tinykernel.estimator import TernaryKernelClassifier
from tinykernel.hadamard import padded_dimension
from tinykernel.measure.capacity import (
    MOST_CHOSEN,
    enlarged,
    least_size,
    most_components,
    random_layout,
    some_rows,
)
from tinykernel.measure.report import Report, parse_size, report
from tinykernel.model import IntegerModel
from tinykernel.model.machine import KernelMachine
from tinykernel.model.quantize import as_integer_model
from tinykernel.training.layouts import LAYOUTS, components_within

__all__ = ["DEFAULT_BUDGET", "METHODS", "SEARCHED_LAYOUTS", "TrainResult", "train"]

DEFAULT_BUDGET = "30KB"
METHODS = ("learned", "paper")
#: Layouts that are weighed against each other unless one is asked for. At equal bytes one of these
#: was ahead of "windows" on MNIST, USPS, HAR and covtype.
SEARCHED_LAYOUTS = ("compact", "phases", "pruned")
_WORD = 32
# Chosen by a search, and no parameters of the classifier.
_FOUND_ONLY = ("slope", "dropout")


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
    given = {name: value for name, value in parameters.items() if value is not None}
    limit = _limit(budget, target, chosen="n_components" not in given)
    chosen_here = limit is not None and "n_components" not in given
    if limit is not None and chosen_here:
        given["n_components"] = _fitting(X, y, method, given, limit, target)
    elif limit is not None:
        _check_components(X, y, method, given, limit, target)
    extra = {"groups": groups, "validation": validation, "teacher": teacher}
    extra = {name: value for name, value in extra.items() if value is not None}
    if method == "paper" and extra.keys() - {"groups"}:
        raise TinykernelError(f'{max(extra.keys() - {"groups"})}: only for method "learned"')
    started, trainings = time.perf_counter(), 0
    while True:
        classifier = _fitted(method, given, X, y, sample_weight, **extra)
        trainings += 1
        if feature_names is not None:
            # As fit does it for a DataFrame: the model then knows its inputs by name.
            classifier.feature_names_in_ = np.array(feature_names, dtype=object)
        model = as_integer_model(classifier)
        memory = _measured(model, target, limit)
        if limit is None or memory is None or memory.flash <= limit:
            seconds = time.perf_counter() - started
            return TrainResult(model, classifier, memory, limit, method, trainings, seconds)
        over, stopped = memory.flash - limit, _interrupted(classifier, method)
        if not chosen_here or stopped or classifier.n_components_ <= _WORD:
            raise _over(memory, limit, stopped, chosen_here)
        given |= _smaller(classifier, method, model, over)


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
        return report(model, target, compiler="none")
    try:
        return report(model, target, limit)
    except (KeyboardInterrupt, OSError, TinykernelError) as error:
        # A finished training is worth more than an exact figure.
        reason = str(error) or "interrupted"
        warnings.warn(f"not linked, so its size is an estimate ({reason})", stacklevel=3)
        return report(model, target, limit, compiler="none")


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


# -- how many components --------------------------------------------------------------------------


def _fitting(
    X: ArrayLike, y: ArrayLike, method: str, given: Mapping[str, Any], limit: int, target: str
) -> int | dict[str, int]:
    """Return the value of ``n_components`` that uses up the budget."""
    rows, labels = some_rows(np.asarray(X), np.asarray(y))
    if method == "paper":
        machine = _untrained_paper(rows, labels, given)
        layout = random_layout(machine)
        most = components_within(limit, layout, machine.dimension, len(machine.weights))
        machine = enlarged(machine, int(np.clip(most, _WORD, MOST_CHOSEN)))
        p, least = most_components(machine, layout, limit, target)
        if p == 0:
            raise _too_small(limit, target, least)
        return p
    found, smallest = {}, []
    for name in _layouts(given, rows.shape[1]):
        machine = _untrained(rows, labels, given, name, _by_tables(rows, labels, name, limit))
        p, least = most_components(machine, LAYOUTS[name], limit, target)
        smallest.append(least)
        if p > 0:
            found[name] = p
    if not found:
        raise _too_small(limit, target, min(smallest))
    return found


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


def _check_components(
    X: ArrayLike, y: ArrayLike, method: str, given: Mapping[str, Any], limit: int, target: str
) -> None:
    """Refuse a number of components that cannot fit, before the long training."""
    rows, labels = some_rows(np.asarray(X), np.asarray(y))
    asked = given["n_components"]
    if not isinstance(asked, Mapping):
        asked = {given.get("layout", "compact"): asked}
    for name, p in asked.items():
        if method == "paper":
            machine = enlarged(_untrained_paper(rows, labels, given), p)
            layout = random_layout(machine)
            # The penalty "l1" may leave as good as nothing.
            needed = least_size(
                machine, layout, _WORD if given.get("penalty") == "l1" else p, target
            )
        else:
            machine = _untrained(rows, labels, given, name, p)
            needed = least_size(machine, LAYOUTS[name], p, target)
        if needed > limit:
            raise TinykernelError(
                f"a model of {p} components needs at least {needed} bytes of flash on {target}, "
                f"{needed - limit} over the budget of {limit}; use fewer n_components or a larger "
                "budget"
            )


def _too_small(limit: int, target: str, needed: int) -> TinykernelError:
    return TinykernelError(
        f"no model for this data fits into {limit} bytes on {target}: with {_WORD} components it "
        f"needs about {needed}; give a larger budget"
    )


# -- classifiers ----------------------------------------------------------------------------------


def _untrained(
    X: NDArray[Any], y: NDArray[Any], given: Mapping[str, Any], layout: str, n_components: int
) -> KernelMachine:
    """Make a machine of random values with so many components."""
    kept = {name: given[name] for name in ("scaler_scope", "input_bits") if name in given}
    kept |= {"layout": layout, "n_components": n_components, "epochs": 1, "search": False}
    kept |= {"random_state": 0, "n_jobs": 1}
    machine: KernelMachine = _fitted("learned", kept, X, y).machine_
    # Training gives each block a scale of its own, which takes a table.
    factor = np.random.default_rng(0).uniform(0.7, 1.0, (machine.n_blocks, 1))
    return replace(machine, row_scale=machine.row_scale * factor)


def _untrained_paper(X: NDArray[Any], y: NDArray[Any], given: Mapping[str, Any]) -> KernelMachine:
    """Make one block of the method "paper"."""
    few = {"n_components": padded_dimension(X.shape[1]), "max_iter": 1, "init": "random"}
    few |= {"sigma": given.get("sigma", 1.0), "regularization": 0.1}
    machine: KernelMachine = _fitted("paper", {**given, **few}, X, y).machine_
    return machine


def _interrupted(classifier: Any, method: str) -> bool:
    return method == "learned" and bool(classifier.interrupted_)


def _smaller(classifier: Any, method: str, model: IntegerModel, over: int) -> dict[str, Any]:
    """Return parameters for a smaller model that need no search: what was found is kept."""
    p = classifier.n_components_
    tables = sum(pack(model).table_bytes().values())
    words = -(-over * p // max(1, tables) // _WORD) + 1
    found = {"n_components": max(p - words * _WORD, _WORD), "sigma": classifier.sigma_}
    if method == "paper":
        return found | {"regularization": classifier.regularization_}
    chosen = classifier.options_
    found |= {name: chosen[name] for name in ("layout", "noise", "slope", "dropout")}
    return found | {"search": False}


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
