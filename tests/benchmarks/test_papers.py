"""The benchmark of the papers writes a page with its picture."""

import sys

import pytest

from benchmarks.papers import __main__ as benchmark


def test_a_page_compares_and_shows(tmp_path, monkeypatch, require_tool) -> None:
    """A table that needs no data: numbers, a picture and the command that made them."""
    require_tool("matplotlib")
    arguments = ["papers", "fourier-features", "--quick", "--write", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", arguments)
    benchmark.main()
    page = (tmp_path / "fourier-features.md").read_text()
    assert "| Gaussian features, Metropolis-Hastings | 8" in page or "Hastings | 9" in page
    assert "](fourier-features.png)" in page
    assert "python -m benchmarks.papers fourier-features --quick --data DIR" in page
    assert (tmp_path / "fourier-features.png").stat().st_size > 10_000


def test_an_unknown_table_is_refused(monkeypatch, capsys) -> None:
    """The message lists the tables."""
    monkeypatch.setattr(sys, "argv", ["papers", "tables"])
    with pytest.raises(SystemExit):
        benchmark.main()
    assert "choose from fourier-features, least-squares" in capsys.readouterr().err
