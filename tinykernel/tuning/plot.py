"""The curve as a picture."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinykernel.errors import TinykernelError
from tinykernel.files import write_bytes_atomically

if TYPE_CHECKING:
    from tinykernel.tuning.result import TuneResult

_LINE, _FRONT, _CHOSEN, _OTHER = "#4e79a7", "#1b4f7a", "#d95f02", "#9aa5b1"


def check_picture(path: Path) -> None:
    """Refuse a picture that could not be drawn, before the long work."""
    if path.suffix.lower() not in (".svg", ".png"):
        raise TinykernelError(f"{path}: the name of a picture must end in .svg or .png")
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise TinykernelError(
            f"{path}: drawing takes matplotlib; install it with: pip install matplotlib"
        ) from None


def draw(found: TuneResult, path: Path) -> None:
    """Draw accuracy against flash, and against instructions where they are known."""
    check_picture(path)
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    counted = all(point.instructions is not None for point in found.points)
    # The same bytes for the same points: neither a date nor random ids.
    with rc_context({"svg.hashsalt": "tinykernel", "svg.fonttype": "path", "font.size": 10}):
        figure = Figure(figsize=(9.5 if counted else 5.2, 3.6), layout="constrained")
        axes = figure.subplots(1, 2 if counted else 1, sharey=True, squeeze=False)[0]
        _curve(axes[0], found, [point.flash / 1024 for point in found.points], "flash, KB")
        axes[0].set_ylabel(f"{found.score} on rows held out, %")
        if counted:
            thousands = [(point.instructions or 0) / 1000 for point in found.points]
            _curve(axes[1], found, thousands, "instructions an inference, thousands")
        axes[0].legend(frameon=False, loc="lower right", fontsize=9)
        figure.suptitle(
            f"{found.target}: accuracy against size and time"
            if counted
            else f"{found.target}: accuracy against size",
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
    write_bytes_atomically(path, picture.getvalue())


def _curve(axes: Any, found: TuneResult, x: list[float], name: str) -> None:
    scores = [100 * point.accuracy for point in found.points]
    errors = [100 * point.standard_error for point in found.points]
    limit = 100 * (found.highest.accuracy - found.highest.standard_error)
    axes.axhline(
        limit, color=_OTHER, linewidth=1, linestyle="--", label="one standard error below the best"
    )
    order = sorted(range(len(x)), key=lambda i: x[i])
    axes.plot([x[i] for i in order], [scores[i] for i in order], color=_LINE, linewidth=1.2)
    axes.errorbar(x, scores, yerr=errors, fmt="none", ecolor=_LINE, elinewidth=1, capsize=3)
    for front, colour, label in ((True, _FRONT, "on the front"), (False, _OTHER, "beaten")):
        at = [i for i, point in enumerate(found.points) if point.on_front is front]
        if at:
            axes.plot([x[i] for i in at], [scores[i] for i in at], "o", color=colour, label=label)
    best = found.points.index(found.best)
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
