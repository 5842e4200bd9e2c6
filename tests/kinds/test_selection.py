"""`select`: which kinds race, which are trained in full, and by which rule one is taken."""

from dataclasses import dataclass

import numpy as np
import pytest

from tests.refusals import refused
from tinykernel import Classifier, train
from tinykernel.base.errors import BudgetError, OptionError
from tinykernel.base.options import options_of
from tinykernel.face.pages.page import trials_in_rows
from tinykernel.kinds.kind import Kind, Problem, RaceTrial, Spec
from tinykernel.kinds.pace import Pace
from tinykernel.kinds.selection import KINDS, deliver, estimate_usage, kinds_for, select
from tinykernel.learn.announcement import TABLES, Announcement
from tinykernel.learn.choice import Candidate
from tinykernel.learn.loop import seed_of
from tinykernel.learn.options import Effort, TrainerOptions
from tinykernel.learn.perceptron.kind import PerceptronKind, PerceptronSpec
from tinykernel.learn.trainset import prepare
from tinykernel.learn.trees.forest import TreeOptions
from tinykernel.learn.trees.kind import TreesKind, TreesSpec, single_tree
from tinykernel.learn.trees.search import TreeTrial
from tinykernel.pieces.components.spec import Components
from tinykernel.pieces.linear.spec import Linear
from tinykernel.run.limits import parse_limits


@dataclass(frozen=True)
class NamedSpec(Spec):
    """A spec with a name."""

    name: str

    def __str__(self) -> str:
        """Return the name."""
        return self.name


class Scripted(Kind[NamedSpec]):
    """A kind whose trials and losses of rows are given."""

    def __init__(self, name, cost, rounds, final, behind=(2.0, 1.5)):
        self.about, self.cost, self.behind = Announcement(name, name, (TABLES,)), cost, behind
        self.rounds, self.final, self.calls = rounds, final, []

    def applies(self, problem):
        return ""

    def specs(self, problem):
        return [NamedSpec(self.name)]

    def skeleton(self, spec, problem):
        raise AssertionError("nothing is sized without limits")

    def tune(self, specs, problem, pace):
        for loss in self.rounds:
            self.calls.append("round")
            yield [RaceTrial(specs[0], loss, 0.9)]

    def judge(self, spec, problem, fold, share):
        self.calls.append(share)
        noise = np.random.default_rng(len(fold.outside)).normal(0, 0.1, len(fold.outside))
        return Candidate(str(spec), self.final + noise - noise.mean(), 0.9)

    def fit(self, spec, problem, pace):
        raise AssertionError("select does not train on all rows")


def problem_of(n=2400, **options):
    """Return a problem of two classes."""
    X = np.random.default_rng(0).normal(size=(n, 3)).astype(np.float32)
    return Problem(prepare(X, X[:, 0] > 0)[1], TrainerOptions(random_state=0, **options))


def test_the_cheapest_within_a_standard_error_is_taken():
    """Finalists are trained in full on rows that chose nothing."""
    cheap, dear = Scripted("cheap", 0, [0.5], 0.41), Scripted("dear", 2, [0.45], 0.4)
    selection = select(problem_of(), [dear, cheap])
    assert selection.kind is dear, "the noise of the rows is the same for both"
    cheap.final = 0.4
    selection = select(problem_of(), [dear, cheap])
    assert selection.kind is cheap
    finals = {each.spec: each.is_chosen for each in selection.records if each.stage == "final"}
    assert finals == {"cheap": True, "dear": False}
    rows = trials_in_rows(selection.summary()["records"])
    assert ("cheap", "cheap", "final", "0.4000", "0.9000", "chosen") in rows
    assert len(rows) == 4, "one table, which train prints and the page of a model draws"


def test_a_kind_far_behind_is_out():
    """It costs no further round, and no training in full."""
    ahead = Scripted("ahead", 0, [0.1, 0.1], 0.1)
    behind = Scripted("behind", 1, [0.3, 0.3], 0.0)
    selection = select(problem_of(), [ahead, behind])
    assert selection.kind is ahead
    assert behind.calls == ["round"]
    assert ahead.calls == ["round", "round"], "one finalist needs no training in full"


