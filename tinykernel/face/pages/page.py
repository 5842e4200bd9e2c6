"""The report page of a model, as self-contained HTML."""

import base64
import html
import os
import struct
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.errors import OptionError, TinykernelError
from tinykernel.base.files import package_version, template_engine
from tinykernel.base.frames import in_numbers
from tinykernel.base.progress import report as say
from tinykernel.base.text import size, visible
from tinykernel.compile.enums import consists_of
from tinykernel.compile.targets import TARGETS, find_target, find_targets
from tinykernel.data.origin import Origin
from tinykernel.data.splits import seen_before
from tinykernel.face.pages.chip import ChipInPage, chip_in_page
from tinykernel.judge.figures import LabelEvaluation, interval_in_words
from tinykernel.judge.models import evaluate
from tinykernel.judge.ranges import input_ranges
from tinykernel.model import file as modelfile
from tinykernel.model.answers import Values, margins
from tinykernel.model.integer import IntegerModel
from tinykernel.model.pipelines import as_integer_model
from tinykernel.run.bench import Cost, cost_on, parse_clocks
from tinykernel.run.limits import Limits, budget_of_training, parse_limits
from tinykernel.run.report import Report, report


def coverage_of(
    model: IntegerModel, X: ArrayLike, y: ArrayLike, shares: Sequence[float]
) -> list[tuple[int, float, float]]:
    """Return least margin, share and error of the answers with at least these shares of them."""
    labels, margin = margins(model.scores(X))
    wrong = np.array(model.classes)[labels] != np.asarray(y)
    falling = np.sort(margin)[::-1]
    least = {falling[int(np.ceil(share * len(margin) - 1e-9)) - 1] for share in shares}
    given = ((at, margin >= at) for at in sorted(least))
    return [(int(at), float(rows.mean()), float(wrong[rows].mean())) for at, rows in given]


@dataclass(frozen=True)
class Curve:
    """A curve of a page: its axes, and points as shares of their lengths."""

    across: str
    up: str
    ends: tuple[str, str, str, str]  # least and largest value across, and up
    points: tuple[tuple[float, float], ...]
    diagonal: bool = False  # where both axes say the same


