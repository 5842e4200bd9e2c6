"""What every stage and part declares about its fields, and what is refused because of it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.convolutions import convolution_model
from tests.frames import frame_model
from tests.random_fronts import local_model, offset_model, random_beside, random_signal_stage
from tests.random_models import one_class, random_model, tree_model
from tests.refusals import refused
from tests.separable import separable_model
from tests.spectra import plane_model, spectral_model
from tinykernel.base.errors import ModelError
from tinykernel.model.answers import Decision, Values
from tinykernel.pieces.fastfood import Permutation
from tinykernel.pieces.readouts import PARTS
from tinykernel.pieces.stages import STAGES


def pieces() -> dict[str, Any]:
    """Return one of every class of records that declares limits, by its name."""
    table = random_model(1, diagonal_kind="int4")
    front = random_signal_stage(1)
    models = [
        *(table, tree_model(1, 40), one_class(table, 1), convolution_model(1, units=7)),
        *(separable_model(1), local_model(front, 1, beside=random_beside(1, 3, "int16"))),
        *(spectral_model(1), plane_model(1), offset_model(1), frame_model(1, 9, 8)),
    ]
    found = [piece for model in models for piece in (*model.stages, *model.readout.parts)]
    decision = Decision([0], np.arange(64), 0, 1.0, novelty_threshold=0)
    found += [table.input, Permutation("orbit", 5, 3), Values(("a",), 3), decision]
    return {type(piece).__name__: piece for piece in found}


PIECES = pieces()


def limited() -> Iterator[tuple[str, str, int]]:
    """Yield class, field and a number just outside its limits, where its type can hold that."""
    for name, piece in PIECES.items():
        for field in piece.FIELDS:
            value = getattr(piece, field.name)
            for wrong in (field.low - 1, field.high + 1) if field.high is not None else ():
                kind = np.iinfo(value.dtype if field.dimensions and value is not None else "int64")
                if value is not None and kind.min <= wrong <= kind.max:
                    yield name, field.name, wrong


def test_every_stage_and_part_is_tried() -> None:
    """A new stage or part comes with a random one."""
    assert {cls.__name__ for cls in (*STAGES, *PARTS)} <= set(PIECES)


@pytest.mark.parametrize(("owner", "name", "wrong"), list(limited()))
def test_numbers_outside_their_limits_are_refused(owner: str, name: str, wrong: int) -> None:
    """The firmware has no place for them: one line with the field, the number and the limits."""
    piece = PIECES[owner]
    value = getattr(piece, name)
    if isinstance(value, np.ndarray):
        value = value.copy()
        value.flat[-1] = wrong
    else:
        value = wrong
    with pytest.raises(ModelError, match=rf"{name} (is|holds) {wrong}, allowed are"):
        replace(piece, **{name: value})


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (owner, field.name)
        for owner, p in PIECES.items()
        for field in p.FIELDS
        if field.shape and getattr(p, field.name) is not None
    ],
)
def test_lengths_that_do_not_agree_are_refused(owner: str, name: str) -> None:
    """Arrays that belong together have one length: a damaged file could be read beside them."""
    value = getattr(PIECES[owner], name)
    refused(ModelError, replace, PIECES[owner], **{name: np.concatenate([value, value])})
