"""How options are declared: fields with a check and a text, which docstrings show."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import Field, field, fields
from functools import wraps
from textwrap import fill
from typing import Any, TypeVar

from tinykernel.errors import TinykernelError
from tinykernel.text import similar

_ClassT = TypeVar("_ClassT", bound=type)


# What reads options: the parts of models of tables, and those of windows and images.
COMPONENTS, LINEAR, TREES = TABLES = ("components", "a linear part alone", "trees")
WINDOWS, GRADIENTS = "the local stage of signals", "gradients for signals"
IMAGES = "the local stage of images"
_HINTS = {
    (WINDOWS,): "give signals, e.g. window_shape=(128, 6)",
    (IMAGES,): "only for images; give the image_shape, as 32x32x3",
    (WINDOWS, IMAGES): "give a shape, e.g. image_shape=(28, 28)",
    (TREES,): "a model of kernels has no trees; leave it out",
    TABLES: "only for tables; signals and images have n_kernels",
}


def option(
    default: Any,
    check: Callable[[str, Any], object],
    kind: str,
    text: str,
    *,
    reads: tuple[str, ...] = (),
    idle: tuple[object, ...] = (),
    internal: bool = False,
) -> Any:
    """Declare an option; the metadata say all that is known of it.

    `reads` are the parts of a model that read it, none for all; with `idle` values it has no
    effect. What is `internal` is no setting: the trainer, or `tinykernel.train` for a budget, finds
    it and says it in this way.
    """
    known = {"check": check, "type": kind, "text": text, "range": getattr(check, "range", "")}
    use = {"reads": reads, "idle": (default, *idle), "internal": internal}
    return field(default=default, metadata=known | use)


def check_reads(options: Any, readers: Sequence[str]) -> None:
    """Refuse options that nothing in a model reads; the first reader is named."""
    for each in fields(options):
        reads = each.metadata["reads"]
        value = getattr(options, each.name)
        idle = isinstance(value, Hashable) and value in each.metadata["idle"]
        if reads and not idle and not set(reads) & set(readers):
            hint = _HINTS.get(reads, f"{readers[0]} has no use for it; leave it out")
            raise TinykernelError(f"{each.name}: {hint}")


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
        if option.metadata and not option.metadata["internal"]
    )
