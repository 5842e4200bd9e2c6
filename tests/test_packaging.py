"""Tests of the wheel: what is in it, and that it works on its own."""

import ast
import importlib
import os
import re
import sys
import tarfile
import zipfile
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.processes import captured
from tinykernel import __version__
from tinykernel.run.program import find_toolchain

_WITH_PYTHON = ("tinykernel", "tests", "benchmarks", "examples", "firmware", "templates")


def run(command: list[str | Path], folder: Path) -> str:
    """Run a command with nothing of this checkout in its environment; return what it prints."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = captured(command, cwd=folder, env=environment)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def packaged_files(folder: Path) -> dict[str, bytes]:
    """Return every file below `folder` but caches, by relative path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def members(wheel: Path, prefix: str) -> dict[str, bytes]:
    """Return the files of a wheel below `prefix`, by relative path."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            name[len(prefix) :]: archive.read(name)
            for name in archive.namelist()
            if name.startswith(prefix) and not name.endswith("/")
        }


@pytest.fixture(scope="module")
def distributions(checkout, tmp_path_factory) -> Path:
    """Build the way a release is built: the source distribution, and from it the wheel."""
    folder = tmp_path_factory.mktemp("dist")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROJECT_URL", "https://example.org/tinykernel/")
        run([sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, checkout], folder)
    return folder


@pytest.fixture(scope="module")
def wheel(distributions) -> Path:
    """Return the wheel."""
    (built,) = distributions.glob("*.whl")
    return built


def test_source_distribution_can_be_tested(distributions, checkout) -> None:
    """The source distribution holds what `make check` and `make test` need."""
    (source,) = distributions.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    expected = {"Makefile", ".ci/run", ".clang-format", "README.md", "CITATION.cff", "mkdocs.yml"}
    expected |= {f"tests/{name}" for name in packaged_files(checkout / "tests")}
    assert expected <= names


def test_wheel_holds_package_and_nothing_else(wheel, checkout) -> None:
    """The wheel holds modules, types, licence, templates and C, byte for byte; it stays small."""
    names = set(members(wheel, ""))
    for folder in ("templates", "firmware"):
        assert members(wheel, f"tinykernel/{folder}/") == packaged_files(checkout / folder) != {}
        names = {name for name in names if not name.startswith(f"tinykernel/{folder}/")}
    expected = {f"tinykernel/{name}" for name in packaged_files(checkout / "tinykernel")}
    assert "tinykernel/py.typed" in expected
    metadata = f"tinykernel_mcu-{__version__}.dist-info/"
    assert {name for name in names if not name.startswith(metadata)} == expected
    assert f"{metadata}licenses/LICENSE" in names
    assert wheel.stat().st_size < 1_250_000


def test_the_page_of_an_index_has_addresses(wheel, checkout) -> None:
    """Links and pictures of the README lead to the repository; one version stands everywhere."""
    text = members(wheel, f"tinykernel_mcu-{__version__}.dist-info/")["METADATA"].decode()
    assert "Project-URL: Issues, https://example.org/tinykernel/issues" in text
    assert "(https://example.org/tinykernel/raw/HEAD/docs/images/overview.svg)" in text
    assert "(https://example.org/tinykernel/blob/HEAD/docs/data.md)" in text
    assert not re.search(r"\]\((?!https?:)", text)
    assert f"\nversion: {__version__}\n" in (checkout / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## [{__version__}]" in (checkout / "CHANGELOG.md").read_text(encoding="utf-8")


def test_nothing_installs_the_other_tinykernel(checkout) -> None:
    """The index has another project of this name, which pages said to install."""
    other = re.compile(rb"tinykernel\[|pip install ['\"]?tinykernel(?!-mcu)")
    assert not other.search((checkout / "README.md").read_bytes())
    for folder in ("docs", "tinykernel", "templates", "examples"):
        texts = packaged_files(checkout / folder)
        assert [name for name in texts if other.search(texts[name])] == []


def test_every_file_takes_the_oldest_python(checkout) -> None:
    """Every file has the grammar of the oldest Python that pyproject.toml allows."""
    for path in [file for part in _WITH_PYTHON for file in (checkout / part).rglob("*.py")]:
        ast.parse(path.read_text(), path.name, feature_version=(3, 10))


def empty_environment(folder: Path) -> tuple[Path, Path]:
    """Make a virtual environment without a package; return its Python and where packages go."""
    run([sys.executable, "-m", "venv", "--without-pip", folder], folder.parent)
    python = folder / "bin" / "python"
    ask = "import site; print(site.getsitepackages()[0])"
    return python, Path(run([python, "-c", ask], folder.parent).strip())


def link_requirements(package: Distribution, site: Path, seen: set[str]) -> None:
    """Link what a package says it needs, and what that needs, from the packages of the tests."""
    for line in package.requires or ():
        needed = Requirement(line)
        if needed.name in seen or (needed.marker and not needed.marker.evaluate({"extra": ""})):
            continue
        seen.add(needed.name)
        found = Distribution.from_name(needed.name)
        assert found.version in needed.specifier
        for name in {path.parts[0] for path in found.files or ()} - {"..", "__pycache__"}:
            if not (site / name).exists():
                (site / name).symlink_to(Path(str(found.locate_file(name))))
        link_requirements(found, site, seen)


@pytest.mark.slow
def test_types_reach_a_project(wheel, tmp_path) -> None:
    """mypy of a user's project takes the types of the installed package, and finds a wrong one."""
    python, packages = empty_environment(tmp_path / "venv")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    ask = "import site; print(site.getsitepackages()[0])"
    (packages / "more.pth").write_text(run([sys.executable, "-c", ask], tmp_path))
    (tmp_path / "project.py").write_text(
        "import numpy as np\n"
        "import tinykernel\n"
        "found = tinykernel.train(np.zeros((20, 3)), np.arange(20) % 2, budget='4KB')\n"
        "model: tinykernel.IntegerModel = found.model\n"
        "size: int = tinykernel.report(model, 'cortex-m4').flash\n"
        "wrong: str = tinykernel.report(model, 'cortex-m4').flash\n"
    )
    done = captured(
        [sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "project.py"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    assert done.stdout.splitlines() == [
        'project.py:6: error: Incompatible types in assignment (expression has type "int", '
        'variable has type "str")  [assignment]',
        "Found 1 error in 1 file (checked 1 source file)",
    ], done.stderr


@pytest.mark.slow
@pytest.mark.tools
def test_wheel_works_in_empty_environment(wheel, tmp_path) -> None:
    """The wheel and what it says it needs, outside the repository, train, export and verify.

    It failed where the only compiler is that of PyPI.
    """
    python, packages = empty_environment(tmp_path / "venv")
    pip = [sys.executable, "-m", "pip", "--python", python]
    run([*pip, "install", "--quiet", "--no-deps", "--no-index", wheel], tmp_path)
    (installed,) = packages.glob("tinykernel_mcu-*.dist-info")
    link_requirements(Distribution.at(installed), packages, set())
    if find_toolchain("host").kind == "zig":
        # No other compiler is there; this is that of the extra "boards".
        zig = importlib.import_module("ziglang")
        (packages / "ziglang").symlink_to(Path(str(zig.__file__)).parent)
    rows = [f"{i % 7},{i % 5},{'left' if i % 7 > i % 5 else 'right'}" for i in range(70)]
    (tmp_path / "data.csv").write_text("\n".join(["first,second,side", *rows]), encoding="utf-8")
    program = tmp_path / "venv" / "bin" / "tinykernel"
    assert __version__ in run([program, "--version"], tmp_path)
    # A linear part alone takes a third of the compiling.
    alone = ["--set", "model=linear", "--set", "linear=8", "--set", "epochs=2"]
    run([program, "train", "data.csv", "--label", "side", "-o", "model.tkm", *alone], tmp_path)
    run([program, "export", "model.tkm", "--target", "cortex-m4", "-o", "project"], tmp_path)
    assert (tmp_path / "project" / "platformio.ini").is_file()
    run([program, "verify", "model.tkm", "data.csv"], tmp_path)
