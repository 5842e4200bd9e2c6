"""tinykernel.tune: the curve, the rule of one standard error, the journal, the number of jobs."""

import os
import signal
from unittest.mock import Mock

import joblib
import numpy as np
import pytest

import tinykernel
from tests.cli.tools import blobs, sets, succeeded
from tests.random_models import random_model
from tests.refusals import refused
from tinykernel import TinykernelError, tune
from tinykernel.base import progress
from tinykernel.base.errors import (
    BudgetError,
    DataError,
    FileError,
    FormatError,
    RowsError,
    ToolError,
)
from tinykernel.kinds.tune import curve as curves
from tinykernel.kinds.tune.tuner import Journal
from tinykernel.pieces.components.spec import Components
from tinykernel.run.report import Report, report

pytestmark = pytest.mark.usefixtures("page")

QUICK = {"epochs": 2, "effort": "quick", "n_folds": 2}
LINEAR = QUICK | {"model": "linear", "n_jobs": 1}
MODEL = random_model(0)
MEMORY = report(MODEL, "cortex-m4", compiler="none")


@pytest.fixture
def no_tools(monkeypatch):
    """Neither compiler nor emulator: sizes and instructions are estimates."""
    monkeypatch.setattr("tinykernel.run.report.find_toolchain", lambda *_: None)
    monkeypatch.setattr(
        "tinykernel.run.bench.bench", Mock(side_effect=TinykernelError("no emulator"))
    )
    monkeypatch.setattr("tinykernel.run.bench.estimate_instructions", lambda *_: 1234)


@pytest.fixture
def trained(monkeypatch):
    """Trials that cost nothing: larger models are better; the list tells which were made."""
    made: list[curves.Trial] = []

    def fake(work, trial, stop=None):
        made.append(trial)
        if trial.is_final:
            return curves.Outcome(trial, 0.01, memory=MEMORY, counted="by hand", model=MODEL)
        right = 40 + trial.size // 1024
        return curves.Outcome(trial, 0.01, confusion=[[right, 50 - right], [0, 50]])

    monkeypatch.setattr("tinykernel.kinds.tune.curve.run_trial", fake)
    return made


def data(classes: int = 2):
    return blobs(60, 0, classes)


def point(budget: int, accuracy: float, error: float) -> curves.Point:
    return curves.Point(budget, accuracy, error, (accuracy,), budget, 100, 50, "gcc", 1000, "qemu")


def test_the_smallest_within_one_standard_error_of_the_best():
    """The error of the best decides, not that of the small ones; flash tells which is small."""
    points = [point(2, 0.90, 0.2), point(3, 0.94, 0.0), point(4, 0.95, 0.01), point(8, 0.95, 0.01)]
    good, best = curves.smallest_good(points)
    assert (good.budget, best.budget) == (3, 4)
    assert curves.smallest_good([point(2, 0.93, 0.5), point(4, 0.95, 0.01)])[0].budget == 4


def outcome(size: int, fold: int, right: int, groups=None, flash: int = 1000) -> curves.Outcome:
    if fold < 0:
        memory = Report("cortex-m4", "estimate", flash, {}, 0, 10, 20, 1 << 20, 1 << 20)
        return curves.Outcome(
            curves.Trial(size, fold), 1.0, memory=memory, counted="-", model=MODEL
        )
    return curves.Outcome(
        curves.Trial(size, fold), 1.0, confusion=[[right, 50 - right], [0, 50]], groups=groups
    )


def test_points_are_judged_on_the_same_folds():
    """After an early end sizes with fewer folds are no points, nor those without a final model."""
    few = [outcome(1, -1, 0), outcome(1, 0, 40), outcome(3, -1, 0), outcome(4, 0, 50)]
    more = [outcome(2, -1, 0, flash=900), outcome(2, 0, 45)]
    points = curves.curve([*few, *more], balanced=False)
    assert [(p.budget, p.accuracy) for p in points] == [(1, 0.9), (2, 0.95)]
    assert [p.on_front for p in points] == [False, True]  # less flash and better
    (alone,) = curves.curve([*few, *more, outcome(2, 1, 40)], balanced=False)
    assert (alone.budget, alone.folds) == (2, (0.95, 0.9))


