"""Functions of a model that take one of any library: it is converted before they see it."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from tinykernel.conversion.models import convert, is_foreign


def as_model(obj: Any) -> Any:
    """Return a model of another library as an `IntegerModel`, and any other object as it is."""
    return convert(obj) if is_foreign(obj) else obj


def for_any_model(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function, whose first argument is a model, take one of any library."""
    name = function.__code__.co_varnames[0]

    @wraps(function)
    def converting(*arguments: Any, **named: Any) -> Any:
        if arguments:
            arguments = (as_model(arguments[0]), *arguments[1:])
        elif name in named:
            named = {**named, name: as_model(named[name])}
        return function(*arguments, **named)

    return converting
