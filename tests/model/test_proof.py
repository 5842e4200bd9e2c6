"""The proof of the ranges, never exceeded, nearly attained; its schedules and permutations."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.linalg import hadamard

from tests.random_models import changed, make_model, models, random_model, random_quantized
from tests.refusals import refused
from tinykernel.base.errors import ModelError, RangeError
from tinykernel.base.hadamard import padded_dimension
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces import proof as bounds
from tinykernel.pieces.components.spec import Components
from tinykernel.pieces.fastfood import LARGEST, SHIFTS, Permutation
from tinykernel.pieces.proof import bound_first, bound_second, choose_schedules

seeds = st.integers(0, 2**32 - 1)


def _stages(values: np.ndarray, halve: tuple[bool, ...]) -> list[np.ndarray]:
    """Return the values after each stage of a transform, in int64; shape (..., d)."""
    stages = []
    for k, halved in enumerate(halve):
        pairs = values.reshape(*values.shape[:-1], -1, 2, 2**k)
        a, b = pairs[..., 0, :], pairs[..., 1, :]
        values = np.stack([a + b, a - b], axis=-2).reshape(values.shape) >> int(halved)
        stages.append(values)
    return stages


def _all_values(model: IntegerModel, q: np.ndarray) -> tuple[list, np.ndarray, list]:
    """Return stages of the first transform, product, stages of the second, in int64."""
    own = model.find(Components)
    u = np.zeros((len(q), own.dimension), dtype=np.int64)
    u[:, : own.n_features] = own.sign.astype(int) * np.maximum(q.astype(np.int64), -32767)
    first = _stages(u, own.halve_first)
    mixed = first[-1][:, own.permutation.indices(own.dimension)]
    shift = SHIFTS[own.diagonal_kind]
    product = (own.diagonal.astype(np.int64) * mixed[:, np.newaxis]) >> shift
    return first, product, _stages(product, own.halve_second)


def _prove(model: IntegerModel) -> list:
    """Return the bounds of all values in the order of `_all_values`."""
    own = model.find(Components)
    first = bound_first(own.sign, model.scaler.bits, own.halve_first)
    diagonal = own.diagonal, own.diagonal_kind
    second = bound_second(first, own.permutation, *diagonal, own.halve_second)
    return [*first.stages, second.inputs, *second.stages]


def _unrounded_rows(model: IntegerModel) -> np.ndarray:
    """Return the coefficients of ``H G P H B`` by dense matrices; shape (n_blocks, d, n)."""
    own = model.find(Components)
    h = hadamard(own.dimension)
    mixed = h[:, : own.n_features] * own.sign
    mixed = mixed[own.permutation.indices(own.dimension)]
    return np.stack([h @ (g[:, None].astype(np.int64) * mixed) for g in own.diagonal])


def _worst_inputs(model: IntegerModel, rows: np.ndarray) -> np.ndarray:
    """Return for each row of coefficients the inputs of its largest value."""
    limits = np.iinfo(model.input_dtype)
    return np.where(rows > 0, limits.max, limits.min).astype(model.input_dtype)


@settings(max_examples=50)
@given(models(), seeds)
def test_no_value_leaves_its_range(model: IntegerModel, seed: int) -> None:
    """Random and adversarial inputs, run in 64 bits, stay inside the bound of every value."""
    rng = np.random.default_rng(seed)
    rows = _unrounded_rows(model).reshape(-1, model.n_features)
    worst = _worst_inputs(model, rows[rng.integers(0, len(rows), 20)])
    worst = np.concatenate([worst, ~worst, random_quantized(model, seed, 20)])
    first, product, second = _all_values(model, worst)
    for values, bound in zip([*first, product, *second], _prove(model), strict=True):
        assert np.all(values >= bound.low)
        assert np.all(values <= bound.high)
        assert np.all(np.abs(values) <= 32767)


@settings(max_examples=40)
@given(models(), seeds)
def test_bounds_are_attained_up_to_rounding(model: IntegerModel, seed: int) -> None:
    """Inputs with the signs of a row reach its bound; rounding moves no value out of its error."""
    rows = _unrounded_rows(model)
    block, row = (int(np.random.default_rng(seed).integers(0, s)) for s in rows.shape[:2])
    worst = _worst_inputs(model, rows[block, row][np.newaxis])
    q = np.concatenate([worst, random_quantized(model, seed, 10)])
    values = _all_values(model, q)[-1][-1]
    bound = _prove(model)[-1]
    budget = bound.error_high[block, row] - bound.error_low[block, row]
    assert bound.high[block, row] - values[0, block, row] <= budget + 1
    own, u = model.find(Components), np.maximum(q.astype(np.int64), -32767)
    exact = np.einsum("bjn,rn->rbj", rows, u).astype(np.float64)
    exact /= 2.0 ** sum(own.halve_first + own.halve_second) * 2 ** SHIFTS[own.diagonal_kind]
    assert np.all(values - exact >= bound.error_low)
    assert np.all(values - exact <= bound.error_high)


@pytest.mark.parametrize("kind", ["int8", "int4", "sign"])
def test_all_inputs_there_are_stay_inside_and_reach_what_is_exact(kind: str) -> None:
    """Two inputs of 8 bits, all 65,536 pairs: no stage leaves its bounds and reach them."""
    base = random_model(LARGEST[kind], n_features=2, n_blocks=2, diagonal_kind=kind)
    halve = (False, True, True, False, True)
    scaler = dataclasses.replace(base.scaler, multiplier=np.maximum(base.scaler.multiplier, 1))
    own = dataclasses.replace(base.find(Components), sign=[1, -1], halve_first=halve)
    model = changed(base, scaler, own)
    q = np.array(list(itertools.product(range(-128, 128), repeat=2)), dtype=np.int8)
    first, product, second = _all_values(model, q)
    pairs = zip([*first, product, *second], _prove(model), strict=True)
    for k, (values, bound) in enumerate(pairs):
        low, high = values.min(axis=0), values.max(axis=0)
        assert np.all(low >= bound.low)
        assert np.all(high <= bound.high)
        if k <= len(first):
            assert_array_equal(low, bound.low)
            assert_array_equal(high, bound.high)
    scores = np.sort(model.quantized_scores(q).ravel())
    assert model.ranges()[-1].low <= scores[0]
    assert scores[-1] <= model.ranges()[-1].high


@settings(max_examples=30)
@given(models())
def test_ranges_list_every_stage_and_fit(model: IntegerModel) -> None:
    """`ranges` names every stage of the computation once, each inside its limits."""
    ranges = model.ranges()
    names = [r.stage for r in ranges]
    own = model.find(Components)
    stages = 2 * own.log2_dimension
    assert len(set(names)) == len(names) == stages + (6 if own.diagonal_kind == "sign" else 7)
    assert all(r.fits for r in ranges)
    assert sum("halved" in name for name in names) == sum(own.halve_first + own.halve_second)


def test_a_schedule_that_could_overflow_is_refused() -> None:
    """A model whose schedule halves too little cannot be made; the message names the stage."""
    model = next(m for m in map(make_model, range(99)) if any(m.find(Components).halve_second))
    own = model.find(Components)
    never = (False,) * own.log2_dimension
    refused(RangeError, changed, model, dataclasses.replace(own, halve_second=never))


@pytest.mark.parametrize("kind", ["int8", "int4", "sign"])
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("n", [1, 31, 33, 100, 256])
def test_schedules_halve_as_late_as_possible(n: int, bits: int, kind: str) -> None:
    """Leaving out any halving of a chosen schedule, keeping those before it, can overflow."""
    rng = np.random.default_rng(n)
    d = padded_dimension(n)
    sign = rng.choice([-1, 1], n)
    diagonal = rng.choice([-1, 1], (2, d)) * rng.integers(kind == "sign", LARGEST[kind] + 1, (2, d))
    permutation = Permutation("orbit", multiplier=5, increment=3)
    first, second = choose_schedules(sign, bits, permutation, diagonal, kind)
    for k in np.flatnonzero(second):
        fewer = tuple(h and i != k for i, h in enumerate(second))
        whole = bound_first(sign, bits, first)
        values = bound_second(whole, permutation, diagonal, kind, fewer).stages[k]
        assert max(values.high.max(), -values.low.min()) > 32767
    for k in np.flatnonzero(first):
        fewer = tuple(h and i != k for i, h in enumerate(first))
        values = bound_first(sign, bits, fewer).stages[k]
        assert max(values.high.max(), -values.low.min()) > 32767


@pytest.mark.parametrize("kind", ["int8", "int4", "sign"])
def test_norms_of_many_inputs_are_bounded(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds that replace the norms of large models are none too small, and little wider."""
    rng = np.random.default_rng(LARGEST[kind])
    diagonal = rng.integers(-LARGEST[kind], LARGEST[kind] + 1, (2, 256))
    for n in (256, 200):
        varying, gather = np.arange(n), rng.permutation(256)
        exact = bounds.row_norms(varying, diagonal, gather)
        with monkeypatch.context() as patch:
            patch.setattr(bounds, "MOST_STEPS", 0)
            quick = bounds.row_norms(varying, diagonal, gather)
        assert exact.shape == quick.shape
        assert np.all(quick >= exact)
        assert np.mean(quick[-1] / exact[-1]) < 1.05 * np.sqrt(np.pi / 2 * 256 / n)


