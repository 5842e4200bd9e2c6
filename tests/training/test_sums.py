"""Training with sums over a window beside the counts of kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.training.test_beside import rows_of
from tinykernel import TernaryKernelClassifier, TinykernelError, train
from tinykernel.build.parity import verify
from tinykernel.model import as_integer_model
from tinykernel.model.stages.sums import Summed
from tinykernel.training.local.signal_training import counted_ahead
from tinykernel.training.options import TrainerOptions
from tinykernel.training.trainset import prepare


def waves(n, seed=0):
    """Draw noise of any level and loudness; half of it has rare bursts, and no more power."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.standard_normal((n, 96, 2))
    bursts = np.where(rng.random(X.shape) < 0.06, 4.0, 0.35)
    X = np.where(y[:, None, None] > 0, X * bursts, X)
    X *= 2.0 ** rng.uniform(3, 9, (n, 1, 1))
    return np.rint(X + rng.uniform(-9000, 9000, (n, 1, 1))).astype(np.int16), y


@pytest.mark.parametrize("n", [300, 1100])
def test_sums_tell_what_few_kernels_do_not(n):
    """Kurtosis at any loudness, of few and of many windows; C is the same."""
    (X, y), (new, known) = waves(n), waves(300, 1)
    right = {}
    for sums in ("on", "off"):
        options = {"sums": sums}
        found = TernaryKernelClassifier(
            n_components=0, n_kernels=8, hop=32, random_state=0, options=options
        ).fit(X, y)
        model = as_integer_model(found)
        right[sums] = np.mean(model.predict(new) == known)
        assert (model.find(Summed) is not None) == (sums == "on")
        assert np.array_equal(model.predict(X), found.predict(X))
        assert verify(model, new[:20]).ok
    assert right["on"] > 0.9 > right["off"]


def test_sums_stand_behind_numbers():
    """Both reach the counts, and a budget keeps to the bytes of both."""
    X, y = rows_of(240)
    trained = train(
        X, y, budget="4KB", window_shape=(64, 1), beside=2, sums="on", effort="quick", link=False
    )
    kinds = [stage.KIND for stage in trained.model.stages]
    assert kinds == ["sums", "levels", "kernels", "beside", "summed", "scale"]
    assert np.mean(trained.model.predict(X) == y) > 0.9
    assert verify(trained.model, X[:10]).ok


@pytest.mark.parametrize(
    ("dtype", "options", "message"),
    [
        ("float32", {}, "whole numbers of 8 or 16 bits"),
        ("int16", {"offset": "remove"}, "not together with offset=remove"),
        ("int16", {"spectrum": "64/1/4", "rate": 1000.0}, "sums: on goes with no spectrum"),
        ("int16", {"augment": {"noise": 9}}, "sums: not together with augment"),
        ("int16", {"image_shape": (96, 2)}, "sums: give signals"),
    ],
)
def test_sums_that_cannot_be_are_refused(dtype, options, message):
    """Floats, another first stage, varied copies and images get a line."""
    X, y = waves(60)
    own = {k: v for k, v in options.items() if k in ("augment", "image_shape", "rate")}
    other = {k: v for k, v in options.items() if k not in own}
    given = TernaryKernelClassifier(n_components=0, options={"sums": "on", **other}, **own)
    rows = X.reshape(60, -1) if "image_shape" in own else X
    with pytest.raises(TinykernelError, match=message):
        given.fit(rows.astype(dtype), y)


@pytest.mark.parametrize("given", [{"augment": {"noise": 1}}, {"offset": "remove"}])
def test_what_sums_exclude_was_refused_after_the_choice_of_cells(given):
    """The options alone tell it, before any work."""
    with pytest.raises(TinykernelError, match="sums: not together with"):
        TrainerOptions(sums="on", **given).check_for((96, 2))


def test_means_were_removed_from_windows_with_sums_by_themselves():
    """The contest of cells chose what sums exclude, and the training was refused."""
    X, y = waves(90)
    data = prepare(X.reshape(90, -1), y)[1]
    options = TrainerOptions(sums="on", random_state=0)
    assert "offset" not in counted_ahead(data, options, (96, 2))


def test_silence_has_no_sums():
    """Where no sum varies there is nothing to stand beside the counts."""
    X = np.zeros((40, 64, 1), np.int16)
    X[:, :, 0] += np.arange(40)[:, None] * 7
    X[::2, 5:9, 0] += 1
    X[1::2, 15:19, 0] += 1
    with pytest.raises(TinykernelError, match="sums: none of them varies"):
        TernaryKernelClassifier(n_components=0, options={"sums": "on"}).fit(X, np.arange(40) % 2)
