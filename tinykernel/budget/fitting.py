"""Train the best model that fits a budget: find sizes that fit, train, quantize, measure."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tinykernel import progress
from tinykernel.budget import ahead
from tinykernel.budget.ceilings import share_used
from tinykernel.budget.contenders import check_size, may_have_trees, sizes_that_fit, tree_size
from tinykernel.budget.standins import LEARNED, Asked, fitted, input_shape
from tinykernel.checks import check_choice
from tinykernel.codegen.plan import pack
from tinykernel.codegen.targets import find_target
from tinykernel.coding.codes import Coding
from tinykernel.coding.frames import coded_frame
from tinykernel.errors import TinykernelError
from tinykernel.measure.capacity import decisive_report, needed_bytes, refuse_less_than_code
from tinykernel.measure.instructions import check_counted
from tinykernel.measure.limits import Limits, parse_limits
from tinykernel.measure.report import Report, report
from tinykernel.model import IntegerModel, as_integer_model
from tinykernel.model.readouts.trees import Trees
from tinykernel.model.stages.kernels import Kernels
from tinykernel.training.images.separable import size_of
from tinykernel.training.options import LINEAR_BITS, OF_TREES, TrainerOptions, form_of
from tinykernel.training.options.regression import BITS_BESIDE
from tinykernel.training.signals.spectrum import spectrum_of
from tinykernel.training.signals.training import CELLS, FEW_WINDOWS, counted_ahead
from tinykernel.training.trainset import prepare

DEFAULT_BUDGET = "30KB"
TASKS = ("classes", "numbers")
_WORD = 32
# Cells take the room of kernels, of which a small budget has too few.
_LEAST_FLASH = 4096


@dataclass(frozen=True, eq=False)
class TrainResult:
    """A trained model and what it takes.

    Parameters
    ----------
    model : IntegerModel
        What the firmware computes.
    classifier : TernaryKernelClassifier, TernaryKernelRegressor or one of another method
        Fitted; how the model came about.
    memory : Report or None
        Flash, RAM and stack on the target. With a budget from the linked program where there is a
        compiler for it and `link` was not False, otherwise estimated. None for the target "host".
    sizes : Report or None
        The estimate, by which the budget was kept with a margin for compilers: the same whatever
        compiler is installed. The linked program where the estimate does not know the code.
    budget : int or None
        Bytes of flash that were allowed.
    method : str
        "learned", or what another method is called.
    trainings : int
        How often it was trained until it fitted.
    seconds : float
        Time of all this.
    limits : Limits or None
        The whole budget.
    """

    model: IntegerModel
    classifier: Any
    memory: Report | None
    sizes: Report | None
    budget: int | None
    method: str
    trainings: int
    seconds: float
    limits: Limits | None = None

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the training; the best model until then was kept."""
        return _interrupted(self.classifier)


