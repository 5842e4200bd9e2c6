"""Words that are somewhere in their clips: where they are found, noise, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.training.signals.test_training import chirps
from tinykernel import train
from tinykernel.base.errors import OptionError
from tinykernel.learn.linear.training import LinearLearner
from tinykernel.learn.signals.clips import ClipLearner, Clips, _soft
from tinykernel.learn.signals.noises import ADDED, Noises, loudness, mixed_levels
from tinykernel.learn.signals.spectrum import spectrum_for
from tinykernel.model.answers import Events
from tinykernel.run.parity import verify

OPTIONS = {
    **{"rate": 8000.0, "hop": 128, "random_state": 0, "spectrum": "128/64/10"},
    **{"n_channels": 12, "epochs": 60, "budget": None, "target": "host"},
}


def spoken(seed: int, n: int = 60) -> tuple[list[np.ndarray], list[str], list[int]]:
    """Return clips of three windows with a rising tone somewhere, or a falling one."""
    X, y = chirps(3 * n, seed)
    rng = np.random.default_rng(seed)
    rising, falling = X[y == 1], X[y == 0]
    clips, labels, places = [], [], []
    for i in range(n):
        clip = rng.normal(0, 30, (4800, 1))
        place = int(rng.integers(0, 3200))
        clip[place : place + 1600] += (rising if i % 2 else falling)[i]
        clips.append(np.rint(np.clip(clip, -32768, 32767)).astype(np.int16))
        labels.append("word" if i % 2 else "rest")
        places.append(place)
    return clips, labels, places


def trained(clips: list[np.ndarray], labels: list[str], **more):
    """Return a model of clips, whose rows are windows of these."""
    rows = np.stack([clip[1600:3200] for clip in clips])
    noise = more.pop("noise", ())
    words = Clips(clips, labels, frozenset({"word"}), noise)
    return train(rows, np.array(labels), clips=words, **OPTIONS | more).model


@pytest.mark.slow
def test_a_word_is_found_in_its_clips(monkeypatch):
    """Protects the training on whole clips: places are found, whatever the order and threads."""
    clips, labels, _ = spoken(0)
    model = trained(clips, labels)
    others, truth, places = spoken(1)
    heard = [model.stream_scores(clip) for clip in others]
    margin = [scores[:, 1].astype(int) - scores[:, 0] for scores in heard]
    best = np.array([each.max() for each in margin])
    is_word = np.array(truth) == "word"
    threshold = np.median(best)
    assert np.mean((best > threshold) == is_word) >= 0.85
    off = [
        abs(int(m.argmax()) * 128 - p) for m, p, w in zip(margin, places, is_word, strict=True) if w
    ]
    assert np.median(off) < 500
    short = {"epochs": 3}
    plain = trained(clips, labels, **short)
    assert trained(clips[::-1], labels[::-1], n_jobs=2, **short) == plain
    assert trained(clips, labels, noise=None, **short) != plain
    monkeypatch.setattr("tinykernel.learn.signals.noises._BETWEEN", 0)
    assert trained(clips, labels, **short) != plain
    for option in ({"teachers": 2}, {"validation_fraction": 0.2}):
        with pytest.raises(OptionError, match="whole clips"):
            trained(clips, labels, **option)


def test_no_pause_is_the_place_of_a_word():
    """Recordings with the same pause had it for their word: 51 of 60, and none was heard."""
    levels = np.repeat([30, 60, 30], [20, 10, 10])[:, np.newaxis]  # 22 dB
    assert _soft(levels, 10).tolist() == [True] * 6 + [False] * 9 + [True]


@pytest.mark.slow
@pytest.mark.parametrize("core", ["host", "cortex-m4"])
def test_ten_minutes_of_a_stream(core, require_platforms):
    """Whatever ten minutes hold, C makes the events of Python, and the scores at every hop."""
    require_platforms(core)
    clips, labels, _ = spoken(0, 32)
    model = trained(clips, labels, epochs=12)
    scores = model.stream_scores(np.concatenate(clips)).astype(np.int64)
    most = int(np.quantile(scores[:, 1] - scores[:, 0], 0.95))
    # Twice of it: after so few epochs a sum of what is usual is above one half of it all the time.
    model = replace(model, events=Events(np.array([0, max(2 * most, 1)], np.uint32), 1, 12))
    rng = np.random.default_rng(0)
    stream = np.concatenate([clips[at] for at in rng.integers(0, 32, 1000)])
    loud = np.repeat(rng.uniform(0, 2, (1000, 1)), 4800, axis=0)
    stream = np.rint(np.clip(loud * stream, -32768, 32767)).astype(np.int16)
    assert len(stream) == 600 * 8000
    result = verify(model, stream[:1600].reshape(1, -1), target=core, recordings=[stream])
    assert (result.differences, result.hops) == (0, (len(stream) - 1600) // 128 + 1)
    assert 20 < result.events < result.hops // 12


@pytest.mark.parametrize("rest", ["rest", "x"])  # before and after the word
def test_false_peaks_of_background_join(monkeypatch, rest):
    """Protects mining: a third and two thirds later, apart, of background, ever heavier; said."""
    seen, epoch = [], ClipLearner.epoch

    def watched(self, number):
        loss = epoch(self, number)
        first = len(self.clips.rows.inputs)
        seen.append((self, len(self.inputs) - first, self.weight[first:].tolist()))
        return loss

    monkeypatch.setattr(ClipLearner, "epoch", watched)
    clips, labels, _ = spoken(0, 32)
    rows = np.stack([clip[1600:3200] for clip in clips])
    labels = ["word" if label == "word" else rest for label in labels]
    words = Clips(clips, labels, frozenset({"word"}), None)
    result = train(rows, np.array(labels), clips=words, **OPTIONS | {"epochs": 9})
    learner = seen[0][0]
    n = learner.clips.rows_mined
    assert n == 48 // 8  # clips of the word are in each epoch twice
    assert [joined for _, joined, _ in seen] == [0] * 3 + [n] * 3 + [2 * n] * 3
    assert seen[3][2] == [1] * n
    last = seen[-1][2]
    assert 1 < last[-1] < last[0] < 20
    assert not learner.clips.words[learner.clips.codes[48:]].any()
    assert result.classifier.remarks_[0].startswith(f"{2 * n} peaks")
    lift = learner.stored()[2] - LinearLearner.stored(learner)[2]
    is_word = learner.clips.words[learner.clips.codes]
    leans = np.log(learner.weight[~is_word].sum() / learner.weight[is_word].sum())
    assert leans > 1
    assert lift == pytest.approx(leans if rest < "word" else -leans)
    for plane in learner.inputs[48:, 0]:
        windows = np.lib.stride_tricks.sliding_window_view(
            learner.clips.joined, plane.shape[0], axis=0
        )
        assert (windows == plane.T[None]).all(axis=(1, 2)).any()


@settings(max_examples=20)
@given(seed=st.integers(0, 99))
def test_noise_is_as_far_below_as_it_is_said(seed):
    """Protects the mixture: never softer, some without, at most as loud; voices beside words."""
    rng = np.random.default_rng(seed)
    spectrum = spectrum_for("512/320/20", 16000.0, 16000, 0)
    planes = rng.integers(20, 90, (16, 60, 20))
    own = [rng.integers(0, 60, (9, 20)).astype(np.uint8)]
    noises = Noises.of(spectrum, [plane.astype(np.uint8) for plane in planes[:3]], own)
    mixed = noises.mix(planes, rng)
    assert (mixed >= planes).all()
    same = (mixed == planes).all(axis=(1, 2))
    assert 0 < same.sum() < 16 or seed
    louder = loudness(mixed, 7) - loudness(planes, 9)
    assert louder.max() <= 6
    assert noises.falls[0] == 0
    assert noises.falls[-1] > 40  # 6 dB an octave of amplitude, in 0.75 dB
    word, voice = np.arange(60) // 20 == 1, rng.integers(16, 25, (60, 20))
    voice[:15] += 60  # speech with a pause
    alone = replace(noises, voices=[voice.astype(np.uint8)])
    between = alone.between_voices(planes, np.tile(word, (16, 1)), rng)
    assert (between[:, word] == planes[:, word]).all()
    changed = (between != planes).any(axis=2)
    assert (changed[:, 0] == changed[:, -1]).all()  # before the word and after it
    assert 0 < changed[:, 0].sum() < 16
    louder = loudness(between[:, ~word], 9) - loudness(planes[:, word], 9)
    assert -24 <= louder[changed[:, 0]].max() <= 4
    exact = 4 * np.log2(2 ** (planes[0] / 4) + 2 ** (planes[1] / 4))
    assert np.abs(mixed_levels(planes[0], planes[1]) - exact).max() <= 0.51 + 0.25
    assert ADDED.tolist() == np.rint(4 * np.log2(1 + 2 ** (-np.arange(len(ADDED)) / 4))).tolist()
