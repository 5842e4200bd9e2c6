"""The curve as a table or a picture."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from tinykernel.errors import TinykernelError
from tinykernel.files import write_bytes_atomically
from tinykernel.tuning.result import TuneResult

_LINE, _FRONT, _CHOSEN, _OTHER = "#4e79a7", "#1b4f7a", "#d95f02", "#9aa5b1"


def needs_matplotlib(path: Path) -> None:
    """Refuse a picture that cannot be drawn, before the long work."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise TinykernelError(
            f"{path}: a picture needs matplotlib; install it (pip install matplotlib) or write .csv"
        ) from None


def write_curve(result: TuneResult, path: Path) -> None:
    """Write accuracy against size: a name that ends in .csv gets a table, .svg or .png a picture.

    The same points give the same bytes.
    """
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".svg", ".png"):
        raise TinykernelError(f"{path}: is no name of a curve; end it in .csv, .svg or .png")
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
    """Draw accuracy against flash, and against instructions where they are known."""
    needs_matplotlib(path)
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    counted = all(point.instructions is not None for point in result.points)
    # The same bytes for the same points: neither a date nor random ids.
    with rc_context({"svg.hashsalt": "tinykernel", "svg.fonttype": "path", "font.size": 10}):
        figure = Figure(figsize=(9.5 if counted else 5.2, 3.6), layout="constrained")
        axes = figure.subplots(1, 2 if counted else 1, sharey=True, squeeze=False)[0]
        _curve(axes[0], result, [point.flash / 1024 for point in result.points], "flash, KB")
        axes[0].set_ylabel(f"{result.score} on rows held out, %")
        if counted:
            thousands = [(point.instructions or 0) / 1000 for point in result.points]
            _curve(axes[1], result, thousands, "instructions an inference, thousands")
        axes[0].legend(frameon=False, loc="lower right", fontsize=9)
        figure.suptitle(
            f"{result.target}: accuracy against size and time"
            if counted
            else f"{result.target}: accuracy against size",
            fontsize=11,
        )
        picture = io.BytesIO()
        kind = path.suffix.lower()[1:]
        figure.savefig(
            picture,
            format=kind,
            dpi=150,
            facecolor="white",
            metadata={"Date": None} if kind == "svg" else {"Software": None},
        )
    return picture.getvalue()


def _curve(axes: Any, result: TuneResult, x: list[float], name: str) -> None:
    scores = [100 * point.accuracy for point in result.points]
    errors = [100 * point.standard_error for point in result.points]
    limit = 100 * (result.highest.accuracy - result.highest.standard_error)
    axes.axhline(
        limit, color=_OTHER, linewidth=1, linestyle="--", label="one standard error below the best"
    )
    order = sorted(range(len(x)), key=lambda i: x[i])
    axes.plot([x[i] for i in order], [scores[i] for i in order], color=_LINE, linewidth=1.2)
    axes.errorbar(x, scores, yerr=errors, fmt="none", ecolor=_LINE, elinewidth=1, capsize=3)
    for front, colour, label in ((True, _FRONT, "on the front"), (False, _OTHER, "beaten")):
        at = [i for i, point in enumerate(result.points) if point.on_front is front]
        if at:
            axes.plot([x[i] for i in at], [scores[i] for i in at], "o", color=colour, label=label)
    best = result.points.index(result.best)
    axes.plot(
        x[best],
        scores[best],
        "o",
        markersize=13,
        markerfacecolor="none",
        markeredgecolor=_CHOSEN,
        markeredgewidth=2,
        label="recommended",
    )
    axes.set_xlabel(name)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
