"""The joint trainer: what it learns, exports, and promises."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from tinykernel import progress
from tinykernel.errors import TinykernelError
from tinykernel.model import quantize
from tinykernel.model.arithmetic import FIRMWARE
from tinykernel.training import trainer as joint
from tinykernel.training.inputs import fit_joint_scaling, neighbour_distance
from tinykernel.training.learner import _NAMES
from tinykernel.training.options import LAYOUTS, JointOptions, components_within
from tinykernel.training.trainer import fit_joint, train_joint

QUICK = {"n_components": 96, "epochs": 6, "search": False}


@pytest.fixture(scope="module")
def digits():
    """Eight-bit images of digits."""
    X, y = load_digits(return_X_y=True)
    return X.astype(np.uint8), y


@pytest.fixture(scope="module")
def rings():
    """Two classes that no linear classifier parts."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    y = np.where(np.linalg.norm(X, axis=1) > 1.5, "out", "in")
    return X, y


def _bytes(machine):
    """Everything that a machine holds."""
    return [
        value.tobytes() if isinstance(value, np.ndarray) else repr(value)
        for value in dataclasses.asdict(machine).values()
    ]


def _labels(machine, X):
    decisions = machine.decision_function(X)
    index = decisions[:, 0] > 0 if decisions.shape[1] == 1 else decisions.argmax(axis=1)
    return np.array(machine.classes)[index.astype(int)]


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_learns_digits_and_the_integers_agree(digits, layout):
    """Every format learns, and the integer model labels like the trained one."""
    X, y = digits
    machine = train_joint(X[:1200], y[:1200], n_components=256, epochs=30, search=False,
                          layout=layout)  # fmt: skip
    labels = _labels(machine, X[1200:])
    assert np.mean(labels == y[1200:]) > 0.9
    assert np.mean(quantize(machine).predict(X[1200:]) == labels) > 0.985


def test_learns_two_classes_with_names(rings):
    """One output, string labels, float inputs."""
    X, y = rings
    machine = train_joint(X[:450], y[:450], n_components=256, epochs=40, search=False)
    assert machine.weights.shape[0] == 1
    assert np.mean(_labels(machine, X[450:]) == y[450:]) > 0.85
    assert np.mean(quantize(machine).predict(X[450:]) == y[450:]) > 0.85


def test_same_bytes_with_one_and_two_threads(digits):
    """The machine depends on data and seed only."""
    X, y = digits
    first, second, other = (
        _bytes(train_joint(X, y, random_state=seed, n_threads=threads, **QUICK))
        for seed, threads in ((0, 1), (0, 2), (1, 2))
    )
    assert first == second
    assert first != other


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_stored_values_lie_on_their_grids(digits, layout):
    """G, S, start and width of the machine are whole steps, as they are stored."""
    X, y = digits
    form = LAYOUTS[layout]
    machine = train_joint(X, y, layout=layout, **QUICK)
    unit = np.abs(machine.diagonal)
    unit = np.where(unit > 0, unit, np.inf).min(axis=1, keepdims=True)
    if form.diagonal_top == 7:
        levels = machine.diagonal / unit
        np.testing.assert_allclose(levels, np.rint(levels), atol=1e-4)
        assert np.abs(levels).max() < 7.5
    for angles in (machine.start, machine.width):
        steps = angles / (2 * np.pi) * 256
        np.testing.assert_allclose(steps, np.rint(steps), atol=1e-6)
    if not form.learns_width:
        np.testing.assert_allclose(machine.width, np.pi)
    if not form.scale_per_row:
        assert np.ptp(machine.row_scale, axis=1).max() < 1e-12
    if not form.learns_start:
        assert np.ptp(machine.start[:, ::2]) == 0 == np.ptp(machine.start[:, 1::2])
    has_zeros = bool(np.any(machine.weights[:, : QUICK["n_components"]] == 0))
    assert (form.ternary or form.prunes) == has_zeros
    components = np.flatnonzero(machine.weights.any(axis=0))
    assert components.size <= QUICK["n_components"]
    assert form.prunes or components.max() < QUICK["n_components"]


