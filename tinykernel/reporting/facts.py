"""Facts on a report page: input ranges, margins, test images, the training."""

import base64
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.model import IntegerModel
from tinykernel.model.answers.decision import margins
from tinykernel.model.stages.frame import Frame


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
    frame = model.find(Frame)
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
    "calibration_rows", "held_out", "test_size", "one_class",
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
    if isinstance(inputs, list):
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