@pytest.mark.parametrize(("cost", "n", "rounds"), [(2, 2400, 1), (1, 2400, 2), (2, 800, 2)])
def test_a_kind_behind_one_that_costs_as_much_has_no_long_search(cost, n, rounds):
    """Perceptrons far ahead of components made the whole search of these a waste of 10 s of 22."""
    ahead = Scripted("ahead", cost, [0.2, 0.2], 0.2)
    long = Scripted("long", 2, [0.27, 0.27], 0.2, behind=(np.inf, 1.5))
    long.behind_peers = 1.3
    select(problem_of(n), [long, ahead])
    assert long.calls.count("round") == rounds


@pytest.mark.parametrize(("pilot", "rounds"), [(4.0, 1), (0.1, 2)])
def test_a_costly_kind_behind_a_cheap_one_trains_a_quarter_before_its_long_search(pilot, rounds):
    """If that is far behind, too, its search is left out."""
    cheap = Scripted("cheap", 1, [0.2], 0.2)
    costly = Scripted("costly", 2, [0.25, 0.25], pilot, behind=(np.inf, 1.5))
    select(problem_of(), [costly, cheap])
    assert costly.calls.count("round") == rounds
    assert 0.25 in costly.calls


def test_of_the_specs_of_a_kind_the_best_after_a_quarter_trains_in_full():
    """Runners-up of a long training take a quarter of the time of the best."""

    class Several(Scripted):
        def epochs(self, spec, problem):
            return 100

        def tune(self, specs, problem, pace):
            yield [RaceTrial(NamedSpec(name), 0.45, 0.9) for name in ("first", "second")]

        def judge(self, spec, problem, fold, share):
            self.calls.append((spec.name, share))
            self.final = {"first": 0.4, "second": 0.3}[spec.name]
            return super().judge(spec, problem, fold, share)

    cheap, costly = Scripted("cheap", 1, [0.5], 0.4), Several("costly", 2, [], 0.0)
    selection = select(problem_of(), [cheap, costly])
    assert str(selection.spec) == "second"
    assert ("second", 1.0) in costly.calls
    assert ("first", 1.0) not in costly.calls
    alone = Several("alone", 2, [], 0.0)
    assert str(select(problem_of(), [alone]).spec) == "first", "what one kind has tuned"
    assert not alone.calls


def test_few_rows_are_judged_outside_every_fold():
    """What costs more and is far behind on the first fold is not trained on the others."""
    cheap, dear = Scripted("cheap", 1, [0.5], 0.4), Scripted("dear", 2, [0.5], 0.4)
    select(problem_of(300), [cheap, dear])
    assert (cheap.calls.count(1.0), dear.calls.count(1.0)) == (4, 4)
    cheap, dear = Scripted("cheap", 1, [0.5], 0.4), Scripted("dear", 2, [0.5], 4.0)
    select(problem_of(300), [cheap, dear])
    assert (cheap.calls.count(1.0), dear.calls.count(1.0)) == (1, 1)


def test_ctrl_c_takes_the_best_so_far():
    """The kind that leads wins, whatever was to come."""

    class Interrupting(Scripted):
        def tune(self, specs, problem, pace):
            raise KeyboardInterrupt
            yield

    ahead = Scripted("ahead", 0, [0.1], 0.1)
    selection = select(problem_of(), [ahead, Interrupting("late", 2, [], 0.0)])
    assert (selection.kind, selection.interrupted) == (ahead, True)


def test_every_kind_says_in_words_why_it_does_not_apply():
    """A problem has at least one kind; the others have a reason."""
    table = problem_of()
    reasons = {kind.name: kind.applies(table) for kind in KINDS}
    tables = ["components", "linear", "trees", "perceptron"]
    assert [name for name, why in reasons.items() if not why] == tables
    assert [reasons[name] for name in ("kernels", "chains")] == [
        "only for signals",
        "only for images",
    ]
    assert reasons["separable"] == "only for signals and images"
    refused(OptionError, select, table, [kind for kind in KINDS if kind.name == "kernels"])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_reads_what_it_announces(kind):
    """What it announces are options; they and `model` are all that names it elsewhere."""
    about, options = kind.about, options_of(TrainerOptions)
    assert {*about.options, *about.options_of_values, *filter(None, [about.size])} <= set(options)
    for name in about.names:
        options["model"].check("model", name)
        assert [each.about for each in kinds_for(TrainerOptions(model=name))] == [about]