def test_the_first_sizes_span_the_range(trained):
    """In little time all folds of the largest size are trained, then those of a small one."""
    X, y = data()
    tune(X, y, sizes=["2KB", "3KB", "4KB", "6KB"], n_folds=2, n_jobs=1)
    assert trained[:3] == [curves.Trial(6144, 0), curves.Trial(6144, -1), curves.Trial(6144, 1)]
    assert [trial.size for trial in trained[3::3]] == [3072, 4096, 2048]


def test_standard_error():
    """That of the rows is the binomial one, that of groups counts groups, the folds may be more."""
    (alone,) = curves.curve([outcome(1, -1, 0), outcome(1, 0, 40)], balanced=False)
    assert alone.standard_error == pytest.approx(np.sqrt(0.9 * 0.1 / 100))
    whole = [[10, 10]] * 9 + [[10, 0]]
    (grouped,) = curves.curve([outcome(1, -1, 0), outcome(1, 0, 40, whole)], balanced=False)
    assert grouped.standard_error == pytest.approx(np.sqrt(0.9 * 0.1 / 9))
    (folded,) = curves.curve(
        [outcome(1, -1, 0), outcome(1, 0, 50), outcome(1, 1, 10)], balanced=False
    )
    assert folded.standard_error == pytest.approx(np.std([1, 0.6], ddof=1) / np.sqrt(2))
    (balanced,) = curves.curve([outcome(1, -1, 0), outcome(1, 0, 40)], balanced=True)
    assert balanced.accuracy == pytest.approx(0.9)
    assert balanced.standard_error == pytest.approx(np.sqrt(0.8 * 0.2 / 50) / 2)


def test_folds_take_whole_groups_and_every_label():
    """No group is in two folds; without groups every fold has rows of every label."""
    y = np.arange(60) % 3
    groups = np.arange(60) // 6
    folds = curves.deal_folds(y, groups, 4, 0)
    assert all(np.unique(folds[groups == group]).size == 1 for group in range(10))
    plain = curves.deal_folds(y, None, 4, 0)
    assert all(np.unique(y[plain == fold]).size == 3 for fold in range(4))
    refused(RowsError, curves.deal_folds, y, np.zeros(60), 4, 0)


def test_same_result_whatever_runs_the_trials(no_tools):
    """One job and two jobs give the same curve and models."""
    X, y = data(3)
    found = [tune(X, y, sizes=["3KB", "4KB"], **LINEAR | {"n_jobs": jobs}) for jobs in (1, 2)]
    assert found[0].models == found[1].models
    assert set(found[0].models) == {3072, 4096}
    assert found[0].to_dict() == found[1].to_dict()
    assert all(p.flash <= p.budget for p in found[0].points)
    assert found[0].points[0].instructions == 1234
    assert "no emulator" in found[0].points[0].counted


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(tmp_path, require_tool):
    """Two Dask processes, one of them killed after the first trial, give what threads give."""
    distributed = require_tool("distributed")
    X, y = data(3)
    how = {"sizes": ["3KB", "4KB"], **QUICK}
    expected = tune(X, y, **how, n_jobs=1)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        workers = list(client.run(os.getpid).values())
        victims = workers[:1]

        def kill(event):
            if event.done and victims:
                os.kill(victims.pop(), signal.SIGKILL)

        with progress.observing(kill), joblib.parallel_config(backend="dask"):
            remote = tune(X, y, **how, journal=tmp_path / "j")
        address = cluster.scheduler_address
        assert workers[0] != workers[1]
        assert victims == []
        assert remote.to_dict() == expected.to_dict()
        assert remote.models == expected.models
        assert len(list((tmp_path / "j").glob("trial-*"))) == 6
        np.savez(tmp_path / "rows.npz", X_train=X, y_train=y)
        models = []
        for name, where in (("here", []), ("there", [f"backend={address}"])):
            (tmp_path / name).mkdir()
            command = ("tune", tmp_path / "rows.npz", "-o", tmp_path / name / "best.tkm", "-q")
            options = (*where, "sizes=3KB,4KB", "folds=2", "epochs=2", "effort=quick")
            succeeded(*command, *sets(*options))
            models.append((tmp_path / name / "best.tkm").read_bytes())
        assert models[0] == models[1]


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "elsewhere"])
def test_a_scheduler_that_does_not_answer_is_one_line(address, require_tool, monkeypatch):
    """The message names the setting, the address and what to start."""
    require_tool("distributed")
    monkeypatch.setattr("tinykernel.kinds.tune.curve.SECONDS", 1)
    refused(ToolError, curves.scheduler(address).__enter__)


