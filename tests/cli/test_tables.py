"""Tables with text and missing values, through all commands."""

from __future__ import annotations

import csv
import re
import subprocess

from tests.cli.tools import json_of, run
from tests.firmware.compiling import WARNINGS

_TEXTS = ("*/ int x; /*", 'a"b', "back\\", "??/", "größe", "int", "<script>alert(1)</script>", "=1")
_HEADER = ("*/ #error", "<script>alert(2)</script>", 'quoted, "column"', "features", "label")
_PROGRAM = """\
#include "thy.h"
static thy_scratch_t scratch;
int main(void)
{
    const thy_input_t rows[][THY_FEATURES] = {%s};
    int i;
    for (i = 0; i < %d; i++) {
        const int wanted[] = {%s};
        if (thy_predict(rows[i], scratch) != wanted[i]) {
            return 1;
        }
    }
    return 0;
}
"""


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
    """Python and C agree with gaps; no text breaks out; named constants lead to the labels."""
    gcc, first, model = require_tool("gcc"), tmp_path / "first.tkm", tmp_path / "thy.tkm"
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
    _program(tmp_path, _rows(other), json_of("predict", model, other))
    program = [str(tmp_path / name) for name in ("main.c", "c/thy.c")]
    flags = ["-std=c99", *WARNINGS]
    command = [gcc, *flags, f"-I{tmp_path / 'c'}", *program, "-o", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([str(tmp_path / "run")]).returncode == 0
    other.write_text(other.read_text("utf-8").replace("=1", "new\x1b[31m"), encoding="utf-8")
    refused = run("predict", model, other)
    assert refused.exit_code == 1
    assert re.match(r"error: .*other.csv: row \d+.* is none of the texts", refused.stderr)
    assert "\x1b" not in refused.stderr


def _rows(path):
    """Write rows of all texts and gaps, and return them as constants of the header."""
    first = ("INT_X", "A_B", "BACK", "TEXT", "GROSSE", "INT", None, "EQ_1")
    found = []
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(_HEADER[:-1])
        for i, (text, name) in enumerate(zip(_TEXTS, first, strict=True)):
            if name is None:
                continue
            second = ("?", "f", "F\u202e")[i % 3]
            third = "" if i % 2 else "2.5"
            writer.writerow([text, second, third, i])
            column = "THY_LT_SCRIPT_GT_ALERT_2_LT_F"
            found.append(
                f"{{THY_ERROR_{name}, "
                f"{('THY_MISSING', f'{column}_2', column)[i % 3]}, "
                f"{'THY_MISSING' if i % 2 else '2.5f'}, {i}}}"
            )
    return found


def _program(folder, rows, predicted):
    labels = ", ".join(str(int(label == "<script>yes")) for label in predicted["labels"])
    (folder / "main.c").write_text(_PROGRAM % (", ".join(rows), len(rows), labels))
