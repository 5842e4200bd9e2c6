"""The parts of the package depend on each other in one direction, and no file is in a circle."""

import ast
import functools
import graphlib
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "tinykernel"
# What imports by a name that is no literal, or lies outside of all parts.
_OUTSIDE = ("__init__", "__main__", "modelfile")
# All pairs (upper, lower) of parts: the upper one may import the lower one.
_ORDER = (
    "base < pieces < model < learn, compile < run < kinds, conversion < judge < papers < face; "
    "base < data < run < kinds, conversion < judge < papers < face"
)


def allowed_pairs(order: str) -> set[tuple[str, str]]:
    """Return the pairs of parts of an order in which the first may import the second."""
    pairs = set()
    for chain in order.split(";"):
        floors = [re.findall(r"\w+", floor) for floor in chain.split("<")]
        for height, floor in enumerate(floors):
            pairs |= {(part, below) for part in floor for low in floors[:height] for below in low}
    return pairs


def modules(package: Path) -> dict[str, Path]:
    """Return the modules of a package by their dotted names."""
    names = {}
    for file in sorted(package.rglob("*.py")):
        parts = file.relative_to(package.parent).with_suffix("").parts
        names[".".join(part for part in parts if part != "__init__")] = file
    return names


def literal_of(node: ast.expr) -> str:
    """Return the text of a literal, or what stands before the first value of an f-string."""
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def imported_names(tree: ast.AST) -> set[str]:
    """Return all that a module imports: at its top, lazily, for types, and by a literal name."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Call) and node.args:
            function = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if function in ("import_module", "__import__"):
                names.add(literal_of(node.args[0]))
    return {name for name in names if name.startswith("tinykernel.")}


@functools.cache
def imports(package: Path) -> dict[str, set[str]]:
    """Return the modules that each module of a package imports."""
    known = modules(package)
    graph = {}
    for module, file in known.items():
        graph[module] = set()
        for name in imported_names(ast.parse(file.read_text(encoding="utf-8"))):
            words = name.split(".")
            owner = next(
                owner
                for size in range(len(words), 0, -1)
                if (owner := ".".join(words[:size])) in known
            )
            graph[module] |= {owner} - {module, "tinykernel"}
    return graph


def part_of(module: str) -> str:
    """Return the part of a module: what a kind answers is of `kinds`, beside its numerics."""
    return (
        "kinds" if re.fullmatch(r"tinykernel\.learn\.\w+\.kind", module) else module.split(".")[1]
    )


def faults(graph: dict[str, set[str]]) -> list[str]:
    """Return the imports that lead upwards, and one circle of files if there is any."""
    pairs = allowed_pairs(_ORDER)
    found = []
    for module, others in graph.items():
        part = "__init__" if module == "tinykernel" else part_of(module)
        for other in sorted(others):
            below = part_of(other)
            if part not in _OUTSIDE and part != below and (part, below) not in pairs:
                found.append(f"{module} imports {other}")
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        found.append("a circle: " + " <- ".join(error.args[1]))
    return found


def test_imports_lead_downwards_and_in_no_circle() -> None:
    """A part can be read, changed and tested without those above it."""
    assert not faults(imports(PACKAGE))


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("model.pipelines", 'convert = import_module("tinykernel.conversion.models")'),
        ("conversion.models", 'face = __import__("tinykernel.face.output")'),
        ("base.text", "if TYPE_CHECKING:\n    from tinykernel.base.files import source_folder"),
    ],
)
def test_hidden_imports_are_found(module, line) -> None:
    """Neither a name in a call nor a condition hides an arrow that leads upwards or back."""
    graph = imports(PACKAGE)
    names = imported_names(ast.parse(line))
    more = {
        owner for name in names for owner in graph if name == owner or name.startswith(f"{owner}.")
    } - {"tinykernel", "tinykernel.base", "tinykernel.conversion", "tinykernel.face"}
    module = f"tinykernel.{module}"
    assert faults(graph | {module: graph[module] | more})


def test_documents_give_the_order_of_the_test() -> None:
    """Who reads the architecture or the rules reads the order that is checked."""
    first = _ORDER.partition(";")[0]
    for page in ("docs/architecture.md", "CONTRIBUTING.md"):
        assert first in (PACKAGE.parent / page).read_text(encoding="utf-8"), page


def test_the_way_of_a_row_names_what_there_is() -> None:
    """Each step of the page from a line of a table to the chip leads to a function."""
    text = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    steps = re.findall(r"\| `(?:class )?(\w+)` of \[.*?\]\(\.\./(.*?)\) \|", text)
    assert 10 <= len(steps) <= 15
    for name, file in steps:
        source = (PACKAGE.parent / file).read_text(encoding="utf-8")
        assert re.search(rf"^(def|class) {name}\b", source, re.MULTILINE), f"{file} lacks {name}"
