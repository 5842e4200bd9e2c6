"""C against Python, bit for bit: run every row and compare every score."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.base.errors import DataError, ModelError, OptionError, ShapeError, ToolError
from tinykernel.base.frames import in_numbers
from tinykernel.base.progress import report as say
from tinykernel.base.text import count, join
from tinykernel.compile.targets import Target, find_target
from tinykernel.model.answers import NO_EVENT, Values, margins
from tinykernel.model.integer import IntegerModel
from tinykernel.model.pipelines import as_integer_model
from tinykernel.pieces.beside.spec import as_windows
from tinykernel.pieces.record import raw_values
from tinykernel.run.program import Platform, Program, build_closest, find_platforms, host_toolchain

#: Entries of the generated C, in the order of the harness: scores and label from raw inputs, the
#: same from quantized ones, the quantization by itself, and samples of a stream.
ENTRIES = ("raw", "quantized", "quantize", "stream")
#: Inputs by entry: rows, or for streams also several, each of which starts anew.
Inputs = Mapping[str, NDArray[Any] | Sequence[NDArray[Any]]]


def run_rows(
    program: Program, model: IntegerModel, rows: Inputs
) -> tuple[dict[str, NDArray[Any]], dict[str, int]]:
    """Run the program of a model over rows of inputs, by entry; those of a stream are samples.

    Returned are, by entry, the values (n_rows, n) that the C made, and the bytes of stack that an
    inference really took, 0 where that is not measured. The values are scores and the label that
    the predict function gave, int32, and of a model that decides also decision, margin and
    confidence, with a threshold of novelty also novelty and whether it is novel; or the quantized
    inputs. Of a stream there is one row for each window that ended, and last what happened; of a
    regressor values, and whether a second call gave others.
    """
    write_rows(program, model, rows)
    program.run()
    data = (program.path.parent / "out.bin").read_bytes()
    written = []
    for entry, part in sections(model, rows):
        n_rows, n_values = len(part), model.n_scores + len(answers_of(model, entry))
        if entry == "stream":  # those of whole windows
            n_rows = max(0, (n_rows - model.delay - model.input.rows) // model.hop + 1)
        values_type: tuple[Any, ...] = ("<i4", (n_values,))
        if entry == "quantize":
            values_type = (model.input_dtype.newbyteorder("<"), (model.n_features,))
        written.append((entry, np.dtype([("values", *values_type)]), n_rows))
    size = sum(n * kind.itemsize + 4 for _, kind, n in written)
    if len(data) != size:
        raise ToolError(f"the program wrote {len(data)} bytes instead of {size}")
    values_of: dict[str, list[NDArray[Any]]] = {}
    stack, at = dict.fromkeys(rows, 0), 0
    for entry, kind, n in written:
        values = np.frombuffer(data, kind, n, at)["values"]
        at += n * kind.itemsize + 4
        stack[entry] = max(stack[entry], int.from_bytes(data[at - 4 : at], "little"))
        values_of.setdefault(entry, []).append(values.astype(values.dtype.newbyteorder("=")))
    return {entry: np.concatenate(parts) for entry, parts in values_of.items()}, stack


def sections(model: IntegerModel, rows: Inputs) -> Iterator[tuple[str, NDArray[Any]]]:
    """List the sections of the program's input by entry."""
    for entry, arrays in rows.items():
        for part in [arrays] if isinstance(arrays, np.ndarray) else arrays:
            if entry == "stream":
                # Samples behind the last window, until its decision is there with its numbers.
                samples, numbers = np.split(part, [model.input.channels], axis=1)
                samples = np.pad(samples, ((0, model.delay), (0, 0)))
                part = np.hstack([samples, np.pad(numbers, ((model.delay, 0), (0, 0)))])
            yield entry, part


def write_rows(program: Program, model: IntegerModel, rows: Inputs) -> None:
    """Write the file of inputs that the program reads."""
    with (program.path.parent / "in.bin").open("wb") as file:
        for entry, part in sections(model, rows):
            dtype = model.input_dtype if entry == "quantized" else np.dtype(model.raw_dtype)
            assert part.dtype == dtype
            file.write(np.array([ENTRIES.index(entry), len(part)], dtype="<u4").tobytes())
            file.write(part.astype(dtype.newbyteorder("<")).tobytes())


def answers_of(model: IntegerModel, entry: str) -> tuple[str, ...]:
    """Name what follows the scores of a row of an entry."""
    if model.is_regressor:
        return ("second call",)
    names, decision = ["label"], model.decision
    if decision is not None:
        names += ["decision", "margin", "confidence"]
        names += ["novelty", "whether it is novel"] * (decision.novelty_threshold is not None)
    return (*names, *(["event"] * (entry == "stream" and model.events is not None)))