def test_a_fixed_number_decides_the_kind():
    """Who fixes the number of components has no trees."""
    assert [k.name for k in kinds_for(TrainerOptions(n_components=64))] == ["components"]
    assert [k.name for k in kinds_for(TrainerOptions(n_units=8))] == ["perceptron"]
    assert [k.name for k in kinds_for(TrainerOptions(n_channels=8))] == ["chains", "separable"]
    assert [k.name for k in kinds_for(TrainerOptions(model="tree"))] == ["trees"]


@pytest.mark.slow
def test_values_that_a_straight_line_explains_have_a_line():
    """It is within 3 % of ridge regression, though components would fit the budget."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(4200, 40)).astype(np.float32)
    y = X @ rng.normal(size=40) + rng.normal(0, 2.0, 4200)
    found = train(X[:200], y[:200], budget="6KB", task="numbers", random_state=0, link=False)
    assert found.model.find(Linear) is not None
    assert found.model.find(Components) is None
    design = np.c_[X[:200], np.ones(200)]
    weights = np.linalg.solve(design.T @ design + 8 * np.eye(41), design.T @ y[:200])
    ridge = np.mean((np.c_[X[200:], np.ones(4000)] @ weights - y[200:]) ** 2)
    assert np.mean((found.model.predict(X[200:]) - y[200:]) ** 2) < 1.03 * ridge


def test_limits_that_no_kind_keeps_to_are_refused():
    """The line says what the smallest model needs."""
    limited = problem_of()
    limited = Problem(limited.data, limited.options, None, parse_limits("flash=30KB,ram=20B"))
    refused(BudgetError, select, limited, kinds_for(limited.options))


@pytest.mark.parametrize(("wrong", "is_named"), [(0.0, False), (0.1, True)])
def test_one_tree_that_is_not_behind_many_is_named(wrong, is_named):
    """A sum of inputs needs many trees, but wrong labels can hide that it does."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4)).astype(np.float32)
    y = (X.sum(axis=1) > 0) ^ (rng.random(400) < wrong)
    problem = Problem(prepare(X, y)[1], TrainerOptions(random_state=0))
    spec = TreesSpec(8192, trial=TreeTrial(TreeOptions(), 60))
    machine = TreesKind().fit(spec, problem, Pace()).machine
    said = single_tree(spec, problem, Pace(), machine, 1.0)
    assert (
        "tables of 201 in place of 2564 bytes: one tree an output chosen over" in said
    ) == is_named
    assert bool(said) == is_named


def test_a_perceptron_is_taken_where_borders_bend():
    """Dropout is chosen on folds, and the trained model keeps to the budget."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + 2 * (X[:, 2] * X[:, 3] > 0)
    kinds = [kind for kind in KINDS if kind.name in ("linear", "perceptron")]
    options = TrainerOptions(random_state=0, epochs=12)
    problem = Problem(prepare(X, y)[1], options, None, parse_limits("3KB"))
    chosen = select(problem, kinds)
    assert chosen.kind.name == "perceptron"
    result, trainings = deliver(chosen, problem, estimate_usage(problem))
    assert trainings == 1
    assert np.mean(result.machine.predict(X) == y) > 0.8


@pytest.mark.parametrize("state", [None, np.random.RandomState(0)])
def test_all_trainings_have_one_seed(state):
    """Each drew a seed of its own from a state, so that threads decided who had which."""
    problem, _ = Classifier(random_state=state).problem(np.eye(4), [0, 1, 0, 1])
    assert seed_of(problem.options) == seed_of(problem.options)


def test_a_cut_search_takes_no_dropout_that_is_worse(monkeypatch):
    """The largest one was tried first, and taken where nothing else was."""
    problem = Problem(prepare(np.eye(16), np.arange(16) % 2)[1], TrainerOptions(random_state=0))

    def judge(kind, spec, problem, fold, share):
        return Candidate(str(spec), np.full(fold.outside.size, spec.dropout), 0.9)

    monkeypatch.setattr(PerceptronKind, "judge", judge)
    rounds = PerceptronKind().tune([PerceptronSpec()], problem, Pace(Effort(trials=1)))
    assert [best.spec.dropout for (best,) in rounds] == [0.2, 0.1]


def test_a_perceptron_of_many_inputs_is_refused():
    """Levels take 1,024 channels at most; other kinds go on."""
    X = np.random.default_rng(0).normal(size=(20, 1025)).astype(np.float32)
    problem = Problem(prepare(X, np.arange(20) % 2)[1], TrainerOptions(random_state=0))
    kinds = [kind for kind in KINDS if kind.name == "perceptron"]
    refused(OptionError, select, problem, kinds)
