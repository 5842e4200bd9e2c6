"""The pages of docs/building: each begins from an empty folder, and what it shows is so."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.codegen.test_library import BUILD_SYSTEMS, MODELS, arduino, cmake, run
from tests.codegen.test_platformio import emulated
from tests.random_models import random_model
from tests.sessions import ROOT, Block, blocks, commands, run_shell
from tinykernel import resources
from tinykernel.modelfile import save

PAGES = ROOT / "docs" / "building"
# Programs that nothing here can run: pages say that their commands are checked by rule.
NOT_RUN = {
    "arduino": {"arduino-cli", "cp"},
    "esp-idf": {"cd", "idf.py"},
    "zephyr": {"west"},
    "platformio": {"tinykernel", "cd", "pio"},
    "cmake": {"cpackget"},
    "model-as-data": set(),
}


def file_of(block: Block) -> str | None:
    """Return the file that the line before a block names."""
    before = block.file.read_text(encoding="utf-8").splitlines()[: block.line - 1]
    text = " ".join(line for line in before if line)
    found = re.search(r"`([\w./-]+)`[^`.]*:$", text)
    return found.group(1) if found else None


def follow(page: str, folder: Path) -> None:
    """Do what a page says, block by block: write its files and run its console sessions."""
    for seed, name in ((1, "gesture"), (2, "newer")):
        save(random_model(seed, **MODELS["gesture"]), folder / f"{name}.tkm")
    for block in blocks(PAGES / f"{page}.md"):
        name = file_of(block)
        if block.language == "console":
            for command in commands(block):
                got = "\n".join(run_shell(command.command, folder))
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


@pytest.mark.parametrize("page", NOT_RUN)
def test_commands_that_are_not_run_are_said_to_be_so(page: str) -> None:
    """A reader knows which commands a test has run; every page is known here."""
    assert {path.stem for path in PAGES.glob("*.md")} == set(NOT_RUN)
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    shown = {
        shlex.split(line)[0]
        for block in blocks(PAGES / f"{page}.md", "sh")
        for line in block.text.splitlines()
    }
    assert shown == NOT_RUN[page]
    _, _, checked = text.partition("## What is checked")
    assert checked
    if page in ("arduino", "cmake", "esp-idf", "zephyr"):
        assert "hecked by rule only" in checked


@pytest.mark.slow
def test_cmake_page(tmp_path: Path, require_tool: Callable[[str], Any]) -> None:
    """CMake, Make and a bare compiler build what the page says; the pack to register is there."""
    for tool in ("cmake", "make", "arm-none-eabi-gcc"):
        require_tool(tool)
    follow("cmake", tmp_path)
    assert (tmp_path / "gesture" / "tinykernel.gesture.pdsc").is_file()


def test_model_as_data_page(tmp_path: Path, require_tool: Callable[[str], Any]) -> None:
    """A program opens the model that was exported as data, as the page says."""
    require_tool("cmake")
    follow("model-as-data", tmp_path)


def test_platformio_page(
    tmp_path: Path,
    platformio_offline: dict[str, str],
    require_tool: Callable[[str], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PlatformIO finds the library in lib/ of a project, and builds it."""
    require_tool("arm-none-eabi-gcc")
    require_tool("SCons")
    monkeypatch.setenv("PATH", str(Path(require_tool("pio")).parent), prepend=":")
    for name, value in platformio_offline.items():
        monkeypatch.setenv(name, value)
    follow("platformio", tmp_path)
    assert list(tmp_path.glob(".pio/build/*/firmware.elf"))


def test_arduino_page(tmp_path: Path, require_tool: Callable[[str], Any]) -> None:
    """The sketch of the page compiles with the library as Arduino compiles it, and runs."""
    follow("arduino", tmp_path)
    boards = resources.folder("firmware") / "boards"
    program = arduino(
        tmp_path / "gesture",
        tmp_path,
        require_tool("gcc"),
        require_tool("g++"),
        [],
        [boards / "host" / "start.c"],
        tmp_path / "Demo",
    )
    assert run([program], tmp_path).isdigit()


def test_esp_idf_page(tmp_path: Path, require_tool: Callable[[str], Any]) -> None:
    """The project of the page builds and runs with a stand-in for ESP-IDF."""
    require_tool("cmake")
    (tmp_path / "app").mkdir()
    follow("esp-idf", tmp_path / "app")
    build = cmake(tmp_path / "app", IDF_PATH=str(BUILD_SYSTEMS / "esp_idf"))
    assert "label" in run([build / "app"], build)


def test_zephyr_page(tmp_path: Path, require_tool: Callable[[str], Any]) -> None:
    """The application of the page builds and runs with a stand-in for Zephyr."""
    require_tool("cmake")
    (tmp_path / "app").mkdir()
    follow("zephyr", tmp_path / "app")
    build = cmake(tmp_path / "app", f"-DZephyr_DIR={BUILD_SYSTEMS / 'zephyr'}")
    assert "label" in run([build / "zephyr_final"], build)