@dataclass(frozen=True)
class Difference:
    """One value that C and Python disagree on."""

    entry: str  # "raw", "quantized" or "quantize" inputs, or "stream"
    row: int  # of the data, from 0; of a stream the decision
    what: str  # "score of class 'x'", "label", "input 3", ...
    expected: int  # Python's value
    got: int  # the C's

    def __str__(self) -> str:
        """Describe the difference in one line."""
        where = f"row {self.row}, {self.entry} inputs"
        return f"{where}, {self.what}: Python {self.expected}, C {self.got}"


@dataclass(frozen=True)
class VerifyResult:
    """The comparison of `verify`."""

    target: str  # where the C ran
    compiler: str  # name and version
    rows: int  # that ran
    # Rows times classes. Each was compared twice, from raw and from quantized inputs; with a local
    # stage once.
    scores: int
    differences: int  # number of scores, labels and quantized inputs that differ
    first_difference: Difference | None
    # Share of the rows that the C labels right, 0 to 1; None without labels, or of a regressor.
    accuracy: float | None
    emulator: str = ""  # where the C ran; empty for the host
    core: str = ""
    note: str = ""  # what the run does not prove about the target; mostly empty
    hops: int = 0  # decisions of a stream, whose scores were compared, too
    events: int = 0  # in these decisions, compared one by one

    @property
    def ok(self) -> bool:
        """Whether every value was equal."""
        return self.differences == 0


def verify(
    model: object,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    target: str = "host",
    compiler: str | Sequence[str] | None = None,
    flags: Sequence[str] | None = None,
    recordings: Sequence[ArrayLike] | None = None,
) -> VerifyResult:
    """Build the C of a model, run every row through it, and compare all scores with Python's.

    Raw and quantized inputs are compared, each through the scores and the predict function, and the
    quantization by itself. Models of signals and images take raw inputs only, and with a hop also
    streams: the decisions at every hop of a recording, pushed sample by sample. Of a calibrated
    model every decision, margin and confidence is compared, too.

    Parameters
    ----------
    model : IntegerModel or fitted classifier
    X : array-like, shape (n_rows, n_features)
        Raw inputs, as for `IntegerModel.as_raw`; at least one row.
    y : array-like, shape (n_rows,), optional
        Labels, for the accuracy.
    target : str
        Where to run: ``"host"``, or a target of `tinykernel.compile.targets`, on an emulated board.
    compiler : str or sequence of str, optional
        Host only: the command of the compiler; by default that of CC, gcc, clang, cc or zig.
    flags : sequence of str, optional
        Optimisation and other options; by default ``-O2`` on the host and ``-Os`` on boards.
    recordings : sequence of array-like, each of shape (n_samples, n_channels), optional
        For a model with a hop: samples without gaps, each from a new state. By default the rows of
        X form one long recording.

    Returns
    -------
    VerifyResult

    Raises
    ------
    TinykernelError
        If the data do not fit the model, recordings are given to a model without a hop, there is
        no compiler or emulator, or the C does not compile or run.
    """
    row = find_target(target)
    integer = as_integer_model(model)
    raw = integer.as_raw(in_numbers(model, X))
    labels = None if y is None else np.asarray(y)
    if raw.shape[0] == 0:
        raise DataError("verify: the data have no rows; give at least one")
    shape = (raw.shape[0],)
    if labels is not None and labels.shape[: 1 if integer.is_regressor else None] != shape:
        raise ShapeError(f"verify: {labels.shape} labels for {raw.shape[0]} rows")
    names = [] if labels is None or integer.is_regressor else labels.tolist()
    if names and set(names).isdisjoint(integer.classes):
        raise DataError(
            f"verify: no label of y, such as {names[0]!r}, is a class of the model: "
            f"{join(integer.classes)}"
        )
    platforms = _platforms(row, compiler)
    say("computing in Python", 0, None, count(len(raw), "row"))
    rows = entry_rows(integer, raw, recordings)
    expected = expected_values(integer, rows)
    with tempfile.TemporaryDirectory(prefix="tinykernel-") as name:
        say("building", 0, None, row.name)
        program = build_closest(integer, platforms, Path(name), flags)
        say(f"running on {row.name}", 0, None, count(len(raw), "row"))
        values, _ = run_rows(program, integer, rows)
    platform = program.platform
    result = compare(
        integer,
        expected,
        values,
        labels,
        target=row.name,
        compiler=platform.chain.title,
        emulator=platform.emulator,
        core=platform.core,
        note=platform.note,
    )
    if integer.events is None:
        return result
    return replace(result, events=int((expected["stream"][:, -1] != NO_EVENT).sum()))


def _platforms(target: Target, compiler: str | Sequence[str] | None) -> list[Platform]:
    """List compilers and emulators to run with: that of the caller, or those of this computer."""
    if compiler is None:
        return find_platforms(target)
    if target.family != "host":
        raise OptionError(
            f"verify: compiler is for the target host, not {target.name}; leave it out"
        )
    return [Platform(host_toolchain([compiler] if isinstance(compiler, str) else compiler))]


