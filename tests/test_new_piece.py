"""A piece is one folder: a copy of pieces/TEMPLATE works, and nothing else knows of it."""

import ast
import os
import shutil
import subprocess
import sys

import pytest

from tinykernel.pieces.catalogue import PARTS, STAGES

_TREE = ("tinykernel", "templates", "firmware", "tests", ".gitignore", "pyproject.toml")
_PROGRAM = """\
from pathlib import Path
from tests.random_fronts import model_of
from tests.random_models import random_raw
from tinykernel import export, load, report, save, verify
from tinykernel.compile.plan import certificate
from tinykernel.pieces.catalogue import samples_of
from tinykernel.run.estimate import estimate_instructions

for number, sample in enumerate(samples_of("scaled", 1)):
    model, out = model_of(sample, 2), Path(f"build/{number}")
    assert "scaled" in repr(model)
    rows = random_raw(model, 3, 50)
    assert verify(model, rows).differences == 0
    export(model, None, out, format="library", name="m")
    (out / "proof.json").write_bytes(certificate(model))
    assert "scaled" in "".join(report(model, "cortex-m4", compiler="none").notes)
    assert estimate_instructions(model, "cortex-m4") > 0
    save(model, out / "m.tkm")
    assert (load(out / "m.tkm").scores(rows) == model.scores(rows)).all()
"""


def test_compile_and_model_test_no_class_of_a_piece(checkout) -> None:
    """What depends on a piece stands in its folder: elsewhere nothing asks which one it is."""
    names = {piece.__name__ for piece in (*STAGES, *PARTS)}
    package = checkout / "tinykernel"
    for path in (*package.glob("compile/*.py"), *package.glob("model/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                asked = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
                assert not asked & names, f"{path.name}:{node.lineno}"


@pytest.mark.slow
@pytest.mark.sharp
def test_a_copy_of_the_template_is_a_piece(checkout, tmp_path, require_tool) -> None:
    """Export, verify, proof, estimate, save and load pass; git sees one folder that is new."""
    require_tool("git")
    require_tool("gcc")
    unwanted = shutil.ignore_patterns("__pycache__", "*.tkc", "*.nbi", "*.nbc")
    for name in _TREE:
        source = checkout / name
        if source.is_file():
            shutil.copy(source, tmp_path / name)
        else:
            shutil.copytree(source, tmp_path / name, ignore=unwanted)

    def run(*command: str) -> str:
        environment = os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_DISABLE_JIT": "1"}
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("git", "init", "-q")
    run("git", "add", ".")
    run("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "Begin")
    pieces = tmp_path / "tinykernel" / "pieces"
    shutil.copytree(pieces / "TEMPLATE", pieces / "scaled")
    run(sys.executable, "-c", _PROGRAM)
    proofs = list((tmp_path / "build").glob("*/proof.json"))
    assert proofs
    for proof in proofs:
        source = proof.parent / "src" / "m.c"
        said = run(sys.executable, "firmware/check_proof.py", str(proof), str(source))
        assert said.startswith("proved: ")
    assert run("git", "status", "--porcelain").split() == ["??", "tinykernel/pieces/scaled/"]
