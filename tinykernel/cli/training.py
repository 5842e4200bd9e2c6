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

    from tinykernel.data import Dataset, Rows
    from tinykernel.estimator import TernaryKernelClassifier
    from tinykernel.integer import IntegerModel
    from tinykernel.measure import Report

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
            "storage": self.estimator.storage_,
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
        chosen that keeps to it.
    target : str, default="cortex-m4"
        Processor that the budget is for.
    by_group : bool, default=False
        Keep the groups of the data set together.
    validation : Rows, optional
        Rows by which "learned" chooses the best epoch.
    quiet : bool, default=False
        Show no progress.

    Returns
    -------
    Training

    Raises
    ------
    TinykernelError
        If a parameter is wrong or the budget cannot be met.
    """
    given = {name: value for name, value in parameters.items() if value is not None}
    chosen_here = budget is not None and "n_components" not in given
    if budget is not None and chosen_here:
        given["n_components"] = _fitting(dataset, given, budget, target)
    extra: dict[str, Any] = {"groups": dataset.group_train if by_group else None}
    if validation is not None and given.get("method", DEFAULT_METHOD) == "learned":
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
        if not chosen_here:
            raise _over(memory, budget)
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
    return None if X is None else float((model.predict(X) == y).mean())


def _fitting(
    dataset: Dataset, given: Mapping[str, Any], budget: int, target: str
) -> int | dict[str, int]:
    """Return the value of ``n_components`` that uses up the budget."""
    from tinykernel.measure.capacity import capacity, components_within

    X, y = dataset.X_train, dataset.y_train
    if given.get("method", DEFAULT_METHOD) == "learned":
        return capacity(X, y, given, budget=budget, target=target)
    return components_within(X, y, given, budget=budget, target=target)


def _fit(
    dataset: Dataset, given: Mapping[str, Any], extra: Mapping[str, Any], quiet: bool
) -> TernaryKernelClassifier:
    from tinykernel.estimator import TernaryKernelClassifier

    estimator = TernaryKernelClassifier(**given)
    with showing_progress(quiet), warnings.catch_warnings():
        # The command line says it with the result.
        warnings.filterwarnings("ignore", message="training was interrupted")
        estimator.fit(dataset.X_train, dataset.y_train, **extra)
    return estimator


def _measured(integer: IntegerModel, target: str, budget: int) -> Report:
    from tinykernel.measure import report

    return report(integer, target, budget)


def _over(memory: Report, budget: int) -> TinykernelError:
    return TinykernelError(
        f"the trained model needs {memory.flash} bytes of flash on {memory.target} "
        f"({memory.source}), {memory.flash - budget} over the budget of {budget}; nothing was "
        "written, use fewer --n-components"
    )


def _less(estimator: TernaryKernelClassifier, integer: IntegerModel, over: int) -> dict[str, Any]:
    """Return parameters for a model that is smaller by a number of bytes."""
    from tinykernel.codegen.packing import pack

    p = estimator.n_components_
    tables = sum(pack(integer).table_bytes().values())
    words = -(-over * p // max(1, tables) // _WORD) + 1
    fewer = max(p - words * _WORD, min(_WORD, p - 1), 1)
    if estimator.storage_ is None:
        return {"n_components": fewer}
    return {"n_components": fewer, "storage": estimator.storage_}
