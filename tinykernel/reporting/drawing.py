"""Pictures of a page as inline SVG, whose colours are those of the page, light or dark."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from tinykernel.errors import TinykernelError
from tinykernel.measure.costs import Cost, format_clock
from tinykernel.measure.report import format_kb
from tinykernel.reporting.facts import Coverage

if TYPE_CHECKING:
    from tinykernel.decisions.figures import DecisionFigures
    from tinykernel.evaluation import LabelEvaluation
    from tinykernel.measure.report import Report

# matplotlib draws in colours that nothing else has; the page then says what they are.
_INK, _MUTED, _LINE = "#0a0b01", "#0a0b02", "#0a0b03"
_SERIES = tuple(f"#0a0c{i:02x}" for i in range(9))
_CSS = {_INK: "currentColor", _MUTED: "var(--muted)", _LINE: "var(--line)"} | {
    colour: f"var(--c{i})" for i, colour in enumerate(_SERIES)
}
_MOST_NUMBERS = 16  # more classes: no numbers in the cells
_MOST_LABELS = 40
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "tinykernel",
    "font.size": 11,
    "text.color": _INK,
    "font.family": "DejaVu Sans",
    "text.parse_math": False,
    "axes.edgecolor": _LINE,
    "axes.labelcolor": _INK,
    "xtick.color": _LINE,
    "ytick.color": _LINE,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "grid.color": _LINE,
    "axes.grid": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "legend.frameon": False,
}


def needs_matplotlib() -> None:
    """Refuse to go on without the library that draws."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise TinykernelError(
            "a page with pictures needs matplotlib; install it (pip install matplotlib) "
            "or take --markdown"
        ) from None


@contextmanager
def _drawing(width: float, height: float) -> Iterator[tuple[Any, Callable[[str, str], str]]]:
    """Yield axes, and what turns them into SVG, given a name and a description."""
    needs_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_SETTINGS):
        figure = Figure((width, height), layout="constrained")

        def finish(name: str, words: str) -> str:
            text = io.StringIO()
            nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
            figure.savefig(text, format="svg", metadata=nothing, transparent=True)
            return _inline(text.getvalue(), name, words)

        yield figure.subplots(), finish


