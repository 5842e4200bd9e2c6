"""The report page of a model, as self-contained HTML."""

import html
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike

import tinykernel
from tinykernel import modelfile, resources
from tinykernel.codegen.description import consists_of
from tinykernel.codegen.targets import TARGETS, targets_named
from tinykernel.coding.frames import in_numbers
from tinykernel.data.ranges import input_ranges
from tinykernel.data.trained_rows import seen_before
from tinykernel.errors import OptionError, TinykernelError
from tinykernel.evaluation import LabelEvaluation, evaluate, interval_in_words
from tinykernel.measure.costs import Cost, cost_on, parse_clocks
from tinykernel.measure.limits import Limits, budget_of_training, parse_limits
from tinykernel.measure.report import Report, report
from tinykernel.model import IntegerModel, as_integer_model
from tinykernel.model.answers.values import Values
from tinykernel.progress import report as say
from tinykernel.reporting import facts
from tinykernel.reporting.chip import ChipInPage, chip_in_page
from tinykernel.text import size, visible

_SHARES = (1.0, 0.95, 0.9, 0.8, 0.5)
_MOST_INPUTS, _MOST_RANGES = 24, 256  # more of them are folded, and left out
_MOST_CLASSES = 24
_UNEQUAL = 1.5  # the most common class over the mean


