"""What commands show where there is no terminal."""

from contextlib import nullcontext

from tinykernel.base.compiled import STAGE, njit
from tinykernel.base.progress import Progress, observing_all_threads, report, report_anywhere
from tinykernel.face import output as bars
from tinykernel.face.output import print_pairs, print_table


def test_compiling_is_shown():
    """A first command compiled for half a minute without a word."""
    function = njit()(lambda x: x + 1)
    function._cache.flush()
    seen: list[Progress] = []
    with observing_all_threads(seen.append):
        assert function(2) == 3
    assert any("compiling" in progress.stage for progress in seen)


def test_training_is_called_so_as_soon_as_all_is_compiled(monkeypatch) -> None:
    """Epochs of minutes are not shown as compiling, which ended before them."""
    seen: list[Progress] = []
    monkeypatch.setattr(bars, "_show", lambda quiet: nullcontext(seen.append))
    with bars.showing_progress(quiet=False):
        report("training", 1, 9)
        report_anywhere(STAGE, 0)
        report_anywhere(STAGE, 1)
    assert [progress.stage for progress in seen] == ["training", STAGE, "training"]


def test_a_piped_table_neither_wraps_nor_trails_blanks(capsys) -> None:
    """Scripts read one line a row, whatever the length, and diffs show no blanks."""
    long = "compiler " * 40 + "end"
    print_table(
        ("target", "rows", "built with"), [("a", "1", long), ("bb", "20", "")], right=("rows",)
    )
    print_pairs([("name", "x"), ("a longer name", long)])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert all(line == line.rstrip() for line in lines)
    assert lines[1].endswith(long)
    assert lines[2].split() == ["bb", "20"]
