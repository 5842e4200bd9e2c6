"""The workflow that an export carries: its steps hold, and fail where they should."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.tools import failed, succeeded
from tests.sessions import environment
from tinykernel import __version__, load, save
from tinykernel.base.files import MANIFEST
from tinykernel.model.file import about


def steps(project: Path, yaml: Any) -> list[str]:
    """Return the commands of the workflow; actions and the installation are checked by eye."""
    text = (project / ".github/workflows/model.yml").read_text(encoding="utf-8")
    found = yaml.YAML(typ="safe").load(text)["jobs"]["model"]["steps"]
    actions = [step["uses"].partition("@")[0] for step in found if "uses" in step]
    assert actions == ["actions/checkout", "actions/setup-python"]
    commands = [step["run"] for step in found if "run" in step]
    assert commands[0] == f'python -m pip install "tinykernel-mcu[boards]=={__version__}"'
    return commands[1:]


def statuses(project: Path, commands: list[str], folder: Path) -> list[int]:
    """Run commands as the service does: bash, that ends at the first failure."""
    return [
        subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command],
            cwd=project,
            env=environment(folder),
            capture_output=True,
            check=False,
        ).returncode
        for command in commands
    ]


def with_budget(work: Path, folder: Path, n_bytes: int) -> Path:
    """Return a copy of the model whose file remembers a budget of its training."""
    memory = about(work / "gesture.tkm") | {"target": "cortex-m4", "budget": n_bytes}
    memory.pop("limits", None)
    save(load(work / "gesture.tkm"), folder / "gesture.tkm", memory)
    return folder / "gesture.tkm"


@pytest.mark.slow
@pytest.mark.parametrize("format", ["platformio", "single"])
def test_workflow(work, tmp_path, require_tool, format) -> None:
    """Every step passes on a fresh export; changed C fails the first, of each format."""
    yaml = require_tool("ruamel.yaml")
    project = tmp_path / "firmware"
    target = ("--target", "cortex-m4") if format == "platformio" else ()
    given = (*target, "--format", format, "--set", "ci=github", "-o", project, "--quiet")
    succeeded("export", with_budget(work, tmp_path, 30 << 10), *given)
    commands = steps(project, yaml)
    assert len(commands) == 3
    assert ".github/workflows/model.yml" in (project / MANIFEST).read_text()
    if format == "platformio":
        require_tool("gcc")
        require_tool("arm-none-eabi-gcc")
        require_tool("qemu-system-arm")
        assert statuses(project, commands, tmp_path) == [0, 0, 0]
    (source,) = (path for path in project.rglob("gesture.c"))
    source.write_text(source.read_text() + "\n")
    assert statuses(project, commands[:1], tmp_path) == [1]


def test_budget_of_the_workflow(work, tmp_path, require_tool) -> None:
    """A model that has outgrown its budget fails the commit; budget and service are checked."""
    yaml, project = require_tool("ruamel.yaml"), tmp_path / "firmware"
    model = with_budget(work, tmp_path, 1 << 10)
    command = ("export", model, "--target", "cortex-m4", "-o", project, "--quiet")
    failed(*command, "--set", "ci=gitlab", status=2)
    assert not project.exists()
    succeeded(*command, "--set", "ci=github")
    assert statuses(project, steps(project, yaml)[2:], tmp_path) == [1]