def train(
    X: ArrayLike,
    y: ArrayLike,
    *,
    budget: str | int | Limits | None = None,
    target: str = "cortex-m4",
    groups: ArrayLike | None = None,
    validation: tuple[ArrayLike, ArrayLike] | None = None,
    sample_weight: ArrayLike | None = None,
    method: Any = LEARNED,
    task: str = "classes",
    feature_names: Sequence[str] | None = None,
    value_name: str | None = None,
    link: bool = True,
    **parameters: Any,
) -> TrainResult:
    """Train the best model that fits a budget of flash.

    Parameters
    ----------
    X : array-like, shape (n, n_features)
        Raw inputs, finite; their dtype decides what the firmware takes. Text and missing values of
        a frame become numbers, which ``classifier.coding_`` has.
    y : array-like, shape (n,)
        Labels of at least two classes; with the task "numbers" values, also (n, n_values).
    budget : str, int or Limits, optional
        Flash that the model may add to the program on `target`, runtime included: bytes, or text
        such as ``"8KB"``; or several limits, ``"flash=30KB,ram=8KB,stack=512B,time=2ms@80MHz"``,
        with ``"instructions=200k"`` in place of a time. Flash is ``"30KB"`` by default, and has no
        limit where ``n_components`` is given or the target is "host".
    target : str, default="cortex-m4"
        Processor that the budget is for.
    groups : array-like, shape (n,), optional
        Which person, record or batch each row belongs to. Whole groups are left out to choose
        hyper-parameters, and epochs by `validation_fraction`. Images choose nothing else but
        the form of their convolutions: without a budget and that fraction groups change nothing.
    validation : (X, y), optional
        Rows by which the best epoch is chosen.
    sample_weight : array-like, shape (n,), optional
        Not negative.
    method : class, optional
        Of classifiers with components that are drawn, to train in place of
        `TernaryKernelClassifier`. It takes no `validation`. The method of
        Lei & Lan 2021 is one (docs/training.md).
    task : {"classes", "numbers"}, default="classes"
        "numbers" trains a `tinykernel.TernaryKernelRegressor`.
    feature_names : sequence of str, optional
        Names of the inputs, where `X` is no DataFrame that has them.
    value_name : str, optional
        Of the task "numbers": what `y` is, where it is no Series that has a name.
    link : bool, default=True
        With a budget: whether to link the trained model where there is a compiler, so that `memory`
        is not an estimate. The model is the same without, unless it is over the budget as linked.
    **parameters
        Of the classifier; those that are None have its defaults. Without ``n_components`` the
        largest number that keeps to the budget is found for each of several layouts, and the layout
        that does best is chosen; with ``effort="quick"`` it is "compact", of values "windows".
        Where the trained model is over the budget all the same, it is trained again with fewer
        components and everything else that was found.

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
    >>> found = train(X, y, budget="4KB", epochs=20, effort="quick", random_state=0)
    >>> found.memory.flash <= 4096
    True
    >>> float((found.model.predict(X) == y).mean()) > 0.9
    True
    """
    if method != LEARNED and not hasattr(method, "method"):
        raise TinykernelError(f"method: {method!r} is not a class of classifiers; give one")
    started = time.perf_counter()
    X, coding, validation = _in_numbers(X, validation)
    options = _options(parameters, task, method)
    shape = input_shape(X, method, options)
    if shape is None and method == LEARNED:
        ahead.start(options.get("n_jobs"))
    if value_name is not None and (task != "numbers" or np.ndim(y) != 1):
        raise TinykernelError('value_name: only for one value and task "numbers"; leave it out')
    if method != LEARNED and validation is not None:
        raise TinykernelError("validation: this method takes none; leave it out")
    rows = {"groups": groups, "validation": validation, "value_name": value_name}
    rows = {name: value for name, value in rows.items() if value is not None}
    if task == "numbers" and shape is None:
        options.setdefault("linear", BITS_BESIDE)
    # The size of trees is their bytes.
    is_open = options.get("model") in OF_TREES or not {"n_components", "n_kernels"} & options.keys()
    limits, width = _limits(budget, target, chosen=is_open), options.get("linear", "auto")
    if limits is not None and limits.flash is not None:
        known = {"limits": limits, "target": target, "shape": shape, "method": method}
        asked = Asked.few(X, y, dict(options), **known)
        if is_open:
            options |= _what_fits(asked, X, y, groups=groups, sample_weight=sample_weight)
            if isinstance(options.get("n_components"), Mapping):
                options.pop("linear", None)  # the forms say it
        else:
            check_size(asked)
    trainings = 0
    while True:
        trainings += 1
        classifier = fitted(method, options, X, y, sample_weight, **rows)
        _name_inputs(classifier, None if shape is not None else feature_names, coding)
        model = as_integer_model(classifier)
        sizes, memory = _decisive(model, target), None
        over, reason = _over(model, sizes, limits)
        if over <= 0:
            memory = _memory(model, target, limits, sizes, link)
            over, reason = _over(model, memory, limits)
        if over <= 0:
            break
        stopped = _interrupted(classifier)
        smaller = _smaller(classifier, model, over, width) if is_open and not stopped else None
        if smaller is None:
            raise _too_much(reason, stopped, is_open)
        options |= smaller
    return TrainResult(
        model=model,
        classifier=classifier,
        memory=memory,
        sizes=sizes,
        budget=None if limits is None else limits.flash,
        method=LEARNED if method == LEARNED else method.method,
        trainings=trainings,
        seconds=time.perf_counter() - started,
        limits=limits,
    )


