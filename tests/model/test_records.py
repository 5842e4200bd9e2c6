"""What every stage and part declares about its fields, and what is refused because of it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.codegen.kinds import EVERY
from tests.contracts import pieces_of
from tests.random_models import random_model
from tests.refusals import refused
from tinykernel.base.errors import ModelError
from tinykernel.model.answers import Decision, Values
from tinykernel.pieces.fastfood import Permutation


@pytest.fixture(scope="module")
def pieces() -> dict[str, Any]:
    """Return one of every class of records that declares limits, by its name."""
    found = {name: one for make in EVERY.values() for name, one in pieces_of(make()).items()}
    table = random_model(1, diagonal_kind="int4")
    decision = Decision([0], np.arange(64), 0, 1.0, novelty_threshold=0)
    others = (table.input, *table.stages, Permutation("orbit", 5, 3), Values(("a",), 3), decision)
    return found | {type(piece).__name__: piece for piece in others}


def limited(piece: Any) -> Iterator[tuple[str, int]]:
    """Yield a field and a number just outside its limits, where its type can hold that."""
    for field in piece.FIELDS:
        value = getattr(piece, field.name)
        for wrong in (field.low - 1, field.high + 1) if field.high is not None else ():
            kind = np.iinfo(value.dtype if field.dimensions and value is not None else "int64")
            if value is not None and kind.min <= wrong <= kind.max:
                yield field.name, wrong


def test_numbers_outside_their_limits_are_refused(pieces: dict[str, Any]) -> None:
    """The firmware has no place for them: one line with the field, the number and the limits."""
    cases = [(piece, *case) for piece in pieces.values() for case in limited(piece)]
    assert len(cases) > 50
    for piece, name, wrong in cases:
        value = getattr(piece, name)
        if isinstance(value, np.ndarray):
            value = value.copy()
            value.flat[-1] = wrong
        else:
            value = wrong
        with pytest.raises(ModelError, match=rf"{name} (is|holds) {wrong}, allowed are"):
            replace(piece, **{name: value})


def test_lengths_that_do_not_agree_are_refused(pieces: dict[str, Any]) -> None:
    """Arrays that belong together have one length: a damaged file could be read beside them."""
    cases = [
        (piece, field.name)
        for piece in pieces.values()
        for field in piece.FIELDS
        if field.shape and getattr(piece, field.name) is not None
    ]
    assert len(cases) > 20
    for piece, name in cases:
        value = getattr(piece, name)
        refused(ModelError, replace, piece, **{name: np.concatenate([value, value])})
