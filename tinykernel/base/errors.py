"""The exceptions for problems that the user can fix, and warnings."""

import sys
import warnings
from collections.abc import Callable
from typing import Any


class TinykernelError(ValueError):
    """A problem in what the user gave: one line that says what, where, and what to do.

    The command line prints the message without a traceback and exits with a status other than 0.
    As a `ValueError` it is also what scikit-learn expects of an estimator that refuses its input.

    `code` is one word for the sort of problem, the same in every release where messages change:
    of `BudgetError` it is ``"budget"``, and so for each class of this module.

    `problem` begins with the parameter that it is about, and a colon, if it is about one. `options`
    are others that it advises, with their values: ``{rate}`` in it becomes ``rate=16000``, and on
    the command line ``--set rate=16000``.

    Examples
    --------
    >>> import tinykernel
    >>> try:
    ...     tinykernel.load("model.tkm")
    ... except tinykernel.TinykernelError as error:
    ...     print(error.code, "-", error)
    file - model.tkm: no such file; make one with 'tinykernel train'
    """

    code = "other"

    def __init__(self, problem: str = "", **options: Any) -> None:
        self.problem, self.options = problem, options
        super().__init__(self.said(in_python))

    def said(self, spell: Callable[[str, Any], str]) -> str:
        """Return the message with options as `spell` writes them, from name and value or None."""
        subject, colon, rest = self.problem.partition(":")
        text = f"{spell(subject, None)}{colon}{rest}" if subject.isidentifier() else self.problem
        for name, value in self.options.items():
            text = text.replace(f"{{{name}}}", spell(name, value))
        return text

    def __init_subclass__(cls) -> None:
        cls.code = cls.__name__.removesuffix("Error").lower()


def in_python(name: str, value: Any) -> str:
    """Return an option as an argument of Python; a value of None is left out.

    >>> in_python("model", "tree"), in_python("n_jobs", None)
    ('model="tree"', 'n_jobs')
    """
    if value is None:
        return name
    return f'{name}="{value}"' if isinstance(value, str) else f"{name}={value}"


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called this package: that of the user."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and str(frame.f_globals.get("__name__")).startswith("tinykernel."):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


class BoardError(TinykernelError):
    """A board is not connected, does not answer, or sends what it must not."""


class BudgetError(TinykernelError):
    """No model is within the limits, or one is over them."""


class ConvertError(TinykernelError):
    """A model or step of another library that has no counterpart."""


class DataError(TinykernelError):
    """Values, labels, columns or recordings that cannot be used."""


class FileError(TinykernelError):
    """A file or folder cannot be read or written, or something would be lost."""


class FormatError(TinykernelError):
    """A file is damaged, or is not of the format that it should be."""


class LinkError(TinykernelError):
    """A program does not link, because it is too large for the memory of its linker script."""


class ModelError(TinykernelError):
    """Not a model, or one that cannot do what it is to do."""


class OptionError(TinykernelError):
    """A value of an option, or two options together, that are not allowed."""


class RangeError(TinykernelError):
    """A number that could leave its integer type."""


class RowsError(TinykernelError):
    """Too few rows, groups or classes."""


class ShapeError(TinykernelError):
    """An array of another shape or type than needed."""


class TargetError(TinykernelError):
    """A core, board or framework is unknown, or lacks what is asked for."""


class ToolError(TinykernelError):
    """A compiler, emulator or package is missing, or fails."""
