"""C against Python, bit for bit: build the exported C, run every row, compare every score."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.build.harness import Inputs, answers_of, run_rows
from tinykernel.build.program import Platform, build_closest, find_platforms
from tinykernel.build.toolchains import host_toolchain
from tinykernel.codegen.targets import Target, find_target
from tinykernel.coding.frames import in_numbers
from tinykernel.errors import DataError, ModelError, OptionError, ShapeError
from tinykernel.model import IntegerModel, as_integer_model
from tinykernel.model.answers.decision import margins
from tinykernel.model.answers.events import NO_EVENT
from tinykernel.model.answers.values import Values
from tinykernel.model.arrays import raw_values
from tinykernel.model.stages.beside import as_windows
from tinykernel.progress import report as say
from tinykernel.text import count, listed


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
        Where to run: ``"host"``, or a target of `tinykernel.codegen.targets`, on an emulated board.
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
            f"{listed(integer.classes)}"
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
    scores = model.scores_quantized(Q)
    if model.is_regressor:  # and whether a second call gives others
        return np.column_stack([scores, np.zeros(len(scores), dtype=np.int32)])
    columns = [scores, scores.argmax(axis=1)]
    if model.decision is not None:
        decision, (_, margin) = model.decision, margins(scores)
        columns += [decision.decide(scores), margin.view(np.int32), decision.confidence(scores)]
        if decision.novelty_threshold is not None:
            novelty = model.novelty_quantized(Q, scores)
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