def test_search_chooses_among_the_formats(digits):
    """The format is one of those that fit, with its own number of components."""
    X, y = digits
    capacity = {"compact": 128, "phases": 64}
    result = fit_joint(X[:400], y[:400], capacity=capacity, epochs=2)
    assert result.options.n_components == capacity[result.options.layout]
    assert {trial.layout for trial in result.trials} == set(capacity)


def test_pruning_is_tried_where_phases_are_ahead(digits, rings):
    """The format "pruned" is "phases" with rows left out, and no better where that is behind."""
    for X, y in ((digits[0][:400], digits[1][:400]), rings):
        capacity = {"compact": 128, "phases": 64, "pruned": 64}
        result = fit_joint(X, y, capacity=capacity, epochs=2)
        tried = "pruned" in {trial.layout for trial in result.trials}
        assert tried == (result.options.layout in ("phases", "pruned"))
    alone = fit_joint(X, y, capacity={"pruned": 64, "compact": 64}, epochs=1, search=False)
    assert {trial.layout for trial in alone.trials} == {"compact", "pruned"}


def test_one_format_without_search_is_taken(digits):
    """A capacity of one format was once forgotten without a search."""
    X, y = digits
    result = fit_joint(X[:400], y[:400], capacity={"phases": 64}, epochs=1, search=False)
    assert (result.options.layout, result.options.n_components) == ("phases", 64)
    both = fit_joint(X[:400], y[:400], capacity={"compact": 64, "phases": 64}, epochs=1,
                     search=False)  # fmt: skip
    assert {trial.layout for trial in both.trials} == {"compact", "phases"}
    assert {trial.sigma_multiple for trial in both.trials} == {1.0}


def test_a_rare_class_does_not_stop_the_search():
    """One row of a class cannot be held out; this once ended in an error about groups."""
    rng = np.random.default_rng(0)
    X, y = rng.random((101, 4)), np.append(np.zeros(100, int), 1)
    result = fit_joint(X, y, n_components=32, epochs=1)
    assert result.machine.classes == (0, 1)
    few = fit_joint(X[99:], y[99:], n_components=32, epochs=1)  # a row of each class
    assert not few.trials


@pytest.mark.parametrize("p", [32, 96, 100, 128])
def test_pruned_blocks_keep_whole_words(digits, p):
    """Half of the rows of each block have weights, the last block has the rest, all others none."""
    X, y = digits
    machine = fit_joint(X, y, layout="pruned", firmware=FIRMWARE,
                        **{**QUICK, "n_components": p}).machine  # fmt: skip
    kept = np.any(machine.weights, axis=0).reshape(machine.n_blocks, machine.dimension)
    assert machine.dimension == 64
    assert kept.sum(axis=1).tolist() == [32] * (p // 32) + [p % 32] * (p % 32 > 0)
    assert quantize(machine).n_components <= p


def test_blocks_of_32_rows_stay_whole():
    """Rows were once left out of the last block of 32 though no words were saved."""
    rng = np.random.default_rng(0)
    X, y = rng.random((200, 4)), np.arange(200) % 2
    pruned, phases = (
        fit_joint(X, y, layout=layout, **{**QUICK, "n_components": 45}).machine
        for layout in ("pruned", "phases")
    )
    assert _bytes(pruned) == _bytes(phases)
    assert np.flatnonzero(pruned.weights.any(axis=0)).tolist() == list(range(45))


def test_pruned_rows_have_the_smallest_weights():
    """The rows that are left out are those with the smallest shadow weights of their block."""
    rng = np.random.default_rng(0)
    mixed = rng.standard_normal((100, 64)).astype(np.float32)
    targets = (rng.random((100, 1)) < 0.5).astype(np.float32)
    learner = joint.JointLearner(
        mixed, targets, np.ones(100, np.float32), JointOptions(layout="pruned", n_components=64),
        np.zeros(64, np.float32),
    )  # fmt: skip
    kept = np.any(learner.forward().weights, axis=1).reshape(2, 64)
    size = np.abs(learner.shadow).sum(axis=1).reshape(2, 64)
    for block in range(2):
        assert size[block, kept[block]].min() > size[block, ~kept[block]].max()


def test_offsets_start_alike_on_any_number_of_blas_threads(rings):
    """A matrix product rounded the first offsets in another way with other threads."""
    code = (
        "import numpy as np; from tinykernel.training.trainer import fit_joint; "
        "rng = np.random.default_rng(0); X = rng.random((60000, 3), dtype=np.float32); "
        "soft = rng.dirichlet(np.ones(5), 60000); y = soft.argmax(axis=1); "
        "machine = fit_joint(X, y, n_components=32, epochs=1, search=False, batch_rows=8192, "
        "teacher=soft, n_threads=1).machine; print(machine.output_offset.tobytes().hex())"
    )
    found = set()
    for threads in ("1", "2"):
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads}
        done = subprocess.run([sys.executable, "-c", code], env=environment, check=True,
                              capture_output=True, text=True)  # fmt: skip
        found.add(done.stdout)
    assert len(found) == 1


