"""The page of sounds, vibrations and beats."""

from pathlib import Path

from benchmarks.sounds import _key


def test_rows_stood_in_the_order_in_which_they_were_measured():
    """Rows are sorted by data, then budget: 30 KB of words stood behind beats."""
    page = Path(__file__).parents[2] / "docs" / "results" / "sounds.md"
    keys = [_key(line) for line in page.read_text().split("|---|\n")[-1].splitlines()]
    assert len(keys) > 5
    assert keys == sorted(keys)
