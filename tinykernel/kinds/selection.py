"""`select`: the best kind, size and settings for a problem; `deliver`: its final training.

Kinds are found in the folders of `learn`. Specs of all that apply are sized by untrained models
(`planning`). Short trainings on folds race: each kind tunes its settings in rounds, the cheapest
kinds first, and what is far behind is out. Finalists are trained as they will be delivered on the
same rows, and `choice.choose` decides by the losses on held-out rows: the cheapest one within one
standard error of the best.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from tinykernel.base import progress
from tinykernel.base.errors import BudgetError, OptionError, TinykernelError
from tinykernel.kinds import planning
from tinykernel.kinds.kind import AnyKind, Problem, RaceTrial, Spec
from tinykernel.kinds.pace import Pace
from tinykernel.learn.choice import Candidate, Choice, Fold, join_folds, side_by_side
from tinykernel.learn.loop import TrainingResult
from tinykernel.learn.options import ROOMS, TrainerOptions
from tinykernel.model.integer import IntegerModel

#: Those of each ``kind.py``, in the order of their announcements.
KINDS: tuple[AnyKind, ...] = tuple(
    sorted(
        (kind for room in ROOMS for kind in import_module(f"tinykernel.learn.{room}.kind").KINDS),
        key=lambda kind: kind.about.rank,
    )
)


def kinds_for(options: TrainerOptions) -> list[AnyKind]:
    """Return the kinds that the options allow: by `model`, and by a size."""
    names = options.kinds()
    return [kind for kind in KINDS if kind.name in names]


_RACE, _FINALS = "comparing kinds of models", "training in full to compare"
# A kind far behind after a final is not trained on more folds.
_FAR_BEHIND = 2.0
# Before its long search, and after it, a costly kind behind cheaper ones trains for this share of
# the epochs. To be chosen it must lead by one standard error at the end, which it hardly does if it
# is behind by so many now.
_PILOT, _OUT_OF_REACH = 0.25, 0.5


@dataclass(frozen=True)
class RaceRecord:
    """One step of a selection, as `train` and the page of a model show it."""

    kind: str
    spec: str
    stage: str  # "short", "final"
    loss: float
    score: float
    is_chosen: bool = False

    def entry(self) -> dict[str, Any]:
        """Return the fields, rounded; what was left out without a result has no loss."""
        loss = round(self.loss, 4) if np.isfinite(self.loss) else None
        return asdict(self) | {"loss": loss, "score": round(self.score, 4)}


@dataclass(frozen=True, eq=False)
class Selected:
    """The chosen spec, and how it was chosen."""

    kind: AnyKind
    spec: Spec
    pace: Pace  # after the search.
    records: tuple[RaceRecord, ...] = ()
    choice: Choice | None = None  # of finalists, where there were several.
    trial: RaceTrial | None = None
    interrupted: bool = False  # whether Ctrl-C ended it; the best until then is taken.

    def summary(self) -> dict[str, Any]:
        """Return the same in words and numbers, for people and model files."""
        if not self.records:
            return {}
        usual = None if self.trial is None else self.trial.usual_loss
        loss = None if self.trial is None else self.trial.loss
        summary: dict[str, Any] = {
            "trials": len(self.records),
            "chosen": str(self.spec),
            "log_loss_usual": None if usual is None else round(usual, 4),
            "log_loss": None if loss is None else round(loss, 4),
            "interrupted": self.interrupted,
            "records": [record.entry() for record in self.records],
        }
        return summary if self.choice is None else summary | {"contest": self.choice.in_words}


def select(problem: Problem, kinds: Sequence[AnyKind], pace: Pace | None = None) -> Selected:
    """Choose the spec of a model for a problem; TinykernelError where none is within the limits.

    Without a `pace` it is the usual one. Ctrl-C ends the search, and the best so far is taken.
    """
    pace = pace or planning.usual_pace(problem)
    entrants = _entrants(problem, kinds)
    first = entrants[0]
    is_only = len(entrants) == 1 and (problem.is_quick or len(first.specs) == 1)
    if is_only and (problem.is_quick or problem.clips is not None or not problem.folds):
        return Selected(first.kind, first.specs[0], pace)
    if not problem.folds:
        progress.report(_RACE, 0, None, "too few rows; defaults are taken")
        return Selected(first.kind, first.specs[0], pace)
    tasks = [(entrant.kind, spec) for entrant in entrants for spec in entrant.specs]
    race = _Race(problem, pace, sorted(entrants, key=lambda entrant: entrant.kind.cost))
    try:
        planning.plan_search(pace, tasks, problem)
        race.run()
        return race.selection()
    except KeyboardInterrupt:
        leader = race.leader() or first
        spec = leader.trials[0].spec if leader.trials else leader.specs[0]
        progress.report(_RACE, 0, None, f"stopped; taken: {spec}")
        trial = leader.trials[0] if leader.trials else None
        records = tuple(race.records)
        return Selected(leader.kind, spec, pace, records, None, trial, interrupted=True)


@dataclass(eq=False)
class _Entrant:
    """A kind in the race: its specs within the limits, and the best trials so far."""

    kind: AnyKind
    specs: list[Spec]
    trials: list[RaceTrial] = field(default_factory=list)
    rounds: Iterator[list[RaceTrial]] | None = None
    n_rounds: int = 0
    is_out: bool = False

    @property
    def loss(self) -> float:
        return min((trial.loss for trial in self.trials), default=np.inf)

    @property
    def is_finished(self) -> bool:
        return self.rounds is None or self.is_out

    def is_near(self, least: float, is_cut: bool) -> bool:
        """Whether it may be a finalist, which what was not tuned always is.

        Where the search was cut, kinds have had few of their rounds.
        """
        limit = self.kind.behind[self.place if is_cut else -1]
        return not self.n_rounds or self.loss <= limit * least

    @property
    def place(self) -> int:
        """The place in `behind` after the rounds so far."""
        return min(self.n_rounds, len(self.kind.behind)) - 1

    @property
    def finalists(self) -> list[Spec]:
        return [trial.spec for trial in self.trials] if self.n_rounds else self.specs


def _entrants(problem: Problem, kinds: Sequence[AnyKind]) -> list[_Entrant]:
    """Return the kinds that apply, with their specs within the limits."""
    refused = {kind.name: kind.applies(problem) for kind in kinds}
    applying = [kind for kind in kinds if not refused[kind.name]]
    if not applying:
        name = "image_shape" if problem.options.image_shape else "model"
        raise OptionError(f"{name}: {refused[kinds[-1].name]}")
    progress.report("finding what fits", 0, None)
    sizes = [planning.size_specs(kind, problem) for kind in applying]
    pairs = zip(applying, sizes, strict=True)
    entrants = [_Entrant(kind, list(size.specs)) for kind, size in pairs if size.specs]
    if not entrants:
        raise planning.no_room(problem, sizes)
    return entrants


@dataclass(eq=False)
class _Race:
    problem: Problem
    pace: Pace
    entrants: list[_Entrant]  # the cheapest first.
    records: list[RaceRecord] = field(default_factory=list)
    choice: Choice | None = None
    #: Trainings as for delivery, by spec, share of the epochs and fold.
    judged: dict[tuple[Spec, float, int], Candidate] = field(default_factory=dict)

    def run(self) -> None:
        """Run one round of each kind, then those of the kind that leads among unfinished ones."""
        for entrant in self.entrants:
            entrant.rounds = entrant.kind.tune(entrant.specs, self.problem, self.pace)
            self._advance(entrant)
        while running := [entrant for entrant in self.entrants if not entrant.is_finished]:
            entrant = min(running, key=lambda entrant: entrant.loss)
            if not self.pace.may_try(entrant.kind.name):
                if self.pace.is_cut:
                    break
                entrant.rounds = None  # others may have trials left
                continue
            entrant.is_out = self._is_behind(entrant) or self._is_hopeless(entrant)
            if not entrant.is_out:
                self._advance(entrant)

    def _advance(self, entrant: _Entrant) -> None:
        """Run the next round of a kind."""
        assert entrant.rounds is not None
        trials = next(entrant.rounds, None)
        if trials is None:
            entrant.rounds = None
            return
        entrant.trials, entrant.n_rounds = trials, entrant.n_rounds + 1
        for trial in trials:
            result = "short", trial.loss, trial.score
            self.records.append(RaceRecord(entrant.kind.name, str(trial.spec), *result))
        progress.report(_RACE, len(self.records), None, str(trials[0].spec))
        entrant.is_out = self._is_behind(entrant)

    def _is_behind(self, entrant: _Entrant) -> bool:
        """Whether a kind is far behind the best, after its rounds so far."""
        kind, problem = entrant.kind, self.problem
        limit = kind.behind[entrant.place] * min(other.loss for other in self.entrants)
        if not (problem.of_values or problem.is_few):
            peers = (other.loss for other in self.entrants if other.kind.cost >= kind.cost)
            limit = min(limit, kind.behind_peers * min(peers))
        return entrant.loss > limit

    def leader(self) -> _Entrant | None:
        """Return the kind with the least loss."""
        leading = [entrant for entrant in self.entrants if entrant.trials and not entrant.is_out]
        return min(leading, key=lambda entrant: entrant.loss, default=None)

    def _is_hopeless(self, entrant: _Entrant) -> bool:
        """Whether a cheaper kind is far ahead of a shorter training of a costly one."""
        leader, problem = self.leader(), self.problem
        if leader is None or leader.kind.cost >= entrant.kind.cost or not leader.is_finished:
            return False
        if problem.of_values or problem.sees_a_part or (problem.is_few and leader.kind.cost):
            return False  # few rows say too little about trees, and cost no time
        pair = [(leader, 1.0), (entrant, _PILOT)]
        tasks = [(entrant.kind, entrant.trials[0].spec, share) for entrant, share in pair]
        candidates = self._train_all(tasks, [problem.final], None)
        # Both cost the same here: the cheaper one must be ahead by the margin.
        candidates[0] = replace(candidates[0], cost=1)
        choice = self._chosen(candidates, [problem.final], _OUT_OF_REACH)
        return choice.chosen == 0

    def selection(self) -> Selected:
        """Compare the finalists, trained as for delivery."""
        least = min(entrant.loss for entrant in self.entrants)
        is_cut = self.pace.is_short or self.problem.is_quick
        stay = (entrant for entrant in self.entrants if not entrant.is_out)
        near = [entrant for entrant in stay if entrant.is_near(least, is_cut)]
        # What one kind has tuned it has compared, too.
        is_decided = near == [self.leader()]
        finalists = [
            (entrant.kind, spec)
            for entrant in near
            for spec in (entrant.finalists[:1] if is_decided else self._finalists(entrant))
        ]
        kind, spec = finalists[self._final(finalists) if len(finalists) > 1 else 0]
        trials = [trial for entrant in self.entrants for trial in entrant.trials]
        trial = next((trial for trial in trials if trial.spec == spec), None)
        records = tuple(
            replace(record, is_chosen=(record.kind, record.spec) == (kind.name, str(spec)))
            for record in self.records
        )
        return Selected(kind, spec, self.pace, records, self.choice, trial)

    def _finalists(self, entrant: _Entrant) -> list[Spec]:
        """Return the specs of a kind that train in full: one, if a part of the epochs can tell."""
        specs, problem = entrant.finalists, self.problem
        is_short = problem.is_few or self.pace.effort.share <= _PILOT
        if len(specs) < 2 or not entrant.n_rounds or is_short:
            return specs
        if not all(entrant.kind.epochs(spec, problem) for spec in specs):
            return specs
        tasks = [(entrant.kind, spec, _PILOT) for spec in specs]
        choice = self._chosen(self._train_all(tasks, [problem.final], None), [problem.final], 0.0)
        return [specs[choice.best]]

    def _final(self, finalists: list[tuple[AnyKind, Spec]]) -> int:
        """Train finalists inside folds, and choose by the rows outside; return the place."""
        problem, folds = self.problem, [self.problem.final]
        share = self.pace.effort.share
        tasks = [(kind, spec, share * kind.share) for kind, spec in finalists]
        parts = [[candidate] for candidate in self._train_all(tasks, folds, _FINALS)]
        stay = list(range(len(tasks)))
        others = [fold for fold in problem.folds if fold is not problem.final]
        if problem.is_few and others:
            # What costs more than the best and is much worse is not trained four times.
            first = self._chosen([part[0] for part in parts], folds, 1.0, tasks)
            far, cheap = _FAR_BEHIND * first.losses[first.best], tasks[first.best][0].cost
            stay = [i for i in stay if tasks[i][0].cost <= cheap or first.losses[i] <= far]
        if problem.is_few and others and len(stay) > 1:
            rest, n = self._train_all([tasks[i] for i in stay], others, _FINALS), len(others)
            parts = [[*parts[i], *rest[j * n : (j + 1) * n]] for j, i in enumerate(stay)]
            folds += others
        else:
            stay = list(range(len(tasks)))
        candidates = [join_folds(part) for part in parts]
        remaining = [tasks[i] for i in stay]
        self.choice = self._chosen(candidates, folds, 1.0, remaining)
        for place, (kind, spec, _) in enumerate(remaining):
            judged = self.choice.losses[place], self.choice.scores[place]
            self.records.append(RaceRecord(kind.name, str(spec), "final", *judged))
        progress.report(_RACE, len(self.records), None, self.choice.in_words)
        return stay[self.choice.chosen]

    def _train_all(
        self, tasks: Sequence[tuple[AnyKind, Spec, float]], folds: Sequence[Fold], stage: str | None
    ) -> list[Candidate]:
        """Train each on all folds, side by side."""
        cancelled = threading.Event()
        problem = replace(self.problem, cancelled=cancelled).alone()

        def judged(kind: AnyKind, spec: Spec, share: float, fold: Fold) -> Candidate:
            key = spec, share, id(fold)
            if key not in self.judged:
                with progress.observing(None):
                    self.judged[key] = kind.judge(spec, problem, fold, share)
            return self.judged[key]

        work: list[Callable[[], Candidate]] = [
            partial(judged, *task, fold) for task in tasks for fold in folds
        ]
        if stage is not None:
            progress.report(stage, 0, len(work))
        return side_by_side(work, self.problem.n_threads, cancelled, stage)

    def _chosen(
        self,
        candidates: Sequence[Candidate],
        folds: Sequence[Fold],
        margin: float,
        tasks: Sequence[tuple[AnyKind, Spec, float]] = (),
    ) -> Choice:
        """Choose by the losses outside all folds."""
        if tasks:
            costs = [kind.cost_for(spec, self.problem) for kind, spec, _ in tasks]
            pairs = zip(candidates, costs, strict=True)
            candidates = [replace(candidate, cost=cost) for candidate, cost in pairs]
        return self.problem.choose(candidates, folds, margin)


#: What a model uses; sizes that are not known are within the limits.
Measure = Callable[[IntegerModel], planning.Usage]


def estimate_usage(problem: Problem) -> Measure:
    """Return the measure by which trainings decide."""

    def measured(model: IntegerModel) -> planning.Usage:
        try:
            return planning.usage(model, problem.limits, problem.target)
        except TinykernelError:
            return planning.Usage(0.0, "")

    return measured


def deliver(
    selection: Selected, problem: Problem, *measures: Measure
) -> tuple[TrainingResult, int]:
    """Train until the model is within the limits by each of the measures, in their order.

    Returns the result, and the number of trainings. If Ctrl-C ended a training whose model is over
    a limit, it is not repeated.
    """
    kind, pace, trainings = selection.kind, selection.pace, 0
    planning.plan_final(pace, kind, selection.spec, problem)
    spec = kind.settle(selection.spec, problem, pace)
    while True:
        trainings += 1
        result = kind.fit(spec, problem, pace)
        pace.is_settled = True
        uses = (measure(result.machine) for measure in measures)
        over = next((used for used in uses if used.share > 1), None)
        if over is None:
            return result, trainings
        if result.history.interrupted:
            raise BudgetError(
                "training was interrupted and is not repeated with a smaller model; this one "
                f"needs {over.text}; give a larger budget"
            )
        needs = f"the trained model needs {over.text}"
        if size := problem.options.size:
            raise BudgetError(f"{needs}; use fewer {{{size}}}", **{size: None})
        smaller = kind.smaller(spec, over.excess(result.machine), result.machine, problem)
        if smaller is None:
            raise BudgetError(f"{needs}; give a larger budget")
        spec = smaller