def test_given_options_are_not_searched(rings):
    """What the user sets stays."""
    X, y = rings
    result = fit_joint(X, y, n_components=32, epochs=1, sigma_multiple=0.8, noise=0.2)
    assert (result.options.sigma_multiple, result.options.noise) == (0.8, 0.2)
    assert {trial.sigma_multiple for trial in result.trials} == {0.8}


def test_best_epoch_by_validation_and_patience(digits):
    """With validation rows the best epoch is kept, and training ends when nothing improves."""
    X, y = digits
    result = fit_joint(X[:900], y[:900], validation=(X[900:], y[900:]), patience=1,
                       firmware=FIRMWARE, **{**QUICK, "epochs": 60})  # fmt: skip
    scores = [entry["accuracy"] for entry in result.history]
    assert scores[-1] < max(scores)
    assert np.mean(quantize(result.machine).predict(X[900:]) == y[900:]) == max(scores)
    assert len(scores) < 60


def test_interrupt_keeps_a_working_machine(digits):
    """Ctrl-C ends training; what was learned so far is returned."""
    X, y = digits

    def stop(message):
        if message.stage == "training" and message.done == 3:
            raise KeyboardInterrupt

    with progress.observing(lambda m: stop(m) if "stopped" not in m.message else None):
        result = fit_joint(X, y, **{**QUICK, "epochs": 50})
    assert len(result.history) == 3
    assert np.mean(_labels(result.machine, X) == y) > 0.5


def test_interrupt_during_the_search_ends_it(digits):
    """Ctrl-C while hyper-parameters are chosen is not taken for the end of one trial."""

    def stop(message):
        if message.stage.startswith("choosing"):
            raise KeyboardInterrupt

    with progress.observing(stop), pytest.raises(KeyboardInterrupt):
        fit_joint(*digits, **{**QUICK, "search": True})


def test_progress_tells_loss_and_time_left(digits):
    """One message an epoch."""
    messages = []
    with progress.observing(messages.append):
        fit_joint(*digits, **QUICK)
    assert [m.done for m in messages] == list(range(1, 7))
    assert "loss" in messages[0].message
    assert "left" in messages[0].message


def test_weights_of_rows_count(rings):
    """A class whose rows weigh little is given up where labels overlap."""
    X, y = rings
    # Where the inputs decide the label, a weight changes little: here they say nothing.
    shuffled = np.random.default_rng(1).permutation(y)
    few = train_joint(X, shuffled, sample_weight=np.where(shuffled == "in", 1e-3, 1), **QUICK)
    assert np.mean(_labels(few, X) == "out") > 0.98


