"""Training of trees: the same on every machine, within its bytes, and only where it is ahead."""

import numpy as np
import pytest

from tests.refusals import refused
from tinykernel import Classifier, Regressor, report
from tinykernel.base.errors import BudgetError
from tinykernel.kinds.train.fitting import train
from tinykernel.learn.trees.growth import Bins, Growth, grow
from tinykernel.pieces.linear.spec import Linear
from tinykernel.pieces.trees.spec import Trees
from tinykernel.run.estimate import estimate_instructions, instruction_margin

pytestmark = pytest.mark.usefixtures("page")


def corners(n=400, seed=0):
    """Rows whose class is a box: sharp thresholds, which a linear part cannot have."""
    X = np.random.default_rng(seed).integers(0, 200, (n, 4)).astype(np.int16)
    return X, ((X[:, 0] > 60) & (X[:, 1] < 120)).astype(int)


def test_first_split_is_the_best_of_all():
    """The threshold that grows first is that of the largest gain, found by trying each."""
    rng = np.random.default_rng(3)
    Q = rng.integers(-20, 20, (60, 3)).astype(np.int8)
    slope, bend = rng.normal(size=60), rng.uniform(0.1, 1, 60)
    bins = Bins.of(Q, 64)
    tree = grow(
        bins.sort(Q),
        bins.first,
        slope,
        bend,
        np.zeros(bins.first[-1], bool),
        Growth(2, 1.0, 0.0, 1.0),
    )
    best = (-np.inf, 0, 0)
    for f in range(3):
        for c, border in enumerate(bins.borders[f]):
            parts = (Q[:, f] <= border, Q[:, f] > border)
            gain = sum(slope[p].sum() ** 2 / (bend[p].sum() + 1) for p in parts)
            best = max(best, (gain, f, c))
    assert (tree.input[0], tree.cut[0]) == best[1:]


def test_a_limit_of_instructions_leaves_trees_that_keep_to_it():
    """Trees compete where time is limited: all their steps are counted, not the usual ones."""
    X, y = corners(1000)
    found = {}
    for budget in ("flash=2KB,instructions=600", "flash=2KB"):
        parameters = {"model": "trees", "random_state": 0, "link": False}
        found[budget] = train(X, y, budget=budget, **parameters).model
    few, many = (estimate_instructions(model, "cortex-m4") for model in found.values())
    assert few * (1 + instruction_margin("cortex-m4")) <= 600 < many
    refused(BudgetError, train, X, y, budget="flash=2KB,instructions=100", **parameters)


def test_trees_over_the_budget_beside_a_number_of_components_raised_a_type_error():
    """Trees have no components: their bytes are found all the same; too few are named."""
    given = {"model": "trees", "random_state": 0, "link": False}
    found = train(*corners(400), budget="1200", effort="quick", **given)
    assert found.model.find(Trees) is not None
    assert found.sizes.flash <= 1200
    refused(BudgetError, train, *corners(400), budget="260", **given)


@pytest.mark.parametrize("values", [False, True])
def test_trees_stand_beside_a_linear_part_where_that_is_better(values):
    """A slope and a step: the linear part has the one, few trees the other, in integers too."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 5)).astype(np.float32)
    y = X @ [3.0, -2.0, 1.0, 2.0, 0.5] + 4.0 * (X[:, 0] > 0.3) * (X[:, 1] < 0.5)
    given = {"model": "trees", "budget": "1500", "random_state": 0}
    model = (
        Regressor(**given).fit(X, y).quantize()
        if values
        else Classifier(**given).fit(X, y > 1).quantize()
    )
    assert [type(part) for part in model.readout.parts] == [Linear, Trees]
    assert report(model, "cortex-m4", compiler="none").flash < 1500
    assert model.score(X, y if values else y > 1) > 0.97


@pytest.mark.slow
def test_trees_win_where_they_are_better():
    """Trees compete in a budget: they take sharp thresholds, and leave a plane to a linear part.

    If they are far ahead of the first layout, no other one is tried.
    """
    given = {"budget": "2KB", "random_state": 0, "link": False}
    trained = train(*corners(1300), **given)
    assert trained.model.find(Trees) is not None
    components = [each for each in trained.classifier.trials_ if each["kind"] == "components"]
    assert len(components) == 1
    assert trained.classifier.search_["chosen"].startswith("trees")
    plane = np.random.default_rng(0).normal(size=(700, 6)).astype(np.float32)
    assert train(plane, plane.sum(axis=1) > 0, **given).model.find(Trees) is None


def test_the_tree_beside_a_model_can_be_trained():
    """One tree an output takes the place of boosted ones; it keeps to the budget, of values too."""
    X, y = corners(300)
    for task in ("classes", "numbers"):
        one = train(X, y, budget="2KB", model="tree", task=task, random_state=0, link=False)
        trees = one.model.find(Trees)
        assert (len(trees.size), trees.size[0] >= 2) == (1, True)
        assert np.mean((one.model.predict(X) > 0.5) == y) > 0.9


def test_a_limit_without_room_for_trees_has_none():
    """A limit that leaves a linear part alone is not refused for its "code"."""
    X, y = corners(60)
    given = {"epochs": 2, "random_state": 0, "link": False}
    found = train(X, y, budget="flash=4KB,instructions=220", **given)
    assert found.model.find(Trees) is None
