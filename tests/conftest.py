"""What all tests share: threads and caches, tools that may be missing, and data."""

import gc
import importlib
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import settings

# How long a test takes is no verdict. Continuous integration gives the same one on the same commit;
# other runs look further.
settings.register_profile("default", deadline=None)
settings.register_profile("same verdict", derandomize=True, deadline=None)
settings.load_profile("default")
if os.environ.get("TINYKERNEL_REQUIRE_TOOLS") == "1":
    settings.load_profile("same verdict")

# The builder of a PlatformIO platform is run by SCons, not by Python.
collect_ignore_glob = ["codegen/platform_offline/*", "codegen/build_systems/*"]

ROOT = Path(__file__).resolve().parent.parent
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")

# What is imported and collected lives on: looking through it again and again took a seventh of
# the time until the first test.
gc.set_threshold(50_000)

# numba and the BLAS libraries read these once, when they are imported, so they stand up here.
# Workers share what one of them compiled: a simple training takes 18 s of compiling alone.
os.environ["NUMBA_CACHE_DIR"] = str(ROOT / ".numba_cache")
# Nor does each process compile the modules that it imports, 6 s: where Python was told to write no
# bytecode beside sources, it is kept apart.
if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(ROOT / ".pycache")
# On a busy computer two threads wait for each other, and a training takes up to five times the
# processor time. Tests of "the same bytes whatever the thread count" ask for two.
os.environ.setdefault("NUMBA_NUM_THREADS", "1")
if WORKER:
    # One process a core already keeps the machine busy.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")

# Where tools that a test may ask for come from, where the name of the package is another one.
_DEBIAN_PACKAGES = {
    "arm-none-eabi-g++": "gcc-arm-none-eabi libstdc++-arm-none-eabi-newlib",
    "arm-none-eabi-gcc": "gcc-arm-none-eabi libnewlib-arm-none-eabi",
    "avr-gcc": "gcc-avr avr-libc",
    "clang++": "clang",
    "node": "nodejs",
    "qemu-system-riscv32": "qemu-system-misc",
    "qemu-system-xtensa": "qemu-system-misc",
    "riscv64-unknown-elf-gcc": "gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf",
    "xtensa-lx106-elf-gcc": "gcc-xtensa-lx106 picolibc-xtensa-lx106-elf",
}
_PYTHON_PROGRAMS = {"compote": "idf-component-manager", "pio": "platformio"} | {
    name: name for name in ("clang-format", "mkdocs", "scons")
}
_PYTHON_MODULES = {"SCons": "scons", "serial": "pyserial", "PIL": "pillow"} | {
    name: name
    for name in (
        *(
            "catboost",
            "distributed",
            "kconfiglib",
            "lightgbm",
            "matplotlib",
            "onnx",
            "pandas",
            "platformio",
        ),
    )
    + ("polars", "pyarrow", "ruamel.yaml", "skops", "soundfile", "unicorn", "xgboost", "ziglang")
    + ("cbor2", "pyedflib", "wfdb")
}

_FIND_TOOLS = {"require_tool", "require_platforms", "require_toolchain", "require_compiler"}


class Split(NamedTuple):
    """A data set in two parts. The arrays are read-only, as all tests share them."""

    X_train: Any
    X_test: Any
    y_train: Any
    y_test: Any


def _find_program(name: str) -> str | None:
    """Look beside this interpreter first: the programs of a venv need not be on the PATH."""
    return shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)


def _find_zig() -> str | None:
    try:
        ziglang = importlib.import_module("ziglang")
    except ImportError:
        return shutil.which("zig")
    return shutil.which("zig", path=str(Path(str(ziglang.__file__)).parent))


