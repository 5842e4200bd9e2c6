"""Declare options: fields with a check and a text for docstrings and ``tinykernel options``."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import Field, field, fields
from functools import wraps
from textwrap import fill
from typing import Any, TypeVar

from tinykernel.base.errors import OptionError
from tinykernel.base.text import similar

_ClassT = TypeVar("_ClassT", bound=type)


# Readers of options: kinds of models, and what inputs are.
COMPONENTS, LINEAR, TREES, PERCEPTRON = TABLES = ("components", "linear", "trees", "perceptron")
KERNELS, CHAINS, SEPARABLE = ("kernels", "chains", "separable")
WINDOWS, IMAGES = "signals", "images"
#: Learning by epochs of gradients, for signals.
GRADIENTS = "gradients"
#: What took the place of options that are gone.
SUCCESSORS = {"convolutions": "give model, such as separable"}
#: Kinds of models by the number of sides of an input (`TrainerOptions.input_shape`).
KINDS_OF_SIDES: dict[int | None, tuple[str, ...]] = {
    None: TABLES,
    2: (KERNELS, SEPARABLE),
    3: (CHAINS, SEPARABLE),
}
INPUTS: dict[int | None, str] = {None: "tables", 2: WINDOWS, 3: IMAGES}
_HINTS = {
    (WINDOWS,): "give signals, e.g. window_shape=(128, 6)",
    (IMAGES,): "only for images; give the image_shape, as 32x32x3",
    (CHAINS, SEPARABLE): "only for convolutions; tables have n_components, signals n_kernels",
    (COMPONENTS,): "only for components; leave it out",
}


def option(
    default: Any,
    check: Callable[[str, Any], object],
    text: str,
    *,
    kind: str = "",
    reads: tuple[str, ...] = (),
    idle: tuple[object, ...] = (),
) -> Any:
    """Declare an option; where the default is None, so may be the value.

    `kind` is its type in docstrings, by default that of the choices or of the annotation. `reads`
    are the kinds that read it (none: all); `idle` values have no effect.
    """
    kind, range_ = kind or getattr(check, "kind", ""), getattr(check, "range", "")

    def allowed(name: str, value: Any) -> None:
        if value is not None or default is not None:
            check(name, value)

    description = {"check": allowed, "type": kind, "text": text, "range": range_}
    use = {"reads": reads, "idle": (default, *idle)}
    return field(default=default, metadata=description | use)


def check_reads(options: Any, readers: Sequence[str]) -> None:
    """Refuse options that no part of a model reads; the error names the first reader."""
    for option in fields(options):
        reads = option.metadata["reads"]
        value = getattr(options, option.name)
        idle = isinstance(value, Hashable) and value in option.metadata["idle"]
        if reads and not idle and not set(reads) & set(readers):
            hint = _HINTS.get(reads, f"not an option of {readers[0]}; leave it out")
            raise OptionError(f"{option.name}: {hint}")


def declared(cls: _ClassT) -> _ClassT:
    """Document the options of a class, and have it refuse others with the most similar name.

    ``{options}`` in its docstring is replaced.
    """
    names = [option.name for option in fields(cls)]
    if cls.__doc__ is not None:
        cls.__doc__ = cls.__doc__.replace("{options}", _entries(fields(cls)))
    elsewhere: dict[str, str] = SUCCESSORS | getattr(cls, "ELSEWHERE", {})
    plain = cls.__init__  # type: ignore[misc]

    @wraps(plain)
    def named(self: Any, *args: Any, **options: Any) -> None:
        # Users pass trainer options to `train` and do not know this class.
        prefix = "" if cls.__name__.endswith("Options") else f"{cls.__name__}: "
        if args:
            raise TypeError(f"{prefix}give parameters by name, e.g. n_components=64")
        for name in (name for name in options if name not in names):
            hint = elsewhere.get(name) or similar(name, names) or f"there are {', '.join(names)}"
            raise TypeError(f"{prefix}{name} is not a parameter; {hint}")
        plain(self, **options)

    cls.__init__ = named  # type: ignore[misc]
    return cls


def kind_of(option: Field[Any]) -> str:
    """Return the type of an option, as numpydoc writes it."""
    return option.metadata["type"] or str(option.type).replace(" | ", " or ")


def _entries(options: Iterable[Field[Any]]) -> str:
    """Format options as parameters of numpydoc."""
    space = " " * 8
    return "\n    ".join(
        f"{option.name} : {kind_of(option)}\n"
        + fill(option.metadata["text"], 100, initial_indent=space, subsequent_indent=space)
        for option in options
    )
