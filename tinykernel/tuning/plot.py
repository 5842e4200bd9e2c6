"""The curve as a table or a picture."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from tinykernel.errors import TinykernelError
from tinykernel.files import write_bytes_atomically
from tinykernel.tuning.result import TuneResult

_LINE, _CHOSEN, _OTHER = "#4e79a7", "#d95f02", "#9aa5b1"


def needs_matplotlib(path: Path) -> None:
    """Check for matplotlib before the long work."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise TinykernelError(
            f"{path}: a picture needs matplotlib; "
            "install it (pip install 'tinykernel[curve]') or write .csv"
        ) from None


def write_curve(result: TuneResult, path: Path) -> None:
    """Write accuracy against size as .csv, .svg or .png; the same points give the same bytes."""
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".svg", ".png"):
        raise TinykernelError(f"{path}: cannot write this file type; use .csv, .svg or .png")
    content = _table(result).encode() if suffix == ".csv" else _picture(result, path)
    write_bytes_atomically(path, content)


def _table(result: TuneResult) -> str:
    """Return the points as CSV, a line each."""
    text = io.StringIO()
    rows = [
        {
            "budget": point.budget,
            "accuracy": f"{point.accuracy:.6f}",
            "standard_error": f"{point.standard_error:.6f}",
            "lowest": f"{min(point.folds):.6f}",
            "highest": f"{max(point.folds):.6f}",
            "flash": point.flash,
            "ram": point.ram,
            "stack": point.stack,
            "instructions": point.instructions,
            "on_front": str(point.on_front).lower(),
            "recommended": str(point == result.best).lower(),
        }
        for point in result.points
    ]
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _picture(result: TuneResult, path: Path) -> bytes:
    """Draw accuracy against flash and, where known, instructions."""
    needs_matplotlib(path)
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    points = sorted(result.points, key=lambda point: point.flash)
    costs = {"flash, KB": [point.flash / 1024 for point in points]}
    if all(point.instructions is not None for point in points):
        thousands = [(point.instructions or 0) / 1000 for point in points]
        costs["instructions an inference, thousands"] = thousands
    scores = [100 * point.accuracy for point in points]
    errors = [100 * point.standard_error for point in points]
    limit = 100 * (result.highest.accuracy - result.highest.standard_error)
    best, kind, picture = points.index(result.best), path.suffix.lower()[1:], io.BytesIO()
    with rc_context({"svg.hashsalt": "tinykernel", "svg.fonttype": "path"}):
        figure = Figure(figsize=(4.8 * len(costs), 3.6), layout="constrained")
        panels = figure.subplots(1, len(costs), sharey=True, squeeze=False)[0]
        for axes, (name, x) in zip(panels, costs.items(), strict=True):
            axes.axhline(limit, color=_OTHER, ls="--", label="one standard error below the best")
            axes.errorbar(x, scores, yerr=errors, color=_LINE, marker="o", lw=1.2, capsize=3)
            ring = {"ms": 13, "mfc": "none", "mec": _CHOSEN, "mew": 2}
            axes.plot(x[best], scores[best], "o", label="recommended", **ring)
            axes.set(xlabel=name)
            axes.grid(alpha=0.25)
        panels[0].set(ylabel=f"{result.score} on held-out rows, %")
        panels[0].legend(frameon=False, loc="lower right", fontsize=9)
        figure.suptitle(f"{result.target}: accuracy against cost", fontsize=11)
        nothing = {"Date": None} if kind == "svg" else {"Software": None}
        figure.savefig(picture, format=kind, dpi=150, facecolor="white", metadata=nothing)
    return picture.getvalue()
