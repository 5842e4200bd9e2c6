"""Declare options: name, type, range, default and text, for Python and for the command line."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from functools import wraps
from inspect import cleandoc
from textwrap import fill
from typing import Any, TypeVar

from tinykernel.base.reading import Reader, as_text, plain
from tinykernel.base.text import similar

_ClassT = TypeVar("_ClassT", bound=type)
#: What took the place of options that are gone.
SUCCESSORS = {"convolutions": "give model, such as separable"}


@dataclass(frozen=True, kw_only=True)
class Option:
    """What is known of an option: all texts about it are made of this."""

    text: str  # "%s" in it is the example.
    default: Any = None
    chosen: str = ""  # how the value is chosen where none is given.
    check: Callable[[str, Any], object] = lambda name, value: None
    type: str = ""  # in docstrings; by default that of the choices or of the annotation.
    range: str = ""
    form: str = ""  # of its value on the command line: ``int``, ``TIME``, ``keep|drop``.
    read: Reader = plain  # of that value.
    idle: tuple[object, ...] = ()  # values without effect, beside the default.
    example: Any = None
    #: What differs on the command line: fields of `tinykernel.face.settings.Setting`.
    typed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def documentation(self) -> str:
        """The text for docstrings."""
        text = self.text.replace("%s", _in_python(self.example))
        return f"{text} By default {self.chosen}." if self.chosen else text

    @property
    def description(self) -> str:
        """The text for the command line, which has neither quotes nor values of Python."""
        return self.text.replace("`", "").replace('"', "").replace("%s", as_text(self.example))


def option(default: Any, check: Callable[[str, Any], object], text: str, **more: Any) -> Any:
    """Declare an option as a field; where the default is None, so may be the value.

    `more` are fields of `Option`.
    """

    def allowed(name: str, value: Any) -> None:
        if value is not None or default is not None:
            check(name, value)

    of_check: dict[str, Any] = {name: getattr(check, name, "") for name in ("range", "type")}
    of_check["form"] = "|".join(map(str, getattr(check, "choices", ())))
    declaration = Option(text=text, default=default, check=allowed, **(of_check | more))
    return field(default=default, metadata={"option": declaration})


def options_of(cls: type) -> dict[str, Option]:
    """Return the options that a class declares, by name."""
    return {item.name: _with_type(item) for item in fields(cls) if "option" in item.metadata}


def _with_type(item: Field[Any]) -> Option:
    """Return the option of a field; its annotation is its type, unless it has another."""
    option: Option = item.metadata["option"]
    annotation = str(item.type)
    form = option.form or annotation.removesuffix(" | None")
    return replace(option, type=option.type or annotation.replace(" | ", " or "), form=form)


def _in_python(value: Any) -> str:
    if isinstance(value, dict):
        pairs = ", ".join(f'"{name}": {item}' for name, item in value.items())
        return f"``{{{pairs}}}``"
    return str(value)


def declared(cls: _ClassT) -> _ClassT:
    """Document the options of a class, and have it refuse others with the most similar name.

    ``{options}`` in its docstring is replaced.
    """
    names = [item.name for item in fields(cls)]
    if cls.__doc__ is not None:
        # Python 3.13 takes the indentation of docstrings away, earlier ones do not.
        cls.__doc__ = cleandoc(cls.__doc__).replace("{options}", _entries(options_of(cls).items()))
    elsewhere: dict[str, str] = SUCCESSORS | getattr(cls, "ELSEWHERE", {})
    plain_init = cls.__init__  # type: ignore[misc]

    @wraps(plain_init)
    def named(self: Any, *args: Any, **options: Any) -> None:
        # Users pass trainer options to `train` and do not know this class.
        prefix = "" if cls.__name__.endswith("Options") else f"{cls.__name__}: "
        if args:
            raise TypeError(f"{prefix}give parameters by name, e.g. n_components=64")
        for name in (name for name in options if name not in names):
            hint = elsewhere.get(name) or similar(name, names) or f"there are {', '.join(names)}"
            raise TypeError(f"{prefix}{name} is not a parameter; {hint}")
        plain_init(self, **options)

    cls.__init__ = named  # type: ignore[misc]
    return cls


def _entries(options: Iterable[tuple[str, Option]]) -> str:
    """Format options as parameters of numpydoc."""
    space = " " * 4
    return "\n".join(
        f"{name} : {option.type}\n"
        + fill(option.documentation, 96, initial_indent=space, subsequent_indent=space)
        for name, option in options
    )