def reliability_of(model: IntegerModel, X: ArrayLike, y: ArrayLike) -> Curve | None:
    """Return how often answers of a confidence are right, by tenths of them."""
    if model.decision is None or not len(np.asarray(y)):
        return None
    scores = model.scores(X)
    # Confidence c of the chip stands for (c + 1/2) / 256.
    confidence = (model.decision.confidence(scores) + 0.5) / 256
    right = np.array(model.classes)[scores.argmax(axis=1)] == np.asarray(y)
    order = np.argsort(confidence, kind="stable")
    parts = np.array_split(order, max(1, min(_PARTS, len(order) // _FEW)))
    points = [(float(confidence[part].mean()), float(right[part].mean())) for part in parts]
    ends = ("0 %", "100 %")
    return Curve("confidence", "right answers", (*ends, *ends), tuple(points), diagonal=True)


def misses_of(about: Mapping[str, Any]) -> Curve | None:
    """Return misses against false alarms, where a calibration on some events recorded them."""
    events = about.get("events")
    rows = events.get("curve") if isinstance(events, Mapping) and events.get("events", 1) else None
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        return None
    pairs = [(row.get("false_alarms_an_hour"), row.get("missed")) for row in rows]
    numbers = [pair for pair in pairs if all(isinstance(end, int | float) for end in pair)]
    most = max((x for x, _ in numbers), default=0.0)
    if not 0 < most < np.inf:
        return None
    points = tuple(sorted((x / most, min(max(y, 0.0), 1.0)) for x, y in numbers))
    return Curve("false alarms an hour", "missed", ("0", f"{most:.3g}", "0 %", "100 %"), points)


_SHOWN, _MOST_CLASSES = 9, 12
_MOST_SIDE, _MOST_BYTES = 32, 16 * 1024  # of a picture, and of those in the table of confusions
_PARTS, _FEW = 10, 20  # of a reliability curve, and rows of a part


@dataclass(frozen=True)
class Picture:
    """One test image, and the answer to it."""

    address: str  # a data URI: a page stands alone
    label: str
    answer: str
    margin: int


@dataclass(frozen=True)
class Gallery:
    """Test images of a page."""

    wrong: tuple[Picture, ...]  # the answer is wrong; largest margin first
    unsure: tuple[Picture, ...]  # smallest margin first
    confused: tuple[tuple[Picture | None, ...], ...]  # by label, then answer; of few classes


def gallery_of(model: IntegerModel, X: ArrayLike, y: ArrayLike) -> Gallery | None:
    """Choose test images; None where the inputs are no images of 1 or 3 channels."""
    frame = model.camera
    grid = model.input if frame is None else frame.gives(model.input)
    if grid.kind != "image" or grid.channels not in (1, 3):
        return None
    rows = model.input.as_raw(X)
    if frame is not None:
        rows = np.asarray(frame.run(rows, model.input))
    answers, unsigned = margins(model.scores(X))
    margin, names = unsigned.astype(np.int64), [str(name) for name in model.classes]
    labels = [str(label) for label in np.asarray(y)]
    is_wrong = np.array(names)[answers] != np.array(labels)
    low, high = float(rows.min()), float(rows.max())
    shape = (-1, grid.rows, grid.columns, grid.channels)
    pixels = ((rows - low) * (255 / max(high - low, 1e-9))).astype(np.uint8).reshape(shape)
    # Large pictures lose pixels, so that a page stays small.
    pixels = pixels[:, :: -(-grid.rows // _MOST_SIDE), :: -(-grid.columns // _MOST_SIDE)]

    def picture(at: int) -> Picture:
        data = base64.b64encode(png_of(pixels[at])).decode()
        address = f"data:image/png;base64,{data}"
        return Picture(address, labels[at], names[answers[at]], int(margin[at]))

    surest = np.argsort(-margin, kind="stable")
    wrong = surest[is_wrong[surest]]
    first = {(labels[at], names[answers[at]]): int(at) for at in wrong[::-1]}
    is_small = len(names) <= _MOST_CLASSES and len(first) * pixels[0].size <= _MOST_BYTES
    axis = names if is_small else []
    pairs = (tuple(picture(first[i, j]) if (i, j) in first else None for j in axis) for i in axis)
    return Gallery(
        tuple(picture(at) for at in wrong[:_SHOWN].tolist()),
        tuple(picture(at) for at in surest[::-1][:_SHOWN].tolist()),
        tuple(pairs),
    )


def png_of(pixels: NDArray[np.uint8]) -> bytes:
    """Return an image (rows, columns, 1 or 3) as a PNG file, with the same bytes everywhere."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    height, width, channels = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    # Uncompressed, since compressed bytes depend on the version of zlib.
    data = zlib.compress(b"".join(b"\0" + row.tobytes() for row in pixels), 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", data), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


# Keys that are described separately, that a page shows elsewhere, or that only programs read.
# fmt: off
_SAID = {
    "data", "split", "label", "groups", "training_rows", "target", "budget", "limits", "sizes",
    "recordings", "inputs", "coding", "search", "accuracy", "evaluation", "calibration", "trials",
    "calibration_rows", "held_out", "test_size", "one_class", "places",
}
# fmt: on


def training_in_words(about: Mapping[str, Any], *, whole: bool = True) -> list[tuple[str, str]]:
    """Return names and values; without `whole` not those that a page shows elsewhere."""
    pairs = [(name, plain(about.get(name, ""))) for name in ("data", "split", "label", "groups")]
    if about.get("one_class") is True:
        pairs.append(("trained on", "normal rows only"))
    recordings, inputs = about.get("recordings"), about.get("inputs")
    if isinstance(recordings, dict):
        text = f"{recordings.get('window')} samples, hop {recordings.get('hop')}"
        if isinstance(recordings.get("rate"), int | float) and recordings["rate"]:
            text += f", {recordings['rate']:g} Hz"
        pairs.append(("windows", text))
    if inputs and isinstance(inputs, list):
        pairs.append(("input columns", ", ".join(map(plain, inputs))))
    if whole:
        pairs += _sizes(about)
    coding = about.get("coding")
    if isinstance(coding, Mapping):
        pairs += [("text columns", plain(coding.get("texts") or ""))]
        pairs += [("missing values", plain(coding.get("gaps") or ""))]
    calibration, promise = about.get("calibration"), ""
    if isinstance(calibration, Mapping):
        rows = f" ({plain(calibration['rows'])} rows)" if "rows" in calibration else ""
        promise = f"{plain(calibration.get('statement', ''))}{rows}"
    others = ((name, value) for name, value in sorted(about.items()) if name not in _SAID)
    pairs += [(name.replace("_", " "), plain(value)) for name, value in others]
    pairs += [
        ("accuracy" if "r2" not in str(about.get("accuracy")) else "R2", _shares(about)),
        ("search", search_in_words(about.get("search"))),
        ("calibration", promise),
    ]
    return [(name, value) for name, value in pairs if value]


def search_in_words(search: object) -> str:
    """Describe choice and gain of a search; empty where unknown."""
    if not isinstance(search, Mapping) or not search.get("trials"):
        return ""
    text = f"{plain(search['trials'])} short trainings chose {plain(search.get('chosen', '?'))}"
    before, after = search.get("log_loss_usual"), search.get("log_loss")
    if isinstance(before, int | float) and isinstance(after, int | float):
        text += f"; log loss {before:.3f} with default values, {after:.3f} with these"
        text += "" if after < before else ": no gain"
    return text + ("; Ctrl-C ended the search" if search.get("interrupted") else "")


#: Heads of the columns of `trials_in_rows`.
TRIAL_COLUMNS = ("kind", "model", "training", "loss", "score", "")


def trials_in_rows(trials: object) -> list[tuple[str, ...]]:
    """Return the trainings that `select` compared, the last one of a spec, as rows of text."""
    rows: dict[tuple[str, ...], tuple[str, ...]] = {}
    for trial in trials if isinstance(trials, list) else []:
        if not isinstance(trial, Mapping):
            continue
        kind, spec, stage = (plain(trial.get(name, "")) for name in ("kind", "spec", "stage"))
        numbers = trial.get("loss"), trial.get("score")
        loss, score = (f"{x:.4f}" if isinstance(x, int | float) else "behind" for x in numbers)
        mark = "chosen" if trial.get("is_chosen") is True else ""
        rows[kind, spec, stage] = kind, spec, stage, loss, score, mark
    return list(rows.values())


def _sizes(about: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Describe the target, its limits, and the sizes of the model."""
    rows, sizes, budget = (about.get(name) for name in ("training_rows", "sizes", "budget"))
    limits = about.get("limits") or (f"{budget} bytes of flash" if budget else "")
    text = ""
    if isinstance(sizes, Mapping):
        text = f"{plain(sizes.get('flash'))} bytes of flash, {plain(sizes.get('ram'))} of RAM "
        text += f"({plain(sizes.get('measured'))})"
    return [
        ("training rows", plain(rows.get("rows", "")) if isinstance(rows, Mapping) else ""),
        ("target", plain(about.get("target", ""))),
        ("budget", plain(limits)),
        ("size", text),
    ]


def _shares(about: Mapping[str, Any]) -> str:
    """Describe the accuracies on the training and test rows."""
    accuracy, shares = about.get("accuracy"), []
    if not isinstance(accuracy, Mapping):
        return ""
    for name, value in sorted(accuracy.items(), reverse=True):
        part, _, measure = str(name).partition("_")
        if isinstance(value, int | float):
            shown = f"{100 * value:.2f} % of" if measure == "accuracy" else f"{value:.4f} on"
            shares.append(f"{shown} the {'training' if part == 'train' else part} rows")
    return ", ".join(shares)


def plain(value: Any) -> str:
    """Write a value of JSON without its marks."""
    if isinstance(value, dict):
        named = ((key, item) for key, item in value.items() if key != "curve")  # it is drawn
        return ", ".join(f"{key} {plain(item)}" for key, item in named)
    return ", ".join(map(plain, value)) if isinstance(value, list) else str(value)


_SHARES = (1.0, 0.95, 0.9, 0.8, 0.5)
_MOST_INPUTS, _MOST_RANGES = 24, 256  # more of them are folded, and left out
_MOST_IN_TABLE = 24
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
    gallery: Gallery | None = None  # images among `rows`; None for other inputs
    reliability: Curve | None = None  # of the confidences on `rows`
    chip: ChipInPage | None = None  # the firmware, which the page runs
    without_chip: str = ""  # why there is none

    @property
    def fits(self) -> bool:
        """Whether the model fits every target and its budget."""
        return all(report.fits for report in self.memory)

    def to_html(self) -> str:
        """Return a self-contained HTML page."""
        # Invisible marks in labels are escaped, but not those in macros, which are Markup.
        engine = template_engine().overlay(
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
        "version": package_version(),
        "chip": page.chip
        and {
            "facts": Markup(page.chip.facts),
            "script": Markup(page.chip.script),
            "policy": Markup(page.chip.policy),
        },
        "kind": "A regressor" if isinstance(model.answers, Values) else "A classifier",
        "answered": page.coverage or [],
        "misses": misses_of(page.about),
        "training": training_in_words(page.about, whole=False),
        "trials": trials_in_rows(page.about.get("trials")),
        "trial_columns": TRIAL_COLUMNS,
        "trained_rows": trained_rows if isinstance(trained_rows, int) else None,
        "inputs": input_ranges(model, Origin.read(page.about)),
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
    few, baselines = len(judged.classes) <= _MOST_IN_TABLE, judged.baselines.values()
    shown = range(len(judged.classes)) if few else np.argsort(judged.recall)[:_MOST_IN_TABLE]
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
        "classes_left_out": 0 if few else len(judged.classes) - _MOST_IN_TABLE,
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
        Clocks for the times, e.g. ``"48MHz"`` or ``"16MHz,48MHz"``; by default first that of the
        budget, or of the board.
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
    limits = None if budget is None else parse_limits(budget)
    default = about["target"] if about.get("target") in TARGETS else "cortex-m4"
    asked = [target] if isinstance(target, str) else list(target) or [default]
    names = find_targets(asked, [row.name for row in TARGETS.values() if row.family != "host"])
    memory, costs = _measurements(integer, names, limits, about, compiler)
    boards = [find_target(name).board.clock for name in names]
    own = [one.limits.clock for one in memory if one.limits and one.limits.clock] or boards
    usual = [*filter(None, own), *parse_clocks(None)]
    clocks = tuple(dict.fromkeys(usual)) if clock is None else parse_clocks(clock)
    judged = LabelEvaluation.of_record(about.get("evaluation"))
    if data is None:
        rows = "" if judged is None else "held out by the training, and judged then"
    judgement: dict[str, Any] = {"judged": judged, "rows": rows}
    if data is not None:
        X, y = in_numbers(model, data[0]), data[1]
        judgement["judged"] = evaluate(
            integer, X, y, train=train, groups=groups, class_weight=class_weight
        )
        judgement["coverage"] = coverage_of(integer, X, y, _SHARES)
        judgement["gallery"] = gallery_of(integer, X, y)
        judgement["reliability"] = reliability_of(integer, X, y)
        flat = np.asarray(X).reshape(len(np.asarray(y)), -1)
        judgement["seen"] = seen_before(flat, Origin.read(about).training_rows)
    chip, why = None, "the page was written with --compiler none"
    if compiler != "none":
        shown = data and (in_numbers(model, data[0]), data[1])
        try:
            chip = chip_in_page(integer, Origin.read(about), shown, costs[0].instructions)
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


def _measurements(
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
