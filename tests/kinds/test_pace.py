"""Training in limited time: what ends early, and how the same bytes are made without a clock."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from tinykernel import Classifier, train
from tinykernel.base import progress
from tinykernel.base.errors import TinykernelError
from tinykernel.kinds import pace
from tinykernel.kinds.components import ComponentsKind
from tinykernel.kinds.pace import Pace
from tinykernel.kinds.selection import select
from tinykernel.kinds.train import fitting
from tinykernel.learn import loop
from tinykernel.learn.convolutions.chains import ConvolutionLearner
from tinykernel.learn.loop import Schedule
from tinykernel.learn.options import Effort
from tinykernel.papers.classifier import PaperClassifier

X, y = load_digits(return_X_y=True)
X, y = X.astype(np.uint8)[:400], y[:400] % 3
PLANNED = {"budget": "3KB", "link": False, "random_state": 0}


class Clock:
    """Seconds that pass at each look."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.mark.parametrize(
    "text", ["normal", "0.25/12/0.4+3-8+5-7", "0.5/all/1+1-2+2-4", "1/0/0.01/quick"]
)
def test_an_effort_is_read_as_it_is_written(text):
    """What a training prints is what the option takes."""
    effort = Effort.of(text)
    assert Effort.of(str(effort)) == effort


@pytest.mark.parametrize(
    "text", ["slow", "0/1/1", "1/1", "1/x/1", "2/1/1", "1/-1/1", "1/1/1/x", "1/1/1+5-7+3-8", None]
)
def test_other_efforts_are_refused(text):
    """One line says what may be given."""
    with pytest.raises(TinykernelError, match=r"effort: .* give normal, quick, or"):
        Effort.of(text)


def test_trials_end_before_the_next_one_would_be_too_late(monkeypatch):
    """45 of 100 seconds are for trials; their number alone ends them as early again."""
    monkeypatch.setattr(pace, "_clock", Clock(10.0))
    limited = Pace()
    limited.limit(100.0)
    assert [limited.goes_on("trees") for _ in range(6)] == [True, True, True, False, False, False]
    assert limited.effort == Effort(trials=3)
    again = Pace(limited.effort)
    assert [again.goes_on("trees") for _ in range(6)] == [True, True, True, False, False, False]
    assert limited.is_limiting
    assert not again.is_limiting


def test_epochs_are_those_that_fit(monkeypatch):
    """The share is rounded down, and is whole where there is time enough."""
    kind = SimpleNamespace(name="kind", share=1.0, epochs=lambda spec, problem: 50)
    other = SimpleNamespace(name="other", share=1.0, epochs=lambda spec, problem: 0)
    monkeypatch.setattr(pace, "_clock", Clock(0.0))
    monkeypatch.setattr(pace, "_seconds", lambda kind, *_: 100.0 * (kind.name == "kind"))
    cases = (60.0, 0.13, 0.52, 26), (1000.0, 1.0, 1.0, 50), (0.0, 0.01, 0.01, 1)
    for seconds, share, final, epochs in cases:
        said = []
        limited = Pace()
        limited.limit(seconds)
        with progress.observing(said.append):
            limited.lay_out([(kind, "a"), (other, "b")], SimpleNamespace(is_few=False))
            limited.last(kind, "a", SimpleNamespace(is_few=False))
        assert (limited.effort.share, limited.effort.final) == (share, final)
        plans = [each.message for each in said if each.stage == progress.PLAN]
        assert ("at the latest" if seconds else "time is over, so each") in plans[0]
        assert f"a: {epochs} of 50 epochs, until about" in plans[1]


def test_compiling_shortens_what_follows(monkeypatch):
    """What the first trainings take to compile is neither searched in nor trained in afterwards."""
    kind = SimpleNamespace(name="kind", share=1.0, epochs=lambda spec, problem: 50)
    clock, problem = Clock(0.0), SimpleNamespace(is_few=False)

    def seconds(*_):
        clock.now += 60.0 * (clock.now < 60)
        return 100.0

    monkeypatch.setattr(pace, "_clock", clock)
    monkeypatch.setattr(pace, "_seconds", seconds)
    limited = Pace()
    limited.limit(100.0)
    limited.lay_out([(kind, "a"), (kind, "b")], problem)
    assert limited.effort.share == 0.09  # of 40 seconds 0.4, over 175 of one whole training
    clock.now += 5.0
    assert limited.goes_on("trees")
    clock.now += 10.0
    assert not limited.goes_on("trees")
    limited.last(kind, "a", problem)
    assert limited.effort.final == 0.18  # of 25 seconds all but 6


def test_the_effort_of_a_limited_training_makes_the_same_bytes(monkeypatch):
    """Whatever the clock has cut, three numbers make the model again, with other threads too."""
    monkeypatch.setattr(pace, "_clock", Clock(1.0))
    limited = train(X, y, max_time=60.0, **PLANNED)
    effort = limited.classifier.effort
    assert Effort.of(effort).trials < 60
    again = train(X, y, effort=effort, n_jobs=2, **PLANNED)
    assert again.model.fingerprint() == limited.model.fingerprint()
    assert again.classifier.effort == effort


def test_each_kind_has_trials_of_its_own_in_a_quick_search():
    """Components took all of them, and ten classes had trees as they come: 31 in place of 40 %."""
    quick = Pace(effort=Effort.of("quick"))
    for kind in ("components", "trees"):
        assert [quick.goes_on(kind) for _ in range(9)] == [True] * 8 + [False]
    assert not quick.is_cut
    again = Pace(effort=Effort.of("0.25/3/1/quick"))
    assert [again.goes_on("trees") for _ in range(4)] == [True] * 3 + [False]
    assert again.is_cut