def _in_numbers(
    X: ArrayLike, validation: tuple[ArrayLike, ArrayLike] | None
) -> tuple[ArrayLike, Coding | None, tuple[ArrayLike, ArrayLike] | None]:
    """Return data frames as numbers, their coding, and validation rows in the same coding."""
    rows, coding = coded_frame(X)
    if validation is not None:
        validation = (coded_frame(validation[0], coding=coding or Coding())[0], validation[1])
    return rows, coding, validation


def _name_inputs(classifier: Any, names: Sequence[str] | None, coding: Coding | None) -> None:
    """Store the names of inputs and the coding of text in the model, as `fit` does."""
    if names is not None:
        classifier.feature_names_in_ = np.array(names, dtype=object)
    if coding is not None:
        classifier.coding_ = coding.written()


def _what_fits(
    asked: Asked, X: ArrayLike, y: ArrayLike, **rows: ArrayLike | None
) -> dict[str, Any]:
    """Return the parameters of models that use up the budget: trees, and all others."""
    sizes = cells_of(asked, X, y, **rows)
    progress.report("finding what fits", 0, None)
    asked = asked.but(**sizes)
    sizes |= tree_size(asked) if may_have_trees(asked) else {}
    if asked.get("model") not in OF_TREES:
        sizes |= sizes_that_fit(asked)
    return sizes


def _options(parameters: Mapping[str, Any], task: str, method: Any) -> dict[str, Any]:
    """Return the options that were set, with a loss for values; refuse options without effect."""
    check_choice("task", task, TASKS)
    of_values = task == "numbers"
    options = {name: value for name, value in parameters.items() if value is not None}
    wrong = {
        'loss: only for task "numbers"; leave it out': not of_values and "loss" in options,
        "method: this one is for classes only; leave it out": of_values and method != LEARNED,
        'class_weight: not for task "numbers"; leave it out': of_values
        and "class_weight" in options,
        "n_kernels: not an option of this method; leave it out": method != LEARNED
        and "n_kernels" in options,
    }
    for text in filter(wrong.get, wrong):
        raise TinykernelError(text)
    return {"loss": "squared", **options} if of_values else options


def _limits(budget: str | int | Limits | None, target: str, *, chosen: bool) -> Limits | None:
    """Read the budget, or take the default where there is to be one."""
    on_chip = find_target(target).family != "host"
    if budget is None:
        return parse_limits(DEFAULT_BUDGET) if chosen and on_chip else None
    if not on_chip:
        raise TinykernelError(f"budget: {target} has no flash to measure; choose a microcontroller")
    limits = parse_limits(budget)
    if limits.flash is None and chosen:
        limits = replace(limits, flash=parse_limits(DEFAULT_BUDGET).flash)
    refuse_less_than_code(limits.flash, target)
    if limits.most_instructions(1.0) is not None:
        check_counted(target)  # before the training
    return limits


def _decisive(model: IntegerModel, target: str) -> Report | None:
    """Return the sizes that decide; None for the host, or where they are not known."""
    try:
        return decisive_report(model, target)
    except TinykernelError:
        return None


def _memory(
    model: IntegerModel, target: str, limits: Limits | None, sizes: Report | None, link: bool
) -> Report | None:
    """Report the memory; without a budget it is estimated, as compiling takes time."""
    if find_target(target).family == "host":
        return None
    estimate: Report | None = None  # none where the code of the model was not measured
    with suppress(TinykernelError):
        estimate = report(model, target, limits, compiler="none")
    if limits is None or (sizes is not None and not link):
        known = estimate or (None if link else sizes)
        if known is not None:
            return known
    try:
        return report(model, target, limits)
    except (KeyboardInterrupt, OSError, TinykernelError) as error:
        # A finished training is worth more than an exact figure.
        reason = str(error) or "interrupted"
        size = "its size is not known" if estimate is None else "its size is an estimate"
        warnings.warn(f"not linked, so {size} ({reason})", stacklevel=3)
        return estimate


