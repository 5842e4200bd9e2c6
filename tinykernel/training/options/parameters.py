"""Which options are parameters of an estimator, and which stand in its parameter `options`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from tinykernel.errors import TinykernelError
from tinykernel.text import similar
from tinykernel.training.options.declarations import option
from tinykernel.training.options.fields import ClassParameters, Parameters, TrainerOptions
from tinykernel.training.options.regression import RegressorOptions, ValueParameters


def _mapping(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, Mapping):
        raise TinykernelError(f'{name}: {value!r}; give a mapping such as {{"code": "small"}}')


@dataclass(kw_only=True, eq=False, repr=False)
class EstimatorParameters(Parameters):
    """The parameters of every estimator."""

    KIND: ClassVar[type[TrainerOptions]]
    options: Mapping[str, Any] | None = option(
        None,
        _mapping,
        "mapping of str to object, or None",
        'Other options of the trainer by name, for instance ``{"code": "small"}``; see Notes. '
        "``set_params`` and grids take one as ``options__code``.",
    )

    def __post_init__(self) -> None:
        """Keep other mappings as a plain one, which can be copied and saved."""
        if isinstance(self.options, Mapping) and not isinstance(self.options, dict):
            self.options = dict(self.options)


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
    told = {field.name: getattr(estimator, field.name) for field in fields(estimator)}
    more = told.pop("options")
    check_entries(type(estimator), more)
    options = estimator.KIND(**told, **(more or {}))
    options.check()
    return options


def check_entries(cls: type[EstimatorParameters], options: Any) -> None:
    """Refuse a parameter `options` of an estimator that has other names than it may."""
    _mapping("options", options)
    own = {field.name for field in fields(cls)}
    allowed = {field.name: field for field in fields(cls.KIND) if field.name not in own}
    listed = [name for name, field in allowed.items() if not field.metadata["internal"]]
    for name in options or ():
        if name in own:
            raise TinykernelError(f"options: {name} is a parameter itself; give {name}=...")
        if name not in allowed:
            hint = similar(str(name), allowed) or f"there are {', '.join(listed)}"
            raise TinykernelError(f"options: {name!r} is not known; {hint}")


def flattened(given: Mapping[str, Any], cls: type[EstimatorParameters]) -> dict[str, Any]:
    """Return parameters that are not None, entries of `options` beside the others.

    >>> flattened({"epochs": 3, "sigma": None, "options": {"code": "small"}}, ClassifierParameters)
    {'epochs': 3, 'code': 'small'}
    """
    more = given.get("options")
    check_entries(cls, more)
    for name in given.keys() & (more or {}).keys():
        raise TinykernelError(f"options: {name} is given beside it, too; leave one out")
    flat = {**given, **(more or {}), "options": None}
    return {name: value for name, value in flat.items() if value is not None}


def sorted_out(parameters: Iterable[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Put options that are no parameters of an estimator into its parameter `options`.

    >>> sorted_out(["epochs", "options"], {"epochs": 3, "code": "small"})
    {'epochs': 3, 'options': {'code': 'small'}}
    """
    own, names = dict(given), set(parameters)
    more = {name: own.pop(name) for name in given if name not in names}
    return {**own, "options": {**(own.get("options") or {}), **more}} if more else own
