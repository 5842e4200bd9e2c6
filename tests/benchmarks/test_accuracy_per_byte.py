"""The pages of accuracy per byte and of sounds: misses, peers, and the order of rows."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def module(import_benchmark):
    return import_benchmark("accuracy_per_byte")


@pytest.fixture
def shown(import_benchmark):
    """What writes the page."""
    return import_benchmark("_accuracy_page")


def row(shown: ModuleType, kilobytes: float = 8, **changes: Any) -> Any:
    """Return a row of USPS that misses nothing."""
    given = {
        "data": "usps",
        "kilobytes": kilobytes,
        "model": "64 components",
        "flash": 2000,
        "source": "linked",
        "accuracy": 97.0,
        "low": 96.0,
        "high": 98.0,
        "differences": 0,
        "instructions": 1000,
        "ram": 100,
        "seconds": 1.0,
        "rows": 9,
        "test_rows": 9,
        "measured": "one day, one machine",
    }
    return shown.Row(**(given | changes))


def peer(shown: ModuleType, name: str = "int8 perceptron", **changes: Any) -> Any:
    """Return what a peer gave on USPS."""
    given = {
        "data": "usps",
        "kilobytes": 8,
        "name": name,
        "what": "9 hidden units",
        "flash": 3000,
        "source": "linked",
        "accuracy": 94.0,
        "instructions": 5000,
        "ram": 80,
        "seconds": 1.0,
        "measured": "one day",
    }
    return shown.Peer(**(given | changes))


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({}, []),
        ({"rows": 7}, ["usps, 8 KB: 7 rows were verified, 9 are for testing"]),
        ({"differences": 1, "flash": 8193}, 2),
    ],
)
def test_every_kind_of_miss_is_said(shown, changes, lines):
    """Differing scores, rows that were not verified and bytes over the budget make a line each."""
    missed = shown.missed([row(shown, **changes)])
    assert missed == lines if isinstance(lines, list) else len(missed) == lines


def test_the_page_says_where_a_peer_wins(shown):
    """The best peer stands beside a row, bold if it is ahead; one that does not fit never wins."""
    ours, nothing = row(shown), peer(shown, what="", accuracy=0.0)
    assert shown.best_peer(ours, [peer(shown), nothing]).startswith("int8 perceptron, 94.00 %")
    better = peer(shown, "boosted trees", accuracy=98.5, source="estimate", instructions=None)
    assert shown.best_peer(ours, [peer(shown), better]).startswith("**boosted trees**, 98.50 %")
    assert shown.best_peer(ours, [nothing]) == ""
    text = shown.page([ours], {}, [better, nothing])
    assert "3000 B by estimate" in text
    assert "it is -1.5 to -1.5 points ahead of the best of them" in text


def test_persons_stay_on_one_side(module, tmp_path):
    """The folds of har_raw hold each window once, and no person in both parts."""
    rng = np.random.default_rng(0)
    arrays = {"X": rng.integers(0, 9, (60, 4, 2)), "y": np.arange(60) % 2}
    arrays["group"] = np.repeat(np.arange(10), 6)

    np.savez(tmp_path / "har_raw.npz", **arrays)
    parts = module.load(tmp_path, "har_raw")
    assert len(parts) == 5
    assert sum(len(part.y_test) for part in parts) == 60
    for part in parts:
        assert not set(part.groups) & set(part.groups_test)


@pytest.mark.parametrize(
    ("name", "dtype", "pool"), [("usps", "float32", 2), ("covtype", "int16", 1)]
)
def test_int8_perceptron_in_c_computes_what_was_trained(module, require_tool, name, dtype, pool):
    """Labels of the peer's C are those of its float model but for a few roundings."""
    from peers.building import run_on_host
    from peers.perceptron import Bytes, perceptron_sources, train_perceptron

    require_tool("gcc")
    rng = np.random.default_rng(0)
    side = {"usps": 256, "covtype": 54}[name]
    centres = rng.uniform(0, 255, (3, side))
    codes = np.arange(600) % 3
    X = np.clip(centres[codes] + rng.normal(0, 40, (600, side)), 0, 255)
    if name == "covtype":
        X[:, 10:] = X[:, 10:] > 128
    X = (X / 255 if dtype == "float32" else X).astype(dtype)
    how = Bytes.of(name, X, pool)
    given = how.apply(X)
    model = train_perceptron(given, codes, 8, 0.0, 10)
    sources = perceptron_sources(model, how, given, X.dtype, side)
    labels = run_on_host(sources, X)
    assert np.mean(labels == model.predict(given)) > 0.98
    assert np.mean(labels == codes) > 0.95


def test_folds_keep_files_of_their_own_and_are_not_trained_twice(module, monkeypatch, tmp_path):
    """A row of several trainings scores each part's own model, and goes on where it ended."""
    calls = []

    def answer(*arguments):
        calls.append(arguments[0])
        found = {"flash": 9, "flash_source": "linked", "ram": 1, "seconds": 2.0}
        return found | {"rows": 4, "differences": 0, "accuracy": 1.0, "instructions": len(calls)}

    class Model:
        def __init__(self, number):
            self.number = number

        def predict(self, X):
            return np.full(len(X), self.number)

    numbers = iter(range(9))
    monkeypatch.setattr(module, "tinykernel_json", answer)
    monkeypatch.setattr(module.tinykernel, "load", lambda _path: Model(next(numbers)))
    monkeypatch.setattr(module, "consists_of", lambda _model: "a model")
    X = np.zeros((4, 2))
    parts = [module.Data(X, np.arange(4) % 2, X, np.full(4, k)) for k in range(3)]
    first = module.measure("har_raw", 4.4, parts, tmp_path)
    assert (first.accuracy, first.rows, first.seconds, first.instructions) == (100.0, 12, 6.0, 9)
    assert calls == ["train", "verify", "bench"] * 3
    assert module.measure("har_raw", 4.4, parts, tmp_path) == first
    assert len(calls) == 9


def test_rows_stand_in_their_own_order(checkout, import_benchmark):
    """Rows are sorted by data, then budget."""
    page = checkout / "docs" / "results" / "sounds.md"
    key = import_benchmark("sounds")._key
    keys = [key(line) for line in page.read_text().split("|---|\n")[-1].splitlines()]
    assert len(keys) > 5
    assert keys == sorted(keys)
