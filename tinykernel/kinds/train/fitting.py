"""`train`: select the best model that fits a budget, fit it, link it."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.checks import check_choice, check_positive
from tinykernel.base.coding import Coding
from tinykernel.base.errors import OptionError, TinykernelError, warn
from tinykernel.base.frames import coded_rows
from tinykernel.base.text import count
from tinykernel.compile.targets import find_target
from tinykernel.kinds.estimators.machines import in_one_line
from tinykernel.kinds.estimators.supervised import Classifier, Regressor
from tinykernel.kinds.kind import Problem
from tinykernel.kinds.pace import Pace
from tinykernel.kinds.planning import Usage, usage, usual_pace
from tinykernel.kinds.rehearsal import compiling_beside
from tinykernel.kinds.selection import deliver, estimate_usage, kinds_for, select
from tinykernel.kinds.train.teaching import soft_labels, train_drawn
from tinykernel.learn.convolutions.options import SEPARABLE
from tinykernel.learn.signals.clips import Clips, check_options
from tinykernel.learn.trees.kind import single_tree
from tinykernel.model.integer import IntegerModel
from tinykernel.model.pipelines import as_integer_model
from tinykernel.run.limits import Limits
from tinykernel.run.report import Report, decisive_report, limits_on, report

#: The method of this package. Any other is a class of classifiers, whose components are drawn.
LEARNED = "learned"
TASKS = ("classes", "numbers")


@dataclass(frozen=True, eq=False)
class TrainResult:
    """A trained model and what it takes.

    Parameters
    ----------
    model : IntegerModel
        What the firmware computes.
    classifier : Classifier, Regressor or one of another method
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
    agreement : float or None
        Share of the rows that the teacher labelled in which the model has its label; of values, R2
        of the model and the teacher. None without a teacher.
    smaller : str
        Why the much smaller model of ``model="tree"`` is worth a look, where it is not behind many
        trees on held-out rows; else empty.
    cut : str
        What `max_time` has shortened, and the effort that makes the same model without a clock;
        else empty.
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
    agreement: float | None = None
    smaller: str = ""
    cut: str = ""

    def __repr__(self) -> str:
        """Describe it in one line."""
        size = "" if self.memory is None else f", {self.memory.flash} B of flash"
        teachers = f", {count(self.teachers, 'teacher')}" * (self.teachers > 0)
        return f"TrainResult({self.model!r}{teachers}{size}, {self.seconds:.1f} s)"

    @property
    def teachers(self) -> int:
        """Number of models that taught this one; 0 where Ctrl-C may have kept one of these."""
        return 0 if self.interrupted else int(getattr(self.classifier, "teachers", 0))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return labels or values, as the firmware does; see `Classifier.predict`."""
        return np.asarray(self.classifier.predict(X))

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return probabilities of classes; see `Classifier.predict_proba`."""
        if not hasattr(self.classifier, "predict_proba"):
            raise TinykernelError("predict_proba: values, and drawn components, have none")
        return np.asarray(self.classifier.predict_proba(X))

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return the accuracy on labelled rows, or R2 of values; of quantiles the middle one's."""
        return float(in_one_line("y", self.classifier.score, X, y))

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the training; the best model until then was kept."""
        return bool(getattr(self.classifier, "interrupted_", False))


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
    max_time: float | None = None,
    teacher: Any = None,
    X_more: ArrayLike | None = None,
    clips: Clips | None = None,
    **parameters: Any,
) -> TrainResult:
    """Train the best model that fits a budget of flash.

    Parameters
    ----------
    X : array-like, shape (n, n_features)
        Raw inputs; their dtype decides what the firmware takes. Text of a frame, and missing values
        of a frame or of an array of rows, become numbers, which ``classifier.coding_`` has.
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
        `Classifier`. It takes no `validation`. The method of
        Lei & Lan 2021 is one (docs/training.md).
    task : {"classes", "numbers"}, default="classes"
        "numbers" trains a `tinykernel.Regressor`.
    feature_names : sequence of str, optional
        Names of the inputs, where `X` is no DataFrame that has them.
    value_name : str, optional
        Of the task "numbers": what `y` is, where it is no Series that has a name.
    link : bool, default=True
        With a budget: whether to link the trained model where there is a compiler, so that `memory`
        is not an estimate. The model is the same without, unless it is over the budget as linked.
    max_time : float, optional
        Seconds after which the training is to end: the search ends earlier, and trainings have
        fewer epochs. Then the result depends on the speed of the computer, and ``effort`` of the
        classifier becomes the numbers that make the same model again without a clock. By default
        work is counted, and no clock is read; infinity is the whole search, however long.
    teacher : estimator, optional
        A larger model of scikit-learn's interface, whose probabilities (or softened decisions, or
        values) are learned beside `y`, each with half of the weight. Clones of it, fitted to four
        fifths of the rows, label the others. It sees `X` as it is.
    X_more : array-like, shape (n_more, n_features), optional
        Rows without labels, which the teacher labels. A teacher without `get_params` and `fit`
        labels these only: give rows that it has not seen.
    clips : Clips, optional
        Whole recordings of sound, in which the labels of `words` are somewhere, and those of the
        rows: separable convolutions of a stream find the words in them, with noise of one's own
        making mixed in (`tinykernel.learn.signals.clips`). The rows are windows of them.
    **parameters
        Of `Classifier` or `Regressor`; those that are None have their defaults. Kinds of models
        compete, each at the largest size that keeps to the budget (`tinykernel.kinds`); with
        ``effort="quick"`` by short trainings. Where the trained model is over the budget all the
        same, a smaller one is trained with everything else that was found.

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
        If Ctrl-C ended the training; see `Classifier.fit`.
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
        raise OptionError(f"method: {method!r} is not a class of classifiers; give one")
    started = time.perf_counter()
    taught = None
    if teacher is not None:
        of_values = task == "numbers"
        taught = soft_labels(teacher, X, y, X_more, sample_weight, groups, of_values)
    elif X_more is not None:
        raise OptionError("X_more: rows without labels need a teacher; give one")
    options = _options(parameters, task, method)
    if clips is not None:
        options |= {"model": SEPARABLE.name, "streaming": "on"}
    tables = {"is_table": options.keys().isdisjoint(("image_shape", "window_shape"))}
    X, coding = coded_rows(X, None, feature_names, **tables)
    if validation is not None:
        others = coded_rows(validation[0], coding or Coding(), feature_names, **tables)[0]
        validation = others, validation[1]
    if taught is not None:
        if feature_names is None and hasattr(X, "columns"):
            feature_names = list(map(str, X.columns))
        more = [] if X_more is None else [coded_rows(X_more, coding or Coding(), feature_names)[0]]
        whole = np.concatenate([np.asarray(part) for part in (X, *more)])
        X, y, groups = whole[taught.rows], taught.y, taught.groups
        sample_weight = taught.weight
    if value_name is not None and (task != "numbers" or np.ndim(y) != 1):
        raise OptionError('value_name: only for one value and task "numbers"; leave it out')
    if method != LEARNED and validation is not None:
        raise OptionError("validation: this method takes none; leave it out")
    if method != LEARNED and max_time is not None:
        raise OptionError("max_time: this method has no limit; leave it out")
    optional = {"groups": groups, "validation": validation, "value_name": value_name}
    rows: dict[str, Any] = {name: value for name, value in optional.items() if value is not None}
    linking, is_table = _Linking(target, link), True
    if method == LEARNED:
        estimator: Any = (Regressor if task == "numbers" else Classifier)(
            # As text, which a model file can hold.
            budget=str(budget) if isinstance(budget, Limits) else budget,
            target=target,
            **options,
        )
        problem, attributes = estimator.problem(X, y, sample_weight, **rows)
        if clips is not None:
            check_options(problem.options)
            problem = replace(problem, clips=clips)
        within_time = max_time, time.perf_counter() - started
        trainings, smaller, cut = _learn(estimator, problem, attributes, linking, *within_time)
        is_table = problem.shape is None
    else:
        linking.limits = limits_on(budget, target, is_sized="n_components" in options)
        within = linking.limits, target, linking.measure
        estimator, trainings = train_drawn(method, options, X, y, sample_weight, *within, **rows)
        smaller = cut = ""
    if feature_names is not None and is_table:
        estimator.feature_names_in_ = np.array(feature_names, dtype=object)
    if coding is not None:
        estimator.coding_ = coding.written()
    model, limits = as_integer_model(estimator), linking.limits
    agreement = None if taught is None else taught.agreement(model.predict(whole))
    return TrainResult(
        model=model,
        classifier=estimator,
        memory=linking.memory,
        sizes=_decisive(model, target),
        budget=None if limits is None else limits.flash,
        method=LEARNED if method == LEARNED else method.method,
        trainings=trainings,
        seconds=time.perf_counter() - started,
        limits=limits,
        agreement=agreement,
        smaller=smaller,
        cut=cut,
    )


