"""What commands show where there is no terminal."""

from contextlib import nullcontext

from tinykernel.base.compiled import STAGE, njit
from tinykernel.base.progress import Progress, observing_all_threads, report, report_anywhere
from tinykernel.face import output as bars
from tinykernel.face.output import PlainLines, print_pairs, print_table


def observer():
    """Return lines of progress, the seconds of their clock, and what they wrote."""
    now, written = [0.0], list[str]()
    return PlainLines(written.append, clock=lambda: now[0]), now, written


def test_plain_progress_is_sparse():
    """Without a terminal a line comes every few seconds; what is over in two is not shown."""
    lines, now, written = observer()
    for step in range(1, 11):
        now[0] += 1
        lines(Progress("sweeps", step, 100, "objective 3"))
    lines(Progress("saving", 0, None))
    lines(Progress("saving", 1, 1))
    assert written == [f"sweeps: {step}/100 objective 3" for step in (3, 8)]


def test_a_phase_without_steps_shows_itself():
    """Linking, or an emulator, is named after two seconds, then again."""
    lines, now, written = observer()
    lines(Progress("linking", 0, None, "cortex-m4"))
    for _ in range(20):
        now[0] += 1
        lines.tick()
    assert written == ["linking: cortex-m4", "linking: 17 s so far"]


def test_the_time_of_a_stage_grows():
    """A stage that others interrupted goes on where it was, not at 0."""
    now = [0.0]
    written: list[str] = []
    lines = PlainLines(written.append, clock=lambda: now[0])
    for stage in ("listening", "spectra", "listening"):
        lines(Progress(stage, 0, None))
        for _ in range(20):
            now[0] += 1
            lines.tick()
    seconds = [int(line.split()[1]) for line in written if line.startswith("listening: ")]
    assert seconds == sorted(seconds)
    assert seconds[-1] > 40


def test_what_was_shown_is_not_shown_again():
    """Each function that is compiled said so, ten times in one training."""
    lines, now, written = observer()
    for stage in ("compiling", "choosing sigma") * 3:
        lines(Progress(stage, 0, None))
        now[0] += 3
        lines.tick()
    assert written == ["compiling", "choosing sigma"]


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
    monkeypatch.setattr(bars, "_shown", lambda quiet: nullcontext(seen.append))
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
