"""tinykernel.train: the model fits, uses its budget, and what was found is kept."""

import re
import sys
from unittest.mock import Mock

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

from benchmarks.counts import ROOT
from tests.cli.tools import blobs
from tests.refusals import refused
from tinykernel import Classifier, NoveltyDetector, report, train
from tinykernel.base.errors import BudgetError, TinykernelError
from tinykernel.compile.plan import pack
from tinykernel.compile.targets import TARGETS
from tinykernel.kinds import selection
from tinykernel.kinds.train import fitting
from tinykernel.papers.classifier import PaperClassifier
from tinykernel.pieces.components.spec import Components
from tinykernel.run.report import needed_bytes, refuse_less_than_code

QUICK = {"epochs": 2, "effort": "quick", "random_state": 0}
PAPER = {
    "method": PaperClassifier,
    "sigma": 8.0,
    "regularization": 0.1,
    "max_iter": 2,
    "random_state": 0,
}


@pytest.fixture(scope="module")
def digits():
    """300 digits as bytes, with all extremes."""
    X, y = load_digits(return_X_y=True)
    X, y = X.astype(np.uint8), y
    rows = np.unique(np.concatenate([np.arange(300), X.argmax(axis=0)]))
    return X[rows], y[rows]


def test_a_model_fits_and_uses_the_budget(digits):
    """What is trained with the number found keeps to the budget, and little is left over."""
    X, y = digits
    found = train(X[y < 2], y[y < 2], budget="6KB", **QUICK)
    assert found.trainings == 1
    assert 0.9 * 6144 < found.memory.flash <= found.budget == 6144
    assert report(found.model, "cortex-m4").flash == found.memory.flash


@pytest.mark.slow
def test_train_calls_what_its_diagram_shows():
    """The page of the architecture has at most twelve calls, in the order of a training."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    drawing = page.split("## What `train` does")[1].split("\n## ")[0]
    drawn = [name.split(".")[-1] for name in re.findall(r"\|-- ([\w.]+)", drawing)]
    rooms = re.compile(r"tinykernel/(kinds/.*|run/report|learn/\w+/kind)\.py$")
    calls: dict[str, None] = {}

    def note(frame, event, _):
        name, caller = frame.f_code.co_name, (frame.f_back or frame).f_code.co_filename
        if event != "call" or (name == "report" and "kinds/train/" not in caller):
            return  # by other reports kinds decide
        if rooms.search(frame.f_code.co_filename):
            calls.setdefault(name)

    X, y = load_iris(return_X_y=True)
    sys.setprofile(note)
    try:
        train(X[::3], y[::3], budget="4KB", epochs=2, random_state=0, n_jobs=1, link=False)
    finally:
        sys.setprofile(None)
    assert len(drawn) <= 12
    assert [name for name in calls if name in drawn] == drawn


def test_small_code_where_flash_is_short(digits):
    """Components get what fast code would take, unless time is limited or fast code asked for."""
    given = {**QUICK, "linear": "off", "target": "cortex-m4", "link": False}
    small, fast = (train(*digits, budget="3KB", code=c, **given) for c in ("auto", "fast"))
    assert small.model.find(Components).small_code
    assert not fast.model.find(Components).small_code
    assert small.classifier.n_components_ > 1.3 * fast.classifier.n_components_
    assert small.memory.flash <= 3072
    for budget in ("8KB", "flash=3KB,instructions=1M"):
        assert not train(*digits, budget=budget, **given).model.find(Components).small_code


def test_paper_fits_and_uses_the_budget(digits):
    """The same for the other method, whose weights take 1.6 bits as its layout says."""
    found = train(*digits, budget=6144, **PAPER)
    assert 0.9 * 6144 < found.memory.flash <= 6144
    weights = next(table for table in pack(found.model).tables if table.name == "tk_weights")
    assert weights.n_bytes < 10 * found.classifier.n_components_ * 1.7 / 8
    refused(BudgetError, train, *digits, budget=1000, link=False, **PAPER)


def test_without_a_search_the_layout_is_full(digits):
    """effort="quick" makes no short trainings, not even to choose the layout for a budget."""
    found = train(*digits, budget="4KB", model="components", **QUICK)
    assert found.classifier.layout_ == "full"


def test_a_result_predicts_as_its_classifier_does():
    """Labels, probabilities and accuracy, without a detour; values have no probabilities."""
    X, y = blobs(60, 0)
    found = train(X, y, n_components=64, **QUICK)
    assert np.array_equal(found.predict(X), found.model.predict(X))
    assert len(repr(found)) < 160
    assert found.score(X, y) == np.mean(found.predict(X) == y)
    assert np.array_equal(found.predict_proba(X).argmax(axis=1), found.model.scores(X).argmax(1))
    values = train(X, X[:, 0], task="numbers", model="linear", **QUICK)
    assert values.score(X, X[:, 0]) == values.classifier.score(X, X[:, 0])
    refused(TinykernelError, values.predict_proba, X)


@pytest.mark.parametrize("fault", [KeyboardInterrupt, OSError("No space left on device")])
def test_a_training_survives_a_linker_that_fails(monkeypatch, fault):
    """Ctrl-C or a full disk while the trained model is linked costs the exact figure only."""

    def no_linker(model, target, limit=None, *, compiler="auto"):
        if compiler == "auto":
            raise fault
        return report(model, target, limit, compiler=compiler)

    monkeypatch.setattr(fitting, "report", no_linker)
    with pytest.warns(UserWarning, match="its size is an estimate"):
        found = train(*blobs(60, 0), budget="3KB", **QUICK)
    assert found.memory.source == "estimate"


@pytest.mark.parametrize("first", [True, False])
def test_ctrl_c_costs_no_more_than_a_remark(monkeypatch, first):
    """A training that Ctrl-C ended tries no single tree; Ctrl-C during that keeps the model."""
    asked = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(fitting, "single_tree", asked)
    if first:
        monkeypatch.setattr(selection._Race, "run", Mock(side_effect=KeyboardInterrupt))
    found = train(*blobs(60, 0), budget="3KB", link=False, **QUICK)
    assert (asked.called, found.smaller) == (not first, "")


def test_a_budget_below_all_code_is_refused_without_a_search(monkeypatch):
    """A hundred bytes are refused before the search, on every core; the least models are above."""
    X, y = np.arange(40)[:, None].astype(np.int16), np.arange(40) // 20
    least = (
        Classifier(model="tree", effort="quick", random_state=0).fit(X, y),
        Classifier(model="linear", **QUICK).fit(X, y),
        NoveltyDetector(n_prototypes=1, false_alarms=0.5).fit(X),
    )
    monkeypatch.setattr(fitting, "select", None)
    for name in (name for name, row in TARGETS.items() if row.family != "host"):
        for model in least:
            refuse_less_than_code(needed_bytes(report(model, name, compiler="none")), name)
        refused(BudgetError, train, X, y, budget=100, target=name)


def test_another_kind_where_components_do_not_fit(digits):
    """Where 32 components are too many, another kind is trained, within the budget."""
    found = train(*digits, budget=1400, **QUICK)
    assert found.model.find(Components) is None
    assert found.memory.flash <= 1400


def test_the_paper_within_a_limit_of_time():
    """No option of code is handed on to a method without one."""
    found = train(*blobs(60, 0), budget="flash=6KB,time=1ms@16MHz", link=False, **PAPER)
    assert found.sizes.flash < 6144
    assert found.model.find(Components) is not None
