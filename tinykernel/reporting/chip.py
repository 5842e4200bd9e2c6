"""The firmware in a page: the module of a model, facts for its inputs, and rows that prove it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel import resources
from tinykernel.codegen.projects import generated_inputs
from tinykernel.codegen.web import as_script, module_facts, web_module
from tinykernel.coding.codes import Coding
from tinykernel.data.ranges import InputRange, input_ends, number_ends, recordings_of
from tinykernel.model import IntegerModel
from tinykernel.model.stages.frame import Frame

SCRIPTS = ("chip", "view", "table", "image", "stream", "page")
_MOST_ROWS, _MOST_BYTES = 400, 48 * 1024
# The strips beside the inputs of a table take this many decisions at most.
_MOST_CURVES = 64
_SOUND_RATES = (4000, 96000)
_LARGEST_G = 16.0


@dataclass(frozen=True)
class ChipInPage:
    """What a page needs to run a model: facts as JSON, and the script with its hash."""

    facts: str
    script: str

    @property
    def policy(self) -> str:
        """The hash by which a content security policy lets the script run, and no other."""
        digest = hashlib.sha256(self.script.encode()).digest()
        return f"'sha256-{base64.b64encode(digest).decode()}' 'wasm-unsafe-eval'"


def chip_in_page(
    model: IntegerModel,
    about: Mapping[str, Any],
    rows: tuple[ArrayLike, ArrayLike | None] | None = None,
) -> ChipInPage:
    """Compile a model for a page; `rows` (X, y) are shown and prove it, else generated ones do."""
    facts = facts_of(model, about) | {
        "module": _base64(web_module(model)),
        "vectors": _vectors(model, rows),
    }
    folder = resources.folder("templates") / "report" / "chip"
    texts = [(folder / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS]
    return ChipInPage(as_script(facts), "\n".join(texts))


def facts_of(model: IntegerModel, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the script must know of a model, as types of JSON."""
    facts = module_facts(model) | {"kind": model.input.kind, "rate": None}
    numbers = number_ends(model, about)
    facts["numbers"] = [_field(model, limits, None) for limits in numbers]
    ends = input_ends(model, about)
    if model.input.is_table:
        coding = Coding.read(about.get("coding"))
        facts["fields"] = [_field(model, limits, coding) for limits in ends]
        facts["curves"] = len(ends) <= _MOST_CURVES
    elif model.input.is_signal:
        facts |= _signal(model, about, ends)
    else:
        facts["image"] = _image(model, about, ends)
    return facts


def _field(model: IntegerModel, limits: InputRange, coding: Coding | None) -> dict[str, Any]:
    texts = None if coding is None else coding.texts.get(limits.name)
    gap = None if coding is None else coding.gaps.get(limits.name)
    return {
        "name": limits.name,
        "low": limits.low,
        "high": limits.high,
        "texts": None if texts is None else list(texts),
        "gap": gap if gap is None or np.isfinite(gap) else str(gap),
        "whole": model.raw_dtype != "float32",
    }


def _signal(
    model: IntegerModel, about: Mapping[str, Any], ends: list[InputRange]
) -> dict[str, Any]:
    """Return the facts of a signal; a small range of three axes is first taken to be in g."""
    rate, names = recordings_of(about, "rate"), recordings_of(about, "channels")
    rate = rate if isinstance(rate, int | float) and rate > 0 else None
    is_sound = model.raw_dtype == "int16" and model.input.channels == 1
    is_sound = is_sound and _SOUND_RATES[0] <= (rate or 0) <= _SOUND_RATES[1]
    largest = max(
        (abs(end) for limits in ends for end in (limits.low, limits.high) if end is not None),
        default=0,
    )
    signal = {
        "window": model.input.rows,
        "sound": is_sound,
        "names": [str(name) for name in names] if isinstance(names, list) else [],
        "ranges": [[limits.low or 0.0, limits.high or 0.0] for limits in ends],
        "unit": "g" if largest <= _LARGEST_G / 4 else "m/s²",
    }
    return {"rate": rate, "signal": signal}


def _image(model: IntegerModel, about: Mapping[str, Any], ends: list[InputRange]) -> dict[str, Any]:
    """Return the facts of an image; bytes of pictures are as they are, others have a range."""
    frame = model.find(Frame)
    grid = model.input if frame is None else frame.gives(model.input)
    is_bytes = frame is not None or isinstance(about.get("pictures"), Mapping)
    lows = [limits.low for limits in ends if limits.low is not None]
    highs = [limits.high for limits in ends if limits.high is not None]
    return {
        "rows": grid.rows,
        "columns": grid.columns,
        "channels": grid.channels,
        "low": 0 if is_bytes else min(lows, default=0),
        "high": 255 if is_bytes else max(highs, default=255),
        "frame": frame
        and {"width": frame.width, "height": frame.height, "format": frame.pixel_format},
    }


def _vectors(
    model: IntegerModel, rows: tuple[ArrayLike, ArrayLike | None] | None
) -> dict[str, Any]:
    """Return raw rows with their labels and scores: as many as a page has room for."""
    size = model.n_inputs * np.dtype(model.raw_dtype).itemsize
    n = max(1, min(_MOST_ROWS, _MOST_BYTES // size))
    labels: list[str] | None = None
    if rows is None or not len(np.asarray(rows[0])):
        raw = model.as_raw(generated_inputs(model, n))
    else:
        X, y = rows
        inputs = np.asarray(X)
        places = np.unique(np.linspace(0, len(inputs) - 1, n).astype(np.intp))
        raw = model.as_raw(inputs[places].reshape(len(places), -1))
        labels = None if y is None else [str(label) for label in np.asarray(y)[places]]
    return {
        "rows": len(raw),
        "inputs": _base64(_little(raw)),
        "scores": _base64(_little(model.scores(raw))),
        "labels": labels,
    }


def _little(values: NDArray[Any]) -> bytes:
    """Return values as WebAssembly has them in memory, whatever this processor does."""
    return values.astype(values.dtype.newbyteorder("<")).tobytes()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
