"""Files .edf and .bdf, with their annotations as labels."""

from pathlib import Path

import numpy as np

from tinykernel.base.errors import DataError, FormatError
from tinykernel.data.formats.joining import Sampled, checked_spans, joined, needs
from tinykernel.data.labels import Span, names_say
from tinykernel.data.reading import Columns, Reading
from tinykernel.data.tables import told_apart


def read_edf(path: Path, reading: Reading) -> Columns:
    """Read the signals; annotations with a duration are the labels."""
    try:
        import pyedflib
    except ImportError:
        raise needs(path, "pyedflib") from None
    try:
        with pyedflib.EdfReader(str(path)) as file:
            rates = file.getSampleFrequencies().tolist()
            names = told_apart(name.strip() for name in file.getSignalLabels())
            parts = [file.readSignal(i) for i in range(file.signals_in_file)]
            onsets, durations, texts = file.readAnnotations()
    except OSError as error:
        reason = str(error).removeprefix(f"{path}: ") or "damaged or cut short"
        raise FormatError(f"{path}: is not an EDF or BDF that can be read ({reason})") from None
    if not parts or min(rates) <= 0:
        raise DataError(f"{path}: has no signals, or one of a rate of 0; correct its header")
    signals = {
        name: Sampled(x.reshape(-1, 1), ("",), rate, np.arange(len(x)) / rate)
        for name, x, rate in zip(names, parts, rates, strict=True)
    }
    notes, rate, columns = dict[str, int](), rates[0], dict(zip(names, parts, strict=True))
    if len(set(rates)) > 1:
        columns, _, rate, notes = joined(path, signals)
    n = len(next(iter(columns.values())))
    marks = zip(onsets.tolist(), durations.tolist(), texts.tolist(), strict=True)
    lasting = [(begin, length, text) for begin, length, text in marks if length > 0]
    if len(lasting) < len(onsets):
        notes["not used, as without a duration: {n} annotations"] = len(onsets) - len(lasting)
    spans = [
        Span(round(begin * rate), round((begin + length) * rate), str(text).strip())
        for begin, length, text in lasting
    ]
    held = checked_spans(path, spans, n, notes)
    if held is None and reading.labels_needed:
        raise DataError(
            f"{path}: has no annotations with a duration; say the labels with {names_say(path)}"
        )
    kind = None if held is None else "annotations"
    return Columns(path, columns, rate=rate, spans=held, label=kind, notes=notes)