@dataclass(frozen=True, eq=False)
class ReportPage:
    """Description, accuracy and costs of a model, from `report_page`."""

    title: str
    model: IntegerModel
    memory: tuple[Report, ...]  # one for each target
    costs: tuple[Cost, ...]  # for the same targets
    clocks: tuple[float, ...]  # hertz
    judged: LabelEvaluation | None = None  # on `rows`, where it is known
    # Least margin, share and error rate of the most confident answers.
    coverage: list[tuple[int, float, float]] | None = None
    rows: str = ""  # description of these rows
    seen: float | None = None  # share of them that was used in training, where it is known
    about: Mapping[str, Any] = field(default_factory=dict)  # on the training, of the model file
    version: str = ""  # of tinykernel that wrote the model file; empty without a file
    date: str = ""  # when the page was made
    gallery: facts.Gallery | None = None  # images among `rows`; None for other inputs
    reliability: facts.Curve | None = None  # of the confidences on `rows`
    chip: ChipInPage | None = None  # the firmware, which the page runs
    without_chip: str = ""  # why there is none

    @property
    def fits(self) -> bool:
        """Whether the model fits every target and its budget."""
        return all(report.fits for report in self.memory)

    def to_html(self) -> str:
        """Return a self-contained HTML page."""
        # Invisible marks in labels are escaped, but not those in macros, which are Markup.
        engine = resources.templates().overlay(
            autoescape=True, finalize=lambda text: visible(text) if type(text) is str else text
        )
        filters: dict[str, Any] = {
            "kb": size,
            "percent": lambda share: "-" if share != share else f"{100 * share:.2f} %",
            "clock": lambda hz: f"{hz / 1e6:g} MHz" if hz >= 1e6 else f"{hz / 1e3:g} kHz",
            "number": lambda value: "" if value is None else f"{value:.6g}",
            "code": lambda report: sum(map(report.parts["flash"].get, ("code", "library"), (0, 0))),
        }
        engine.filters = engine.filters | filters
        empty: dict[str, Any] = {"judged": None, "tiles": [], "standing": [], "better": ""}
        labels = empty if self.judged is None else _about_labels(self.judged)
        return engine.get_template("report/page.html.j2").render(_about_model(self) | labels)

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame that isolates its style."""
        page = html.escape(self.to_html(), quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:48em;border:0"></iframe>'


def _about_model(page: ReportPage) -> dict[str, Any]:
    """Return the context of the template on the model, its memory and its time."""
    model = page.model
    rows = page.about.get("training_rows")
    trained_rows = rows.get("rows") if isinstance(rows, dict) else None
    summary = [
        ("model", consists_of(model)),
        ("inputs", f"{model.n_inputs} x {model.raw_dtype}"),
        ("classes", str(model.n_classes) if model.classes else ""),
        ("values", ", ".join(model.answers.names) if isinstance(model.answers, Values) else ""),
        ("fingerprint", model.fingerprint()),
        ("written by", f"tinykernel {page.version}" if page.version else ""),
    ]
    return {
        "page": page,
        "model": model,
        "version": tinykernel.__version__,
        "chip": page.chip
        and {
            "facts": Markup(page.chip.facts),
            "script": Markup(page.chip.script),
            "policy": Markup(page.chip.policy),
        },
        "kind": "A regressor" if isinstance(model.answers, Values) else "A classifier",
        "answered": page.coverage or [],
        "misses": facts.misses_of(page.about),
        "training": facts.training_in_words(page.about, whole=False),
        "trials": facts.trials_in_rows(page.about.get("trials")),
        "trial_columns": facts.TRIAL_COLUMNS,
        "trained_rows": trained_rows if isinstance(trained_rows, int) else None,
        "inputs": input_ranges(model, page.about),
        "most_inputs": _MOST_INPUTS,
        "most_ranges": _MOST_RANGES,
        "ranges": [
            (part, max(part.low / (part.limit_low or np.inf), part.high / part.limit_high))
            for part in model.ranges()
        ],
        "bars": [(memory, *_bars(page.memory, memory.lower())) for memory in ("Flash", "RAM")],
        "times": [
            (cost, [_to(cost.seconds(clock), 1e3, "ms") for clock in page.clocks])
            for cost in page.costs
        ],
        "summary": summary,
    }


def _about_labels(judged: LabelEvaluation) -> dict[str, Any]:
    """Return the context of the template on labels; of many classes those of least recall."""
    few, baselines = len(judged.classes) <= _MOST_CLASSES, judged.baselines.values()
    shown = range(len(judged.classes)) if few else np.argsort(judged.recall)[:_MOST_CLASSES]
    worse = [each.name for each in baselines if not each.as_good]
    others = [each.name for each in baselines if each.as_good and not each.better]
    lines = [(True, "Better than", worse), (False, "Not significantly better than", others)]
    standing = [(good, f"{text} {', '.join(names)}.") for good, text, names in lines if names]
    if judged.too_few_groups:
        standing = [(False, f"{judged.too_few_groups.capitalize()}.")] if baselines else []
    interval = interval_in_words(judged.interval, judged.n_groups, 2)
    tiles = [
        (judged.accuracy, "accuracy", interval),
        (judged.balanced_accuracy, "mean recall of the classes", f"macro F1 {judged.macro_f1:.3f}"),
    ]
    unequal = judged.counts.max() > _UNEQUAL * judged.counts.mean()
    return {
        "judged": judged,
        "interval": interval,
        "tiles": tiles[::-1] if unequal else tiles,
        "standing": standing,
        "better": _better(judged),
        "classes": [
            (str(judged.classes[i]), judged.counts[i], judged.confusion[i, i])
            + (judged.recall[i], judged.precision[i])
            for i in shown
        ],
        "classes_left_out": 0 if few else len(judged.classes) - _MOST_CLASSES,
        "shades": judged.confusion / np.maximum(judged.counts, 1)[:, None] if few else None,
    }


def _better(judged: LabelEvaluation) -> str:
    """Name simple models that are better than the model; empty if there are none."""
    better = " and ".join(each.title for each in judged.baselines.values() if each.better)
    verb = "do" if " and " in better else "does"
    return f"{better[0].upper()}{better[1:]} {verb} better than this model." if better else ""


def _bars(
    reports: Sequence[Report], memory: str
) -> tuple[list[str], list[tuple[Report, list[float]]]]:
    """Return the parts of a memory, and for each target their lengths in per cent of the bar."""
    sizes = [report.parts[memory] for report in reports]
    names = dict.fromkeys(name for size in sizes for name in size if size[name])
    end = max(1, *(sum(size.values()) for size in sizes))
    lengths = [[100 * size.get(name, 0) / end for name in names] for size in sizes]
    return list(names), list(zip(reports, lengths, strict=True))


def _to(span: tuple[float, float] | None, factor: float, unit: str) -> str:
    if span is None:
        return ""
    values = (factor * each for each in span)
    texts = (f"{value:.3g}" if value < 1000 else f"{value:.0f}" for value in values)
    return f"{' to '.join(texts)} {unit}"


def report_page(
    model: object,
    target: str | Sequence[str] = (),
    budget: str | int | Limits | None = None,
    *,
    compiler: str = "auto",
    data: tuple[ArrayLike, ArrayLike] | None = None,
    groups: ArrayLike | None = None,
    train: tuple[ArrayLike, ArrayLike] | None = None,
    class_weight: str | None = None,
    clock: str | float | None = None,
    rows: str = "",
    title: str = "",
) -> ReportPage:
    """Make a report page of a model, which a notebook displays.

    Parameters
    ----------
    model : path-like, IntegerModel or fitted classifier
        With the path of a model file the page also describes the training.
    target : str or sequence of str, optional
        Microcontrollers, or ``"all"``; by default that of the training, else cortex-m4.
    budget : str, int or Limits, optional
        Limits on every target, as for `tinykernel.report`; by default those of the training on its
        own target.
    compiler : {"auto", "none", "gcc", "zig"}, default="auto"
        As for `tinykernel.report`. With "none" instructions are estimated as well.
    data : (X, y), optional
        Rows that the model was not trained on, and their labels. By default the page shows what
        the model file records of the held-out rows of the training.
    groups : array-like, shape (n_rows,), optional
        Which person, record or batch each of these rows belongs to.
    train : (X, y), optional
        The training rows, for the baselines.
    class_weight : {None, "balanced"}, optional
        Weights of the linear model.
    clock : str or float, optional
        Clocks for the times, e.g. ``"48MHz"`` or ``"16MHz,48MHz"``.
    rows : str, optional
        Description of the rows of `data`.
    title : str, optional
        By default the name of the file.

    Returns
    -------
    ReportPage

    Raises
    ------
    TinykernelError
        If an argument is wrong, or a compiler that was asked for is missing.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tinykernel import TernaryKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TernaryKernelClassifier(n_components=64, effort="quick", random_state=0)
    >>> page = report_page(model.fit(X[::2], y[::2]), "cortex-m0plus", "8KB", compiler="none",
    ...                    data=(X[1::2], y[1::2]))
    >>> page.fits, "STM32L053R8" in page.to_html()
    (True, True)
    """
    file = Path(model) if isinstance(model, str | os.PathLike) else None
    about = {} if file is None else modelfile.about(file)
    integer = as_integer_model(model if file is None else modelfile.load(file))
    if integer.is_regressor and data is not None:
        raise OptionError(
            "data: a page evaluates classifiers only; leave it out, and use tinykernel.evaluate "
            "for a regressor"
        )
    clocks = parse_clocks(clock)
    limits = None if budget is None else parse_limits(budget)
    default = about["target"] if about.get("target") in TARGETS else "cortex-m4"
    asked = [target] if isinstance(target, str) else list(target) or [default]
    names = targets_named(asked, [row.name for row in TARGETS.values() if row.family != "host"])
    memory, costs = _measured(integer, names, limits, about, compiler)
    judged = LabelEvaluation.of_record(about.get("evaluation"))
    if data is None:
        rows = "" if judged is None else "held out by the training, and judged then"
    judgement: dict[str, Any] = {"judged": judged, "rows": rows}
    if data is not None:
        X, y = in_numbers(model, data[0]), data[1]
        judgement["judged"] = evaluate(
            integer, X, y, train=train, groups=groups, class_weight=class_weight
        )
        judgement["coverage"] = facts.coverage_of(integer, X, y, _SHARES)
        judgement["gallery"] = facts.gallery_of(integer, X, y)
        judgement["reliability"] = facts.reliability_of(integer, X, y)
        flat = np.asarray(X).reshape(len(np.asarray(y)), -1)
        judgement["seen"] = seen_before(flat, about.get("training_rows"))
    chip, why = None, "the page was written with --compiler none"
    if compiler != "none":
        shown = data and (in_numbers(model, data[0]), data[1])
        try:
            chip = chip_in_page(integer, about, shown, costs[0].instructions)
        except TinykernelError as error:
            why = str(error)
    stamp = os.environ.get("SOURCE_DATE_EPOCH", "")  # for reproducible pages
    now = float(stamp) if stamp.isdigit() else time.time()
    return ReportPage(
        title or (file.stem if file else "Model"),
        integer,
        memory,
        costs,
        clocks,
        about=about,
        version=modelfile.written_by(file) if file else "",
        date=datetime.fromtimestamp(now, timezone.utc).strftime("%Y-%m-%d"),
        chip=chip,
        without_chip=why,
        **judgement,
    )


def _measured(
    model: IntegerModel,
    names: Sequence[str],
    budget: Limits | None,
    about: Mapping[str, Any],
    compiler: str,
) -> tuple[tuple[Report, ...], tuple[Cost, ...]]:
    """Return memory and instructions on each target."""
    memory, costs = [], []
    for done, name in enumerate(names):
        say("measuring", done, len(names), name)
        limits = budget_of_training(about, name) if budget is None else budget
        memory.append(report(model, name, limits, compiler=compiler))
        costs.append(cost_on(model, name, counted=compiler != "none"))
    say("measuring", len(names), len(names))
    return tuple(memory), tuple(costs)
