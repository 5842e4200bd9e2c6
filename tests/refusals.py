"""Refusals: errors of one sort whose message is one line."""

from collections.abc import Callable
from typing import Any

import pytest

from tinykernel.base.errors import TinykernelError


def refused(
    kind: type[TinykernelError],
    call: Callable[..., Any],
    /,
    *arguments: Any,
    match: str | None = None,
    code: str | None = None,
    **options: Any,
) -> str:
    """Return the message with which a call is refused: one line, in which `match` is found.

    `code` is that of the error, where `kind` is a sort of several.
    """
    with pytest.raises(kind, match=match) as caught:
        call(*arguments, **options)
    assert code in (None, caught.value.code)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def refused_for(words: str, call: Callable[..., Any], /, *arguments: Any, **options: Any) -> None:
    """Check that a call is refused, with a message of one line that matches the words."""
    refused(TinykernelError, call, *arguments, match=words, **options)
