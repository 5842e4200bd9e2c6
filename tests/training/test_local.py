"""Training with a local stage and a linear part: what is learned is what the model computes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning

import tinykernel
from tinykernel import TernaryKernelClassifier, TinykernelError, progress
from tinykernel.model.grid import Grid
from tinykernel.model.quantization.scale import quantize_scaler
from tinykernel.model.readouts.linear import Linear
from tinykernel.model.stages.components import Components
from tinykernel.model.stages.kernels import Kernels
from tinykernel.model.stages.levels import Levels
from tinykernel.model.stages.spectrum import Spectrum
from tinykernel.training.augment import Augmentation, _between, affine_moves, vary_windows
from tinykernel.training.images.kernels import ImageLearner, ImagePlan, as_levels
from tinykernel.training.inputs import choose_scaling
from tinykernel.training.loop import run_epochs
from tinykernel.training.loss import targets_of
from tinykernel.training.options import TrainerOptions
from tinykernel.training.readouts.linear import LinearLearner, LinearRecipe, round_linear
from tinykernel.training.signals.copies import with_spectra
from tinykernel.training.signals.pool import SignalPlan, SignalPool
from tinykernel.training.signals.spectrum import spectrum_of
from tinykernel.training.signals.training import counted_ahead, some_rows
from tinykernel.training.trainset import TrainSet, prepare


@pytest.fixture(scope="module")
def digits():
    """Small images as bytes."""
    X, y = load_digits(return_X_y=True)
    return X.astype(np.uint8), y


@pytest.fixture(scope="module")
def waves():
    """Windows of two channels: three kinds of oscillation with a random phase."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 240)
    t = np.arange(64) + 40 * rng.random((240, 1))
    frequency = np.array([0.03, 0.07, 0.15])[y][:, np.newaxis]
    first = np.sin(2 * np.pi * frequency * t)
    X = np.stack([first, 0.5 * first + y[:, np.newaxis] * 0.2], axis=2)
    X += 0.1 * rng.standard_normal(X.shape)
    return np.rint(1000 * X).astype(np.int16), y


def images(rng, shape, plan, n=40):
    """Make a learner on random images that has made a step."""
    height, width, channels = shape
    raw = rng.integers(0, 256, (n, height * width * channels)).astype(np.uint8)
    _, scaling = choose_scaling(raw.reshape(-1, channels), "uint8", 8, "global")
    scaler = quantize_scaler(scaling, "uint8", 8).scaler
    targets = targets_of(rng.integers(0, 3, n), 3)
    learner = ImageLearner(
        as_levels(raw, scaler, shape), targets, np.ones(n, np.float32), plan, Augmentation()
    )
    run_epochs(learner, 1, stage=None)
    return raw, scaler, learner


def counts(stages, raw):
    """Run the stages of a model."""
    levels = stages.levels.run(raw, stages.taken)
    return stages.kernels.run(levels, stages.placed)


@pytest.mark.parametrize(
    ("shape", "size", "average", "cells"),
    [((12, 10, 1), 5, 1, (4, 4)), ((9, 14, 2), 3, 2, (3, 4)), ((40, 70, 1), 7, 1, (1, 2))],
)
def test_the_counts_in_training_are_those_of_the_stage(shape, size, average, cells):
    """Protects that thresholds and weights are learned on what the firmware counts."""
    rng = np.random.default_rng(0)
    plan = ImagePlan(
        n_kernels=5, size=size, average=average, cells=cells, linear=LinearRecipe(epochs=1)
    )
    raw, scaler, learner = images(rng, shape, plan)
    stages = learner.stages(scaler, np.arange(5))
    counted = (counts(stages, raw).astype(np.int64) * learner.multiplier) >> 16
    assert stages.largest_count <= learner.largest_count
    np.testing.assert_array_equal(learner.seen(learner.inputs), counted)


@pytest.mark.parametrize("cells", [1, 3])
def test_the_counts_of_a_pool_are_those_of_the_stage(waves, cells):
    """Protects the same for signals, for every kind of kernel and after some are chosen."""
    X, y = waves
    rows = X.reshape(len(X), -1)
    _, scaling = choose_scaling(rows.reshape(-1, 2), "int16", 16, "feature")
    scaler = quantize_scaler(scaling, "int16", 16).scaler
    pool = SignalPool(
        rows,
        (64, 2),
        scaler,
        targets_of(y, 3),
        np.ones(len(y), np.float32),
        SignalPlan(n_kernels=20, n_pool=90, cells=cells),
    )
    np.testing.assert_array_equal(pool.counts(rows), counts(pool.stages, rows))
    kept, stages = pool.reduced(pool.ranked())
    assert kept.size == 20
    columns = pool.columns(kept)
    np.testing.assert_array_equal(pool.counts(rows)[:, columns], counts(stages, rows))


