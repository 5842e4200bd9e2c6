"""`report_page` gathers the figures of a report page."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tinykernel import modelfile
from tinykernel.codegen.targets import TARGETS, find_target
from tinykernel.coding.frames import in_numbers
from tinykernel.data.trained_rows import seen_before
from tinykernel.errors import TinykernelError
from tinykernel.evaluation import LabelEvaluation, evaluate, input_importance
from tinykernel.measure.costs import Cost, cost_on, parse_clocks
from tinykernel.measure.limits import Limits, parse_limits
from tinykernel.measure.report import Report, report
from tinykernel.measure.supply import parse_supply
from tinykernel.model import IntegerModel, as_integer_model
from tinykernel.progress import report as say
from tinykernel.reporting.facts import coverage_of, gallery_of
from tinykernel.reporting.page import ReportPage


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
    current: str | None = None,
    rows: str = "",
    title: str = "",
) -> ReportPage:
    """Make a report page of a model, which a notebook displays.

    Parameters
    ----------
    model : path-like, IntegerModel, KernelMachine or fitted classifier
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
    current : str, optional
        What the chip draws while it computes at the single `clock`: ``"4mA"`` for a charge,
        ``"4mA@3V"`` for an energy as well.
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
    >>> page.fits, "STM32L053R8" in page.to_markdown()
    (True, True)
    """
    file = Path(model) if isinstance(model, str | os.PathLike) else None
    about = {} if file is None else modelfile.about(file)
    integer = as_integer_model(model if file is None else modelfile.load(file))
    if integer.is_regressor and data is not None:
        raise TinykernelError(
            "data: a page judges classifiers; tinykernel.evaluate judges a regressor, whose page "
            "shows memory, time and ranges"
        )
    supply, clocks = parse_supply(current), parse_clocks(clock)
    if supply is not None and (clock is None or len(clocks) > 1):
        raise TinykernelError("current: give the one clock at which the chip draws it, too")
    limits = None if budget is None else parse_limits(budget)
    default = about["target"] if about.get("target") in TARGETS else "cortex-m4"
    asked = [target] if isinstance(target, str) else list(target) or [default]
    chips = [row.name for row in TARGETS.values() if row.family != "host"]
    each = (chips if name == "all" else [find_target(name).name] for name in asked)
    names = list(dict.fromkeys(itertools.chain.from_iterable(each)))
    memory, costs = _measured(integer, names, limits, about, compiler)
    judged = LabelEvaluation.of_record(about.get("evaluation"))
    if data is None:
        rows = "" if judged is None else "held out by the training, and judged then"
    judgement: dict[str, Any] = {"judged": judged, "rows": rows}
    if data is not None:
        X, y = in_numbers(model, data[0]), data[1]
        options: dict[str, Any] = {"groups": groups, "class_weight": class_weight}
        judgement["judged"] = evaluate(integer, X, y, train=train, **options)
        judgement["coverage"] = coverage_of(integer, X, y)
        judgement["gallery"] = gallery_of(integer, X, y)
        flat = np.asarray(X).reshape(len(np.asarray(y)), -1)
        judgement["seen"] = seen_before(flat, about.get("training_rows"))
        if integer.input.columns == 1 and len(flat) > 1:
            judgement["worth"] = input_importance(integer, X, y, **options)
    stamp = os.environ.get("SOURCE_DATE_EPOCH", "")  # for reproducible pages
    now = float(stamp) if stamp.isdigit() else time.time()
    return ReportPage(
        title or (file.stem if file else "Model"),
        integer,
        memory,
        costs,
        clocks,
        supply,
        about=about,
        version=modelfile.written_by(file) if file else "",
        date=datetime.fromtimestamp(now, timezone.utc).strftime("%Y-%m-%d"),
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
    trained_for = about.get("limits") or about.get("budget")
    trained_for = trained_for if isinstance(trained_for, int | str) else None
    for done, name in enumerate(names):
        say("measuring", done, len(names), name)
        limits = trained_for if budget is None and name == about.get("target") else budget
        memory.append(report(model, name, limits, compiler=compiler))
        costs.append(cost_on(model, name, counted=compiler != "none"))
    say("measuring", len(names), len(names))
    return tuple(memory), tuple(costs)
