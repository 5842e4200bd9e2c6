"""Commands that take the options of another one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TypeVar

_Command = TypeVar("_Command", bound=Callable[..., None])


def with_options_of(
    other: Callable[..., None], leave_out: Iterable[str]
) -> Callable[[_Command], _Command]:
    """Give a command the options of another one, beside its own; it finds them in `ctx.params`.

    Parameters
    ----------
    other : callable
        A command.
    leave_out : iterable of str
        Names of its parameters that are not taken over.
    """

    def decorate(command: _Command) -> _Command:
        own = inspect.signature(command, eval_str=True)
        named = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        skipped = {*leave_out, *(p.name for p in named)}
        theirs = inspect.signature(other, eval_str=True).parameters
        taken = [p for name, p in theirs.items() if name not in skipped]
        keyword = [p.replace(kind=p.KEYWORD_ONLY) for p in [*named, *taken]]
        vars(command)["__signature__"] = own.replace(parameters=keyword)
        return command

    return decorate
