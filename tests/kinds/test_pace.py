"""Training in limited time: what ends early, and how the same bytes are made without a clock."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from tests.refusals import refused
from tinykernel import Classifier, train
from tinykernel.base.errors import TinykernelError
from tinykernel.kinds import pace, planning
from tinykernel.kinds.pace import Pace
from tinykernel.kinds.selection import KINDS, select
from tinykernel.learn.components.kind import ComponentsKind
from tinykernel.learn.loop import Schedule
from tinykernel.learn.options import Effort
from tinykernel.papers.classifier import PaperClassifier

pytestmark = pytest.mark.usefixtures("page")

X, y = load_digits(return_X_y=True)
X, y = X.astype(np.uint8)[:400], y[:400] % 3


@pytest.mark.parametrize(
    "text", ["normal", "0.25/12/0.4+3-8+5-7", "0.5/all/1+1-2+2-4", "1/0/0.01/quick"]
)
def test_an_effort_is_read_as_it_is_written(text):
    """What a training prints is what the option takes."""
    effort = Effort.of(text)
    assert Effort.of(str(effort)) == effort


def test_each_kind_has_trials_of_its_own_in_a_quick_search():
    """Components took all of them, and ten classes had trees as they come: 31 in place of 40 %."""
    quick = Pace(effort=Effort.of("quick"))
    for kind in ("components", "trees"):
        assert [quick.may_try(kind) for _ in range(9)] == [True] * 8 + [False]
    assert not quick.is_cut
    again = Pace(effort=Effort.of("0.25/3/1/quick"))
    assert [again.may_try("trees") for _ in range(4)] == [True] * 3 + [False]
    assert again.is_cut


class Liar:
    """A clock that jumps, forwards and back."""

    def __init__(self):
        self.jumps = np.random.default_rng(0)

    def __call__(self):
        return float(self.jumps.integers(0, 1_000_000))


IMAGES = {"image_shape": (8, 8)}
PLANNED = {
    **{name: {"model": name} for name in ("auto", "components", "linear", "perceptron", "trees")},
    "kernels": {"window_shape": (64, 1)},
    **{name: {"model": name, "n_channels": 4} | IMAGES for name in ("chains", "separable")},
}


# With `auto` all kinds of tables compete; each by itself is in `make test-all`.
_SHARP = ("auto", "kernels", "chains", "separable")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.sharp] * (name in _SHARP)) for name in PLANNED],
)
def test_the_usual_plan_needs_no_clock(monkeypatch, name):
    """On a busy computer 1 of 120 epochs was trained; other threads gave another model."""
    monkeypatch.setattr(planning, "_WORK_OF_TABLES", 0.1)
    monkeypatch.setattr(planning, "_WORK", 0.1)
    options = {"budget": "4KB", "random_state": 0, "link": False} | PLANNED[name]
    model = train(X[:60], y[:60], **options, n_jobs=1).model
    for clock in ("monotonic", "perf_counter", "process_time", "time"):
        monkeypatch.setattr(time, clock, Liar())
    monkeypatch.setattr(pace, "_clock", Liar())
    again = train(X[:60], y[:60], **options, n_jobs=3).model
    assert again.fingerprint() == model.fingerprint()


def test_every_kind_has_a_plan_or_no_choice():
    """Whoever adds a kind of model tries it without a clock."""
    assert {kind.name for kind in KINDS} <= {*PLANNED, "prototypes"}


def test_work_shortens_trainings_and_is_kept_to():
    """Four times the rows have a quarter of the epochs, and trials of a costly kind are fewer."""
    short = pace.Pace(work=100.0)
    short.shorten_trials({"components": 9.0, "trees": 1.0})
    assert [short.may_try("components") for _ in range(7)] == [True] * 6 + [False]
    assert all(short.may_try("trees") for _ in range(45))
    assert not short.may_try("trees")
    assert short.is_short
    short.shorten_search(80.0)
    short.shorten_final(208.0, 10)
    assert str(short.effort) == "0.5/all/0.25"


def test_limited_and_quick_trainings_are_made_again_as_quick_ones():
    """The numbers also say that no settings were searched, noise and sigma of components too."""
    quick = {"model": "components", "n_components": 64, "effort": "quick", "random_state": 0}
    limited = train(X, y, max_time=1e-9, **quick)
    effort = limited.classifier.effort
    assert effort == "0.25/all/0.01/quick"
    assert limited.cut == f"after 0 s: 1 of 120 epochs; the plan that ends: effort {effort}"
    again = train(X, y, **quick | {"effort": effort})
    assert again.model.fingerprint() == limited.model.fingerprint()


def test_ctrl_c_while_speeds_are_measured_ends_the_search(monkeypatch):
    """A short training that it ends is no speed; the first spec is taken."""
    fit = ComponentsKind.fit

    def stopped(*arguments):
        result = fit(*arguments)
        return replace(result, history=replace(result.history, interrupted=True))

    estimator = Classifier(model="components", random_state=0, budget="3KB")
    problem, _ = estimator.problem(X, y)
    limited = Pace()
    limited.limit(60.0)
    monkeypatch.setattr(ComponentsKind, "fit", stopped)
    selected = select(problem, [ComponentsKind()], limited)
    assert selected.interrupted
    assert selected.records == ()


def test_a_method_without_a_search_refuses_a_limit_of_time():
    """It would be ignored."""
    refused(TinykernelError, train, X, y, method=PaperClassifier, max_time=5.0)


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


def test_images_take_a_share_of_their_epochs():
    """The final share shortens the schedule of convolutions."""
    shape = {"image_shape": (8, 8), "model": "chains", "n_channels": 8, "random_state": 0}
    short = train(X, y, effort="1/0/0.02", **shape)
    assert short.classifier.n_iter_ == short.classifier.options_["linear"]["epochs"]
    assert short.classifier.n_iter_ == np.ceil(0.02 * 300)
