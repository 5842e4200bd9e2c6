"""The race for hyper-parameters: what it tries, and what it leaves out."""

from dataclasses import replace

import numpy as np
import pytest

from tinykernel.training import search
from tinykernel.training.folds import Fold
from tinykernel.training.options.recipe import Recipe

CAPACITY = {"compact": 512, "windows": 256, "compact+linear4": 256, "linear8": 0, "linear4": 0}


@pytest.fixture
def tried(monkeypatch):
    """Log losses by form in place of trainings; the list tells which were asked for."""
    losses: dict[str, float] = {}
    made: list[str] = []

    def fake(data, fold, recipe, cancelled):
        made.append(recipe.form)
        return losses[recipe.form], 0.5

    monkeypatch.setattr(search, "_train_fold", fake)
    return losses, made


def choose(beaten=lambda _: False) -> search.SearchOutcome:
    rows = np.arange(400)
    folds = [Fold(rows[rows % 4 != part], rows[rows % 4 == part]) for part in range(3)]
    none = np.zeros((400, 8), dtype=np.float32)
    data = search.TrialData(none, none, none[:, 0], rows % 2, folds, none.astype(np.int8))
    return search.choose_recipe(data, Recipe(epochs=60), CAPACITY, frozenset(), beaten)


@pytest.mark.parametrize(
    ("compact", "both", "chosen", "whole"),
    [
        (0.3, 0.2, "linear8", False),  # a linear part is ahead of both
        (0.3, 0.05, "compact+linear4", True),
        (0.05, 0.2, "compact", True),
    ],
)
def test_a_race_ends_where_a_linear_part_is_ahead(tried, compact, both, chosen, whole):
    """Then other layouts and widths cost no time; where components may win, everything is tried."""
    losses, made = tried
    losses |= {"compact": compact, "windows": 0.4, "compact+linear4": both}
    losses |= {"linear8": 0.1, "linear4": 0.15}
    assert choose().recipe.form == chosen
    assert (set(made) == set(CAPACITY)) == whole
    assert {"compact", "linear8", "compact+linear4"} <= set(made)


def test_a_race_ends_where_another_model_is_ahead(tried):
    """Once it is told what the first layout reached, and what a linear part did."""
    losses, made = tried
    losses |= {"compact": 0.1, "linear8": 0.2}
    told = []
    assert choose(lambda found: told.append(found) is None).recipe.form == "compact"
    known = [told[0].best_of(each) for each in (told[0].recipe, *told[0].runners_up)]
    assert (set(made), [each.log_loss for each in known]) == ({"compact", "linear8"}, [0.1, 0.2])


def test_a_linear_part_is_trained_once_on_a_fold(tried):
    """Its heat and its final are the same training, of one fold and of two."""
    losses, made = tried
    losses |= {"compact": 0.3, "compact+linear4": 0.2, "linear8": 0.1}
    choose()
    assert made.count("linear8") == 2


def test_a_linear_part_tried_beside_another_layout_is_found(tried):
    """It has no layout: its trial is that of its form."""
    losses, _ = tried
    losses |= {"compact": 0.12, "windows": 0.05, "compact+linear4": 0.11}
    losses |= {"linear8": 0.15, "linear4": 0.2}
    outcome = choose()
    assert outcome.recipe.form == "windows"
    linear = replace(outcome.recipe.in_form("linear8", 0), layout="windows")
    assert outcome.best_of(linear).log_loss == losses["linear8"]
