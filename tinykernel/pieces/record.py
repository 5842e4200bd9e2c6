"""Records: dataclasses whose fields are listed once, and their checked, read-only arrays."""

import dataclasses
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.errors import DataError, ModelError, ShapeError, TinykernelError


def wrong_shape(name: str, have: tuple[int, ...], want: tuple[int | None, ...]) -> str:
    """Say what is wrong with a shape, or nothing; None stands for any length of at least 1."""
    if len(have) == len(want) and all(
        length > 0 if expected is None else length == expected
        for length, expected in zip(have, want, strict=True)
    ):
        return ""
    expected_text = ", ".join("any" if length is None else str(length) for length in want)
    return f"{name} has shape {have}, expected ({expected_text})"


def checked_array(
    name: str, value: object, dtype: str, shape: tuple[int | None, ...]
) -> NDArray[Any]:
    """Return a read-only contiguous copy of `value`, of exactly this type and shape."""
    # None in a shape stands for any length of at least 1. A TinykernelError names the array.
    try:
        values = np.asarray(value)
    except (TypeError, ValueError):
        raise ModelError(f"integer model: {name} is not an array of numbers") from None
    if values.dtype.kind not in "biuf":
        raise ModelError(f"integer model: {name} is not an array of numbers")
    problem = wrong_shape(name, values.shape, shape)
    if problem:
        raise ModelError(f"integer model: {problem}")
    with np.errstate(invalid="ignore", over="ignore"):
        array = np.array(values, dtype=np.dtype(dtype), order="C", copy=True)
        unchanged = np.array_equal(array, values)
    if not unchanged or not np.all(np.isfinite(array)):
        raise ModelError(f"integer model: {name} holds a value that is not a finite {dtype}")
    array.setflags(write=False)
    return array


def raw_values(X: ArrayLike, dtype: str) -> NDArray[Any]:
    """Convert inputs, shape (n_rows, n), to a raw type that the firmware takes."""
    # Floats are rounded to float32; an integer that does not fit is an error.
    values = np.asarray(X)
    if values.dtype.kind in "cmM":
        raise ShapeError(f"inputs: values of type {values.dtype}; give real numbers")
    if values.dtype.kind not in "biuf":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError):
            raise ShapeError(
                "inputs: not an array of numbers; for a frame with text use the fitted estimator, "
                "which codes text as numbers"
            ) from None
    with np.errstate(invalid="ignore", over="ignore"):
        raw = values.astype(dtype)
        wrong = np.zeros(1, dtype=bool) if dtype == "float32" else raw != values
    if np.any(wrong):
        row, column = np.argwhere(wrong)[0][:2]
        raise DataError(
            f"inputs: row {row}, column {column} is {values[row, column]}, which is not {dtype} "
            "as in training; convert it"
        )
    return np.ascontiguousarray(raw)


def chosen_labels(decisions: NDArray[Any]) -> NDArray[np.int64]:
    """Return the place of the first largest value of each row; of one column, 1 if positive."""
    if decisions.shape[1] == 1:
        return (decisions[:, 0] > 0).astype(np.int64)
    return np.asarray(decisions.argmax(axis=1), dtype=np.int64)


_ScalarT = TypeVar("_ScalarT", bound=np.generic)
#: An array of two dimensions, where NDArray stands for one.
Matrix = NDArray[_ScalarT]
#: Python types of fields that are neither arrays nor records.
PLAIN: dict[str, type] = {"bool": bool, "int": int, "float": float, "str": str}


@dataclass(frozen=True)
class Field:
    """One field of a record: what stores, reads, compares or checks fields uses this."""

    name: str
    # Of an array a NumPy type, or several with ``|`` between them. Else ``bool``, ``int``,
    # ``float``, ``str``, ``label`` (the name of a class) or the name of a class of records.
    dtype: str
    dimensions: int = 0  # of an array; 0 for everything else.
    optional: bool = False  # whether None is allowed.
    many: bool = False  # whether it is a tuple of such values.
    compared: bool = True  # whether models that differ in it are different models.
    later: bool = False  # whether older files lack it; fingerprints do, where it is 0 or False.
    low: int | None = None  # no number is below,
    high: int | None = None  # and none above.
    # Of an array the length of each axis; a name stands for one that fields share, None for any.
    shape: tuple[int | str | None, ...] = ()

    def taken(self, owner: str, value: Any) -> Any:
        """Return a value as a record keeps it; TinykernelError where it is of another type."""
        if value is None and self.optional:
            return None
        if self.dimensions:
            if "|" in self.dtype:  # the record knows which
                return value
            return checked_array(self.name, value, self.dtype, (None,) * self.dimensions)
        if not self.many:
            return self._plain(owner, value)
        if not isinstance(value, (tuple, list)):
            raise ModelError(f"{owner}: {self.name} is no tuple")
        return tuple(self._plain(owner, item) for item in value)

    def wrong(self, value: Any, sizes: dict[str, int]) -> str:
        """Say what is out of range, or nothing; `sizes` takes the lengths that have names."""
        if value is None or "|" in self.dtype:
            return ""
        if self.shape:
            for want, have in zip(self.shape, value.shape, strict=True):
                if isinstance(want, str):
                    sizes.setdefault(want, have)
            shape = tuple(sizes[name] if isinstance(name, str) else name for name in self.shape)
            problem = wrong_shape(self.name, value.shape, shape)
            if problem:
                return problem
        if self.low is None or self.high is None:
            return ""
        for number in (int(np.min(value)), int(np.max(value))):
            if not self.low <= number <= self.high:
                holds = "holds" if self.dimensions else "is"
                return f"{self.name} {holds} {number}, allowed are {self.low}..{self.high}"
        return ""

    def _plain(self, owner: str, value: Any) -> Any:
        plain = value.item() if isinstance(value, np.generic) else value
        if self.dtype == "label":
            return _label(owner, value, plain)
        if self.dtype == "float" and type(plain) is int:
            plain = float(plain)
        known = PLAIN.get(self.dtype)
        names = {known.__name__} if known else set(self.dtype.split("|"))
        classes = [type(plain)] if known else type(plain).__mro__
        if not names & {cls.__name__ for cls in classes}:
            article = "an" if self.dtype[0] in "aeiouAEIOU" else "a"
            named = {"int": "integer", "str": "text"}.get(self.dtype, self.dtype)
            raise ModelError(f"{owner}: {self.name} is not {article} {named}")
        if self.dtype == "float" and not np.isfinite(plain):
            raise ModelError(f"{owner}: {self.name} is not a finite number")
        return plain