def _inline(svg: str, name: str, words: str) -> str:
    """Turn a file into a part of a page: its own ids, the fonts and the colours of the page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'((?:xlink:)?href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r"(font: [^;\"]*?px) [^;\"]*", r"\1 system-ui, sans-serif", svg)
    for colour, value in _CSS.items():
        svg = svg.replace(colour, value)
    size = re.search(r'width="([\d.]+)pt" height="[\d.]+pt"', svg)
    assert size is not None
    label = html.escape(words, quote=True)
    style = f"width:100%;max-width:{4 / 3 * float(size[1]):.0f}px;height:auto"
    return svg.replace(size[0], f'role="img" aria-label="{label}" style="{style}"', 1)


def _short(name: object, most: int = 24) -> str:
    text = " ".join(str(name).split())
    # Controls have no place in XML.
    text = "".join(sign if sign.isprintable() else "?" for sign in text)
    return text if len(text) <= most else text[: most - 1] + "…"


def confusion_picture(found: LabelEvaluation) -> str:
    """Draw which label was taken for which."""
    from matplotlib.patches import Rectangle

    n = len(found.classes)
    side = float(np.clip(0.42 * n + 1.2, 2.6, 6.6))
    share = found.confusion / np.maximum(found.counts, 1)[:, None]
    with _drawing(side + 0.6, side) as (axes, finish):
        for i, k in np.argwhere(found.confusion):
            colour = _SERIES[0] if i == k else _SERIES[4]
            strength = 0.08 + 0.62 * float(share[i, k])
            axes.add_patch(Rectangle((k - 0.5, i - 0.5), 1, 1, color=colour, alpha=strength, lw=0))
            if n <= _MOST_NUMBERS:
                axes.text(
                    k,
                    i,
                    str(found.confusion[i, k]),
                    ha="center",
                    va="center",
                    fontsize=9 if n <= 10 else 7,
                )
        axes.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5), xlabel="answered", ylabel="true")
        shown = range(n) if n <= _MOST_LABELS else range(0, n, -(-n // _MOST_LABELS))
        names = [_short(found.classes[i], 18) for i in shown]
        long = max(map(len, names)) > 3
        axes.set_xticks(list(shown), names, rotation=90 if long else 0, fontsize=9.5)
        axes.set_yticks(list(shown), names, fontsize=9.5)
        axes.tick_params(length=0)
        axes.set_aspect("equal")
        return finish("confusion", "confusion matrix: true labels by row, answers by column")


def recall_picture(found: LabelEvaluation) -> str:
    """Draw which share of each label is found, with the least found at the top."""
    known = [i for i in np.argsort(found.recall, kind="stable") if found.counts[i]][:_MOST_LABELS]
    with _drawing(4.8, 0.8 + 0.26 * len(known)) as (axes, finish):
        places = np.arange(len(known))
        values = 100 * found.recall[known]
        axes.barh(places, values, color=_SERIES[0], alpha=0.75, height=0.7)
        axes.axvline(100 * found.balanced_accuracy, color=_MUTED, lw=1, ls=":")
        for place, i in zip(places, known, strict=True):
            right, rows = int(found.confusion[i, i]), int(found.counts[i])
            axes.text(
                101,
                place,
                f"{100 * found.recall[i]:.1f} %, {right} of {rows}",
                va="center",
                fontsize=9.5,
            )
        axes.set_yticks(places, [_short(found.classes[i]) for i in known], fontsize=9.5)
        axes.set(xlim=(0, 150), ylim=(len(known) - 0.4, -0.6), xlabel="recall, %")
        axes.set_xticks(range(0, 101, 20))
        axes.tick_params(axis="y", length=0)
        return finish("recall", "recall of each label, the least found first")


def coverage_picture(found: Coverage, decided: DecisionFigures | None = None) -> str:
    """Draw the errors among the answers against how many are given, and what the model gives."""
    with _drawing(6.6, 2.9) as (axes, finish):
        axes.step(100 * found.share, 100 * found.error, where="post", color=_SERIES[0], lw=1.8)
        axes.set(xlabel="answered rows, %", ylabel="wrong among them, %")
        axes.set(xlim=(0, 100), ylim=(0, max(1.0, 110 * float(found.error[-1]))))
        axes.grid(lw=0.5)
        if decided is not None and decided.error is not None:
            axes.plot(
                100 * decided.coverage,
                100 * decided.error,
                "o",
                color=_SERIES[4],
                label="at the least margin of the model",
                clip_on=False,
            )
            axes.legend(loc="upper left", fontsize=9.5)
        return finish("coverage", "errors among the surest answers, by the share that is answered")


def memory_picture(reports: Sequence[Report], memory: str) -> str:
    """Draw the parts of flash or RAM on each target, with the budget and the chip."""
    flash = memory == "flash"
    sizes = [one.parts[memory] for one in reports]
    parts = [
        part
        for part in dict.fromkeys(name for one in sizes for name in one)
        if any(one.get(part) for one in sizes)
    ]
    totals = [one.flash if flash else one.ram for one in reports]
    chips = [one.chip_flash if flash else one.chip_ram for one in reports]
    budgets = [one.budget if flash else None for one in reports]
    # A budget that is far away would leave the axis empty.
    near = [budget for budget in budgets if budget is not None and budget < 4 * max(totals)]
    end = max(*totals, *near, 1)
    with _drawing(7.4, 1.15 + 0.36 * len(reports)) as (axes, finish):
        for row in range(len(reports)):
            left = 0.0
            for i, part in enumerate(parts):
                size = sizes[row].get(part, 0) / 1024
                axes.barh(
                    row,
                    size,
                    left=left,
                    height=0.62,
                    color=_SERIES[i % 9],
                    alpha=0.85,
                    label=part if row == 0 else None,
                )
                left += size
            budget, room = budgets[row], f"{format_kb(totals[row])} of {format_kb(chips[row])}"
            marks = [
                (budget if budget in near else None, _INK, "-"),
                (chips[row] if chips[row] <= end else None, _MUTED, ":"),
            ]
            for place, colour, style in marks:
                if place is not None:
                    axes.plot(
                        [place / 1024] * 2, [row - 0.4, row + 0.4], color=colour, ls=style, lw=2
                    )
            axes.text(1.02 * end / 1024, row, room, va="center", fontsize=9.5)
        axes.set_yticks(range(len(reports)), [one.target for one in reports], fontsize=10)
        axes.set(xlim=(0, 1.3 * end / 1024), ylim=(len(reports) - 0.4, -0.6), xlabel="KB")
        axes.tick_params(axis="y", length=0)
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(-0.02, 1.0),
            ncols=4,
            fontsize=9.5,
            handlelength=1,
            columnspacing=1.2,
        )
        return finish(memory, f"{'flash' if flash else 'RAM'} by part on each target")


def time_picture(costs: Sequence[Cost], clocks: Sequence[float]) -> str:
    """Draw the time of one inference on each target and clock, from and to."""
    from matplotlib.ticker import LogLocator, NullFormatter

    known = [cost for cost in costs if cost.instructions is not None]
    with _drawing(7.4, 1.1 + (0.18 * len(clocks) + 0.14) * len(known)) as (axes, finish):
        for row, cost in enumerate(known):
            for k, clock in enumerate(clocks):
                span = cost.seconds(clock)
                assert span is not None
                place = row + 0.7 * ((k + 0.5) / len(clocks) - 0.5)
                axes.barh(
                    place,
                    1e3 * (span[1] - span[0]),
                    left=1e3 * span[0],
                    height=0.6 / len(clocks),
                    color=_SERIES[k % 9],
                    alpha=0.85,
                    label=format_clock(clock) if row == 0 else None,
                )
        axes.set_xscale("log")
        spans = [cost.seconds(clock) for cost in known for clock in clocks]
        ends = [1e3 * end for span in spans if span for end in span]
        axes.set_xlim(min(ends) / 1.5, max(ends) * 1.5)
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_yticks(range(len(known)), [cost.target for cost in known], fontsize=10)
        axes.set(ylim=(len(known) - 0.45, -0.55), xlabel="milliseconds, one inference")
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", lw=0.5)
        axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=len(clocks), fontsize=9.5)
        return finish("time", "time of one inference by target and clock")


def tuning_picture(points: Sequence[dict[str, float]], flash: int) -> str:
    """Draw accuracy against flash of the models that were compared, and this one's flash."""
    with _drawing(6.6, 2.9) as (axes, finish):
        places = [point["flash"] / 1024 for point in points]
        heights = [100 * point["accuracy"] for point in points]
        errors = [100 * point.get("spread", 0.0) for point in points]
        axes.errorbar(
            places, heights, yerr=errors, color=_SERIES[0], marker="o", ms=4, lw=1.5, capsize=2
        )
        axes.axvline(flash / 1024, color=_MUTED, lw=1, ls=":")
        axes.set(xlabel="flash, KB (dotted: this model)", ylabel="accuracy, %")
        axes.grid(lw=0.5)
        return finish("tuning", "accuracy against flash of the models that were compared")
