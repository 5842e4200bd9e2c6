"""Which options are parameters of an estimator, and which are entries of `options`."""

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
        'Other options of the trainer by name, such as ``{"code": "small"}``; see Notes. '
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


def trainer_options(estimator: EstimatorParameters) -> TrainerOptions:
    """Return the checked options of the trainer from the parameters of an estimator."""
    parameters = {field.name: getattr(estimator, field.name) for field in fields(estimator)}
    more = parameters.pop("options")
    check_entries(type(estimator), more)
    options = estimator.KIND(**parameters, **(more or {}))
    options.check()
    return options


def check_entries(cls: type[EstimatorParameters], options: Any) -> None:
    """Refuse unknown names in the parameter `options` of an estimator."""
    _mapping("options", options)
    parameters = {field.name for field in fields(cls)}
    allowed = {field.name: field for field in fields(cls.KIND) if field.name not in parameters}
    listed = [name for name, field in allowed.items() if not field.metadata["internal"]]
    for name in options or ():
        if name in parameters:
            raise TinykernelError(f"options: {name} is a parameter itself; give {name}=...")
        if name not in allowed:
            hint = similar(str(name), allowed) or f"there are {', '.join(listed)}"
            raise TinykernelError(f"options: {name!r} is not known; {hint}")


def flattened(parameters: Mapping[str, Any], cls: type[EstimatorParameters]) -> dict[str, Any]:
    """Merge the entries of `options` into the other parameters, without those that are None."""
    more = parameters.get("options")
    check_entries(cls, more)
    for name in parameters.keys() & (more or {}).keys():
        raise TinykernelError(f"options: {name} is given beside it, too; leave one out")
    flat = {**parameters, **(more or {}), "options": None}
    return {name: value for name, value in flat.items() if value is not None}


def sorted_out(names: Iterable[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Move options that are not parameters (`names`) of an estimator into its `options`."""
    parameters, allowed = dict(options), set(names)
    more = {name: parameters.pop(name) for name in options if name not in allowed}
    if not more:
        return parameters
    return {**parameters, "options": {**(parameters.get("options") or {}), **more}}