def _label(owner: str, value: object, plain: Any) -> Any:
    """Return a class label as a Python value that JSON can hold."""
    if not isinstance(plain, (str, int, float)):
        raise ModelError(
            f"{owner}: a class is a {type(value).__name__}; "
            "labels are strings, integers, floats or booleans"
        )
    if isinstance(plain, float) and not np.isfinite(plain):
        raise ModelError(f"{owner}: class {value!r} is not a finite number")
    return plain


def _list(name: str, annotation: str, default: Any) -> Field:
    """Read a field from its annotation: ``NDArray[np.int8]``, ``tuple[int, ...]``, ``A | None``."""
    text = annotation.removesuffix(" | None")
    array = re.fullmatch(r"(NDArray|Matrix)\[(?:np\.)?(\w+?)_?\]", text)
    many = re.fullmatch(r"tuple\[(\w+), .+\]", text)
    dtype = array[2] if array else (many[1] if many else text).replace(" ", "")
    facts: dict[str, Any] = {"dtype": "label" if dtype in ("object", "Any") else dtype}
    if array:
        facts["dimensions"] = 2 if array[1] == "Matrix" else 1
    if isinstance(default, dataclasses.Field):
        facts |= {"compared": default.compare is not False, **default.metadata}
    if "shape" in facts:
        facts["dimensions"] = len(facts["shape"])
    return Field(name, optional=text != annotation, many=many is not None, **facts)


def limits(low: int | None = None, high: int | None = None, *shape: Any) -> dict[str, Any]:
    """Return the metadata of a field: the numbers it may hold, and the shape of an array."""
    return {"low": low, "high": high} | ({"shape": shape} if shape else {})


class Record:
    """A frozen dataclass that lists its fields once; arrays become read-only copies.

    `FIELDS` are read from its annotations and metadata: `limits`, ``dtype`` where several fit,
    ``later`` of a field that older files lack, and ``stored``, False of one that files omit.
    ``compare=False`` takes a field out of fingerprints.
    """

    FIELDS: ClassVar[tuple[Field, ...]] = ()
    OWNER: ClassVar[str] = "integer model"

    def __init_subclass__(cls) -> None:
        """List the fields."""
        known = vars(cls)
        cls.FIELDS += tuple(
            _list(name, annotation, known.get(name))
            for name, annotation in inspect.get_annotations(cls).items()
            if not annotation.startswith("ClassVar")
            and getattr(known.get(name), "metadata", {}).get("stored", True)
        )

    def __post_init__(self) -> None:
        """Check every field by its type, range and shape, then how they fit together."""
        sizes: dict[str, int] = {}
        for field in self.FIELDS:
            taken = field.taken(self.OWNER, getattr(self, field.name))
            object.__setattr__(self, field.name, taken)
            problem = field.wrong(taken, sizes)
            if problem:
                raise self.refuse(problem)
        self.check()

    def check(self) -> None:
        """Refuse fields that do not fit together; TinykernelError."""

    def refuse(self, problem: str) -> TinykernelError:
        """Return the error that says what is wrong with this record."""
        return ModelError(f"{self.OWNER}: {problem}")

    def require(self, name: str, low: int, high: int) -> None:
        """Refuse an integer that is out of range."""
        value = getattr(self, name)
        if not low <= value <= high:
            raise self.refuse(f"{name} is {value}, allowed are {low}..{high}")

    def require_shape(self, name: str, shape: tuple[int | None, ...]) -> None:
        """Refuse an array of another shape; None stands for any length."""
        problem = wrong_shape(name, getattr(self, name).shape, shape)
        if problem:
            raise self.refuse(problem)


def contents(record: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """List all that is compared in a record: names with dots, and plain values or arrays."""
    yield f"{place}:", type(record).__name__
    for field in record.FIELDS:
        value = getattr(record, field.name)
        if not field.compared or value is None or (field.later and not value):
            continue
        items = enumerate(value) if field.many else (("", value),)
        for index, item in items:
            name = f"{place}.{field.name}{index}"
            if hasattr(item, "FIELDS"):
                yield from contents(item, name)
            elif isinstance(item, float):
                yield name, item.hex()
            else:
                yield name, [type(item).__name__, item] if field.dtype == "label" else item
