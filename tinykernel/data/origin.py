"""What a model takes and remembers, so that other data are read as those of its training."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

from tinykernel.base.coding import Coding
from tinykernel.data.labels import backgrounds_among
from tinykernel.data.reading import Reading

_MISSING = ("keep", "drop", "error")
_OF_PICTURES = ("name", "label", "groups")


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Data of a training and how they were read; entries that a file lacks are None."""

    data: str | None = None  # name of the file or folder
    split: str | None = None  # description of the split
    label: str | None = None  # column, array or file
    groups: str | None = None
    seed: int | None = None  # of the split
    test_size: float | None = None
    class_weight: str | None = None  # "balanced", where judging takes it, too
    background: tuple[str, ...] | None = None  # classes that were named so
    missing: str | None = None
    inputs: tuple[str, ...] | None = None  # columns of a table
    coding: Coding | None = None
    recordings: Reading | None = None
    pictures: Mapping[str, Any] | None = None  # fields of `PictureReading`
    # Records of rows that were trained on, and of those that calibrated; see `record_of`.
    training_rows: Mapping[str, Any] = field(default_factory=dict)
    calibration_rows: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, entries: Mapping[str, Any]) -> "Origin":
        """Read the entries of a model file; those of another type count as lacking."""
        types = {"seed": int, "test_size": float, "training_rows": dict, "calibration_rows": dict}
        plain = {each.name: types.get(each.name, str) for each in fields(cls)}
        known = {
            name: entries[name] for name, kind in plain.items() if type(entries.get(name)) is kind
        }
        for name in ("background", "inputs"):
            names = entries.get(name)
            known[name] = tuple(map(str, names)) if isinstance(names, list) else None
        pictures = entries.get("pictures")
        if isinstance(pictures, dict):
            names = (name for name in _OF_PICTURES if type(pictures.get(name)) is str)
            known["pictures"] = {name: pictures[name] for name in names}
        if known.get("missing") not in _MISSING:
            known.pop("missing", None)
        known["coding"] = Coding.read(entries.get("coding"))
        known["recordings"] = Reading.read(entries.get("recordings"))
        return cls(**known)

    def entries(self) -> dict[str, Any]:
        """Return the entries for a model file, as JSON types."""
        known = {name: value for name, value in vars(self).items() if value not in (None, {})}
        if self.pictures is not None:
            known["pictures"] = dict(self.pictures)
        for name, written in (("coding", self.coding), ("recordings", self.recordings)):
            if written is not None:
                known[name] = written.written()
        return {k: list(v) if isinstance(v, tuple) else v for k, v in known.items()}

    @property
    def rate(self) -> float | None:
        """Samples a second of the recordings, where it is known."""
        return None if self.recordings is None else self.recordings.rate

    def background_of(self, classes: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the classes that make no event: those named, or those whose words say so."""
        if self.background is None:
            return backgrounds_among(classes)
        return tuple(label for label in classes if str(label) in self.background)


class Taker(Protocol):
    """A finished model, as far as its data need to know it; `IntegerModel` is one."""

    @property
    def classes(self) -> tuple[Any, ...]:
        """Labels it tells apart; empty if it predicts values."""

    @property
    def input(self) -> Any:
        """The `Grid` of one of them."""

    @property
    def hop(self) -> int:
        """Samples between windows; 0 if these do not come from a stream."""

    @property
    def events(self) -> object:
        """How events follow from decisions, or None."""

    @property
    def n_inputs(self) -> int:
        """Values of a row."""

    @property
    def n_numbers(self) -> int:
        """Those of them that stand beside a window."""

    @property
    def takes_gaps(self) -> bool:
        """Whether NaN may be among its inputs."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Columns of a table, in their order."""

    @property
    def is_regressor(self) -> bool:
        """Whether it predicts values."""
