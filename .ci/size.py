"""Count what a reader reads: code lines and tokens by folder, and the longest functions.

``python .ci/size.py`` compares with the last tag, and ends with status 1 above a limit of
``[tool.size]`` in pyproject.toml. A code line has a token that is no docstring and no comment, as
the ``sz.py`` of tinygrad counts.
"""

import ast
import io
import subprocess
import sys
import token
import tokenize
from collections import Counter
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
_COUNTED = (token.OP, token.NAME, token.NUMBER, token.STRING)
_LONGEST = 5


def code_of(text: str) -> tuple[int, int]:
    r"""Return the code lines and the tokens of a source.

    >>> code_of('def f(x):\n    "Add one."\n    return x + 1  # quickly')
    (3, 11)
    """
    lines, tokens, before = set(), 0, None
    for each in tokenize.generate_tokens(io.StringIO(text).readline):
        is_docstring = each.string.lstrip("r").startswith('"""') and before not in _COUNTED
        if each.type in _COUNTED and not (each.type == token.STRING and is_docstring):
            lines.update(range(each.start[0], each.end[0] + 1))
            tokens += 1
        if each.type != tokenize.COMMENT:
            before = each.type
    return len(lines), tokens


def git(*words: str) -> str:
    """Return what git prints."""
    return subprocess.run(
        ["git", "-C", ROOT, *words], capture_output=True, text=True, check=True
    ).stdout


def sizes(sources: dict[str, str]) -> dict[str, Counter[str]]:
    """Return files, code lines and tokens of each folder of the package, and of other roots."""
    counts: dict[str, Counter[str]] = {}
    for name, text in sources.items():
        parts = name.split("/")
        folder = "/".join(parts[:2]) if parts[0] == "tinykernel" and len(parts) > 2 else parts[0]
        lines, tokens = code_of(text)
        for place in dict.fromkeys((folder, parts[0])):
            counts.setdefault(place, Counter()).update(files=1, lines=lines, tokens=tokens)
    return counts


def sources_now() -> dict[str, str]:
    """Return the Python sources that git knows, or would add, by their paths."""
    listed = git("ls-files", "--cached", "--others", "--exclude-standard", "*.py").splitlines()
    files = {name: ROOT / name for name in sorted(set(listed))}
    return {name: file.read_text(encoding="utf-8") for name, file in files.items() if file.exists()}


def sources_at(tag: str) -> dict[str, str]:
    """Return the Python sources of a tag."""
    names = git("ls-tree", "-r", "--name-only", tag).splitlines()
    return {name: git("show", f"{tag}:{name}") for name in names if name.endswith(".py")}


def longest_functions(sources: dict[str, str]) -> list[tuple[int, str]]:
    """Return the lines and the places of the longest functions of the package."""
    found = [
        (node.end_lineno - node.lineno + 1, f"{name}:{node.lineno} {node.name}")
        for name, text in sources.items()
        if name.startswith("tinykernel/")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.end_lineno is not None
    ]
    return sorted(found, reverse=True)[:_LONGEST]


def main() -> int:
    """Print the sizes; return 1 above a limit."""
    sources = sources_now()
    counts = sizes(sources)
    tags = git("tag", "--sort=-creatordate").split()
    earlier = sizes(sources_at(tags[0])) if tags else {}
    print(
        f"{'':28}{'files':>7}{'lines':>8}{'tokens a line':>15}{'since ' + (tags or ['-'])[0]:>16}"
    )
    for place, count in sorted(counts.items()):
        change = f"{count['lines'] - earlier[place]['lines']:+}" if place in earlier else ""
        density = count["tokens"] / max(1, count["lines"])
        print(f"{place:28}{count['files']:7}{count['lines']:8}{density:15.2f}{change:>16}")
    for lines, place in longest_functions(sources):
        print(f"{lines:5} lines: {place}")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    too_large = [
        f"{place}: {counts[place][unit]} {unit}, the limit is {limit}"
        for place, limits in project["tool"]["size"].items()
        for unit, limit in limits.items()
        if counts[place][unit] > limit
    ]
    print("\n".join(too_large), end="\n" if too_large else "", file=sys.stderr)
    return int(bool(too_large))


if __name__ == "__main__":
    sys.exit(main())
