"""Tables with text and missing values, through all commands."""

import csv
import re

from tests.cli.tools import run

_TEXTS = ("*/ int x; /*", 'a"b', "back\\", "??/", "größe", "int", "<script>alert(1)</script>", "=1")
_HEADER = ("*/ #error", "<script>alert(2)</script>", 'quoted, "column"', "features", "label")


def _hostile(path, n=160):
    """Write rows whose names, texts and labels would break out of C, HTML, CSV or a terminal."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(_HEADER)
        for i in range(n):
            label = "<script>yes" if i % len(_TEXTS) in (0, 3, 4, 7) else "*/no"
            number = "" if i % 7 == 0 else i % 9 + 0.5
            text = "NA" if i % 11 == 0 else ("f", "F\u202e")[i % 2]
            writer.writerow([_TEXTS[i % len(_TEXTS)], text, number, i * 37 % 100, label])
    return path


def test_hostile_table_goes_through_all_commands(tmp_path, require_tool):
    """Python and C agree with gaps, and no text breaks out."""
    first, model = tmp_path / "first.tkm", tmp_path / "thy.tkm"
    require_tool("gcc")
    data, page = _hostile(tmp_path / "t.csv"), tmp_path / "page.html"
    quick = ("--set", "model=trees", "--effort", "quick", "--budget", "2KB")
    for command in (
        ("train", data, "-o", first, *quick),
        ("evaluate", first, data),
        ("calibrate", first, data, "-o", model),
        ("verify", model, data, "--target", "host"),
        ("predict", model, data, "-o", tmp_path / "p.csv"),
        ("report", model, "-t", "cortex-m4", "--compiler", "none", "--html", page, "--data", data),
        ("export", model, "--format", "single", "-o", tmp_path / "c", "--data", data),
        ("export", model, "--check", tmp_path / "c"),
    ):
        result = run(*command)
        assert result.exit_code == 0, (command, result.output)
        assert "\u202e" not in result.output
    assert "<script>" not in page.read_text("utf-8").replace("<script>\n", "")
    with (tmp_path / "p.csv").open(newline="", encoding="utf-8") as stream:
        assert {row["label"] for row in csv.DictReader(stream)} == {"*/no", "<script>yes"}
    other = tmp_path / "other.csv"
    other.write_text(data.read_text("utf-8").replace("=1", "new\x1b[31m"), encoding="utf-8")
    refused = run("predict", model, other)
    assert refused.exit_code == 1
    assert re.match(r"error: .*other.csv: row \d+.* did not occur in training", refused.stderr)
    assert "\x1b" not in refused.stderr