def places(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return windows with a beat that is early, on time or late, and groups."""
    rng = np.random.default_rng(0)
    y, group = np.arange(n) % 3, np.arange(n) % 7
    X = 30 * rng.standard_normal((n, 256, 1))
    for row, label in zip(X[:, :, 0], y, strict=True):
        row[100 + 20 * label + rng.integers(-2, 3) + np.arange(4)] += 1000
    return np.rint(X).astype(np.int16), y, group


def test_cells_are_chosen_where_the_place_matters(waves):
    """Protects that `train` finds by groups left out when counts need cells, and what is refused.

    The option has to reach the models by which the size is told, or those trained are too large.
    """
    X, y, group = places(1002)
    options = {"random_state": 0, "budget": "4KB", "link": False}
    found = tinykernel.train(X, y, groups=group, **options)
    assert found.model.find(Kernels).cells == (16, 1)
    assert found.trainings == 1
    assert found.sizes.flash > 3500
    assert tinykernel.train(X, y, cells=1, **options).model.find(Kernels).cells == (1, 1)
    data = prepare(waves[0].reshape(-1, 128), waves[1])[1]
    assert not counted_ahead(data, TrainerOptions(random_state=0), (64, 2))
    for cells, said in ((121, "too many for windows of 256"), (256, "255 are the most")):
        with pytest.raises(TinykernelError, match=said):
            TernaryKernelClassifier(options={"cells": cells}).fit(X, y)
    with pytest.raises(TinykernelError, match="cells: give signals"):
        TernaryKernelClassifier(options={"cells": 4}).fit(*load_iris(return_X_y=True))


def test_the_rows_that_choose_kernels_stand_for_all():
    """Protects rare classes where few of many windows choose kernels, and the weight of all."""
    targets = np.eye(3, dtype=np.float32)[np.repeat([0, 1, 2], [900, 80, 20])]
    rows, weight = some_rows(targets, np.ones(1000, np.float32), 300)
    taken = targets[rows]
    assert taken.sum(axis=0).tolist() == [200, 80, 20]
    np.testing.assert_allclose((weight @ taken) / weight.sum(), [0.9, 0.08, 0.02], rtol=1e-5)
    assert some_rows(targets, np.ones(1000, np.float32), 1000)[0].size == 1000


def chirps(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return tones that rise or fall, at any loudness and phase, in noise; 0.2 s at 8 kHz."""
    rng = np.random.default_rng(seed)
    y, t = np.arange(n) % 2, np.arange(1600) / 8000
    slope = np.where(y, 1, -1) * 6000
    start = 1600 - 0.1 * slope + rng.uniform(-200, 200, n)
    phase = 2 * np.pi * (start[:, None] * t + slope[:, None] * t**2 / 2)
    tones = np.sin(phase + rng.uniform(0, 7, (n, 1))) * 10 ** rng.uniform(2.5, 4, (n, 1))
    return np.rint(tones + 30 * rng.standard_normal((n, 1600))).astype(np.int16)[:, :, None], y


def test_sounds_end_to_end(tmp_path):
    """Protects spectra in training: accuracy at any loudness, the file, what cannot be."""
    X, y = chirps(160, 0)
    options = {"rate": 8000.0, "options": {"spectrum": "128/64/10"}, "hop": 640, "n_kernels": 20}
    model = TernaryKernelClassifier(**options, random_state=0).fit(X, y)
    assert model.score(*chirps(100, 1)) > 0.9
    integer = model.quantize()
    moved = TernaryKernelClassifier(**options, augment={"shift": 200}, random_state=0).fit(X, y)
    assert moved.score(*chirps(100, 1)) > 0.9
    assert moved.quantize() != integer
    assert [stage.KIND for stage in integer.stages] == ["spectrum", "levels", "kernels", "scale"]
    assert (integer.input.shape, integer.hop) == ((1600, 1), 640)
    tinykernel.save(integer, tmp_path / "m.tkm")
    assert tinykernel.load(tmp_path / "m.tkm") == integer
    for change, said in (
        ({"hop": 100}, "no multiple of that of frames"),
        ({"rate": None}, "give the samples a second, as in rate=16000"),
        ({"options": {"spectrum": "100/50/5"}}, "frames have 64, 128, 256 or 512 samples"),
        ({"options": {"spectrum": "512/320/5"}}, "too few frames"),
        ({"options": {"spectrum": "128/0/5"}}, "a hop of 1 to 128 and 1 to 64 bands"),
        ({"options": {"spectrum": "128/64/10", "cells": 30}}, "for windows of 24 frames"),
        ({"augment": {"affine": 1}, "options": {"spectrum": "off"}}, "for images and spectra"),
    ):
        with pytest.raises(TinykernelError, match=said):
            TernaryKernelClassifier(**options | change).fit(X, y)
    with pytest.raises(TinykernelError, match="rotate goes with no spectrum"):
        TernaryKernelClassifier(**options, augment={"rotate": 0.1}).fit(X.repeat(3, axis=2), y)


def test_a_spectrum_is_chosen_for_fast_signals_only():
    """Protects slow signals, short windows and floats, which keep their kernels on samples."""
    auto = TrainerOptions(rate=8000.0)
    assert auto.has_spectrum((8000, 1), "int16")
    assert not auto.has_spectrum((500, 1), "int16")
    assert not auto.has_spectrum((8000, 1), "float32")
    assert not TrainerOptions(rate=50.0).has_spectrum((8000, 1), "int16")
    assert not TrainerOptions().has_spectrum((8000, 1), "int16")
    assert not TrainerOptions(rate=8000.0, spectrum="off").has_spectrum((8000, 1), "int16")


@pytest.mark.parametrize(
    ("change", "samples", "said"),
    [
        ({"hop": 1999}, 4000, "no spectrum: a hop of 1999 samples .* give --hop 2000"),
        ({"augment": {"rotate": 0.1}}, 8000, "no spectrum: --augment rotate"),
        ({"augment": {"noise": 0.1}}, 8000, (256, 160)),
        ({"hop": 500}, 1000, (128, 50)),
        ({"hop": 1000}, 2000, (256, 125)),
        ({"augment": {"shift": 1}}, 8000, (256, 160)),
    ],
)
def test_the_spectrum_was_lost_silently(change, samples, said):
    """Windows of sound got none, without a word, for their hop, their length, or added noise."""
    options = TrainerOptions(rate=8000.0, **change)
    found, why = spectrum_of(options, (samples, 1), "int16")
    if isinstance(said, str):
        assert found is None
        assert re.match(said, why)
        return
    assert why == ""
    assert (found.length, found.hop) == said
    assert found.frames(samples) >= 12


@pytest.mark.parametrize("budget", [None, "4KB"])
def test_options_never_given_were_refused(budget):
    """Without a budget a hop of 1999 was an error of "spectrum", which nobody asked for."""
    X, y = chirps(60, 0)
    options = {"rate": 8000.0, "hop": 397, "random_state": 0, "window_shape": (1600, 1)}
    options |= {"n_kernels": 8} if budget is None else {"budget": budget}
    with pytest.warns(UserWarning, match="no spectrum: a hop of 397 .* give --hop 39"):
        tinykernel.train(X, y, link=False, **options)


def test_a_channel_that_rarely_varies_was_refused():
    """The contest of cells looked at 600 windows only, where a channel of rare knocks was still."""
    rng = np.random.default_rng(0)
    X = np.zeros((1200, 64, 2), np.int16)
    X[:, :, 0] = rng.normal(0, 100, (1200, 64))
    X[-1, 5, 1] = 500
    data = prepare(X.reshape(-1, 128), np.arange(1200) % 2)[1]
    assert isinstance(counted_ahead(data, TrainerOptions(random_state=0), (64, 2)), dict)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_a_linear_part_is_learned_as_it_is_stored(bits):
    """Protects its levels, and that the scores of the model are the decisions in training."""
    rng = np.random.default_rng(bits)
    linear = rng.standard_normal((30, 4)).astype(np.float32)
    levels, step = round_linear(linear, bits)
    assert np.abs(levels).max() == 2 ** (bits - 1) - 1
    assert np.abs(levels * step - linear).mean() < (0.6 if bits == 2 else 0.2)
    X, y = load_iris(return_X_y=True)
    model = TernaryKernelClassifier(n_components=0, linear=bits, epochs=40, random_state=0)
    model.fit(X, y)
    assert model.score(X, y) > 0.85
    assert np.abs(model.quantize().find(Linear).weights).max() == 2 ** (bits - 1) - 1


def test_images_end_to_end(digits, tmp_path):
    """Protects kernels learned for images: accuracy, the integers, the file, the threads."""
    X, y = digits
    options = {"image_shape": (8, 8), "n_kernels": 24, "epochs": 30, "random_state": 0}
    model = TernaryKernelClassifier(**options, n_jobs=1).fit(X[:1200], y[:1200])
    assert model.score(X[1200:], y[1200:]) > 0.9
    integer = model.quantize()
    np.testing.assert_array_equal(integer.predict(X[1200:]), model.predict(X[1200:]))
    assert integer.input.shape == model.input_shape_[:2] == (8, 8)
    other = TernaryKernelClassifier(**options, n_jobs=2).fit(X[:1200].reshape(-1, 8, 8), y[:1200])
    assert other.quantize() == integer
    tinykernel.save(model, tmp_path / "m.tkm")
    assert tinykernel.load(tmp_path / "m.tkm").quantize() == integer


def test_chosen_kernels_do_not_hide_that_labels_are_random():
    """Their own error left out was 0.21, where a guess has 1; the penalty was too small by it."""
    rng = np.random.default_rng(0)
    X = rng.normal(0, 50, (60, 64)).astype(np.int16)
    model = TernaryKernelClassifier(window_shape=(64, 1), n_kernels=128, random_state=0)
    assert model.fit(X, rng.integers(0, 2, 60)).history_["loss"][-1] > 0.8


def test_signals_end_to_end(waves, tmp_path):
    """Protects windows as an array: chosen kernels, few mixes, variation, the file, the threads."""
    X, y = waves
    options = {
        "n_kernels": 32,
        "random_state": 0,
        "hop": 0,
        "augment": {"noise": 0.05, "scale": 0.1, "shift": 2},
    }
    model = TernaryKernelClassifier(**options, n_jobs=1).fit(X[:160], y[:160])
    assert model.score(X[160:], y[160:]) > 0.9
    integer = model.quantize()
    assert integer.find(Kernels).n_kernels == 32
    assert len(integer.find(Levels).mix) <= 16
    flat = TernaryKernelClassifier(**options, window_shape=(64, 2), n_jobs=2)
    flat.fit(X[:160].reshape(160, -1), y[:160])
    assert flat.quantize() == integer
    tinykernel.save(model, tmp_path / "m.pkl")
    assert tinykernel.load(tmp_path / "m.pkl").quantize() == integer


def test_a_linear_part_beside_components(digits):
    """Protects joint training: it helps few components."""
    X, y = digits
    given = {"n_components": 64, "effort": "quick", "epochs": 30, "random_state": 0}
    alone = TernaryKernelClassifier(**given).fit(X[:1200], y[:1200])
    both = TernaryKernelClassifier(**given, linear=4).fit(X[:1200], y[:1200])
    assert both.score(X[1200:], y[1200:]) > alone.score(X[1200:], y[1200:]) + 0.03
    integer = both.quantize()
    assert integer.find(Linear) is not None
    assert integer.find(Components) is not None


def test_forms_compete():
    """Protects the choice among components, linear part, and both, on rows held out."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 5))
    y = (X @ rng.standard_normal(5) > 0).astype(int)
    forms = {"compact": 64, "compact+linear8": 32, "linear8": 0}
    model = TernaryKernelClassifier(n_components=forms, epochs=5, random_state=0).fit(X, y)
    assert {(t["n_components"] > 0, t["linear_bits"]) for t in model.trials_} >= {
        (True, None),
        (True, 8),
        (False, 8),
    }
    assert model.quantize().find(Linear) is not None


def test_dropout_and_interruption_keep_the_best():
    """Protects dropout, two classes, and Ctrl-C after the first epoch."""
    rng = np.random.default_rng(0)
    q = rng.integers(-100, 100, (200, 6)).astype(np.int8)
    codes = (q[:, 0] > q[:, 1]).astype(np.int64)
    recipe = LinearRecipe(bits=8, epochs=30, dropout=0.2, batch_rows=32)
    learner = LinearLearner(q, targets_of(codes, 2), np.ones(200, np.float32), recipe)
    calls = iter([0.5, 0.9])

    def judge():
        try:
            return next(calls)
        except StopIteration:
            raise KeyboardInterrupt from None

    history = run_epochs(learner, 30, judge)
    assert history.interrupted
    assert len(history.epochs) == 2
    assert np.mean((learner.decide(q)[:, 0] > 0) == codes) > 0.7


def test_variation_of_inputs():
    """Protects that rotations keep lengths, a map of strength 0 is none, and flips mirror."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5, 20, 6))
    turned = vary_windows(X, Augmentation(rotate=0.5), rng)
    assert not np.allclose(turned, X)
    for c in (0, 3):
        np.testing.assert_allclose(
            np.linalg.norm(turned[:, :, c : c + 3], axis=2),
            np.linalg.norm(X[:, :, c : c + 3], axis=2),
        )
    assert affine_moves(Augmentation(), 5, (8, 8), rng).size == 0
    moves = affine_moves(Augmentation(affine=1.0), 500, (28, 28), rng)
    assert np.abs(moves.mean(axis=0) - [1, 0, 0, 0, 1, 0]).max() < 0.3
    mirrored = affine_moves(Augmentation(flip=1.0), 2, (3, 8), rng)
    np.testing.assert_array_equal(mirrored, np.tile([1, 0, 0, 0, -1, 7], (2, 1)))


def test_variation_of_spectra():
    """Protects that a place between levels has a level between, and silence and bands stay."""
    rng = np.random.default_rng(0)
    levels = rng.uniform(0, 255, (4, 9, 2, 5))
    place = rng.uniform(-2, 7, (4, 1, 1, 5))
    found = _between(levels, place, 3)
    for i in np.ndindex(4, 9, 2):
        np.testing.assert_allclose(found[i], np.interp(place[i[0], 0, 0], np.arange(5), levels[i]))
    loud = np.tile([[0.0] * 5 + [90.0] * 5], (40, 9, 1))  # a silent channel beside another
    varied = vary_windows(loud, Augmentation(affine=1, bands=5), rng)
    assert not varied[:, :, :5].any()
    louder = varied[:, :, 5:] - 90
    assert np.all(louder == louder[:, :1, :1])
    assert 6 < np.abs(louder).max() <= 12


def test_copies_with_noise_stay_in_the_group_of_their_window():
    """Protects held-out rows: what is made of them is no training row."""
    X = np.random.default_rng(0).integers(-99, 99, (2, 800)).astype(np.int16)
    data = TrainSet(X, np.array([0, 1]), np.ones(2), ("a", "b"), "int16")
    first, grid = Spectrum(64, 64, np.arange(2, 8), 2, 0), Grid.raw("int16", 800, 1)

    def levels(rows):
        return first.run(rows, grid)

    plain = with_spectra(data, first, grid, levels, TrainerOptions())
    np.testing.assert_array_equal(plain.X, levels(X))
    assert plain.groups is None
    for n, augment in ((2, {"noise": 0.5}), (2, {"shift": 300}), (4, {"affine": 1, "scale": 1})):
        options = TrainerOptions(augment=augment, random_state=0)
        found = with_spectra(data, first, grid, levels, options)
        assert found.groups.tolist() == found.codes.tolist() == [0, 1] * n
        np.testing.assert_array_equal(found.X[:2], plain.X)
        assert not (found.X[2:4] == plain.X).all(axis=1).any()


@pytest.mark.parametrize(
    ("options", "shape", "message"),
    [
        ({"window_shape": (5, 2)}, (40, 9), "window_shape: 5 x 2 makes 10 values"),
        ({"window_shape": (8, 2)}, (40, 16), "windows of 8 samples are too short"),
        ({"image_shape": (2, 8)}, (40, 16), "too small"),
        ({"image_shape": (4, 4), "window_shape": (8, 2)}, (40, 16), "give one of them"),
        ({"augment": {"affine": 1}}, (40, 16), "affine is not for rows"),
        ({"augment": {"tilt": 1}}, (40, 16), "'tilt' is not known"),
        ({"augment": {"flip": 2}, "image_shape": (4, 4)}, (40, 16), "flip.*from 0 to 1"),
        ({"augment": {"rotate": 0.1}}, (40, 16, 4), "rotate turns three channels at a time"),
        ({"n_kernels": 4}, (40, 16), "give a shape"),
        ({"sigma": 2.0}, (40, 32, 2), "sigma: the local stage of signals has no use"),
        ({"epochs": 9}, (40, 32, 2), "epochs: the local stage of signals has no use"),
        ({"sigma": 2.0, "image_shape": (4, 4)}, (40, 16), "sigma: the local stage of images"),
        ({"n_components": 0, "sigma": 0.2}, (40, 16), "sigma: a linear part alone has no use"),
        ({"hop": 4}, (40, 16), "hop: give signals"),
        ({"options": {"spectrum": "on"}}, (40, 16), "spectrum: give signals"),
        ({"n_components": 0, "linear": "off"}, (40, 16), "needs a linear part"),
        ({"image_shape": (4, 4), "n_components": 64}, (40, 16), "have n_kernels"),
        ({"n_components": {"compact+linear3": 4}}, (40, 16), "linear2, linear4"),
        ({"window_shape": (8, 2)}, (40, 9, 2), "not"),
        ({"image_shape": (4, 1024), "n_kernels": 2}, (40, 4096), "4 x 1024 is too wide"),
    ],
)
def test_what_does_not_fit_is_refused(options, shape, message):
    """Protects that no option is ignored and every shape is checked."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 200, shape).astype(np.uint8), np.arange(shape[0]) % 2
    with pytest.raises(TinykernelError, match=message):
        TernaryKernelClassifier(**options).fit(X, y)


def test_a_single_group_trains_as_rows_without_groups():
    """One recording, or what is left of two, once ended in an error about its only group."""
    X, y = load_iris(return_X_y=True)
    given = {"n_components": 0, "epochs": 2, "options": {"validation_fraction": 0.2}}
    alone = TernaryKernelClassifier(random_state=0, **given).fit(X, y, groups=["a"] * len(y))
    assert alone.quantize() == TernaryKernelClassifier(random_state=0, **given).fit(X, y).quantize()


@pytest.mark.parametrize(("stage", "number"), [("choosing kernels", 1), ("rounding", 0)])
def test_ctrl_c_before_there_are_weights_ends_the_fit(waves, stage, number):
    """It once ended one training of the choice only, and the next one began."""
    X, y = (np.repeat(part, 6 if stage == "rounding" else 1, axis=0) for part in waves)
    X = X + np.arange(len(X))[:, None, None].astype(X.dtype) % 7

    def interrupt(message):
        if (message.stage, message.done) == (stage, number):
            raise KeyboardInterrupt

    with progress.observing(interrupt), pytest.raises(KeyboardInterrupt):
        TernaryKernelClassifier(n_kernels=4, random_state=0).fit(X, y)


def test_ctrl_c_in_closed_form_ended_without_a_model(waves):
    """The best levels until then are kept, with a warning that says so."""
    X, y = (np.repeat(part, 6, axis=0) for part in waves)
    X = X + np.arange(len(X))[:, None, None].astype(X.dtype) % 7

    def interrupt(message):
        if (message.stage, message.done) == ("rounding", 3):
            raise KeyboardInterrupt

    with progress.observing(interrupt), pytest.warns(ConvergenceWarning, match="was interrupted"):
        model = TernaryKernelClassifier(n_kernels=16, random_state=0).fit(X, y)
    assert model.interrupted_
    assert model.score(X, y) > 0.8


def test_rows_for_validation_choose_the_penalty(waves):
    """They once had to be learned by gradients; labels that are noise get a large penalty."""
    X, y = waves
    fits = []
    for labels in (y[160:], np.random.default_rng(0).integers(0, 2, len(y) - 160)):
        model = TernaryKernelClassifier(n_kernels=16, random_state=0)
        fits.append(model.fit(X[:160], y[:160], validation=(X[160:], labels)))
    losses = [model.history_["loss"][-1] for model in fits]
    assert losses[0] < 0.6 < losses[1]
    assert fits[0].quantize() != fits[1].quantize()


def test_more_counts_than_memory_holds_are_refused(waves):
    """The line says how many kernels there may be."""
    X, y = waves
    model = TernaryKernelClassifier(n_kernels=5000, options={"cells": 2}, random_state=0)
    with pytest.raises(TinykernelError, match=r"10000 counts, .*give at most 4608"):
        model.fit(X, y)


def test_a_linear_part_that_may_overflow_says_what_to_do():
    """The message once spoke of halving, which a linear part does not have."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(-32768, 32767, (40, 9000)).astype(np.int16), np.arange(40) % 2
    options = {"linear": 8, "options": {"input_bits": 16}, "epochs": 1, "random_state": 0}
    with pytest.raises(TinykernelError, match="give linear=4 or 2, or input_bits=8"):
        TernaryKernelClassifier(n_components=0, **options).fit(X, y)


def test_a_constant_channel_is_named():
    """Protects the message for a sensor that never varies."""
    X = np.random.default_rng(0).integers(0, 200, (40, 32, 2)).astype(np.uint8)
    X[:, :, 1] = 7
    with pytest.raises(TinykernelError, match="channel 1 never varies"):
        TernaryKernelClassifier().fit(X, np.arange(40) % 2)
