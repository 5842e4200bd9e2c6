"""Files .edf and .bdf, with their annotations as labels."""

from pathlib import Path

from tinykernel.base.errors import DataError, FormatError
from tinykernel.data.formats.joining import checked_spans, needs, on_one_clock, unlabelled
from tinykernel.data.labels import Span
from tinykernel.data.reading import Columns, Reading


def read_edf(path: Path, reading: Reading) -> Columns:
    """Read the signals; annotations with a duration are the labels."""
    try:
        import pyedflib
    except ImportError:
        raise needs(path, "pyedflib") from None
    try:
        with pyedflib.EdfReader(str(path)) as file:
            rates = file.getSampleFrequencies().tolist()
            names = [name.strip() for name in file.getSignalLabels()]
            parts = [file.readSignal(i) for i in range(file.signals_in_file)]
            onsets, durations, texts = file.readAnnotations()
    except OSError as error:
        reason = str(error).removeprefix(f"{path}: ") or "damaged or cut short"
        raise FormatError(f"{path}: is not an EDF or BDF that can be read ({reason})") from None
    if not parts or min(rates) <= 0:
        raise DataError(f"{path}: has no signals, or one of a rate of 0; correct its header")
    columns, rate, notes = on_one_clock(path, names, parts, rates)
    n = len(next(iter(columns.values())))
    marks = zip(onsets.tolist(), durations.tolist(), texts.tolist(), strict=True)
    lasting = [(begin, length, text) for begin, length, text in marks if length > 0]
    if len(lasting) < len(onsets):
        notes["not used, as without a duration: {n} annotations"] = len(onsets) - len(lasting)
    spans = [
        Span(round(begin * rate), round((begin + length) * rate), str(text).strip())
        for begin, length, text in lasting
    ]
    labels = checked_spans(path, spans, n, notes)
    if labels is None and reading.labels_needed:
        raise unlabelled(path, "annotations with a duration")
    kind = None if labels is None else "annotations"
    return Columns(path, columns, rate=rate, spans=labels, label=kind, notes=notes)
