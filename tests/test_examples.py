"""The examples run, do what their first lines say, and leave whole projects."""

import ast
import json
import os
import subprocess
import sys

import pytest

from tests.sessions import ROOT, difference, run_shell
from tinykernel import load

EXAMPLES = {"digits": "digits-firmware", "sensor": "sensor-firmware"}


def promised(name: str) -> list[str]:
    """Return the output that the docstring of an example shows."""
    docstring = ast.get_docstring(ast.parse((ROOT / "examples" / f"{name}.py").read_text()))
    assert docstring
    shown = docstring.split("::\n\n", 1)[1].split("\n\n")[0]
    return [line[4:] for line in shown.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name, tmp_path, require_platforms, monkeypatch) -> None:
    """An example prints what it says it prints, and its project holds what one can build."""
    require_platforms("host")
    require_platforms("esp32c3" if name == "sensor" else "cortex-m4")
    monkeypatch.delenv("TINYKERNEL_DATA", raising=False)  # what is shown is of generated recordings
    got = run_shell(f"python {ROOT / 'examples' / name}.py {EXAMPLES[name]}", tmp_path)
    assert difference(promised(name), got) == ""
    project = tmp_path / EXAMPLES[name]
    for file in (
        *("platformio.ini", "README.md", f"lib/{name}/src/{name}.c", f"lib/{name}/src/{name}.h"),
        *(f"include/{name}_vectors.h", f"lib/{name}/library.json"),
    ):
        assert (project / file).is_file(), file


@pytest.mark.slow
def test_words(tmp_path, require_tool) -> None:
    """Synthetic voices become a model of events and its C, or babble."""
    require_tool("espeak-ng")
    program = f"python {ROOT / 'examples' / 'words.py'}"
    run_shell(f"{program} made --words 20 --epochs 1", tmp_path)
    assert {"train", "new", "lamp.tkm", "events.tkm", "lib"} == {
        path.name for path in (tmp_path / "made").iterdir()
    }
    assert load(tmp_path / "made" / "events.tkm").events.statement
    assert "int lamp_event(" in (tmp_path / "made" / "lib" / "src" / "lamp.h").read_text()
    run_shell(f"{program} --babble babble", tmp_path)
    assert len(list((tmp_path / "babble").glob("*.wav"))) == 60


def test_every_example_is_known() -> None:
    """Every example is in the README and in these tests."""
    known = {*EXAMPLES, "words"}
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == known
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"(examples/{name}.py)" in readme for name in known)


@pytest.mark.slow
def test_notebook(tmp_path, require_tool) -> None:
    """The cells of the notebook run one after the other, and are kept without their outputs."""
    require_tool("gcc")
    require_tool("matplotlib")
    notebook = json.loads((ROOT / "examples" / "fan.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) == 10
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells)
    text = "\n".join("".join(cell["source"]) for cell in cells)
    environment = os.environ | {"MPLBACKEND": "Agg", "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert b"fan_push" in done.stdout
