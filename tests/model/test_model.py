"""IntegerModel: the compiled execution against the specification, and the checks of its fields."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tests.model.slow import slow_quantize, slow_scores
from tests.random_models import (
    changed,
    components_of,
    make_model,
    models,
    random_model,
    random_quantized,
    random_raw,
)
from tests.refusals import refused
from tinykernel.base.errors import DataError, ModelError, RangeError, ShapeError
from tinykernel.model.answers import Labels
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.components.spec import Components
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Readout
from tinykernel.pieces.scale.spec import Scale
from tinykernel.pieces.ternary.spec import Ternary

pytestmark = pytest.mark.usefixtures("page")

seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=60)
@given(models(), seeds)
def test_scores_follow_the_specification(model: IntegerModel, seed: int) -> None:
    """The compiled scores are those of the specification in unbounded integers."""
    q = random_quantized(model, seed, 3)
    expected = [slow_scores(model, row) for row in q]
    assert_array_equal(components_of(model, q), [z for z, _ in expected])
    scores = model.quantized_scores(np.asfortranarray(q))
    assert scores.dtype == np.int32
    assert model.quantized_scores(q[:0]).shape == (0, model.n_classes)
    assert_array_equal(scores, [s for _, s in expected])


@settings(max_examples=60)
@given(models(), seeds)
def test_raw_inputs_follow_the_specification(model: IntegerModel, seed: int) -> None:
    """Raw values of every type are quantized as specified: NaN, infinities, ends of the type."""
    raw = random_raw(model, seed, 3)
    q = model.quantize_inputs(raw)
    assert q.dtype == model.input_dtype
    assert_array_equal(q, [slow_quantize(model, row) for row in raw])
    assert_array_equal(model.scores(raw), model.quantized_scores(q))


def test_first_of_equal_scores_wins() -> None:
    """Ties go to the first class, the rule of the C code."""
    model = make_model(0)
    while model.n_classes == 2:
        model = make_model(model.n_features + 100)
    zero = np.zeros(model.n_outputs, dtype=int)
    model = changed(model, dataclasses.replace(model.find(Ternary), multiplier=zero), offset=zero)
    assert model.predict(np.zeros((1, model.n_features)))[0] == model.classes[0]


def test_two_classes_have_opposite_scores() -> None:
    """A binary model has one output and gives two scores, at the ends of 32 bits, too."""
    model = next(m for m in map(make_model, range(50)) if m.n_classes == 2)
    model = changed(
        model, dataclasses.replace(model.find(Ternary), multiplier=[0]), offset=[-(2**31) + 1]
    )
    assert_array_equal(model.scores(np.zeros((1, model.n_features))), [[2**31 - 1, -(2**31) + 1]])
    refused(RangeError, changed, model, offset=[-(2**31)])


@pytest.mark.parametrize(("n_classes", "shape"), [(2, (7,)), (3, (7, 3))])
def test_decisions_have_the_shape_of_scikit_learn(n_classes: int, shape: tuple[int, ...]) -> None:
    """Of two classes there is one decision a row, positive for the second class."""
    model = random_model(5, n_features=8, n_classes=n_classes)
    rows = random_raw(model, 1, 7)
    decisions, scores = model.decision_function(rows), model.scores(rows)
    assert decisions.shape == shape
    assert_array_equal(np.sign(decisions), np.sign(scores[:, 1] if n_classes == 2 else scores))


def test_equality_is_by_content() -> None:
    """Equal content gives equal models, hashes and fingerprints; one changed value does not."""
    one, same = make_model(7), make_model(7)
    other = changed(one, offset=one.readout.offset + 1)
    assert one == same
    assert hash(one) == hash(same)
    assert one.fingerprint() == same.fingerprint() != other.fingerprint()
    assert one != other
    assert one != "model"
    assert changed(one, answers=Labels(tuple(map(str, one.classes)))) != one


def test_arrays_cannot_be_changed() -> None:
    """A model is immutable, and a later change of what it was made from does not reach it."""
    ternary = make_model(7).find(Ternary)
    weights = ternary.weights.copy()
    model = changed(make_model(7), dataclasses.replace(ternary, weights=weights))
    before = model.fingerprint()
    weights[:] = 0
    with pytest.raises(ValueError, match="read"):
        model.find(Ternary).weights[0, 0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.hop = 3  # type: ignore[misc]
    assert changed(model).fingerprint() == before


def _owner(model: IntegerModel, name: str) -> Any:
    """Return what has a field, of a model of components."""
    pieces = (model, model.input, model.readout, model.answers, *model.stages, *model.readout.parts)
    return next(one for one in pieces if name in (field.name for field in one.FIELDS))


def _with(model: IntegerModel, **change: Any) -> IntegerModel:
    """Return the model with one other field of its own or of a part."""
    ((name, _),) = change.items()
    made = dataclasses.replace(_owner(model, name), **change)
    fields = {Grid: "input", Readout: "readout", Labels: "answers"}
    if isinstance(made, IntegerModel):
        return made
    if type(made) in fields:
        return dataclasses.replace(model, **{fields[type(made)]: made})
    return changed(model, made)


@pytest.mark.parametrize(
    "change",
    [
        {"phase_shift": 2.5},
        {"decision_scale": np.nan},
        {"decision_scale": "a"},
        {"halve_first": (True,)},
        {"classes": (1,)},
        {"classes": (1, True)},
        {"classes": (1, None)},
        {"classes": (1.0, np.inf)},
        {"halve_first": 5},
        {"sign": [1]},
        {"diagonal_kind": "float"},
        {"permutation": None},
        {"weights": [["a"]]},
        {"offset": [[1], [2, 3]]},
    ],
)
def test_wrong_fields_are_refused(change: dict[str, object]) -> None:
    """Each wrong field is refused with a message that names it."""
    refused(ModelError, _with, make_model(1), **change)


def test_int4_models_hold_levels_only() -> None:
    """An integer model of 4-bit levels refuses others, also where the file says so."""
    models = (make_model(seed).find(Components) for seed in range(50))
    components = next(made for made in models if made.diagonal_kind == "int4")
    diagonal = components.diagonal.copy()
    for wrong in (8, -8):
        diagonal[0, 0] = wrong
        refused(ModelError, dataclasses.replace, components, diagonal=diagonal)


@pytest.mark.parametrize(
    "arguments",
    [
        ("int64", 8, [0], [1], [1]),
        ("uint8", 12, [0], [1], [1]),
        ("float32", 8, [0], [-1.0]),
        ("float32", 8, [np.nan], [1.0]),
        ("float32", 8, [0.0], [1.0], [1]),
        ("uint8", 8, [0], [1]),
        ("uint8", 8, [0], [65794], [255]),
    ],
)
def test_wrong_scalers_are_refused(arguments: tuple[object, ...]) -> None:
    """A scaler whose products could wrap around, or of unknown types, is refused."""
    Scale("uint8", 8, [0], [65536], [255])  # the largest that is allowed
    refused(ModelError, Scale, *arguments)


def test_wrong_inputs_are_refused() -> None:
    """Inputs of the wrong shape or outside their type give a message with row and column."""
    model = make_model(2, "uint8")
    rows = np.zeros((2, model.n_features))
    refused(ShapeError, model.scores, rows[:, 1:])
    refused(ShapeError, model.scores, rows[0])
    rows[1, 0] = 0.5
    refused(DataError, model.scores, rows)
    refused(ShapeError, model.scores, [["a"] * model.n_features])
    refused(ShapeError, model.quantized_scores, np.full((1, model.n_features), 128))
    refused(ShapeError, model.quantized_scores, rows)
