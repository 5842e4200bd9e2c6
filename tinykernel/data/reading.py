"""How recordings are read, what is read from one file, and samples that follow each other."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.checks import check_choice, check_positive
from tinykernel.base.errors import FormatError, OptionError
from tinykernel.data.labels import NO_SPAN, Span, within
from tinykernel.data.wav import resampled

_MOST_TIMES = 64  # largest ratio of rates in resampling
#: Where no gap is.
NO_BREAKS = np.empty(0, np.intp)
#: Texts in lower case that stand for a missing label.
NO_LABEL = ("", "nan", "na", "null")
#: What is wrong with a model file whose settings of recordings are damaged.
DAMAGED = "the model file's settings of recordings do not fit its model"
# Settings that a model file stores by their names.
_WRITTEN: dict[str, Any] = {
    "window": int,
    "hop": int,
    "rate": int | float,
    "axes": int,
} | dict.fromkeys(
    ("label", "groups", "time", "mixed", "missing", "name", "short", "label_at", "clips"), str
)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How recordings are read and cut; the fields are parameters of `windows`."""

    window: str | int | None = None
    hop: str | int | None = None
    label: str | None = None
    groups: str | None = None
    name: str | None = None
    inputs: Sequence[str] | None = None
    drop: Sequence[str] = ()
    rate: float | None = None
    time: str | None = None
    mixed: str = "drop"
    missing: str = "error"
    short: str | None = None
    label_at: str = "all"
    axes: int | None = None
    clips: str | None = None  # "whole": words are somewhere in them; "auto": if so it seems.
    beside: Sequence[str] = ()
    background: Sequence[str] = ()
    labels_needed: bool = True
    labels_said: bool = False  # by the name of the file
    classes: Sequence[str] = ()  # of a finished model: columns that hold one of them are labels

    def __post_init__(self) -> None:
        """Check the fields."""
        check_choice("mixed", self.mixed, ("drop", "majority"))
        check_choice("missing", self.missing, ("error", "drop"))
        check_choice("short", self.short, (None, "pad", "drop"))
        check_choice("label_at", self.label_at, ("all", "peak"))
        check_choice("clips", self.clips, (None, "auto", "whole", "windows"))
        if self.rate is not None:
            object.__setattr__(self, "rate", check_positive("rate", self.rate))
        for name, value in (("inputs", self.inputs), ("drop", self.drop)):
            if isinstance(value, str):
                raise OptionError(f"{name} must be a list of names; got the text {value!r}")
        columns = [*(self.inputs or ()), *self.beside]
        double = next((name for name in columns if columns.count(name) > 1), None)
        if double is not None:
            raise OptionError(f"inputs and beside name the column {double!r} twice; name it once")

    @classmethod
    def read(cls, written: object) -> "Reading | None":
        """Read the settings of a model file, None for other content."""
        if not isinstance(written, dict):
            return None
        channels, beside = (written.get(name) or [] for name in ("channels", "beside"))
        known = {name: written[name] for name in _WRITTEN if written.get(name) is not None}
        kinds = zip(known.values(), (_WRITTEN[name] for name in known), strict=True)
        if not all(
            isinstance(value, kind) for value, kind in [*kinds, (channels, list), (beside, list)]
        ):
            raise FormatError(DAMAGED)
        inputs, beside = (tuple(map(str, names)) for names in (channels, beside))
        return cls(**known, inputs=inputs or None, beside=beside, labels_needed=False)

    def written(self) -> dict[str, Any]:
        """Return the settings for a model file, as JSON types."""
        settings = {name: getattr(self, name) for name in _WRITTEN}
        settings["channels"] = list(self.inputs or ())
        return settings | ({"beside": list(self.beside)} if self.beside else {})


