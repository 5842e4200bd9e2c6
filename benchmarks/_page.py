"""What scripts that print a page share: arguments, templates, and a copy of what they print."""

import argparse
import functools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import jinja2

from tinykernel.base.files import write_bytes_atomically

__all__ = ["draw_dots", "page_arguments", "print_page", "print_section", "rendered", "templates"]


def page_arguments(
    description: str | None, sets: str, written: str = "file for the page"
) -> argparse.ArgumentParser:
    """Return a parser of data sets and page, to which a script adds what else it takes."""
    parser = argparse.ArgumentParser(description=description)
    folder = Path(os.environ.get("TINYKERNEL_DATA", "."))
    parser.add_argument("--data", type=Path, default=folder)
    parser.add_argument("--sets", default=sets, help="names, with commas between them")
    parser.add_argument("--write", type=Path, help=written)
    return parser


@functools.cache
def templates() -> jinja2.Environment:
    """Return what renders the templates of this folder."""
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    return jinja2.Environment(loader=loader, undefined=jinja2.StrictUndefined, trim_blocks=True)


def rendered(name: str, **facts: object) -> Iterator[str]:
    """Yield the lines of ``pages/NAME.md.j2``, each as soon as its rows are there."""
    rest = ""
    for piece in templates().get_template(f"pages/{name}.md.j2").generate(facts):
        *lines, rest = (rest + piece).split("\n")
        yield from lines
    if rest:
        yield rest


def _printed(lines: Iterable[str]) -> list[str]:
    """Print lines as they come, and return them."""
    printed = []
    for line in lines:
        print(line, flush=True)
        printed.append(line)
    return printed


def print_page(page: Iterable[str], file: Path | None) -> None:
    """Print lines as they come; at the end write them to a file, where one is given."""
    lines = _printed(page)
    if file is not None:
        write_bytes_atomically(file, ("\n".join(lines) + "\n").encode())


def draw_dots(rows: dict[str, dict[str, float]], title: str, file: Path) -> None:
    """Draw one line of dots a row, first row on top; the first series stands out."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 1.2 + 0.3 * len(rows)))
    names = list(rows)[::-1]
    series = dict.fromkeys(name for row in rows.values() for name in row)
    for number, (one, mark) in enumerate(zip(series, "osv^dP", strict=False)):
        points = [(rows[name][one], at) for at, name in enumerate(names) if one in rows[name]]
        size = 60 if number == 0 else 22
        axis.scatter(*zip(*points, strict=True), s=size, marker=mark, label=one, zorder=9 - number)
    axis.set_yticks(range(len(names)), names)
    axis.set_xlabel(title)
    axis.grid(alpha=0.3)
    axis.legend(
        fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.2 / len(names) - 0.1), ncols=6
    )
    figure.savefig(file, dpi=110, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)


def print_section(section: Iterable[str], file: Path | None) -> None:
    """Print the lines of a section, title first; it takes its place in the page, or its end."""
    lines = _printed(section)
    if file is not None:
        page = file.read_text() if file.is_file() else ""
        before, _, old = page.partition(f"{lines[0]}\n")
        lines[:0] = [before.rstrip("\n"), ""] if before else []
        text = "\n".join([*lines, ""]) + "".join(old.partition("\n## ")[1:])
        write_bytes_atomically(file, text.encode())
