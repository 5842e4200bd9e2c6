"""The trainer: what it learns, exports, and promises."""

import os
import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from tests.processes import captured
from tests.random_models import components_of
from tinykernel.base import progress
from tinykernel.base.checks import PRESETS
from tinykernel.kinds.kind import Problem
from tinykernel.kinds.selection import deliver, kinds_for, select
from tinykernel.learn.components import training as trainer
from tinykernel.learn.components.learner import _NAMES
from tinykernel.learn.inputs import layout_of
from tinykernel.learn.loop import Recipe
from tinykernel.learn.options import TrainerOptions
from tinykernel.learn.trainset import prepare
from tinykernel.pieces.components.spec import Components
from tinykernel.pieces.ternary.spec import Ternary

QUICK = {"n_components": 96, "epochs": 6, "effort": "quick", "random_state": 0}


def fit(X, y, **options):
    """Train components on rows and labels; return the result and how it was selected."""
    rows = {name: options.pop(name) for name in ("groups", "validation") if name in options}
    _, data = prepare(np.asarray(X), np.asarray(y), **rows)
    problem = Problem(data, TrainerOptions(model="components", **QUICK | options))
    fit.selection = select(problem, kinds_for(problem.options))
    return deliver(fit.selection, problem)[0]


@pytest.mark.parametrize("layout", list(PRESETS))
def test_every_layout_learns_and_stores_what_it_says(digits, layout):
    """Nothing is learned that is not stored."""
    X, _, y, _ = digits
    form, p = layout_of(layout), 256
    model = fit(X[:1200], y[:1200], n_components=p, layout=layout, epochs=30).machine
    assert np.mean(model.predict(X[1200:]) == y[1200:]) > 0.9
    components = model.find(Components)
    block = np.nonzero(components.row_kept)[0]
    if not form.width_bits:
        assert np.ptp(components.width) == 0
    if form.width_bits == form.start_bits == 4:
        assert not np.any((components.width | components.start) & 15)
    if not form.start_bits:
        assert np.ptp(components.start[::2]) == 0 == np.ptp(components.start[1::2])
    if not form.scale_per_row:
        assert all(np.ptp(components.scale[block == i]) == 0 for i in range(4))
    assert form.ternary == bool(np.any(model.find(Ternary).weights == 0))


def test_signs_and_permutation_are_the_best_draw_of_short_trainings(digits):
    """B and P of the model are those of the draw in its recipe, which then repeats its bytes."""
    X, _, y, _ = digits
    options = {"n_components": 64, "effort": "normal", "sigma": 0.8, "layout": "compact"}
    chosen = [fit(X[:200], y[:200], **options, random_state=seed) for seed in range(3)]
    draws = {result.recipe.draw for result in chosen}
    assert len(draws) > 1
    assert draws <= set(range(trainer.N_DRAWS))
    _, data = prepare(X[:200], y[:200])
    for result in chosen[:2]:
        prepared = trainer.Prepared.of(data, TrainerOptions(), result.recipe)
        transform = prepared.draw(result.recipe.draw)
        components = result.machine.find(Components)
        assert components.permutation.indices(64).tolist() == (
            transform.permutation.indices(64).tolist()
        )
        np.testing.assert_array_equal(components.sign, transform.live_sign)
        for _ in range(2):  # a training leaves the rows as they were for another
            again = prepared.train(result.recipe, None, small_code=False).machine
            assert again.fingerprint() == result.machine.fingerprint()


def test_components_learn_what_a_leading_linear_part_leaves_over():
    """On few rows of nearly linear classes components do not spoil the linear part."""
    X = np.random.default_rng(0).random((1300, 6), dtype=np.float32)
    y = np.digitize(X[:, 0] + X[:, 1] ** 2, [0.4, 0.7, 1.0, 1.3])
    usual = Recipe(layout="g4", n_components=512, linear_bits=8, epochs=40, batch_rows=64)
    _, data = prepare(X[:300], y[:300])
    losses = []
    for lead in (1.0, 10.0):
        recipe = replace(usual, lead=lead, sigma_multiple=2.0)
        prepared = trainer.Prepared.of(data, TrainerOptions(), recipe)
        machine = prepared.train(recipe, None, small_code=False).machine
        losses.append(np.mean(machine.predict(X[300:]) != y[300:]))
    assert losses[1] < losses[0] - 0.02


def test_ctrl_c_in_a_search_of_two_threads_leaves_a_model(digits):
    """The event that ended the search ends no training after it."""
    X, _, y, _ = digits
    _, data = prepare(X[:200], y[:200])
    options = QUICK | {"effort": "normal", "n_jobs": 2, "n_components": 32, "epochs": 2}
    problem = Problem(data, TrainerOptions(model="components", **options))
    selection = select(problem, kinds_for(problem.options))
    problem.cancelled.set()
    assert deliver(selection, problem)[0].machine.classes == tuple(range(10))


def test_a_rare_class_does_not_stop_the_search():
    """One row of a class cannot be held out, so the search holds out others."""
    rng = np.random.default_rng(0)
    X, y = rng.random((101, 4)), np.append(np.zeros(100, int), 1)
    result = fit(X, y, n_components=32, epochs=1, effort="normal")
    assert result.machine.classes == (0, 1)
    few = fit(X[99:], y[99:], n_components=32, epochs=1, effort="normal")  # a row of each class
    assert not fit.selection.records
    assert few.machine.classes == (0, 1)


