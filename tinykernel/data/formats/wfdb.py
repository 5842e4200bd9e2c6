"""Records of PhysioNet: a header .hea, samples .dat, and annotations .atr as labels."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tinykernel.base.errors import DataError, FormatError, OptionError
from tinykernel.data.formats.joining import checked_spans, needs, on_one_clock, unlabelled
from tinykernel.data.labels import Span
from tinykernel.data.reading import Columns, Reading

#: Symbols of beats; others are changes of rhythm, noise and comments.
_BEATS = frozenset("NLRBAaJSVrFejnE/fQ?")
_KINDS = ("beat", "rhythm")


def read_record(path: Path, reading: Reading) -> Columns:
    """Read a record; the label is the beat (``--label beat``) or the rhythm around a sample."""
    try:
        import wfdb
    except ImportError:
        raise needs(path, "wfdb") from None
    if reading.label not in (None, *_KINDS):
        raise OptionError(f"{path}: --label {reading.label}: choose beat or rhythm")
    try:
        # The mean of a frame takes marks of missing samples for values.
        record = wfdb.rdrecord(str(path.with_suffix("")), smooth_frames=False)
        parts = record.e_p_signal
    except FileNotFoundError as error:
        file = Path(str(error.filename or path)).name
        raise FormatError(f"{path}: its file {file} is missing; put it beside the header") from None
    except Exception as error:  # wfdb raises what its parser meets
        reason = " ".join(str(error).split())[:100]
        raise FormatError(f"{path}: is not a record that wfdb can read ({reason})") from None
    if not parts or not record.fs or record.fs <= 0 or not len(parts[0]):
        raise DataError(f"{path}: has no samples, or a rate of 0; correct the header")
    rates = [float(record.fs) * n for n in (record.samps_per_frame or [1] * len(parts))]
    names = [name or "channel" for name in record.sig_name]
    columns, rate, notes = on_one_clock(path, names, parts, rates)
    n = len(next(iter(columns.values())))
    spans = _spans(path, reading.label, n, rate, float(record.fs), wfdb)
    if spans is None and reading.labels_needed:
        raise unlabelled(path, f"annotations {path.stem}.atr")
    kind = None if spans is None else "annotations"
    return Columns(path, columns, rate=rate, spans=spans, label=kind, notes=notes)


def _spans(path: Path, kind: str | None, n: int, rate: float, frames: float, wfdb: Any) -> Any:
    """Return the annotations as spans: a beat from the middle to the one before to that after."""
    if not path.with_suffix(".atr").is_file():
        return None
    try:
        read = wfdb.rdann(str(path.with_suffix("")), "atr")
    except Exception as error:
        reason = " ".join(str(error).split())[:100]
        raise FormatError(f"{path.with_suffix('.atr')}: cannot be read ({reason})") from None
    # Annotations may count finer than frames.
    places = (np.asarray(read.sample) * rate / (read.fs or frames)).astype(np.int64).tolist()
    marks = list(zip(places, read.symbol, read.aux_note, strict=True))
    beats = {at: symbol for at, symbol, _ in marks if symbol in _BEATS}  # several may be at one
    rhythms = {at: note.strip("(\0 ") for at, symbol, note in marks if symbol == "+" and note}
    chosen = kind or ("beat" if beats else "rhythm")
    at = beats if chosen == "beat" else rhythms
    past = next((place for place in at if place >= n), None)
    if past is not None:
        raise DataError(
            f"{path.with_suffix('.atr')}: an annotation is past the end, sample {past} of {n}; "
            "correct it"
        )
    order = sorted(at)
    if chosen == "beat":
        middles = [(a + b) // 2 for a, b in pairwise(order)]
        firsts, ends = [0, *middles], [*middles, n]
    else:
        firsts, ends = order, [*order[1:], n]
    spans = [Span(a, b, at[p]) for a, b, p in zip(firsts, ends, order, strict=True)]
    return checked_spans(path, spans, n, {})