def _find_module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _find_tool(name: str) -> tuple[Any, str]:
    """Return the tool, or None, and the command that installs it."""
    if name == "zig":
        return _find_zig(), "pip install ziglang"
    if name in _PYTHON_MODULES:
        return _find_module(name), f"pip install {_PYTHON_MODULES[name]}"
    if name in _PYTHON_PROGRAMS:
        return _find_program(name), f"pip install {_PYTHON_PROGRAMS[name]}"
    return _find_program(name), f"apt-get install {_DEBIAN_PACKAGES.get(name, name)}"


@pytest.fixture(scope="session")
def tool_missing() -> Callable[[str, str], None]:
    """Return a function that skips the test, or fails it where tools are required."""

    def missing(name: str, how: str) -> None:
        reason = f"{name} is missing: {how}"
        if os.environ.get("TINYKERNEL_REQUIRE_TOOLS") == "1":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)

    return missing


@pytest.fixture(scope="session")
def require_tool(tool_missing: Callable[[str, str], None]) -> Callable[[str], Any]:
    """Return a function that finds a tool, or skips the test and says how to install it.

    It returns the path of a program (a string), or the module for the Python packages
    ``unicorn``, ``ziglang``, ``platformio``, ``SCons``, ``kconfiglib``, ``ruamel.yaml``,
    ``matplotlib``, ``pandas``, ``polars``, ``PIL``, ``pyarrow``, ``soundfile``, ``cbor2``,
    ``pyedflib`` and ``wfdb``.
    With TINYKERNEL_REQUIRE_TOOLS=1, as in continuous integration, a missing tool fails the test.
    """

    def require(name: str) -> Any:
        if name == "cmake":
            require("gcc")  # alone it builds nothing
        tool, how = _find_tool(name)
        if tool is None:
            tool_missing(name, how)
        return tool

    return require


@pytest.fixture(scope="session")
def require_platforms(tool_missing: Callable[[str, str], None]) -> Callable[[str], Any]:
    """Return a function that lists what builds and runs programs for a target, or skips the test.

    Any compiler and emulator will do: zig and Unicorn, which come with the package's extras, take
    the places of GCC and QEMU. With TINYKERNEL_REQUIRE_TOOLS=1 GCC and QEMU have to be there.
    """
    from tinykernel.base.errors import TinykernelError
    from tinykernel.compile.targets import find_target
    from tinykernel.run.program import find_platforms

    def require(target: str) -> Any:
        platforms = []
        try:
            platforms = find_platforms(find_target(target))
        except TinykernelError as error:
            tool_missing(f"what builds and runs for {target}", str(error))
        _refuse_stand_ins(tool_missing, target, platforms[0].chain.kind, platforms[0].back_end)
        return platforms

    return require


@pytest.fixture(scope="session")
def require_toolchain(tool_missing: Callable[[str, str], None]) -> Callable[..., Any]:
    """Return a function that finds a compiler for a target, of one make if named, or skips."""
    from tinykernel.run.program import find_toolchain

    def require(target: str, kind: str | None = None) -> Any:
        chain = find_toolchain(target, kind)
        if chain is None:
            tool_missing(f"{kind or 'a compiler'} for {target}", "see .ci/run")
        if kind is None:  # a compiler that is asked for by name stands in for none
            _refuse_stand_ins(tool_missing, target, chain.kind)
        return chain

    return require


@pytest.fixture(scope="session")
def require_compiler(require_tool, require_toolchain):
    """Return a function that begins a command: with a program, or a compiler for a target."""
    from tinykernel.compile.targets import TARGETS

    def require(name: str, *options: str) -> list[str]:
        if name not in TARGETS:
            return [require_tool(name), *options]
        chain = require_toolchain(name)
        return [*chain.command, *chain.flags, *options]

    return require


def _refuse_stand_ins(
    missing: Callable[[str, str], None], target: str, kind: str, back_end: str = ""
) -> None:
    """Fail where all tools are required and one from PyPI took the place of another."""
    required = os.environ.get("TINYKERNEL_REQUIRE_TOOLS") == "1"
    if required and (kind == "zig" or back_end == "unicorn"):
        missing(f"GCC or QEMU for {target}", "see .ci/run")