def entry_rows(
    model: IntegerModel, raw: NDArray[Any], recordings: Sequence[ArrayLike] | None = None
) -> Inputs:
    """Return the input of each entry of the C, for rows of raw inputs and streams of samples."""
    if not model.hop:
        if recordings is not None:
            raise ModelError("verify: recordings need a model with a hop; leave them out")
        if not model.takes_quantized:
            return {"raw": raw}
        return {"raw": raw, "quantized": model.quantize_inputs(raw), "quantize": raw}
    if recordings is None:
        windows = as_windows(raw, model.input)
        return {"raw": raw, "stream": [windows.reshape(-1, windows.shape[2])]}
    arrays, channels = list(map(np.asarray, recordings)), model.input.channels + model.n_numbers
    for values in arrays:
        if values.ndim != 2 or values.shape[1] != channels:
            raise ShapeError(
                f"verify: a recording of shape {values.shape}, but the model takes samples of "
                f"{count(channels, 'channel')}"
            )
    return {"raw": raw, "stream": [raw_values(values, model.raw_dtype) for values in arrays]}


def expected_values(model: IntegerModel, entries: Inputs) -> dict[str, NDArray[Any]]:
    """Return what Python computes for the rows of each entry: scores and labels, or inputs."""
    expected = {}
    for entry, inputs in entries.items():
        if entry == "quantize":
            expected[entry] = np.asarray(entries["quantized"])
        elif entry == "stream":
            none = np.zeros((0, model.n_features), dtype=model.input_dtype)
            features = (
                np.concatenate([none, *model.stream_inputs(samples, model.hop)])
                for samples in inputs
            )
            parts = [_with_labels(model, Q) for Q in features]
            if model.events is not None:
                scores = [np.ascontiguousarray(part[:, : model.n_scores]) for part in parts]
                events = [model.events.follow(part) for part in scores]
                parts = [np.column_stack(both) for both in zip(parts, events, strict=True)]
            expected[entry] = np.concatenate(parts).astype(np.int32)
        else:
            rows = np.asarray(inputs)
            Q = rows if entry == "quantized" else model.quantize_inputs(rows)
            expected[entry] = _with_labels(model, Q)
    return expected


def _with_labels(model: IntegerModel, Q: NDArray[Any]) -> NDArray[np.int32]:
    """Return scores and labels of quantized inputs, and the columns of a model that decides."""
    scores = model.quantized_scores(Q)
    if model.is_regressor:  # and whether a second call gives others
        return np.column_stack([scores, np.zeros(len(scores), dtype=np.int32)])
    columns = [scores, scores.argmax(axis=1)]
    if model.decision is not None:
        decision, (_, margin) = model.decision, margins(scores)
        columns += [decision.decide(scores), margin.view(np.int32), decision.confidence(scores)]
        if decision.novelty_threshold is not None:
            novelty = model.quantized_novelty(Q, scores)
            columns += [novelty, decision.is_novel(novelty)]
    return np.column_stack(columns).astype(np.int32)


def compare(
    model: IntegerModel,
    expected: dict[str, NDArray[Any]],
    values: dict[str, NDArray[Any]],
    labels: ArrayLike | None,
    predicted: NDArray[Any] | None = None,
    **where: str,
) -> VerifyResult:
    """Compare the results of the C for all entries with those of Python."""
    # `predicted` are the labels that the C gave for raw inputs, by default those behind its scores;
    # `where` are fields of the result.
    n_differences, first = 0, None
    for entry, got in values.items():
        places = np.argwhere(expected[entry] != got)
        n_differences += len(places)
        if len(places) and first is None:
            row, column = places[0].tolist()
            both = int(expected[entry][row, column]), int(got[row, column])
            first = Difference(entry, row, column_name(model, entry, column), *both)
    n_rows, true = len(expected["raw"]), None if labels is None else np.asarray(labels)
    predicted = values["raw"][:, model.n_scores] if predicted is None else predicted
    return VerifyResult(
        rows=n_rows,
        scores=n_rows * model.n_scores,
        hops=len(expected.get("stream", ())),
        differences=n_differences,
        first_difference=first,
        accuracy=accuracy_of(model, predicted, true),
        **{"target": "", "compiler": "", **where},  # type: ignore[arg-type]
    )


def column_name(model: IntegerModel, entry: str, column: int) -> str:
    """Name a column of the results of an entry, for `Difference.what`."""
    if entry == "quantize":
        return f"input {column}"
    if isinstance(model.answers, Values):
        names = model.answers.names
        return f"value {names[column]!r}" if column < len(names) else "second call"
    if column >= model.n_classes:
        return answers_of(model, entry)[column - model.n_classes]
    return f"score of class {model.classes[column]!r}"


def accuracy_of(
    model: IntegerModel, predicted: NDArray[Any], labels: NDArray[Any] | None
) -> float | None:
    """Return the share of right labels; an index that is no class is wrong, not an error."""
    if labels is None or model.is_regressor:
        return None
    valid = (predicted >= 0) & (predicted < model.n_classes)
    named = np.array(model.classes)[np.where(valid, predicted, 0)]
    return float(np.mean((named == labels) & valid))
