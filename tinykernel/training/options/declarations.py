"""How options are declared: fields with a check and a text, which docstrings show."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import Field, field, fields
from functools import wraps
from textwrap import fill
from typing import Any, TypeVar

from tinykernel.text import similar

_ClassT = TypeVar("_ClassT", bound=type)


def option(
    default: Any, check: Callable[[str, Any], object], kind: str, text: str, *, local: bool = False
) -> Any:
    """Declare an option; the metadata say all that is known of it.

    `local` ones say what stages signals and images have, and so how large a model is.
    """
    known = {"check": check, "type": kind, "text": text, "range": getattr(check, "range", "")}
    return field(default=default, metadata=known | {"local": local})


def declared(cls: _ClassT) -> _ClassT:
    """Document the options of a class, and have it refuse others with the most similar name.

    Its docstring has the lines ``{options}`` and, of an estimator, ``{more}``.
    """
    own = fields(cls)
    names = [option.name for option in own]
    known = {option.name: option for option in fields(getattr(cls, "KIND", cls))}
    if cls.__doc__ is not None:
        more = [option for name, option in known.items() if name not in names]
        cls.__doc__ = cls.__doc__.replace("{options}", _entries(own))
        cls.__doc__ = cls.__doc__.replace("{more}", _entries(more))
    plain = cls.__init__  # type: ignore[misc]

    @wraps(plain)
    def named(self: Any, *args: Any, **given: Any) -> None:
        # Options of the trainer are given to `train`, whose user does not know their class.
        of = f"{cls.__name__}: " if hasattr(cls, "KIND") else ""
        if args:
            raise TypeError(f"{of}give parameters by name, e.g. n_components=64")
        wrong = wrong_name(given, names, known)
        if wrong:
            raise TypeError(of + wrong)
        plain(self, **given)

    cls.__init__ = named  # type: ignore[misc]
    return cls


def wrong_name(given: Iterable[str], names: Iterable[str], known: Iterable[str]) -> str:
    """Say which name is no parameter, and what to give; `known` are also those of options."""
    names = list(names)
    for name in given:
        if name not in names:
            hint = similar(name, names) or f"there are {', '.join(names)}"
            if name in known:
                hint = f"give options={{{name!r}: ...}}"
            return f"{name} is no parameter; {hint}"
    return ""


def _entries(options: Iterable[Field[Any]]) -> str:
    """Write options as numpydoc has parameters."""
    space = " " * 8
    return "\n    ".join(
        f"{option.name} : {option.metadata['type']}\n"
        + fill(option.metadata["text"], 100, initial_indent=space, subsequent_indent=space)
        for option in options
        if option.metadata
    )
