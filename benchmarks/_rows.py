"""Rows that take long to measure: each is kept in a file as soon as it is finished."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from _page import page_arguments, print_page

from tinykernel.base.files import write_bytes_atomically

__all__ = ["FinishedRows", "measure_sets"]


class FinishedRows(dict[str, dict[str, Any]]):
    """Rows by key, in ``numbers/NAME.json`` of a folder where one is given."""

    def __init__(self, folder: Path | None, name: str) -> None:
        self.path = None if folder is None else folder / "numbers" / f"{name}.json"
        if self.path is not None and self.path.exists():
            self.update(json.loads(self.path.read_text()))

    def measure(self, key: str, function: Callable[..., dict[str, Any]], *arguments: Any) -> bool:
        """Call a function for a row that is not there; return whether it was called."""
        if key in self:
            return False
        self[key] = function(*arguments)
        self.save(key)
        return True

    def save(self, key: str) -> None:
        """Show a row and keep all."""
        print(key, json.dumps(self[key]), flush=True)
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes_atomically(self.path, (json.dumps(self, indent=1) + "\n").encode())


def measure_sets(
    description: str | None,
    name: str,
    sets: Iterable[str],
    measure: Callable[..., dict[str, Any]],
    page: Callable[[FinishedRows], Iterable[str]],
    seeds: Callable[[str], int] | None = None,
    write: Callable[[Iterable[str], Path | None], None] = print_page,
) -> tuple[FinishedRows, Path | None]:
    """Measure the rows that are not there yet, one a set or a seed of it, and print the page."""
    parser = page_arguments(description, "all")
    parser.add_argument("--into", type=Path, help="folder of the finished rows")
    args = parser.parse_args()
    rows = FinishedRows(args.into, name)
    for one in sets if args.sets == "all" else filter(None, args.sets.split(",")):
        for job in [(one,)] if seeds is None else [(one, seed) for seed in range(seeds(one))]:
            rows.measure(" ".join(map(str, job)), measure, *job, args.data)
    write(page(rows), args.write)
    return rows, args.write
