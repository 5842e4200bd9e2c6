"""docs/building.md: every section begins in an empty folder, and what it shows is so."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.codegen.test_library import BUILD_SYSTEMS, MODELS, arduino, cmake, run
from tests.codegen.test_platformio import emulated
from tests.random_models import random_model
from tests.sessions import ROOT, Block, blocks, commands, run_command
from tinykernel.model.file import save

PAGE = ROOT / "docs" / "building.md"
# Programs that nothing here can run: sections say that their commands are checked by rule.
NOT_RUN = {
    "PlatformIO": {"tinykernel", "cd", "pio"},
    "Arduino": {"arduino-cli", "cp"},
    "ESP-IDF": {"idf.py"},
    "Zephyr": {"west"},
    "CMake and Make": {"cpackget"},
}


def section(title: str) -> tuple[str, list[Block]]:
    """Return the text of a section of the page, and its blocks."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(f"\n## {title}\n")
    text = rest.partition("\n## ")[0]
    first = before.count("\n") + 1
    last = first + text.count("\n") + 1
    return text, [block for block in blocks(PAGE) if first < block.line <= last]


def file_of(block: Block) -> str | None:
    """Return the file that the line before a block names."""
    before = block.file.read_text(encoding="utf-8").splitlines()[: block.line - 1]
    text = " ".join(line for line in before if line)
    found = re.search(r"`([\w./-]+)`[^`.]*:$", text)
    return found.group(1) if found else None


def follow(title: str, folder: Path) -> None:
    """Do what a section says, block by block: write its files and run its console sessions."""
    for seed, name in ((1, "gesture"), (2, "newer")):
        save(random_model(seed, **MODELS["gesture"]), folder / f"{name}.tkm")
    for block in section(title)[1]:
        name = file_of(block)
        if block.language == "console":
            for command in commands(block):
                got = "\n".join(run_command(command.command, folder))
                for line in command.output:
                    assert line in got, f"{block}: {command.command}\n{got}"
        elif block.language != "sh":
            assert name, f"{block}: no file is named"
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
            if name == "platformio.ini":
                stand_in_for_the_platform(path)


def stand_in_for_the_platform(ini: Path) -> None:
    """Take the platform from a folder, as the registry cannot be reached."""
    text = ini.read_text()
    assert "platform = ststm32" in text
    ini.write_text(text.replace("platform = ststm32", "platform = symlink://./platform_offline"))
    emulated(ini.parent, "arm", "mps2-an386")


@pytest.mark.parametrize("title", NOT_RUN)
def test_commands_that_are_not_run_are_said_to_be_so(title: str) -> None:
    """A reader knows which commands a test has run; every section is known here."""
    assert re.findall(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE) == [*NOT_RUN]
    text, found = section(title)
    shown = {
        shlex.split(line)[0]
        for block in found
        if block.language == "sh"
        for line in block.text.splitlines()
    }
    assert shown == NOT_RUN[title]
    _, _, tested = text.partition("\nTested: ")
    assert tested
    if title in ("Arduino", "CMake and Make", "ESP-IDF", "Zephyr"):
        assert "checked by rule only" in tested


@pytest.mark.slow
def test_cmake_page(tmp_path: Path, require_tool: Callable[[str], Any]) -> None:
    """CMake, Make and a bare compiler build what the page says; the pack to register is there."""
    for tool in ("cmake", "make", "arm-none-eabi-gcc"):
        require_tool(tool)
    follow("CMake and Make", tmp_path)
    assert (tmp_path / "gesture" / "tinykernel.gesture.pdsc").is_file()


@pytest.mark.slow
def test_platformio_page(tmp_path, platformio_offline, require_tool, monkeypatch):
    """PlatformIO finds the library in lib/ of a project, and builds it."""
    require_tool("arm-none-eabi-gcc")
    require_tool("SCons")
    monkeypatch.setenv("PATH", str(Path(require_tool("pio")).parent), prepend=":")
    for name, value in platformio_offline.items():
        monkeypatch.setenv(name, value)
    follow("PlatformIO", tmp_path)
    assert list(tmp_path.glob(".pio/build/*/firmware.elf"))


def test_arduino_page(tmp_path: Path, require_tool: Callable[[str], Any]) -> None:
    """The sketch of the page compiles with the library as Arduino compiles it, and runs."""
    follow("Arduino", tmp_path)
    compilers = require_tool("gcc"), require_tool("g++")
    program = arduino(tmp_path / "gesture", tmp_path, *compilers, sketch=tmp_path / "Demo")
    assert run([program], tmp_path).isdigit()


def test_esp_idf_page(tmp_path: Path, require_tool: Callable[[str], Any]) -> None:
    """The project of the page builds and runs with a stand-in for ESP-IDF."""
    require_tool("cmake")
    (tmp_path / "app").mkdir()
    follow("ESP-IDF", tmp_path / "app")
    build = cmake(tmp_path / "app", IDF_PATH=str(BUILD_SYSTEMS / "esp_idf"))
    assert "label" in run([build / "app"], build)


def test_zephyr_page(tmp_path: Path, require_tool: Callable[[str], Any]) -> None:
    """The application of the page builds and runs with a stand-in for Zephyr."""
    require_tool("cmake")
    (tmp_path / "app").mkdir()
    follow("Zephyr", tmp_path / "app")
    build = cmake(tmp_path / "app", f"-DZephyr_DIR={BUILD_SYSTEMS / 'zephyr'}")
    assert "label" in run([build / "zephyr_final"], build)
