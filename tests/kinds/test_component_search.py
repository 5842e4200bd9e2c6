"""The search for hyper-parameters of components: what it tries, and what it leaves out."""

import threading

import numpy as np
import pytest

from tinykernel.kinds.component_search import ComponentSearch
from tinykernel.learn.components.learner import MixedRows, TrialData
from tinykernel.learn.folds import Fold
from tinykernel.learn.recipe import Recipe

FORMS = {("compact", None): 512, ("windows", None): 256, ("compact", 4): 256}


@pytest.fixture
def tried(monkeypatch):
    """Log losses by layout and linear part in place of trainings; the list has what was trained."""
    losses: dict[tuple[str, int | None], float] = {}
    trained: list[tuple[str, int | None]] = []

    def fake(data, fold, recipe, cancelled):
        trained.append((recipe.layout, recipe.linear_bits))
        return losses[recipe.layout, recipe.linear_bits], 0.5

    monkeypatch.setattr(TrialData, "judged", fake)
    return losses, trained


def begun(n_folds: int = 3) -> ComponentSearch:
    """Begin a search on 400 rows."""
    rows = np.arange(400)
    folds = [Fold(rows[rows % 4 != part], rows[rows % 4 == part]) for part in range(n_folds)]
    none = np.zeros((400, 8), dtype=np.float32)
    mixed = MixedRows(none, none, none[:, 0], rows % 2, none.astype(np.int8))
    data = TrialData(mixed, folds, 400)
    recipes = [
        Recipe(layout=layout, linear_bits=bits, n_components=n, epochs=60)
        for (layout, bits), n in FORMS.items()
    ]
    return ComponentSearch(data, recipes, frozenset(), threading.Event())


@pytest.mark.parametrize("best", list(FORMS))
def test_the_best_layout_at_full_size_is_chosen(tried, best):
    """Each layout, with a linear part and without, is trained at its full size."""
    losses, trained = tried
    losses |= dict.fromkeys(FORMS, 0.3) | {best: 0.2}
    first, chosen = (each.best for each in begun().rounds())
    assert first.layout == "compact"
    assert (chosen.layout, chosen.linear_bits) == best
    assert set(trained) == set(FORMS)


def test_the_first_round_tries_one_layout(tried):
    """Where another kind of model is ahead of it, the others cost no time."""
    losses, trained = tried
    losses |= dict.fromkeys(FORMS, 0.3)
    rounds = begun().rounds()
    assert next(rounds).best.n_components == 512
    assert set(trained) == {("compact", None)}


def test_runners_up_are_nearly_as_good(tried):
    """The best of each other layout is one, unless its loss is far larger."""
    losses, _ = tried
    for other, layouts in ((0.12, ["windows"]), (0.2, [])):
        losses |= {("compact", None): 0.1, ("windows", None): other, ("compact", 4): 0.11}
        *_, last = begun().rounds()
        assert last.best.layout == "compact"
        assert [recipe.layout for recipe in last.runners_up] == layouts


@pytest.mark.parametrize(("n_folds", "lead"), [(3, 10.0), (1, 1.0)])
def test_a_linear_part_may_lead_where_rows_are_few(monkeypatch, n_folds, lead):
    """It is chosen if its loss is less, and not tried with many rows, which have one fold."""

    def fake(data, fold, recipe, cancelled):
        return 0.3 / recipe.lead / (1 + (recipe.linear_bits == 4)), 0.5

    monkeypatch.setattr(TrialData, "judged", fake)
    *_, last = begun(n_folds).rounds()
    assert (last.best.linear_bits, last.best.lead) == (4, lead)


def test_the_best_of_each_layout_on_one_fold_is_judged_on_two(tried):
    """A linear part that is far behind is not trained on the second, and once with a lead."""
    losses, _ = tried
    losses |= {("compact", None): 0.1, ("windows", None): 0.2, ("compact", 4): 0.3}
    search = begun()
    list(search.rounds())
    twice = {(recipe.layout, recipe.linear_bits) for recipe, fold in search.judged if fold == 1}
    assert twice == {("compact", None), ("windows", None)}
    assert [recipe.lead for recipe, _ in search.judged if recipe.lead > 1] == [10]