def test_limited_and_quick_trainings_are_made_again_as_quick_ones():
    """The numbers also say that no settings were searched, noise and sigma of components too."""
    quick = {"model": "components", "n_components": 64, "effort": "quick", "random_state": 0}
    limited = train(X, y, max_time=1e-9, **quick)
    effort = limited.classifier.effort
    assert effort == "0.25/all/0.01/quick"
    again = train(X, y, **quick | {"effort": effort})
    assert again.model.fingerprint() == limited.model.fingerprint()


def test_no_numbers_make_an_interrupted_training_again(monkeypatch):
    """After Ctrl-C the effort stays what the user has set: other numbers would be untrue."""
    monkeypatch.setattr(pace, "_clock", Clock(1.0))
    monkeypatch.setattr(fitting, "select", _interrupted)
    limited = train(X, y, max_time=60.0, model="components", **PLANNED)
    assert limited.classifier.effort == "normal"


def _interrupted(*arguments):
    return replace(select(*arguments), interrupted=True)


def test_ctrl_c_while_speeds_are_measured_ends_the_search(monkeypatch):
    """A short training that it ends is no speed; the first spec is taken."""
    fit = ComponentsKind.fit

    def stopped(*arguments):
        result = fit(*arguments)
        return replace(result, history=replace(result.history, interrupted=True))

    estimator = Classifier(model="components", random_state=0, budget="3KB")
    problem, _ = estimator.problem(X, y)
    problem.pace.limit(60.0)
    monkeypatch.setattr(ComponentsKind, "fit", stopped)
    selected = select(problem, [ComponentsKind()])
    assert selected.interrupted
    assert selected.records == ()


def test_a_method_without_a_search_refuses_a_limit_of_time():
    """It would be ignored."""
    with pytest.raises(TinykernelError, match="max_time: this method has no limit"):
        train(X, y, method=PaperClassifier, max_time=5.0)


def test_a_limit_that_is_far_away_changes_nothing(monkeypatch):
    """A small table has the same bytes on every computer that is not far too slow."""
    monkeypatch.setattr(pace, "_clock", Clock(0.0))
    usual = train(X, y, model="trees", **PLANNED)
    limited = train(X, y, model="trees", max_time="auto", **PLANNED)
    assert limited.model.fingerprint() == usual.model.fingerprint()
    assert limited.classifier.effort == "normal"


@given(st.integers(1, 9), st.lists(st.integers(1, 40), unique=True, max_size=6), st.integers(2, 9))
def test_steps_end_as_small_after_cuts(more, numbers, of_epoch):
    """Whatever was cut, the share rises from 0 to 1, and is the same until the first cut."""
    done, total = sorted(numbers)[: len(numbers) // 2], sorted(numbers)[(len(numbers) + 1) // 2 :]
    epochs = max(numbers, default=1) + more
    schedule = Schedule(epochs, tuple(zip(done, total[::-1], strict=True)))
    shares = [schedule.share(batch, of_epoch) for batch in range(schedule.total * of_epoch + 1)]
    assert shares[0] == 0
    assert np.all(np.diff(shares) > 0)
    assert shares[-1] == pytest.approx(1)
    same = (done[0] if done else epochs) * of_epoch
    assert shares[:same] == [batch / (epochs * of_epoch) for batch in range(same)]


def test_a_slower_training_is_cut_and_made_again(monkeypatch):
    """A last training slower than measured passed the limit; the text says where it was cut.

    A second one, of a smaller model, has the epochs of the first.
    """
    clock = Clock(0.0)
    monkeypatch.setattr(pace, "_clock", clock)
    monkeypatch.setattr(pace, "_seconds", lambda *_: 10.0)
    for module in (loop, fitting):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=clock))
    monkeypatch.setattr(loop, "seconds_compiling", lambda: 0.0)
    step = ConvolutionLearner.epoch

    def slow(learner, number):
        clock.now += 2.0
        return step(learner, number)

    monkeypatch.setattr(ConvolutionLearner, "epoch", slow)
    images = {"model": "chains", "n_channels": 4, "image_shape": (8, 8), "epochs": 10}
    how = images | {"target": "host", "random_state": 0}
    limited = train(X, y, max_time=15.0, **how)
    effort = limited.classifier.effort
    assert effort == "1/all/1+1-6"  # 15 s less 2 to pack, 0.8 to predict, 2 of the first epoch
    assert limited.classifier.n_iter_ == 6
    again = train(X, y, **how | {"effort": effort}, n_jobs=2)
    assert again.model.fingerprint() == limited.model.fingerprint()
    limits = Pace(effort=Effort.of(effort), is_settled=True)
    limits.limit(1.0)
    assert [limits.replanned(done, 10, 9.0) for done in (1, 2)] == [6, 10]


def test_what_may_pass_the_limit_is_left_out(monkeypatch):
    """Trees that were trained only to say more about a model passed the limit."""
    monkeypatch.setattr(pace, "_clock", Clock(0.0))
    limited = Pace()
    assert limited.leaves(1e9)
    limited.limit(10.0)
    assert limited.leaves(7.0)
    assert not limited.leaves(9.0)


def test_images_take_a_share_of_their_epochs():
    """The final share shortens the schedule of convolutions."""
    shape = {"image_shape": (8, 8), "model": "chains", "n_channels": 8, "random_state": 0}
    short = train(X, y, effort="1/0/0.02", **shape)
    assert short.classifier.n_iter_ == short.classifier.options_["linear"]["epochs"]
    assert short.classifier.n_iter_ == np.ceil(0.02 * 300)
