"""Damaged models: one line, no traceback, and no end of the process."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import SAID, refused
from tinykernel.base.errors import FormatError, TinykernelError
from tinykernel.conversion import dumps, files
from tinykernel.conversion.catboost import SavedModel
from tinykernel.conversion.files import SavedBooster
from tinykernel.conversion.models import convert

pytestmark = pytest.mark.usefixtures("page")

_ODD = (-1, 0, 1, 7, 2**31, 10**12, -0.5, 1e308, float("nan"), float("inf"))
_WRONG = (*_ODD, "", "x", None, [], {}, True, "9" * 30)


def _damaged(content, draw):
    """Return JSON with one value replaced, left out, or twice there, at any depth."""
    places = [(content, key) for key in content]
    for part, key in places:
        inner = part[key]
        keys = (
            inner
            if isinstance(inner, dict)
            else range(len(inner) if isinstance(inner, list) else 0)
        )
        places.extend((inner, each) for each in keys)
    part, key = draw(st.sampled_from(places))
    way = draw(st.sampled_from(("other", "other", "gone", "twice")))
    if way == "gone":
        del part[key]
    elif way == "twice" and isinstance(part, list):
        part.insert(key, part[key])
    else:
        part[key] = draw(st.sampled_from(_WRONG))
    return content


def _of_dump(library, dump):
    """Return a model of a file as its process of its own would have read it."""
    saved = object.__new__(SavedBooster)
    saved.take(Path("model"), library, dump, (1, 1))
    return saved


@pytest.fixture(scope="module")
def contents(require_tool):
    """Return small models of each format as JSON: categories, gaps, three classes."""
    rng = np.random.default_rng(0)
    X = np.c_[rng.integers(0, 5, 300), rng.normal(size=(300, 3))]
    y = (np.isin(X[:, 0], (1, 3)) + (X[:, 1] > 0)).astype(int)
    light, extreme = require_tool("lightgbm"), require_tool("xgboost")
    options = {"verbose": -1, "min_child_samples": 5, "n_estimators": 2, "num_leaves": 5}
    first = light.LGBMClassifier(**options).fit(X, y, categorical_feature=[0])
    second = extreme.XGBClassifier(
        n_estimators=2, max_depth=3, feature_types=["c", "q", "q", "q"], enable_categorical=True
    ).fit(X, y)
    return {
        "lightgbm": json.dumps(dumps.of_lightgbm(first.booster_)),
        "xgboost": json.dumps(dumps.of_xgboost(second.get_booster())),
        "catboost": Path(__file__).with_name("catboost.json").read_text(encoding="utf-8"),
    }


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost"])
@pytest.mark.filterwarnings("ignore:.*NaN is taken for the missing value")
def test_damaged_contents_are_one_line(library, contents):
    """Every index, length and text of a dump is checked: a model comes of it, or an error."""

    messages = []

    @settings(max_examples=150)
    @given(st.data())
    def holds(data):
        content = _damaged(json.loads(contents[library]), data.draw)
        try:
            if library == "catboost":
                convert(SavedModel(json.dumps(content)))
            else:
                convert(_of_dump(library, content))
        except TinykernelError as error:
            messages.append(str(error))

    holds()
    assert messages
    assert not any("\n" in message for message in messages)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
@pytest.mark.parametrize(
    "code",
    [
        "import os; os._exit(3)",
        "import os; os.kill(os.getpid(), 11)",
        "raise ValueError('no\\nmodel')",
        "\nwhile True: pass",
    ],
)
def test_a_loader_that_ends_is_one_line(library, code, tmp_path, monkeypatch):
    """It runs in a process of its own, with a limit of time."""
    loaders = tmp_path / "loaders"
    loaders.mkdir()
    (loaders / f"{library}.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(loaders)
    monkeypatch.setitem(files.SECONDS, "read", 1)
    file = tmp_path / {"lightgbm": "a.txt", "xgboost": "a.ubj"}[library]
    file.write_text("tree\nend of trees", encoding="utf-8")
    refused(FormatError, convert, file)


def test_files_that_are_cut_are_one_line(tmp_path, require_tool):
    """The loaders themselves see half a file."""
    X, y = np.arange(40.0).reshape(-1, 1), np.arange(40) % 7
    light, extreme = require_tool("lightgbm"), require_tool("xgboost")
    light.LGBMRegressor(n_estimators=3, verbose=-1).fit(X, y).booster_.save_model(
        tmp_path / "a.txt"
    )
    extreme.XGBRegressor(n_estimators=3).fit(X, y).save_model(tmp_path / "a.ubj")
    for file in (tmp_path / "a.txt", tmp_path / "a.ubj"):
        file.write_bytes(file.read_bytes()[:300])
        refused(FormatError, convert, file)
    SAID.clear()  # it has words of the library
