"""A model over a limit is trained again, smaller."""

from dataclasses import replace

import pytest
from sklearn.datasets import load_iris

from tests.refusals import refused
from tinykernel import Classifier, load, save, train
from tinykernel.base.errors import BudgetError
from tinykernel.kinds.planning import Usage
from tinykernel.kinds.selection import deliver, kinds_for, select
from tinykernel.kinds.train import fitting
from tinykernel.model import records

QUICK = {"effort": "quick", "epochs": 2, "random_state": 0, "model": "components"}


@pytest.fixture
def chosen():
    """A problem, and components for it."""
    problem, _ = Classifier(budget="3KB", **QUICK).problem(*load_iris(return_X_y=True))
    selected = select(problem, kinds_for(problem.options))
    return problem, replace(selected, spec=replace(selected.spec, n_components=128))


def test_a_model_over_a_limit_is_trained_again_with_fewer_components(chosen):
    """It keeps everything else."""
    problem, selected = chosen
    shares = iter([1.2, 0.9])
    result, trainings = deliver(selected, problem, lambda _: Usage(next(shares), "", 40))
    assert trainings == 2
    assert 0 < result.recipe.n_components < 128
    assert replace(result.recipe, n_components=128) == selected.spec.recipe


def test_a_limit_that_is_never_met_ends(chosen):
    """With 32 components there is nothing left to save: an error, and no endless loop."""
    problem, selected = chosen
    refused(BudgetError, deliver, selected, problem, lambda _: Usage(1.2, "9 bananas", 9000))


def test_a_fixed_size_is_named(chosen):
    """Whatever the kind, fewer components were asked for."""
    problem, selected = chosen
    sized = replace(problem, options=replace(problem.options, n_kernels=8))
    with pytest.raises(BudgetError) as caught:
        deliver(selected, sized, lambda _: Usage(1.2, "9 bananas", 9000))
    assert caught.value.options == {"n_kernels": None}


def test_a_linked_model_over_the_budget_is_trained_again(monkeypatch):
    """The estimate decides first; a linked program that is larger has the last word."""
    X, y = load_iris(return_X_y=True)
    real, more = fitting.report, iter([1300, 0, 0])

    def linked(model, target, limit=None, *, compiler="auto"):
        sizes = real(model, target, limit, compiler="none")
        return replace(sizes, flash=sizes.flash + (next(more) if compiler == "auto" else 0))

    monkeypatch.setattr(fitting, "report", linked)
    found = train(X, y, budget="3KB", **QUICK)
    assert (found.trainings, found.memory.fits) == (2, True)


def test_files_of_older_versions_load(tmp_path, monkeypatch):
    """One estimator trained every kind of model, with options that are gone."""
    X, y = load_iris(return_X_y=True)
    model = Classifier(n_components=32, **QUICK).fit(X, y)
    old = model.get_params() | {"noise": None, "tree_bytes": 300, "convolutions": "auto"}
    old = {key: value for key, value in old.items() if key not in ("budget", "target", "layout")}
    fitted = {key: value for key, value in vars(model).items() if key.endswith("_")}
    again = records._make_classifier("TernaryKernelClassifier", old | fitted)
    assert (again.predict(X) == model.predict(X)).all()
    save(again, tmp_path / "m.pkl")
    assert load(tmp_path / "m.pkl").quantize() == model.quantize()
