"""Everything that is to be handed on about a model, gathered: `report_page`."""

from __future__ import annotations

import html
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import tinykernel
from tinykernel.codegen.targets import TARGETS, find_target
from tinykernel.errors import TinykernelError
from tinykernel.evaluation import Importance, LabelEvaluation, evaluate, input_importance
from tinykernel.measure.costs import Cost, cost_on, parse_clocks
from tinykernel.measure.limits import Limits, parse_limits
from tinykernel.measure.report import Report, report
from tinykernel.measure.supply import Supply, parse_supply
from tinykernel.model import IntegerModel, as_integer_model
from tinykernel.modelfile import about as about_file
from tinykernel.modelfile import load, written_by
from tinykernel.progress import report as say
from tinykernel.reporting.facts import Coverage, coverage_of


@dataclass(frozen=True, eq=False)
class ReportPage:
    """What a model is, how good it is, and what it takes: `report_page` makes it.

    Parameters
    ----------
    title : str
    model : IntegerModel
    memory : tuple of Report
        One a target.
    costs : tuple of Cost
        The same targets.
    clocks : tuple of float
        Hertz.
    supply : Supply or None
    judged : LabelEvaluation or None
        On `rows`; None where nobody knows.
    coverage : Coverage or None
    rows : str
        Which rows these are, in words.
    seen : float or None
        Share of them that was used in training; None where nobody knows.
    about : dict
        What the model file says of its training.
    version : str
        Of tinykernel, that wrote the model file; empty where there is no file.
    date : str
        When the page was made.
    worth : Importance or None
        Of the inputs, on `rows`; None of images.
    """

    title: str
    model: IntegerModel
    memory: tuple[Report, ...]
    costs: tuple[Cost, ...]
    clocks: tuple[float, ...]
    supply: Supply | None = None
    judged: LabelEvaluation | None = None
    coverage: Coverage | None = None
    rows: str = ""
    seen: float | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""
    date: str = ""
    worth: Importance | None = None

    @property
    def fits(self) -> bool:
        """Whether the model fits every target and its budget."""
        return all(one.fits for one in self.memory)

    def to_html(self) -> str:
        """Return a page that needs no other file; needs matplotlib."""
        from tinykernel.reporting.rendering import html_page

        return html_page(self)

    def to_markdown(self) -> str:
        """Return the same figures as text for a pull request."""
        from tinykernel.reporting.rendering import markdown_page

        return markdown_page(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON types."""
        return {
            "title": self.title,
            "fingerprint": self.model.fingerprint(),
            "fits": self.fits,
            "memory": [one.to_dict() for one in self.memory],
            "costs": [cost.to_dict(self.clocks, self.supply) for cost in self.costs],
            "rows": self.rows,
            "seen_in_training": self.seen,
            "evaluation": None if self.judged is None else self.judged.to_dict(),
            "inputs": None if self.worth is None else self.worth.to_dict(),
            "date": self.date,
            "version": tinykernel.__version__,
        }

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame that keeps its style to itself."""
        page = html.escape(self.to_html(), quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:48em;border:0"></iframe>'


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
    """Gather all that is to be said of a model; shows itself in a notebook.

    Parameters
    ----------
    model : path-like, IntegerModel, KernelMachine or fitted classifier
        The path of a model file: the page then says how it was trained.
    target : str or sequence of str, optional
        Microcontrollers, or ``"all"``; by default that of the training, else cortex-m4.
    budget : str, int or Limits, optional
        What the model may take on every target, as for `tinykernel.report`; by default that of the
        training on its own target.
    compiler : {"auto", "none", "gcc", "zig"}, default="auto"
        As for `tinykernel.report`. With "none" instructions are estimated, too.
    data : (X, y), optional
        Rows that the model was not trained on, and their labels; otherwise the page shows what
        the model file keeps of the rows that training kept aside.
    groups : array-like, shape (n_rows,), optional
        Which person, record or batch each of these rows belongs to.
    train : (X, y), optional
        The training rows, for the majority and the linear model beside it.
    class_weight : {None, "balanced"}, optional
        Of the linear model.
    clock : str or float, optional
        Clocks for the times, e.g. ``"48MHz"`` or ``"16MHz,48MHz"``.
    current : str, optional
        What the chip draws while it computes, at the one `clock` given: ``"4mA"`` for a charge,
        ``"4mA@3V"`` for an energy, too.
    rows : str, optional
        Which rows `data` are, in words.
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
    is_file = isinstance(model, str | os.PathLike)
    said = about_file(model) if is_file else {}  # type: ignore[arg-type]
    version = written_by(model) if is_file else ""  # type: ignore[arg-type]
    integer = as_integer_model(load(model) if is_file else model)  # type: ignore[arg-type]
    if integer.is_regressor and data is not None:
        raise TinykernelError(
            "data: a page judges classifiers; tinykernel.evaluate judges a regressor, whose page "
            "shows memory, time and ranges"
        )
    names = _targets(target, said)
    supply, clocks = parse_supply(current), parse_clocks(clock)
    if supply is not None and (clock is None or len(clocks) > 1):
        raise TinykernelError("current: give the one clock at which the chip draws it, too")
    limits = None if budget is None else parse_limits(budget)
    memory, costs = _measured(integer, names, limits, said, compiler)
    coverage, seen, worth = None, None, None
    judged = LabelEvaluation.of_record(said.get("evaluation"))
    if data is None:
        rows = "" if judged is None else "kept aside by the training, and judged then"
    else:
        from tinykernel.data.trained_rows import seen_before

        X, y = data
        found = evaluate(integer, X, y, groups=groups, train=train, class_weight=class_weight)
        assert isinstance(found, LabelEvaluation)
        judged = found
        coverage = coverage_of(integer, X, y)
        if integer.input.columns == 1 and found.rows > 1:
            worth = input_importance(integer, X, y, groups=groups, class_weight=class_weight)
        seen = seen_before(np.asarray(X).reshape(len(np.asarray(y)), -1), said.get("training_rows"))
    return ReportPage(
        title or (Path(model).stem if is_file else "Model"),  # type: ignore[arg-type]
        integer,
        memory,
        costs,
        clocks,
        supply,
        judged,
        coverage,
        rows,
        seen,
        said,
        version,
        _today(),
        worth,
    )


def _targets(given: str | Sequence[str], about: Mapping[str, Any]) -> list[str]:
    """Return the targets that are asked for, each once."""
    own = about.get("target")
    default = own if isinstance(own, str) and own in TARGETS else "cortex-m4"
    names = [given] if isinstance(given, str) else list(given) or [default]
    chips = [row.name for row in TARGETS.values() if row.family != "host"]
    every = [name for one in names for name in (chips if one == "all" else [find_target(one).name])]
    return list(dict.fromkeys(every))


def _measured(
    model: IntegerModel,
    names: Sequence[str],
    budget: Limits | None,
    about: Mapping[str, Any],
    compiler: str,
) -> tuple[tuple[Report, ...], tuple[Cost, ...]]:
    """Tell memory and instructions on each target."""
    memory, costs = [], []
    own = about.get("limits") or about.get("budget")
    own = own if isinstance(own, int | str) else None
    for done, name in enumerate(names):
        say("measuring", done, len(names), name)
        limits = own if budget is None and name == about.get("target") else budget
        memory.append(report(model, name, limits, compiler=compiler))
        costs.append(cost_on(model, name, counted=compiler != "none"))
    say("measuring", len(names), len(names))
    return tuple(memory), tuple(costs)


def _today() -> str:
    """Return the date; SOURCE_DATE_EPOCH sets it, for pages that are to be made again."""
    stamp = os.environ.get("SOURCE_DATE_EPOCH", "")
    seconds = float(stamp) if stamp.isdigit() else time.time()
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d")