def test_the_proof_is_linear_in_the_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps of the proof of a model of 32,768 inputs, made at each load, are limited."""
    steps = []
    monkeypatch.setattr(
        bounds, "run_on_rows", lambda *given: steps.append(given[3].size * given[4].size)
    )
    choose_schedules(np.ones(32768), 8, Permutation("orbit", 5, 1), np.ones((1, 32768)), "sign")
    choose_schedules(np.ones(1024), 8, Permutation("orbit", 5, 1), np.ones((2, 1024)), "sign")
    assert sum(steps) == 1024 * 2 * 1024
    # Ctrl-C is heard between two pieces only.
    choose_schedules(np.ones(4096), 8, Permutation(), np.ones((4, 4096)), "sign")
    assert max(steps) * 12 <= 1 << 27


def test_rows_are_limited() -> None:
    """A file of 60 MB would ask for a proof of gigabytes."""
    own = make_model(0).find(Components)
    shape = ((1 << 20) // own.dimension + 1, own.dimension)
    with pytest.raises(ModelError):
        dataclasses.replace(own, diagonal=np.ones(shape), row_kept=np.ones(shape, dtype=bool))


pytestmark = pytest.mark.usefixtures("page")


@given(log_d=st.integers(0, 16), a=st.integers(0, 16383), c=st.integers(0, 32767))
@settings(max_examples=60)
def test_orbit_is_the_recurrence(log_d: int, a: int, c: int) -> None:
    """The orbit is what the firmware computes step by step, and visits every index once."""
    d, multiplier, increment = 2**log_d, 4 * a + 1, 2 * c + 1
    got = Permutation("orbit", multiplier=multiplier, increment=increment).indices(d)
    assert got.dtype == np.uint16
    assert got.size == d
    state = 0
    for j in range(d):
        assert got[j] == state
        state = (multiplier * state + increment) % d
    assert np.unique(got).size == d


def test_identity_counts_up() -> None:
    np.testing.assert_array_equal(Permutation().indices(4), [0, 1, 2, 3])


@pytest.mark.parametrize(
    "arguments",
    [
        {"kind": "random"},
        {"kind": "orbit", "multiplier": 3},
        {"kind": "orbit", "multiplier": 5, "increment": 2},
        {"kind": "stored"},
    ],
)
def test_refuses_what_is_no_permutation(arguments: dict[str, object]) -> None:
    """Parameters that describe no permutation are one clear line."""
    refused(ModelError, Permutation, **arguments)  # type: ignore[arg-type]