def test_teacher_moves_the_labels(digits):
    """With all trust in a teacher the labels of y do not matter, only its soft ones."""
    X, y = digits
    teacher = LogisticRegression(max_iter=50).fit(X / 16.0, y)
    soft = teacher.predict_proba(X / 16.0)
    first = train_joint(X, y, teacher=soft, teacher_share=1.0, **QUICK)
    wrong = np.concatenate([y[:10], (y[10:] + 1) % 10])
    second = train_joint(X, wrong, teacher=soft, teacher_share=1.0, **QUICK)
    np.testing.assert_array_equal(first.weights, second.weights)


def test_shifted_images_are_learned(digits):
    """Augmentation makes the machine less sensitive to a shift by a pixel."""
    X, y = digits
    moved = np.roll(X.reshape(-1, 8, 8), 1, axis=1).reshape(-1, 64)
    options = {**QUICK, "n_components": 512, "epochs": 15}
    plain = train_joint(X, y, **options)
    shifted = train_joint(X, y, image_shape=(8, 8), augment_shift=1, **options)
    assert np.mean(_labels(shifted, moved) == y) > np.mean(_labels(plain, moved) == y) + 0.05


def test_squared_hinge_learns(digits):
    """The other loss works too."""
    X, y = digits
    machine = train_joint(X, y, loss="squared_hinge", **{**QUICK, "epochs": 20})
    assert np.mean(_labels(machine, X) == y) > 0.85


def test_scaling_is_shared_by_features_of_one_unit():
    """Pixels share one scale, a constant one too; columns in different units do not."""
    rng = np.random.default_rng(0)
    pixels = np.concatenate([rng.integers(0, 256, (50, 5)), np.zeros((50, 1), int)], axis=1)
    scaling = fit_joint_scaling(pixels, 8)
    assert np.unique(scaling.scale).size == 1
    assert fit_joint_scaling(pixels, 8, "feature").scale[5] == 0
    low, high = scaling.apply(np.full((1, 6), 0)), scaling.apply(np.full((1, 6), 255))
    assert low[0, 0] >= -1
    assert high[0, 0] <= 127 / 128
    assert np.unique(fit_joint_scaling(pixels * [1, 9, 80, 2, 3000, 1], 8).scale).size > 3


def test_neighbour_distance_equals_the_slow_way():
    """Mean distance to the 50th of 500 rows."""
    rows = np.random.default_rng(0).standard_normal((500, 8)).astype(np.float32)
    distances = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    distances.sort(axis=1)
    found = neighbour_distance(rows, np.random.default_rng(1))
    assert found == pytest.approx(distances[:, 50].mean(), rel=1e-4)


def test_components_fill_the_bytes():
    """One word more would not fit."""
    for layout in LAYOUTS.values():
        p = components_within(9000, layout, 256, 10)
        assert layout.table_bytes(p, 256, 10) <= 9000 < layout.table_bytes(p + 32, 256, 10)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"layout": "tiny"}, "layout"),
        ({"dropout": 1.0}, "dropout"),
        ({"epochs": -1}, "epochs"),
        ({"augment_shift": 1, "image_shape": (3, 3)}, "image_shape"),
        ({"teacher": np.ones((3, 2))}, "teacher"),
        ({"groups": np.zeros(1797), "search": True}, "groups"),
        ({"validation": (np.zeros((1, 64), np.uint8), [99])}, "validation"),
    ],
)
def test_errors_say_what_is_wrong(digits, arguments, words):
    """One line that names the argument."""
    with pytest.raises(TinykernelError, match=words):
        fit_joint(*digits, **{**QUICK, **arguments})


def test_options_are_checked():
    """Numbers that cannot work are refused."""
    with pytest.raises(TinykernelError, match="batch_rows"):
        JointOptions(batch_rows=100)


