"""A new kind of model is one folder, which nothing else lists."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.sessions import ROOT

_OPTIONS = """
from dataclasses import dataclass
from tinykernel.base.checks import at_least
from tinykernel.base.options import option
from tinykernel.learn.announcement import TABLES, Announcement

STUMPS = Announcement("stumps", "small trees", (TABLES,), size="n_stumps", hint="only for stumps")


@dataclass(kw_only=True, eq=False, repr=False)
class StumpsOptions:
    n_stumps: int | None = option(None, at_least(1), "Number of stumps.", chosen="all that fit")
"""
_KIND = """
from tinykernel.learn.trees.kind import TreesKind
from tinykernel.learn.stumps.options import STUMPS


class StumpsKind(TreesKind):
    about = STUMPS


KINDS = (StumpsKind(),)
"""
_USES = """
from sklearn.datasets import load_iris
from tinykernel import Classifier
from tinykernel.base.errors import OptionError
from tinykernel.face.settings import SETTINGS

X, y = load_iris(return_X_y=True)
assert Classifier(model="stumps", effort="quick", random_state=0).fit(X, y).score(X, y) > 0.9
assert "n_stumps : int or None" in Classifier.__doc__
assert SETTINGS["n_stumps"].usual_text == "all that fit"
assert "stumps" in SETTINGS["model"].form.split("|")
try:
    Classifier(model="linear", n_stumps=3).fit(X, y)
except OptionError as error:
    assert str(error) == "n_stumps: only for stumps"
else:
    raise AssertionError("an option without effect")
"""


@pytest.mark.slow
def test_a_new_kind_is_one_room(tmp_path):
    """Nothing else lists it: it is trained, documented, completed and refused."""
    tree = tmp_path / "tinykernel"
    shutil.copytree(ROOT / "tinykernel", tree, ignore=shutil.ignore_patterns("__pycache__"))
    room = tree / "learn" / "stumps"
    room.mkdir()
    (room / "options.py").write_text(_OPTIONS)
    (room / "kind.py").write_text(_KIND)
    here = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", _USES]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=here)
    assert done.returncode == 0, done.stderr[-500:]
