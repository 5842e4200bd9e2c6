"""What benchmarks say of intervals, marks and code sizes holds."""

import json
from types import ModuleType

import numpy as np
import pytest

from tests.random_models import tree_model
from tests.sessions import ROOT
from tests.spectra import spectral_model
from tinykernel.compile.targets import TARGETS
from tinykernel.run import estimate
from tinykernel.run.estimate import code_properties, estimate_footprint


@pytest.fixture
def drawn(import_benchmark) -> ModuleType:
    return import_benchmark("interval_coverage")


@pytest.mark.parametrize("kind", ["equal", "drawn", "half"])
def test_intervals_hold_and_are_not_wide(drawn, kind) -> None:
    """Of twenty persons, alike or not, at least 90 % hold, at 1.6 times the ideal width or less."""
    for name, width in (("correlation 0 to 0.1", 1.6), ("correlation 0.2", 1.6), ("RMSE", 1.9)):
        found = [drawn.coverage(kind, 20, law, 100) for law in drawn.LAWS[name][::2]]
        assert np.mean([held for held, _ in found]) >= 0.92
        assert max(wide for _, wide in found) <= width


@pytest.mark.parametrize("groups", [5, 40])
def test_a_promise_by_groups_holds(drawn, groups) -> None:
    """Five persons of whom a quarter is bad promise nothing; forty keep what they promise."""
    for bad in (0.1, 0.25):
        for made, broken in (
            drawn.promise(groups, bad, 0.5, 60),
            drawn.alarm_promise(groups, bad, 60),
        ):
            assert broken <= 0.1
            assert not made or groups > 5


def test_false_alarms_of_one_class_are_as_promised(drawn) -> None:
    """Of many trainings at most about 5 % break their promise, and it is made at all."""
    made, broken = drawn.one_class_promise(400, 60)
    assert made == 1
    assert broken <= 0.1


def rows_of(*scores: float) -> dict[str, dict[str, float]]:
    return {f"digits {seed}": {"score": score, "rows": 100} for seed, score in enumerate(scores)}


@pytest.mark.parametrize(("now", "fell"), [(0.86, True), (0.88, False), (0.95, False)])
def test_a_fall_beyond_the_noise_or_below_the_mark_fails(import_benchmark, capsys, now, fell):
    """Of 200 rows, 90 % right answers have a standard error of 2.1 points."""
    marks = import_benchmark("marks")
    compared = marks.compare(rows_of(now, now), rows_of(0.88, 0.92, 0.1))
    assert compared["digits"].release == pytest.approx(0.9)
    assert compared["digits"].noise == pytest.approx(0.0212, abs=1e-4)
    assert marks.tell(compared) == fell
    assert "below their marks: digits 0." in capsys.readouterr().out
    assert marks.tell({"digits": marks.Comparison(now=0.9885, release=0.9892, noise=0.01)})


def test_rows_without_their_file_are_named(import_benchmark, capsys, tmp_path):
    """Where the data are not there, made tables are measured, and the others named."""
    marks = import_benchmark("marks")
    assert "usps" not in marks.measurable(tmp_path)
    assert "classes10" in marks.measurable(tmp_path)
    assert "usps" in capsys.readouterr().err


def test_the_page_of_accuracy_is_that_of_its_numbers(import_benchmark):
    """It said 'ahead where peers were trained', and not that these are two data sets."""
    page, results = import_benchmark("_accuracy_page"), ROOT / "docs" / "results"
    numbers = json.loads((results / "numbers" / "accuracy.json").read_text(encoding="utf-8"))
    rows = [page.Row(**row) for row in numbers["rows"]]
    peers = [page.Peer(**peer) for peer in numbers["peers"]]
    written = (results / "accuracy.md").read_text(encoding="utf-8")
    assert page.page(rows, numbers, peers) == written


@pytest.mark.slow
def test_every_property_of_the_sample_was_measured(import_benchmark) -> None:
    """A property without a size is code that no estimate counts; every target has a core."""
    for model in import_benchmark("code_size").sample(3):
        for name, row in TARGETS.items():
            if row.family != "host":
                assert estimate_footprint(model, name).parts["code"] > 100
        for core, measured in estimate._code_sizes().items():
            assert code_properties(model).keys() <= measured["code"].keys(), core


def test_a_stage_without_a_measurement_has_an_estimate(monkeypatch) -> None:
    """A new stage counts as more code than any other, and the note says so."""
    model = spectral_model(1)
    measured = estimate_footprint(model, "cortex-m4")
    core = estimate._code_sizes()["cortex-m4"]
    code = {name: size for name, size in core["code"].items() if name != "spectrum"}
    monkeypatch.setattr(estimate, "_code_sizes", lambda: {"cortex-m4": core | {"code": code}})
    wide = estimate_footprint(model, "cortex-m4")
    assert wide.flash > measured.flash
    assert "the code of spectrum was not measured: 1536 bytes are assumed" in wide.notes


def test_headers_have_bytes_and_stack_on_every_core(
    import_benchmark, monkeypatch, require_toolchain
):
    """The table of continuous integration counts a header that no function keeps as a whole."""
    headers = import_benchmark("headers")
    for core in headers.CORES:
        require_toolchain(core, "gcc")
    monkeypatch.setattr(headers, "models", lambda: [tree_model(1)])
    table = headers.measured()
    assert set(table["tk_trees.h"]) == set(headers.CORES)
    for n_bytes, stack in table["tk_trees.h"].values():
        assert 100 < n_bytes < 1000
        assert 0 < stack < 200
    assert headers.shown([120, 16], [100, 16]) == "120 (+20), 16"
    assert headers.shown([120, 16], None) == "120, 16"