@pytest.fixture(scope="session")
def checkout() -> Path:
    """Return the root of the checkout."""
    return ROOT


@pytest.fixture
def import_benchmark(monkeypatch: pytest.MonkeyPatch, checkout: Path) -> Callable[[str], Any]:
    """Return a function that imports a benchmark as its folder runs it."""
    monkeypatch.syspath_prepend(checkout / "benchmarks")
    return importlib.import_module


@pytest.fixture(scope="session")
def digits() -> Split:
    """Return scikit-learn's digits as uint8 (0..16): 1347 training rows, 450 test rows."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, y = load_digits(return_X_y=True)
    split = Split(
        *train_test_split(X.astype("uint8"), y, test_size=0.25, stratify=y, random_state=0)
    )
    for array in split:
        array.flags.writeable = False
    return split


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin every worker with slow tests, so that none is left at the end; mark tests by kind.

    Each worker first has a share of the list in one piece. `make test` runs what is `quick`: all
    tests but slow ones and those that ask for compilers or emulators, and the sharpest of these.
    """
    n_workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    slow = [item for item in items if item.get_closest_marker("slow")]
    rest = [item for item in items if not item.get_closest_marker("slow")]
    edges = [len(rest) * i // n_workers for i in range(n_workers + 1)]
    items[:] = [
        item
        for i in range(n_workers)
        for item in (*slow[i::n_workers], *rest[edges[i] : edges[i + 1]])
    ]
    for item in items:
        asks = _FIND_TOOLS & set(getattr(item, "fixturenames", ()))
        if asks:
            item.add_marker("tools")
        # The commands look for compilers by themselves.
        if asks - {"require_tool"} or "tests/cli/" in item.path.as_posix():
            item.add_marker("compilers")
        if item.get_closest_marker("sharp") or not (asks or item.get_closest_marker("slow")):
            item.add_marker("quick")


_LEFT_OUT = pytest.StashKey[int]()


@pytest.hookimpl(trylast=True)
def pytest_deselected(items: list[pytest.Item]) -> None:
    """Count what is left out; a worker hands the number on when it ends."""
    if items:
        config = items[0].config
        config.stash[_LEFT_OUT] = config.stash.get(_LEFT_OUT, 0) + len(items)
        if hasattr(config, "workeroutput"):
            config.workeroutput["left out"] = config.stash[_LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker left out; all leave out the same."""
    node.config.stash[_LEFT_OUT] = getattr(node, "workeroutput", {}).get("left out", 0)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what did not run, and how to run it."""
    lines = []
    if config.option.markexpr == "quick" and config.stash.get(_LEFT_OUT, 0):
        lines += [
            f"{config.stash[_LEFT_OUT]} tests: slow ones, and more of compilers and emulators. "
            "To run them: make test-all"
        ]
    reasons = Counter(
        str(report.longrepr[2]).removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", ())
    )
    if reasons:
        lines += [f"{number} tests: {reason}" for reason, number in sorted(reasons.items())]
    if lines:
        terminalreporter.section("left out")
        terminalreporter.write_line("\n".join(lines))


@pytest.fixture
def page(request, tmp_path_factory):
    """Compare all refusals of a test with its lines in the folder `said`, in the page of its file.

    ``TINYKERNEL_PAGES=write`` writes them anew: check the diff.
    """
    from tests.refusals import SAID, sections, write_section

    SAID.clear()
    yield
    place = f"{tmp_path_factory.getbasetemp()}/[^/ :]*/?"
    said = list(dict.fromkeys(re.sub(place, "", line) for line in SAID))
    file = request.path.parent / "said" / f"{request.path.stem.removeprefix('test_')}.txt"
    if said and os.environ.get("TINYKERNEL_PAGES") == "write":
        write_section(file, request.node.name, said)
    assert said == sections(file).get(request.node.name, [])
