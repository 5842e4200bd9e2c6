"""Values that a user gives: groups are one name or number a row, at every door."""

import numpy as np
import pytest

from tests.random_models import random_model, random_raw
from tests.refusals import refused
from tinykernel import NoveltyDetector, TernaryKernelClassifier, calibrate, tune
from tinykernel.base.checks import as_groups
from tinykernel.base.errors import TinykernelError
from tinykernel.judge.figures import compare_values
from tinykernel.judge.models import evaluate

pytestmark = pytest.mark.usefixtures("page")

MODEL = random_model(3, n_classes=3, n_features=6)
X = random_raw(MODEL, 1, 60)
Y = np.resize(MODEL.classes, len(X))
DOORS = {
    "evaluate": lambda groups: evaluate(MODEL, X, Y, groups=groups),
    "calibrate": lambda groups: calibrate(MODEL, X, Y, max_error=0.3, groups=groups),
    "novelty": lambda groups: NoveltyDetector(random_state=0).fit(X, groups=groups),
    "fit": lambda groups: TernaryKernelClassifier(random_state=0).fit(X, Y, groups=groups),
    "tune": lambda groups: tune(X, Y, budget="4KB", groups=groups),
}


@pytest.mark.parametrize("door", DOORS)
def test_groups_without_a_name_are_refused_everywhere(door):
    """A row without a group, too few groups and a table of them are one line, and no group."""
    ten = np.arange(60) % 10
    for groups in (
        np.where(ten == 3, np.nan, ten),
        np.where(ten == 3, None, ten),
        ten[:10],
        np.c_[ten, ten],
    ):
        refused(TinykernelError, DOORS[door], groups)


def test_groups_of_several_types_are_text():
    """A number among names is a name; labels and values that are none are refused, too."""
    mixed = np.array([3, "p1", "p2"], object)
    assert as_groups(mixed, 3).tolist() == ["3", "p1", "p2"]
    assert as_groups([10, 9, 10], 3).tolist() == [10, 9, 10]
    refused(TinykernelError, compare_values, [1.0, np.nan], [1.0, 2.0])
