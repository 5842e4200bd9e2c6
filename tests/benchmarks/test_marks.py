"""The marks of tables: what fell by more than its noise is told apart from what did not."""

import json

import pytest

from tests.sessions import ROOT


def rows_of(*scores: float) -> dict[str, dict[str, float]]:
    return {f"digits {seed}": {"score": score, "rows": 100} for seed, score in enumerate(scores)}


@pytest.mark.parametrize(("now", "fell"), [(0.86, True), (0.88, False), (0.95, False)])
def test_only_a_fall_beyond_the_noise_fails(import_benchmark, capsys, now, fell):
    """Of 200 rows, 90 % right answers have a standard error of 2.1 points."""
    marks = import_benchmark("marks")
    compared = marks.compare(rows_of(now, now), rows_of(0.88, 0.92, 0.1))
    assert compared["digits"].release == pytest.approx(0.9)
    assert compared["digits"].noise == pytest.approx(0.0212, abs=1e-4)
    assert marks.tell(compared) == fell
    assert "digits: " in capsys.readouterr().out


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