def _learn(
    estimator: Classifier | Regressor,
    problem: Problem,
    attributes: dict[str, Any],
    linking: "_Linking",
    max_time: float | None,
    passed: float,
) -> tuple[int, str, str]:
    """Select a kind, train it, fit the estimator; return `trainings`, `smaller` and `cut`."""
    pace = usual_pace(problem) if max_time is None else Pace(problem.effort)
    if max_time not in (None, inf):
        pace.limit(max(check_positive("max_time, in seconds,", max_time) - passed, 0.0))
    kinds = kinds_for(problem.options)
    linking.limits = problem.limits
    with compiling_beside(problem, kinds):
        selection = select(problem, kinds, pace)
        begun = time.perf_counter()
        result, trainings = deliver(selection, problem, estimate_usage(problem), linking.measure)
    took = time.perf_counter() - begun
    estimator.take(result, selection, problem, attributes)
    # Nothing makes again what Ctrl-C has ended.
    is_whole = not (selection.interrupted or result.history.interrupted)
    cut = ""
    if max_time is not None and is_whole:
        estimator.effort = str(pace.effort)
    if pace.is_limiting and max_time is not None:
        whole = selection.kind.epochs(selection.spec, problem)
        done = f"{len(result.history.epochs)} of {whole} epochs" if whole else "fewer trials"
        cut = f"after {max_time:.0f} s: {done}"
        cut += f"; the plan that ends: effort {estimator.effort}" if is_whole else ""
    smaller = ""
    with suppress(KeyboardInterrupt):  # The model is there, and this says only more about it.
        if is_whole:
            smaller = single_tree(selection.spec, problem, pace, result.machine, took)
    return trainings, smaller, cut