def _over(model: IntegerModel, sizes: Report | None, limits: Limits | None) -> tuple[int, str]:
    """Return how many bytes of flash a model must lose to keep to all limits, and why.

    A report that knows the limits is the final one, to which no margin is added.
    """
    if sizes is None or limits is None:
        return 0, ""
    is_final = sizes.limits is not None
    needed = sizes.flash if is_final else needed_bytes(sizes)
    over = 0 if limits.flash is None else needed - limits.flash
    reason = f"{needed} bytes of flash on {sizes.target} ("
    reason += f"{sizes.source}{'' if is_final else ' and margin'}), "
    reason += f"{over} over the budget of {limits.flash}"
    share, tightest = share_used(model, limits, sizes.target, sizes)
    if share > 1:
        # Work is about in proportion to the tables.
        more = int(np.ceil(sum(pack(model).table_bytes().values()) * (1 - 1 / share)))
        if more > over:
            over, reason = more, tightest
    return over, reason


def _too_much(reason: str, stopped: bool, is_open: bool) -> TinykernelError:
    subject, advice = "the trained model", "use fewer n_components"
    if stopped:
        subject = "training was interrupted and is not repeated with fewer components; the model"
    elif is_open:
        advice = "give a larger budget"
    return TinykernelError(f"{subject} needs {reason}; {advice}")


def _interrupted(classifier: Any) -> bool:
    return bool(getattr(classifier, "interrupted_", False))


def _smaller(
    classifier: Any, model: IntegerModel, over: int, asked: int | str
) -> dict[str, Any] | None:
    """Return parameters for a smaller model that need no search; None where there is none.

    What was found is kept, and the width of a linear part that was `asked` for.
    """
    p = classifier.n_components_
    if model.find(Trees) is not None:
        fewer = classifier.tree_bytes - over - _WORD
        kind = "tree" if classifier.model == "tree" else "trees"
        return {"tree_bytes": fewer, "model": kind} if fewer >= _WORD else None
    kernels, convolutions = model.find(Kernels), size_of(model)
    if kernels is not None or convolutions is not None:
        n, form = convolutions or (0 if kernels is None else kernels.n_kernels, "auto")
        tables = sum(pack(model).table_bytes().values())
        fewer = n - (-(-over * n // tables) + 1)
        return {"n_kernels": fewer, "convolutions": form} if fewer > 0 else None
    if p == 0:
        narrower = [bits for bits in LINEAR_BITS if bits < classifier.options_["bits"]]
        if asked != "auto" or not narrower:
            return None
        return {"n_components": 0, "linear": narrower[-1]}
    if p <= _WORD:
        return None
    tables = sum(pack(model).table_bytes().values())
    fewer_words = -(-over * p // max(1, tables) // _WORD) + 1
    fewer, parameters = max(p - fewer_words * _WORD, _WORD), {"sigma": classifier.sigma_}
    if not hasattr(classifier, "options_"):  # of another method
        return parameters | {"n_components": fewer}
    recipe = classifier.options_
    form = form_of(recipe["layout"], recipe["linear_bits"])
    return parameters | {"n_components": {form: fewer}, "noise": recipe["noise"], "effort": "quick"}


def cells_of(
    asked: Asked,
    X: ArrayLike,
    y: ArrayLike,
    *,
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> dict[str, Any]:
    """Return the options that are ahead; none where nothing is to be chosen."""
    rows, labels, shape, options = np.asarray(X), np.asarray(y), asked.shape, asked.options
    if shape is None or len(shape) != 2 or len(rows) <= FEW_WINDOWS:
        return {}
    if asked.flash < _LEAST_FLASH or shape[0] < 4 * CELLS:
        return {}
    if options.keys() & {"loss", "cells"} or options.get("effort") == "quick":
        return {}
    if rows.dtype.kind not in "iuf" or not np.isfinite(rows).all() or len(labels) != len(rows):
        return {}  # training says what is wrong with them
    checked = TrainerOptions(**options)
    if spectrum_of(checked, shape, rows.dtype.name)[0] is not None:
        return {}
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    flat = rows.reshape(len(rows), -1)
    _, data = prepare(flat, labels, weight, class_weight=checked.class_weight, groups=groups)
    return counted_ahead(data, checked, shape)