def _exact_learner(monkeypatch, X, y, **options):
    """Train with the arithmetic of the firmware; return learner, transform and machine."""
    caught = []
    written = joint._machine

    def catch(learner, transform, *arguments):
        caught.extend([learner, transform])
        return written(learner, transform, *arguments)

    monkeypatch.setattr(joint, "_machine", catch)
    result = fit_joint(X, y, firmware=FIRMWARE, **{**QUICK, **options})
    return *caught, result.machine


RAW = {
    "uint8": lambda X: X,
    "float32": lambda X: X * np.linspace(0.1, 9, 64).astype(np.float32),
    "int8": lambda X: X.astype(np.int8) - 8,
    "int16": lambda X: X.astype(np.int16) * np.arange(1, 65, dtype=np.int16) * 13,
    "uint16": lambda X: X.astype(np.uint16) * 999,
    "int32": lambda X: X.astype(np.int32) * 70001 - 5,
}


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("scope", ["feature", "global"])
@pytest.mark.parametrize("raw", list(RAW))
def test_quantised_forward_pass_is_the_integer_model(digits, monkeypatch, raw, scope, bits):
    """The last forward pass of training counts exactly the bits that the integer model counts."""
    X, y = RAW[raw](digits[0]), digits[1]
    layout = list(LAYOUTS)[len(raw + scope) % 3]
    learner, transform, machine = _exact_learner(
        monkeypatch, X[:600], y[:600], layout=layout, scaler_scope=scope, input_bits=bits,
        epochs=3,
    )  # fmt: skip
    model = quantize(machine)
    forward = learner.forward()
    assert forward.windows.are_stored
    decisions = learner.decide(transform.mixed(X[900:]) - learner.mean)
    sums = (decisions - forward.offset[:10]) / forward.scale
    np.testing.assert_allclose(sums, np.rint(sums), atol=0.02)
    signs = 2 * model.features_quantized(model.quantize_inputs(X[900:])).astype(int) - 1
    np.testing.assert_array_equal(np.rint(sums), signs @ model.weights.T.astype(int))
    assert np.mean(model.predict(X[900:]) == learner.decide(
        transform.mixed(X[900:]) - learner.mean).argmax(axis=1)) > 0.999  # fmt: skip


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_stored_arithmetic_hardly_changes_gradients(digits, monkeypatch, layout):
    """Gradients through the integers are those of the float pass, but for the rounding."""
    X, y = digits
    learner, *_ = _exact_learner(monkeypatch, X, y, layout=layout)
    gradients = []
    for arithmetic in (learner._arithmetic, None):
        learner._arithmetic = arithmetic
        learner.rng = np.random.default_rng(0)
        learner.learn(np.arange(1024), 0.0)
        gradients.append([g.sum(axis=0).ravel() for g in learner._gradients])
    for name, exact, rough in zip(_NAMES, *gradients, strict=True):
        if np.any(rough):
            cosine = exact @ rough / (np.linalg.norm(exact) * np.linalg.norm(rough))
            assert cosine > 0.9, name
            assert np.linalg.norm(exact) == pytest.approx(np.linalg.norm(rough), rel=0.2), name


def test_memory_stays_within_four_times_the_rows():
    """Features of all rows are never held at once: p = 1024 of them would take 16 times X."""
    rng = np.random.default_rng(0)
    X = rng.random((20000, 64), dtype=np.float32)
    y = (X[:, 0] > X[:, 1]).astype(int)
    fit_joint(X[:640], y[:640], n_components=1024, epochs=1, search=False)  # compiles
    tracemalloc.start()
    try:
        fit_joint(X, y, n_components=1024, epochs=2, search=False, firmware=FIRMWARE)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    fixed = 3 * 2**22  # pool of noise, parameters, gradients
    assert peak < 3 * X.nbytes + fixed  # with X itself four times