def test_interrupt_during_the_search_ends_it(digits):
    """Ctrl-C while hyper-parameters are chosen takes the best so far, and the training follows."""
    seen = []

    def stop(message):
        seen.append(message)
        if [each.done for each in seen].count(4) == 1 and message.done == 4:
            raise KeyboardInterrupt

    X, _, y, _ = digits
    with progress.observing(stop):
        result = fit(X[:400], y[:400], epochs=2, effort="normal")
    assert fit.selection.interrupted
    assert not result.history.interrupted
    assert len(result.history.epochs) == 2
    assert result.recipe.n_components == 96


@pytest.mark.slow
def test_offsets_start_alike_on_any_number_of_blas_threads():
    """A matrix product rounded the first offsets in another way with other threads."""
    code = (
        "import numpy as np; from tinykernel.learn.loss import prior; "
        "rng = np.random.default_rng(0); "
        "targets = rng.dirichlet(np.ones(5), 60000).astype(np.float32); "
        "print(prior(targets, rng.random(60000, dtype=np.float32)).tobytes().hex())"
    )
    found = set()
    for threads in ("1", "2"):
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads}
        done = captured([sys.executable, "-c", code], env=environment, check=True)
        found.add(done.stdout)
    assert len(found) == 1


def exact_learner(monkeypatch, X, y, **options):
    """Train; return learner, transform and model."""
    caught = []
    stored = trainer.stored_model

    def catch(learner, transform, *arguments, **named):
        caught.extend([learner, transform])
        return stored(learner, transform, *arguments, **named)

    monkeypatch.setattr(trainer, "stored_model", catch)
    result = fit(X, y, **options)
    return *caught, result.machine


RAW = {
    "uint8": lambda X: X,
    "float32": lambda X: X * np.linspace(0.1, 9, 64).astype(np.float32),
    "int8": lambda X: X.astype(np.int8) - 8,
    "int16": lambda X: X.astype(np.int16) * np.arange(1, 65, dtype=np.int16) * 13,
    "uint16": lambda X: X.astype(np.uint16) * 999,
    "int32": lambda X: X.astype(np.int32) * 70001 - 5,
}


@pytest.mark.parametrize("raw", list(RAW))
def test_quantized_forward_pass_is_the_integer_model(digits, monkeypatch, raw):
    """The last forward pass of training counts exactly the bits that the integer model counts."""
    X, y = RAW[raw](digits.X_train), digits.y_train
    layout = list(PRESETS)[len(raw) % len(PRESETS)]
    given = {"layout": layout, "epochs": 3}
    learner, transform, model = exact_learner(monkeypatch, X[:600], y[:600], **given)
    windows, outputs = learner.forward()
    assert windows.are_stored
    decisions = learner.decide(transform.mix(X[900:]))
    sums = (decisions - outputs.offset[:10]) / outputs.scale
    np.testing.assert_allclose(sums, np.rint(sums), atol=0.02)
    signs = 2 * components_of(model, model.quantize_inputs(X[900:])).astype(int) - 1
    np.testing.assert_array_equal(np.rint(sums), signs @ model.find(Ternary).weights.T.astype(int))
    assert (
        np.mean(model.predict(X[900:]) == decisions.argmax(axis=1))
        > 0.99  # offsets are rounded, which decides a row between two classes now and then
    )


@pytest.mark.parametrize("layout", list(PRESETS))
def test_stored_arithmetic_hardly_changes_gradients(digits, monkeypatch, layout):
    """Gradients through the integers are those of the float pass, but for the rounding."""
    X, _, y, _ = digits
    learner, *_ = exact_learner(monkeypatch, X, y, layout=layout)
    gradients = []
    for arithmetic in (learner._arithmetic, None):
        learner._arithmetic = arithmetic
        learner.rng = np.random.default_rng(0)
        learner.learn(np.arange(1024), 0.0)
        gradients.append([g.sum(axis=0).ravel() for g in learner.gradients.values()])
    for name, exact, rough in zip(_NAMES, *gradients, strict=True):
        if np.any(rough):
            cosine = exact @ rough / (np.linalg.norm(exact) * np.linalg.norm(rough))
            assert cosine > 0.9, name
            assert np.linalg.norm(exact) == pytest.approx(np.linalg.norm(rough), rel=0.4), name


def test_memory_stays_within_four_times_the_rows():
    """Features of all rows are never held at once: p = 1024 of them would take 16 times X."""
    rng = np.random.default_rng(0)
    X = rng.random((20000, 64), dtype=np.float32)
    y = (X[:, 0] > X[:, 1]).astype(int)
    fit(X[:640], y[:640], n_components=1024, epochs=1)  # compiles
    tracemalloc.start()
    try:
        fit(X, y, n_components=1024, epochs=2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    fixed = 3 * 2**22  # pool of noise, parameters, gradients
    assert peak < 3 * X.nbytes + fixed  # with X itself four times
