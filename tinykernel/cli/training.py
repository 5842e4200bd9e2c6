"""Train for the command line: choose what fits, train, quantise, measure."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinykernel.cli.progress import showing_progress
from tinykernel.errors import TinykernelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tinykernel.data.load import Dataset, Rows
    from tinykernel.estimator import TernaryKernelClassifier
    from tinykernel.measure.report import Report
    from tinykernel.model import IntegerModel

__all__ = ["DEFAULT_METHOD", "Training", "accuracy_of", "train_model"]

DEFAULT_METHOD = "learned"
_WORD = 32


@dataclass(frozen=True, eq=False)
class Training:
    """A trained model and what was measured on the way.

    Parameters
    ----------
    dataset : Dataset
    estimator : TernaryKernelClassifier
        Fitted.
    integer : IntegerModel
        What the firmware computes.
    seconds : float
        Time of the training.
    accuracies : dict of str to float or None
        ``train`` and ``test`` of the integer model, ``train_float`` and ``test_float``; 0 to 1,
        None where there are no test rows.
    memory : Report or None
        Of a budget: linked where there is a compiler for the target.
    """

    dataset: Dataset
    estimator: TernaryKernelClassifier
    integer: IntegerModel
    seconds: float
    accuracies: dict[str, float | None]
    memory: Report | None = None

    def summary(self, output: Path | None = None) -> dict[str, Any]:
        """Return what ``train --json`` prints, but for the size of the file.

        Parameters
        ----------
        output : pathlib.Path, optional
            The file that the model is written to.
        """
        test = self.dataset.y_test
        return {
            "model": output,
            "data": self.dataset.source,
            "split": self.dataset.split,
            "train_rows": len(self.dataset.y_train),
            "test_rows": 0 if test is None else len(test),
            "features": self.integer.n_features,
            "classes": len(self.integer.classes),
            "method": self.estimator.method,
            "layout": self.estimator.layout_,
            "components": self.estimator.n_components_,
            "sigma": self.estimator.sigma_,
            "regularization": self.estimator.regularization_,
            "iterations": self.estimator.n_iter_,
            "interrupted": self.estimator.interrupted_,
            "train_accuracy": self.accuracies["train"],
            "train_accuracy_float": self.accuracies["train_float"],
            "test_accuracy": self.accuracies["test"],
            "test_accuracy_float": self.accuracies["test_float"],
            "seconds": round(self.seconds, 3),
        }


def train_model(
    dataset: Dataset,
    parameters: Mapping[str, Any],
    *,
    budget: int | None = None,
    target: str = "cortex-m4",
    by_group: bool = False,
    validation: Rows | None = None,
    quiet: bool = False,
) -> Training:
    """Train, quantise and measure.

    Parameters
    ----------
    dataset : Dataset
    parameters : mapping
        Of `TernaryKernelClassifier`; entries that are None take its defaults.
    budget : int, optional
        Bytes of flash that the model may take. Without ``n_components`` the largest number is
        chosen that keeps to it. Where the trained model is over it all the same, it is trained
        again with fewer components and the sigma, noise and lambda that were found; slope and
        dropout then have their usual values.
    target : str, default="cortex-m4"
        Processor that the budget is for.
    by_group : bool, default=False
        Keep the groups of the data set together.
    validation : Rows, optional
        "learned" only: rows by which the best epoch is chosen.
    quiet : bool, default=False
        Show no progress.

    Returns
    -------
    Training

    Raises
    ------
    TinykernelError
        If a parameter is wrong or the budget cannot be met: with an ``n_components`` for which
        that is clear, before the training. If Ctrl-C ended a training whose model is over the
        budget, it is not repeated.
    """
    given = {name: value for name, value in parameters.items() if value is not None}
    chosen_here = budget is not None and "n_components" not in given
    if budget is not None and chosen_here:
        given["n_components"] = _fitting(dataset, given, budget, target)
    elif budget is not None:
        _check_components(dataset, given, budget, target)
    extra: dict[str, Any] = {"groups": dataset.group_train if by_group else None}
    if validation is not None:
        extra["validation"] = (validation.X, validation.y)
    started = time.perf_counter()
    while True:
        estimator = _fit(dataset, given, extra, quiet)
        integer = estimator.quantize()
        if budget is None:
            memory = None
            break
        memory = _measured(integer, target, budget)
        if memory.flash <= budget:
            break
        if not chosen_here or estimator.interrupted_ or estimator.n_components_ <= _WORD:
            raise _over(memory, budget, estimator, chosen_here)
        given |= _less(estimator, integer, memory.flash - budget)
    seconds = time.perf_counter() - started
    X, y = dataset.X_train, dataset.y_train
    accuracies = {
        "train": accuracy_of(integer, X, y),
        "train_float": accuracy_of(estimator, X, y),
        "test": accuracy_of(integer, dataset.X_test, dataset.y_test),
        "test_float": accuracy_of(estimator, dataset.X_test, dataset.y_test),
    }
    return Training(dataset, estimator, integer, seconds, accuracies, memory)


def accuracy_of(
    model: TernaryKernelClassifier | IntegerModel, X: NDArray[Any] | None, y: NDArray[Any] | None
) -> float | None:
    """Return the share of rows that a model labels right, or None where there are none."""
    if X is None:
        return None
    with warnings.catch_warnings():
        # The columns of the file were checked when it was read.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return float((model.predict(X) == y).mean())


def _fitting(
    dataset: Dataset, given: Mapping[str, Any], budget: int, target: str
) -> int | dict[str, int]:
    """Return the value of ``n_components`` that uses up the budget."""
    from tinykernel.measure.capacity import capacity, paper_components_within

    X, y = dataset.X_train, dataset.y_train
    if given.get("method", DEFAULT_METHOD) == "learned":
        return capacity(X, y, given, budget=budget, target=target)
    return paper_components_within(X, y, given, budget=budget, target=target)


def _check_components(dataset: Dataset, given: Mapping[str, Any], budget: int, target: str) -> None:
    """Refuse a number of components that cannot fit, before the long training."""
    from tinykernel.measure.capacity import least_size

    method = {"method": DEFAULT_METHOD}
    needed = least_size(dataset.X_train, dataset.y_train, method | dict(given), target=target)
    if needed > budget:
        raise TinykernelError(
            f"a model of {given['n_components']} components needs at least {needed} bytes of flash "
            f"on {target}, {needed - budget} over the budget of {budget}; use fewer --n-components "
            "or a larger --budget"
        )


def _fit(
    dataset: Dataset, given: Mapping[str, Any], extra: Mapping[str, Any], quiet: bool
) -> TernaryKernelClassifier:
    import numpy as np

    from tinykernel.estimator import TernaryKernelClassifier

    estimator = TernaryKernelClassifier(**given)
    with showing_progress(quiet), warnings.catch_warnings():
        # The command line says it with the result.
        warnings.filterwarnings("ignore", message="training was interrupted")
        estimator.fit(dataset.X_train, dataset.y_train, **extra)
    if dataset.columns is not None:
        # As fit does it for a DataFrame: the model then knows its inputs by name.
        estimator.feature_names_in_ = np.array(dataset.columns, dtype=object)
    return estimator


def _measured(integer: IntegerModel, target: str, budget: int) -> Report:
    from tinykernel.measure.report import report

    return report(integer, target, budget)


def _over(
    memory: Report, budget: int, estimator: TernaryKernelClassifier, chosen_here: bool
) -> TinykernelError:
    what, advice = "the trained model", "use fewer --n-components"
    if estimator.interrupted_:
        what = "training was interrupted and is not repeated with fewer components; the model"
    elif chosen_here:
        advice = "give a larger --budget"
    return TinykernelError(
        f"{what} needs {memory.flash} bytes of flash on {memory.target} ({memory.source}), "
        f"{memory.flash - budget} over the budget of {budget}; nothing was written, {advice}"
    )


def _less(estimator: TernaryKernelClassifier, integer: IntegerModel, over: int) -> dict[str, Any]:
    """Return parameters for a smaller model that need no search: what was found is kept."""
    from tinykernel.codegen.packing import pack

    p = estimator.n_components_
    tables = sum(pack(integer).table_bytes().values())
    words = -(-over * p // max(1, tables) // _WORD) + 1
    fewer = max(p - words * _WORD, _WORD)
    found: dict[str, Any] = {"n_components": fewer, "sigma": estimator.sigma_}
    if estimator.layout_ is None:
        return found | {"regularization": estimator.regularization_}
    found |= {"layout": estimator.layout_, "search": False}
    noise = estimator.cv_results_.get("noise")
    if noise is not None and noise.size:
        # The search ends with slope and dropout: its last trial has the noise that was chosen.
        found["augment"] = {**(estimator.augment or {}), "noise": float(noise[-1])}
    return found
