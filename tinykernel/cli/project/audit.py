"""Say what was changed in a project since its export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tinykernel.cli.common.arguments import JsonOption
from tinykernel.cli.common.output import percent, print_json, print_pairs

if TYPE_CHECKING:
    from tinykernel.codegen.audit import Audit


def audit_command(
    project: Annotated[
        Path, typer.Argument(metavar="PROJECT", help="an export", show_default=False)
    ],
    model: Annotated[
        Path | None,
        typer.Argument(metavar="[MODEL]", help="the model it should hold", show_default=False),
    ] = None,
    allow_added: Annotated[
        bool, typer.Option("--allow-added", help="files beside those of the export do not matter")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Say what was changed in a project since its export, and whether it holds MODEL.

    Leaves with status 1 if anything was, or nothing could be compared. With MODEL the whole project
    is generated again and compared, so that a changed manifest hides nothing; without, it is
    believed. The lines "not covered" say what nobody has looked at.
    """
    from tinykernel.codegen.audit import audit
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import about, load

    integer = None if model is None else as_integer_model(load(model))
    found = audit(project, integer, None if model is None else about(model))
    passes = found.passes(allow_added=allow_added)
    if as_json:
        print_json(
            {
                "project": project,
                "passes": passes,
                "changed": found.changed,
                "missing": found.missing,
                "added": found.added,
                "is_of_model": found.fingerprint,
                "not_generated": found.generated,
                "not_compared": found.problem,
                "not_covered": found.not_covered,
                "manifest": found.manifest,
            }
        )
    else:
        print_pairs(_in_words(project, found, passes))
    if not passes:
        raise typer.Exit(1)


def _in_words(project: Path, found: Audit, passes: bool) -> list[tuple[str, str]]:
    said = found.manifest
    rows = [("project", str(project)), ("made by", str(said.get("tool", "")))]
    rows.append(("model", str(said.get("model", ""))))
    if found.fingerprint is not None:
        rows.append(("", "is MODEL" if found.fingerprint else "is not MODEL"))
        rows.append(("compared", _generated(found)))
    training = said.get("training")
    rows += _training(training) if isinstance(training, dict) else []
    for what in ("changed", "missing", "added"):
        rows += [(what, name) for name in getattr(found, what)]
    rows += [("not covered", text) for text in found.not_covered]
    return [*rows, ("result", "as it was exported" if passes else "not as it was exported")]


def _generated(found: Audit) -> str:
    if found.generated is None:
        return f"nothing: {found.problem}"
    return "differs: " + ", ".join(found.generated) if found.generated else "all is that of MODEL"


def _training(said: dict[str, Any]) -> list[tuple[str, str]]:
    rows, accuracy = said.get("training_rows"), said.get("accuracy")
    pairs = [("data", str(said.get("data", ""))), ("split", str(said.get("split", "")))]
    if isinstance(rows, dict):
        pairs.append(("training rows", f"{rows.get('rows')}, SHA-256 {rows.get('sha256')}"))
    if isinstance(accuracy, dict):
        shown = [
            f"{name.partition('_')[0]} "
            + (f"R2 {value:.4f}" if name.endswith("r2") else percent(value))
            for name, value in accuracy.items()
            if isinstance(value, int | float)
        ]
        pairs.append(("accuracy", ", ".join(shown)))
    return pairs