@dataclass(eq=False)
class Columns:
    """One recording of a file; a missing number is NaN, a missing label or group empty."""

    file: Path
    columns: dict[str, NDArray[Any]]  # candidates for channels and times: numbers, or text.
    y: NDArray[Any] | None = None
    group: NDArray[Any] | None = None
    lines: Sequence[int] | None = None
    rate: float | None = None
    keeps_type: bool = False  # True for arrays and sounds, which have a type
    is_sound: bool = False
    own_rate: float | None = None  # original rate of a resampled sound
    # First row and cell that is not a number, by column of other numbers.
    faults: dict[str, tuple[int, str]] = field(default_factory=dict)
    spans: tuple[Span, ...] | None = None  # of a sound with a file of labels, in place of `y`
    label: str | None = None  # the column that `y` is
    # What was done with the file, for people; {n} stands for the number of samples.
    notes: dict[str, int] = field(default_factory=dict)

    def at_rate(self, rate: float) -> "Columns":
        """Return a sound at another rate."""
        assert self.rate is not None
        if not self.rate / _MOST_TIMES <= rate <= self.rate * _MOST_TIMES:
            raise OptionError(
                f"{self.file}: has {self.rate:g} Hz, too far from rate={rate:g}; give another"
            )
        samples = resampled(np.column_stack(list(self.columns.values())), self.rate, rate)
        y, group = (
            None if text is None else of_all(text[0], len(samples)) for text in (self.y, self.group)
        )
        columns = dict(zip(self.columns, samples.T, strict=True))
        spans = None if self.spans is None else tuple(s.at(rate / self.rate) for s in self.spans)
        result = replace(self, columns=columns, y=y, group=group, spans=spans)
        return replace(result, rate=rate, own_rate=self.rate)

    def with_labels(self, still: str | None) -> "Columns":
        """Return it with a label a sample: what has none is `still`, if that is a label."""
        # Outside of the spans of a sound it is `NO_SPAN` otherwise; a file without any label stays.
        if self.spans is not None:
            still = still or NO_SPAN
            if not self.spans:
                return replace(self, y=of_all(still, self.n_rows), spans=None)
            longest = max([len(still), *(len(span.label) for span in self.spans)])
            y = np.full(self.n_rows, still, f"U{longest}")
            for span in self.spans:
                y[span.first : span.end] = span.label
            return replace(self, y=y, spans=None)
        if self.y is None or still is None or of_all_alike(self.y):
            return self
        missing = np.isin(np.char.lower(self.y.astype(np.str_)), NO_LABEL)
        if missing.all() or not missing.any():
            return self
        return replace(self, y=np.where(missing, still, self.y))

    def labels(self) -> set[str]:
        """Return the labels in it, also empty ones."""
        if self.spans is not None:
            return {span.label for span in self.spans}
        if self.y is None:
            return set()
        return {self.y[0].item()} if of_all_alike(self.y) else set(np.unique(self.y).tolist())

    def name_group(self, part: str) -> None:
        """Add the name of a part of the data to the group, so that no group is in two."""
        if self.group is not None:
            some = self.group[:1] if of_all_alike(self.group) else self.group
            self.group = np.broadcast_to(np.char.add(f"{part} ", some), self.n_rows)

    @property
    def labels_are(self) -> str:
        """Name the column of labels, for messages."""
        return "" if self.label is None else f" of column {self.label!r}"

    @property
    def n_rows(self) -> int:
        """Number of samples."""
        return len(next(iter(self.columns.values())))

    def place(self, row: int, name: str | None = None) -> str:
        """Return the place of a value in the file, for messages."""
        line = "" if self.lines is None else f" (line {self.lines[row]})"
        column = "" if name is None else f", column {name!r}"
        return f"{self.file}: row {row + 1}{line}{column}"


def of_all(text: str, n: int) -> NDArray[Any]:
    """Return a label or group for n samples, in constant memory."""
    return np.broadcast_to(np.array([text]), n)


def of_all_alike(values: NDArray[Any]) -> bool:
    """Whether values share the memory of one, as those of `of_all`."""
    return not any(values.strides) and len(values) > 0


def any_of(mask: NDArray[np.bool_]) -> bool:
    """Whether any value of a mask is set."""
    return bool(mask[0] if of_all_alike(mask) else mask.any())


def _no_mask() -> NDArray[np.bool_]:
    return np.zeros(0, bool)


#: Where samples are of no file, or of one that is no longer needed.
NO_FILE = Columns(Path(), {})


@dataclass(eq=False)
class Recording:
    """Samples that follow each other: a file, a part of one, or joined clips."""

    name: str
    X: NDArray[Any]  # (samples, channels): 0 where a value is missing
    spans: tuple[Span, ...] = ()  # that are labelled, where it is not cut into windows
    groups: tuple[Span, ...] = ()  # whose samples these are
    _: KW_ONLY
    table: Columns = field(default_factory=lambda: NO_FILE)  # all of the file
    holes: NDArray[np.bool_] = field(default_factory=_no_mask)  # mask of samples that lack a value
    y: NDArray[Any] | None = None
    unlabelled: NDArray[np.bool_] = field(default_factory=_no_mask)  # and of those without a label
    channels: tuple[str, ...] = ()
    rate: float | None = None
    times: NDArray[np.float64] | None = None
    # Samples before which there is a gap.
    breaks: NDArray[np.intp] = field(default_factory=lambda: NO_BREAKS)
    time: str | None = None
    first: int = 0  # samples of the file before these
    follows: bool = False  # whether these continue those that were read before
    labels: frozenset[str] = frozenset()  # of the whole file, where it is read in pieces

    def part(self, first: int, end: int) -> "Recording":
        """Return some of the samples, of one group."""
        y, times = (None if each is None else each[first:end] for each in (self.y, self.times))
        groups, at = self.table.group, self.first + first
        group = self.name if groups is None else str(groups[at])
        return replace(
            self,
            X=self.X[first:end],
            spans=within(self.spans, first, end),
            groups=(Span(0, end - first, group),),
            holes=self.holes[first:end],
            y=y,
            unlabelled=self.unlabelled[first:end],
            times=times,
            breaks=NO_BREAKS,
            first=at,
        )

    @property
    def group(self) -> str:
        """Whose its first sample is."""
        return str(self.groups[0].label)

    @property
    def lost(self) -> NDArray[np.bool_]:
        """Mask of samples that lack a value or a label."""
        return np.logical_or(self.holes, self.unlabelled)

    def times_at(self, places: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Return the times of samples in seconds, also from the rate alone; None if unknown."""
        if self.times is not None:
            return self.times[places]
        return None if self.time is not None or self.rate is None else places / self.rate