def _options(parameters: Mapping[str, Any], task: str, method: Any) -> dict[str, Any]:
    """Return the options that were set, with a loss for values; refuse options without effect."""
    check_choice("task", task, TASKS)
    of_values = task == "numbers"
    options = {name: value for name, value in parameters.items() if value is not None}
    wrong = {
        'loss: only for task "numbers"; leave it out': not of_values
        and method == LEARNED
        and "loss" in options,
        "method: this one is for classes only; leave it out": of_values and method != LEARNED,
        'class_weight: not for task "numbers"; leave it out': of_values
        and "class_weight" in options,
        "n_kernels: not an option of this method; leave it out": method != LEARNED
        and "n_kernels" in options,
    }
    for text in filter(wrong.get, wrong):
        raise OptionError(text)
    return options


def _decisive(model: IntegerModel, target: str) -> Report | None:
    """Return the sizes that decide; None for the host, or where they are not known."""
    try:
        return decisive_report(model, target)
    except TinykernelError:
        return None


@dataclass
class _Linking:
    """Links trained models where there is a compiler, and keeps the last report."""

    target: str
    link: bool
    limits: Limits | None = None
    memory: Report | None = None

    def measure(self, model: IntegerModel) -> Usage:
        """Return what a linked model uses."""
        self.memory = self._report(model)
        if self.memory is None or self.limits is None:
            return Usage(0.0, "")
        return usage(model, self.limits, self.target, self.memory)

    def _report(self, model: IntegerModel) -> Report | None:
        """Report the memory; without a budget it is estimated, as compiling takes time."""
        target, limits = self.target, self.limits
        if find_target(target).family == "host":
            return None
        estimate: Report | None = None  # none where the code of the model was not measured
        with suppress(TinykernelError):
            estimate = report(model, target, limits, compiler="none")
        sizes = _decisive(model, target)
        if limits is None or (sizes is not None and not self.link):
            enough = estimate or (None if self.link else sizes)
            if enough is not None:
                return enough
        try:
            return report(model, target, limits)
        except (KeyboardInterrupt, OSError, TinykernelError) as error:
            # A finished training is worth more than an exact figure.
            reason = str(error) or "interrupted"
            size = "its size is not known" if estimate is None else "its size is an estimate"
            warn(f"not linked, so {size} ({reason})")
            return estimate
