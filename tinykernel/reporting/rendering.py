"""A page as HTML, and the same figures as Markdown."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from markupsafe import Markup

import tinykernel
from tinykernel import resources
from tinykernel.codegen.description import consists_of
from tinykernel.evaluation import LabelEvaluation, interval_in_words
from tinykernel.measure.costs import Cost, format_clock
from tinykernel.measure.report import Report, format_kb
from tinykernel.measure.supply import Supply
from tinykernel.model.answers.values import Values
from tinykernel.reporting import drawing
from tinykernel.reporting.facts import input_ranges, tuning_points
from tinykernel.reporting.page import ReportPage
from tinykernel.reporting.training import training_in_words
from tinykernel.text import visible

_SHARES = (1.0, 0.95, 0.9, 0.8, 0.5)
_MOST_INPUTS = 24  # more of them stand in a part that opens
_MOST_CLASSES = 24
_UNEQUAL = 1.5  # the most common class over the mean


def html_page(page: ReportPage) -> str:
    """Return the page as HTML that needs no other file."""
    pictures = {name: Markup(svg) for name, svg in _pictures(page).items()}
    return _rendered("page.html.j2", page, pictures=pictures)


def markdown_page(page: ReportPage) -> str:
    """Return the figures as Markdown, names escaped."""
    return _rendered("page.md.j2", page)


def _rendered(template: str, page: ReportPage, **more: Any) -> str:
    is_html = template.endswith(".html.j2")
    engine = resources.templates().overlay(autoescape=is_html, finalize=_shown)
    engine.filters = engine.filters | {
        "kb": format_kb,
        "percent": _percent,
        "clock": format_clock,
        "number": _number,
        "cell": _cell,
        "code": _code,
    }
    return engine.get_template(f"report/{template}").render(_context(page) | more)


def _shown(value: Any) -> Any:
    """Let no label turn the direction of the page; pictures and macros are Markup."""
    return visible(value) if type(value) is str else value


def _context(page: ReportPage) -> dict[str, Any]:
    """Collect what both texts say."""
    judged, model = page.judged, page.model
    return {
        "page": page,
        "model": model,
        "version": tinykernel.__version__,
        "judged": judged,
        "kind": "A regressor" if isinstance(model.answers, Values) else "A classifier",
        "interval": "" if judged is None else _interval(judged),
        "tiles": [] if judged is None else _tiles(judged),
        "standing": [] if judged is None else _standing(judged),
        "better": "" if judged is None else _better(judged),
        "important": [] if page.worth is None else page.worth.inputs[:_MOST_CLASSES],
        "classes": [] if judged is None else _classes(judged),
        "classes_left_out": 0 if judged is None else max(0, len(judged.classes) - _MOST_CLASSES),
        "answered": [] if page.coverage is None else _answered(page),
        "training": training_in_words(page.about, whole=False),
        "trained_rows": _trained_rows(page),
        "inputs": input_ranges(model, page.about),
        "most_inputs": _MOST_INPUTS,
        "ranges": [
            (one, max(one.low / one.limit_low if one.limit_low else 0.0, one.high / one.limit_high))
            for one in model.ranges()
        ],
        "times": [(cost, [_span(cost, clock) for clock in page.clocks]) for cost in page.costs],
        "charges": _charges(page),
        "points": tuning_points(page.about),
        "summary": _summary(page),
    }


def _interval(judged: LabelEvaluation) -> str:
    return interval_in_words(judged.interval, judged.n_groups, 2)


def _tiles(judged: LabelEvaluation) -> list[tuple[float, str, str]]:
    """Return the accuracies with their words; the balanced one leads where classes are unequal."""
    found = [
        (judged.accuracy, "accuracy", _interval(judged)),
        (judged.balanced_accuracy, "mean recall of the classes", f"macro F1 {judged.macro_f1:.3f}"),
    ]
    unequal = judged.counts.max() > _UNEQUAL * judged.counts.mean()
    return found[::-1] if unequal else found


def _standing(judged: LabelEvaluation) -> list[tuple[bool, str]]:
    """Say in one line each which simple models the model beats, and which it does not."""
    beaten = [one.name for one in judged.baselines.values() if not one.as_good]
    others = [one.name for one in judged.baselines.values() if one.as_good and not one.better]
    lines = [(True, "Better than", beaten), (False, "Not clearly better than", others)]
    return [(good, f"{words} {', '.join(names)}.") for good, words, names in lines if names]


def _code(report: Report) -> int:
    parts = report.parts["flash"]
    return parts.get("code", 0) + parts.get("library", 0)


def _better(judged: LabelEvaluation) -> str:
    """Name simple models that do better than the model; empty where none does."""
    better = [
        f"{one.name[0].upper()}{one.name[1:]} of {format_kb(one.n_bytes)} of {one.made_of}"
        if one.n_bytes
        else f"{one.name[0].upper()}{one.name[1:]}"
        for one in judged.baselines.values()
        if one.better
    ]
    return "" if not better else f"{' and '.join(better)} does better than this model."


def _summary(page: ReportPage) -> list[tuple[str, str]]:
    model = page.model
    values = ", ".join(model.answers.names) if isinstance(model.answers, Values) else ""
    return [
        ("model", consists_of(model)),
        ("inputs", f"{model.n_inputs} x {model.raw_dtype}"),
        ("classes", str(model.n_classes) if model.classes else ""),
        ("values", values),
        ("fingerprint", model.fingerprint()),
        ("written by", f"tinykernel {page.version}" if page.version else ""),
    ]


def _trained_rows(page: ReportPage) -> int | None:
    record = page.about.get("training_rows")
    rows = record.get("rows") if isinstance(record, dict) else None
    return rows if isinstance(rows, int) else None


def _classes(found: LabelEvaluation) -> list[tuple[str, int, int, float, float]]:
    """Return name, rows, rows found, recall and precision; of many classes the least found."""
    few = len(found.classes) <= _MOST_CLASSES
    order = range(len(found.classes)) if few else np.argsort(found.recall)[:_MOST_CLASSES]
    return [
        (
            str(found.classes[i]),
            int(found.counts[i]),
            int(found.confusion[i, i]),
            float(found.recall[i]),
            float(found.precision[i]),
        )
        for i in order
    ]


def _answered(page: ReportPage) -> list[tuple[int, float, float]]:
    assert page.coverage is not None
    return list(dict.fromkeys(page.coverage.at(share) for share in _SHARES))


def _span(cost: Cost, clock: float) -> str:
    span = cost.seconds(clock)
    return "" if span is None else f"{_digits(1e3 * span[0])} to {_digits(1e3 * span[1])} ms"


def _digits(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def _charges(page: ReportPage) -> list[tuple[str, str, str]]:
    """Return target, charge and energy of one inference."""
    supply, found = page.supply, []
    for cost in page.costs:
        span = cost.seconds(page.clocks[0])
        if supply is None or span is None:
            continue
        found.append((cost.target, *_charge(supply, span)))
    return found


def _charge(supply: Supply, span: tuple[float, float]) -> tuple[str, str]:
    low, high = (_digits(1e6 * supply.charge(seconds)) for seconds in span)
    charge, energy = f"{low} to {high} µC", ""
    if supply.volts is not None:
        low, high = (_digits(1e6 * supply.charge(seconds) * supply.volts) for seconds in span)
        energy = f"{low} to {high} µJ"
    return charge, energy


def _percent(share: float) -> str:
    return "-" if share != share else f"{100 * share:.2f} %"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _cell(value: object) -> str:
    """Escape text for a cell of a Markdown table: no markup, no mention of anybody."""
    text = visible(" ".join(str(value).split()))
    return re.sub(r"[\\`*_{}\[\]<>|#~&@$]", lambda found: f"&#{ord(found[0])};", text)


def _pictures(page: ReportPage) -> dict[str, str]:
    """Draw what there is to draw."""
    drawing.needs_matplotlib()
    found = {
        "flash": drawing.memory_picture(page.memory, "flash"),
        "ram": drawing.memory_picture(page.memory, "ram"),
    }
    if page.judged is not None:
        found["confusion"] = drawing.confusion_picture(page.judged)
        found["recall"] = drawing.recall_picture(page.judged)
    if page.coverage is not None:
        found["coverage"] = drawing.coverage_picture(
            page.coverage, None if page.judged is None else page.judged.decisions
        )
    # One bar alone says nothing that the table does not.
    if sum(cost.instructions is not None for cost in page.costs) * len(page.clocks) > 1:
        found["time"] = drawing.time_picture(page.costs, page.clocks)
    points = tuning_points(page.about)
    if len(points) > 1:
        found["tuning"] = drawing.tuning_picture(points, page.memory[0].flash)
    return found
