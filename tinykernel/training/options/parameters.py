"""Which options are parameters of an estimator, and which stand in its parameter `options`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from tinykernel.errors import TinykernelError
from tinykernel.text import similar
from tinykernel.training.options.fields import (
    ClassParameters,
    Parameters,
    TrainerOptions,
    option,
)
from tinykernel.training.options.regression import RegressorOptions, ValueParameters


def _mapping(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, Mapping):
        raise TinykernelError(f'{name}: {value!r}; give a mapping such as {{"patience": 5}}')


@dataclass(kw_only=True, eq=False, repr=False)
class EstimatorParameters(Parameters):
    """The parameters of every estimator."""

    KIND: ClassVar[type[TrainerOptions]]
    options: Mapping[str, Any] | None = option(
        None,
        _mapping,
        "mapping of str to object, or None",
        'Other options of the trainer by name, for instance ``{"patience": 5}``; see Notes.',
    )


@dataclass(kw_only=True, eq=False, repr=False)
class ClassifierParameters(EstimatorParameters, ClassParameters):
    """The parameters of a classifier."""

    KIND: ClassVar[type[TrainerOptions]] = TrainerOptions


@dataclass(kw_only=True, eq=False, repr=False)
class RegressorParameters(EstimatorParameters, ValueParameters):
    """The parameters of a regressor."""

    KIND: ClassVar[type[TrainerOptions]] = RegressorOptions


def told_by(estimator: EstimatorParameters) -> TrainerOptions:
    """Return what the parameters of an estimator tell the trainer, checked."""
    kind = estimator.KIND
    told = {field.name: getattr(estimator, field.name) for field in fields(estimator)}
    more = told.pop("options")
    _mapping("options", more)
    allowed = [field.name for field in fields(kind) if field.name not in told]
    for name in more or ():
        if name in told:
            raise TinykernelError(f"options: {name} is a parameter itself; give {name}=...")
        if name not in allowed:
            hint = similar(str(name), allowed) or f"there are {', '.join(allowed)}"
            raise TinykernelError(f"options: {name!r} is not known; {hint}")
    options = kind(**told, **(more or {}))
    options.check()
    return options


def sorted_out(parameters: Iterable[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Put options that are no parameters of an estimator into its parameter `options`.

    >>> sorted_out(["epochs", "options"], {"epochs": 3, "patience": 1})
    {'epochs': 3, 'options': {'patience': 1}}
    """
    own, names = dict(given), set(parameters)
    more = {name: own.pop(name) for name in given if name not in names}
    return {**own, "options": {**(own.get("options") or {}), **more}} if more else own