def test_the_test_of_a_fold_is_not_trained_on(monkeypatch, no_tools):
    """Each fold is judged on the rows that its training did not see; the last sees all."""
    seen = []
    real = tinykernel.train

    def spy(X, y, **named):
        seen.append({tuple(row) for row in X.tolist()})
        assert named["groups"] is not None
        return real(X, y, **named)

    monkeypatch.setattr("tinykernel.kinds.tune.curve.train", spy)
    X, y = data(3)
    found = tune(X, y, sizes=["3KB"], groups=np.arange(60) // 6, **LINEAR)
    everything = {tuple(row) for row in X.tolist()}
    assert max(seen, key=len) == everything
    first, second = sorted(seen, key=len)[:2]
    assert first | second == everything
    assert not first & second
    assert len(found.points[0].folds) == 2


def test_the_journal_is_continued(trained, tmp_path):
    """What is finished is not trained again, also with other sizes; the result is the same."""
    X, y = data()
    whole = tune(X, y, sizes=["2KB", "3KB"], n_folds=2)
    del trained[:]
    how = {"n_folds": 2, "journal": tmp_path / "j", "n_jobs": 1}
    tune(X, y, sizes=["2KB"], **how)
    assert len(trained) == 3
    (tmp_path / "j" / "trial-2048-1.json").unlink()
    again = tune(X, y, sizes=["2KB", "3KB"], **how)
    assert trained[3:] == [
        curves.Trial(3072, 0),
        curves.Trial(3072, -1),
        curves.Trial(3072, 1),
        curves.Trial(2048, 1),
    ]
    assert again.to_dict() == whole.to_dict()
    assert tune(X, y, sizes=["2KB", "3KB"], **how | {"n_jobs": 0}).pick("2.5KB").budget == 2048
    assert len(trained) == 7


@pytest.mark.parametrize("file", ["journal.json", "trial-2048-0.json", "model-2048.tkm"])
def test_a_damaged_journal_is_one_line(trained, tmp_path, file):
    """A file that was changed or cut is named, and nothing is trained on top of it."""
    X, y = data()
    how = {"sizes": ["2KB"], "n_folds": 2, "journal": tmp_path}
    tune(X, y, **how)
    text = (tmp_path / file).read_bytes()
    changed = text.replace(b'"seconds": ', b'"seconds": 1').replace(
        b'"version": "', b'"version": "1'
    )
    for damaged in (text[:-9], b"[]", b"", *([changed] if changed != text else [])):
        (tmp_path / file).write_bytes(damaged)
        refused(FormatError, tune, X, y, **how)
    assert len(trained) == 3


def test_the_model_of_the_recommended_size_is_taken(trained, tmp_path):
    """A model file in the place of another is damage, though it is a model."""
    X, y = data()
    how = {"sizes": ["2KB"], "n_folds": 2, "journal": tmp_path}
    tune(X, y, **how)
    tinykernel.save(random_model(7), tmp_path / "model-2048.tkm")
    refused(FormatError, tune, X, y, **how)


def test_the_same_rows_are_the_same_data(trained, tmp_path):
    """An array by columns, or text in a wider type, begins no new journal."""
    X, y = data()
    how = {"sizes": ["2KB"], "n_folds": 2, "journal": tmp_path}
    tune(X, y, groups=np.arange(len(X)).astype("U5"), **how)
    tune(np.asfortranarray(X), y, groups=np.arange(len(X)).astype("U9"), **how)
    assert len(trained) == 3


def test_a_foreign_journal_is_refused(trained, tmp_path):
    """Other data or options, a folder that is no journal, a file: each is said in one line."""
    X, y = data()
    how = {"sizes": ["2KB"], "n_folds": 2, "journal": tmp_path / "j"}
    tune(X, y, **how)
    refused(FormatError, tune, X + 1, y, **how)
    refused(TinykernelError, tune, X, y, epochs=3, **how)
    journal = Journal(tmp_path / "j", {"version": "9", "data": "", "options": {}})
    refused(TinykernelError, journal.read)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_bytes(b"")
    refused(FormatError, tune, X, y, **how | {"journal": tmp_path / "photos"})
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["a.jpg"]
    refused(FileError, tune, X, y, **how | {"journal": tmp_path / "photos" / "a.jpg"})


def test_frames_keep_their_names(require_tool):
    """Of numbers; text has no place in the result, and is one line."""
    pd = require_tool("pandas")
    X, y = data()
    frame = pd.DataFrame(X).add_prefix("f")
    names = tuple(frame.columns)
    assert tune(frame, y, sizes=["2KB"], n_jobs=1, **QUICK).model.feature_names == names
    refused(DataError, tune, frame.assign(f0="a"), y, sizes=["2KB"])


def test_ctrl_c_keeps_the_best_so_far(trained, monkeypatch, tmp_path):
    """After Ctrl-C there is a recommendation among what is finished; without any, it goes on."""
    X, y = data()
    stub = tinykernel.kinds.tune.curve.run_trial

    def late(work, trial, stop=None):
        if trial == curves.Trial(2048, -1):
            raise KeyboardInterrupt
        return stub(work, trial)

    monkeypatch.setattr("tinykernel.kinds.tune.curve.run_trial", late)
    how = {"n_folds": 2, "n_jobs": 1, "journal": tmp_path / "j"}
    found = tune(X, y, sizes=["2KB", "3KB"], **how)
    assert (found.stopped, found.best.budget, found.done) == ("interrupted", 3072, 4)
    assert len(found.points) == 1
    with pytest.raises(KeyboardInterrupt):
        tune(X, y, sizes=["2KB"], n_folds=2, n_jobs=1)


def test_sizes_without_a_model_are_left_out(monkeypatch, trained):
    """A size that no model fits is named with its reason and not tried again in every fold."""
    stub = tinykernel.kinds.tune.curve.run_trial

    def small(work, trial, stop=None):
        done = stub(work, trial)
        return curves.Outcome(trial, 0.01, refused="too small") if trial.size == 2048 else done

    monkeypatch.setattr("tinykernel.kinds.tune.curve.run_trial", small)
    X, y = data()
    found = tune(X, y, sizes=["2KB", "3KB"], n_jobs=1)
    assert found.left_out == {2048: "too small"}
    assert (found.done, found.total, found.stopped) == (5, 5, "")
    assert sum(trial.size == 2048 for trial in trained) == 1
    refused(BudgetError, tune, X, y, sizes=["2KB"], n_jobs=1)


@pytest.mark.slow
def test_what_fits_below_2_kb_is_tried(no_tools):
    """A quick tune begins at 1 KB, where a linear part or trees fit, and recommends these."""
    X, y = blobs(60, 0, 2)
    found = tune(X, y, budget="2KB", n_jobs=1, **QUICK)
    assert [point.budget for point in found.points] == [1024, 2048]
    assert found.best.flash < 1024
    assert found.model.find(Components) is None


def test_wrong_arguments():
    """What cannot be tuned is refused in one line before anything is trained."""
    X, y = data()
    for named in [
        {"target": "host"},
        {"n_components": 64},
        {"sizes": ["9KB"], "budget": "8KB"},
        {"n_folds": 1},
        {"task": "numbers"},
    ]:
        refused(TinykernelError, tune, X, y, **named)
