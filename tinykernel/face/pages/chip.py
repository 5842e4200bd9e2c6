"""The firmware in a page: its module, facts and rows that prove it; and serving one page."""

import base64
import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.coding import Coding
from tinykernel.base.errors import BudgetError
from tinykernel.base.files import source_folder
from tinykernel.base.text import size
from tinykernel.compile.sources import as_script, generated_inputs, module_facts, web_module
from tinykernel.data.origin import Origin
from tinykernel.judge.ranges import InputRange, input_ends, number_ends
from tinykernel.model.integer import IntegerModel

SCRIPTS = ("chip", "view", "table", "image", "stream", "page")
# Of a page that opens in a second: rows of proof, bytes of their inputs and of their scores, what
# their answers take of a Cortex-M4, and bytes of a module.
_MOST_ROWS, _MOST_INPUTS, _MOST_SCORES = 400, 40 * 1024, 16 * 1024
_MOST_INSTRUCTIONS, _FEW_INSTRUCTIONS = 300e6, 100  # few: an input, where nobody estimated them
_MOST_MODULE = 128 * 1024
# Inputs of a table that have a field, and those with a strip, which takes 40 decisions each.
_MOST_FIELDS, _MOST_CURVES = 256, 64
_SOUND_RATES = (4000, 96000)
# A signal that stays below it is first taken to be in g.
_LARGEST_G = 4.0


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
    origin: Origin,
    rows: tuple[ArrayLike, ArrayLike | None] | None = None,
    instructions: int | None = None,
) -> ChipInPage:
    """Compile a model for a page, with rows that prove it; TinykernelError if too large."""
    module = web_module(model)
    if len(module) > _MOST_MODULE:
        raise BudgetError(
            f"a module of {size(len(module))} is too large for a page; use 'tinykernel export "
            "--format web'"
        )
    instructions = max(1, instructions or _FEW_INSTRUCTIONS * model.n_inputs)
    most = max(1, min(_MOST_ROWS, int(_MOST_INSTRUCTIONS / instructions)))
    facts = facts_of(model, origin) | {
        "module": _base64(module),
        "vectors": _vectors(model, rows, most),
    }
    folder = source_folder("templates") / "report" / "chip"
    texts = [(folder / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS]
    return ChipInPage(as_script(facts), "\n".join(texts))


def facts_of(model: IntegerModel, origin: Origin) -> dict[str, Any]:
    """Return what the script must know of a model, as types of JSON."""
    facts = module_facts(model) | {"kind": model.input.kind, "rate": None}
    numbers = number_ends(model, origin)
    facts["numbers"] = [_field(model, limits, None) for limits in numbers]
    ends = input_ends(model, origin)
    if model.input.is_table:
        coding = origin.coding
        used = [(at, limits) for at, limits in enumerate(ends) if limits.low is not None]
        facts["fields"] = [
            _field(model, limits, coding) | {"at": at} for at, limits in used[:_MOST_FIELDS]
        ]
        facts["curves"] = len(used) <= _MOST_CURVES
        facts["more"] = max(0, len(used) - _MOST_FIELDS)
    elif model.input.is_signal:
        facts |= _signal(model, origin, ends)
    else:
        facts["image"] = _image(model, origin, ends)
    return facts


def _field(model: IntegerModel, limits: InputRange, coding: Coding | None) -> dict[str, Any]:
    texts = None if coding is None else coding.texts.get(limits.name)
    gap = None if coding is None else coding.gaps.get(limits.name)
    return {
        **vars(limits),
        "texts": None if texts is None else list(texts),
        "gap": gap if gap is None or np.isfinite(gap) else str(gap),
        "whole": model.raw_dtype != "float32",
    }


def _signal(model: IntegerModel, origin: Origin, ends: list[InputRange]) -> dict[str, Any]:
    """Return the facts of a signal."""
    rate, known = origin.rate, origin.recordings
    is_sound = model.raw_dtype == "int16" and model.input.channels == 1
    is_sound = is_sound and _SOUND_RATES[0] <= (rate or 0) <= _SOUND_RATES[1]
    largest = max(
        (abs(end) for limits in ends for end in (limits.low, limits.high) if end is not None),
        default=0,
    )
    signal = {
        "window": model.input.rows,
        "sound": is_sound,
        "names": [] if known is None else list(known.inputs or ()),
        "ranges": [[limits.low, limits.high] for limits in ends],
        "unit": "g" if largest <= _LARGEST_G else "m/s²",
    }
    return {"rate": rate, "signal": signal}


def _image(model: IntegerModel, origin: Origin, ends: list[InputRange]) -> dict[str, Any]:
    """Return the facts of an image; bytes of pictures are as they are, others have a range."""
    frame = model.camera
    grid = model.input if frame is None else frame.gives(model.input)
    is_bytes = frame is not None or origin.pictures is not None
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
    model: IntegerModel, rows: tuple[ArrayLike, ArrayLike | None] | None, most: int
) -> dict[str, Any]:
    """Return raw rows with their labels, and the scores of at most `most` rows that prove a page.

    A page has room for few long rows. Then row i of the proof begins i `step` values after the
    first, in the ring of all these rows: windows and images that are moved.
    """
    n = max(1, min(most, _MOST_INPUTS // (model.n_inputs * np.dtype(model.raw_dtype).itemsize)))
    labels: list[str] | None = None
    if rows is None or not len(np.asarray(rows[0])):
        raw = model.as_raw(generated_inputs(model, n))
    else:
        X, y = rows
        inputs = np.asarray(X)
        places = np.unique(np.linspace(0, len(inputs) - 1, n).astype(np.intp))
        raw = model.as_raw(inputs[places].reshape(len(places), -1))
        labels = None if y is None else [str(label) for label in np.asarray(y)[places]]
    n_proofs = max(1, min(most, _MOST_SCORES // (4 * model.n_scores)))
    step, channels = model.n_inputs, model.input.channels
    if len(raw) < n_proofs:
        step = channels * max(1, round(0.618 * raw.size / channels))
    ring, begins = np.concatenate([raw, raw]).ravel(), np.arange(n_proofs) * step % raw.size
    proofs = np.stack([ring[begin : begin + model.n_inputs] for begin in begins])
    return {
        "rows": len(raw),
        "inputs": _base64(_little(raw)),
        "proofs": n_proofs,
        "step": step,
        "scores": _base64(_little(model.scores(proofs))),
        "labels": labels,
    }


def _little(values: NDArray[Any]) -> bytes:
    """Return values as WebAssembly has them in memory, whatever this processor does."""
    return values.astype(values.dtype.newbyteorder("<")).tobytes()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


_HOST = "127.0.0.1"


def serve_page(page: bytes, ready: Callable[[str], None]) -> None:
    """Serve a page on a free port of 127.0.0.1 until Ctrl-C; `ready` takes its address."""
    server = ThreadingHTTPServer((_HOST, 0), _handler_of(page))
    with server, suppress(KeyboardInterrupt):
        address = f"http://{_HOST}:{server.server_port}/"
        # A browser of the terminal returns only when it ends.
        Thread(target=ready, args=(address,), daemon=True).start()
        server.serve_forever()


def _handler_of(page: bytes) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # A name of another site that resolves to this computer is no request of its user.
            port = self.connection.getsockname()[1]
            if self.headers.get("Host") not in (f"{_HOST}:{port}", f"localhost:{port}"):
                self.send_error(403, "only for this computer")
            elif self.path != "/":
                self.send_error(404)
            else:
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(page)))
                self.end_headers()
                with suppress(ConnectionError):  # the browser went away
                    self.wfile.write(page)

        def log_message(self, *_: object) -> None:
            """Say nothing: the page is for one person."""

    return Handler
