"""Calibrate a model, and train one of what is normal: thresholds to refuse below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tinykernel.base import reading as parsing
from tinykernel.base.errors import DataError, ModelError
from tinykernel.base.progress import report as say
from tinykernel.base.text import count, join, size
from tinykernel.compile.targets import find_target
from tinykernel.face import arguments as args
from tinykernel.face import evaluation as judging
from tinykernel.face.output import print_json, print_pairs, print_table, showing_progress
from tinykernel.face.rows import (
    ModelFile,
    open_model,
    own_training,
    rows_to_judge,
    training_part,
    without_training,
)
from tinykernel.face.settings import SETTINGS
from tinykernel.run.limits import Limits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tinykernel.data.partition import Dataset, Rows
    from tinykernel.judge.events import Mistake
    from tinykernel.kinds.estimators.oneclass import NoveltyDetector
    from tinykernel.kinds.planning import Usage
    from tinykernel.learn.novelty import Alarms
    from tinykernel.model.integer import IntegerModel
    from tinykernel.run.report import Report


def calibrate_command(
    model: Path = args.MODEL,
    data: str = args.DATA,
    output: Path = args.option("--output -o MODEL", "model to write: .tkm or .pkl", ...),
    max_error: float | None = args.share_option("largest error rate among the answers, e.g. 1%"),
    coverage: float | None = args.share_option("share of new rows to answer, e.g. 95%"),
    false_alarms: float | None = args.option(
        "SHARE|RATE",
        "most false alarms: a share, e.g. 1%, to detect novel rows; or a rate, e.g. 1/h, to "
        "detect the events of a stream",
        parser=args.parser(parsing.share_or_rate),
    ),
    known: str | None = args.option(
        "DATA",
        "with --false-alarms: rows of known classes, e.g. the training rows; rows far from "
        "them are novel",
    ),
    per_class: bool = args.flag(
        "--per-class", "one margin per class, so that the promise holds for each class"
    ),
    confidence: Any = args.share_option(
        "confidence level of the promise", default="95%; of events the average", example=0.95
    ),
    same_groups: bool = args.flag(
        "--same-groups", "promise for new rows of the same groups instead of new groups"
    ),
    threshold: int | None = args.number_option(
        "VALUE",
        "with a rate: another threshold of the table it prints. A lower one may hit fewer events: "
        "told before its span, an event is a false alarm, and for a pause there is no other",
        1,
    ),
    save_worst: Path | None = args.option(
        "DIR",
        "with a rate and long recordings: write the five worst misses and false alarms as a list "
        "and as pieces, which train --also DIR takes",
    ),
    assignments: list[str] = args.SET,
    as_json: bool = args.JSON,
    quiet: bool = args.QUIET,
) -> None:
    """Calibrate confidence, and choose when the model refuses.

    DATA must not be training rows. Prints the promise for new rows; if the rows do not support it,
    writes no model and ends with status 1. Uses the test part of DATA, or the held-out rows if the
    model was trained on DATA, or all rows.
    """
    from tinykernel.model.file import save

    args.check_output_file(output, args.MODEL_SUFFIXES, inputs=[model])
    opened = open_model(model)
    integer = opened.model
    if integer.is_regressor:
        raise ModelError(f"{model}: predicts values; give a classifier to calibrate")
    if known is not None and false_alarms is None:
        raise args.misuse("--known", "needs --false-alarms")
    wishes: dict[str, Any] = {"max_error": max_error, "coverage": coverage, "per_class": per_class}
    if save_worst is not None:
        args.check_output_folder(save_worst, force=False)
    if isinstance(false_alarms, parsing.Rate):
        used = {**wishes, "known": known, "same_groups": same_groups}
        _refuse(used, "excludes a rate of false alarms; leave it out")
        opened = _with_background(opened, assignments)
        with showing_progress(quiet):
            done = _events(opened, data, false_alarms, confidence, threshold)
        done = done._replace(remarks=done.remarks + _over_budget(opened, done.model))
        if save_worst is not None:
            _save_worst(save_worst, opened, done)
        save(done.model, output, opened.about | done.about)
        if as_json:
            remarks = {"remarks": list(done.remarks)}
            print_json({"model": output, "data": data} | done.result | remarks)
        elif not quiet:
            print_pairs([*done.pairs, ("file", str(output))])
            print_table(done.columns, done.lines, right=done.columns)
            _print_promises(done)
            judging.print_notes(done.remarks, "caution")
        return
    of_events = {"threshold": threshold, "set": assignments, "save_worst": save_worst}
    _refuse(of_events, "only with a rate of false alarms, such as --false-alarms 1/h; leave it out")
    confidence = 0.95 if confidence is None else confidence
    with showing_progress(quiet):
        judged = rows_to_judge(opened, data, needs_labels=not integer.is_one_class, unseen=True)
    rows = judged.rows
    _refuse_seen(opened, rows)
    groups = None if same_groups else rows.group
    if integer.is_one_class:
        used = {**wishes, "known": known}
        _refuse(used, "not an option for a model of one class; leave it out")
        done = _one_class(integer, rows, false_alarms, confidence, groups)
    else:
        training = None if known is None else _known_rows(opened, known, rows)
        wishes |= {"confidence": confidence, "false_alarms": false_alarms, "known": training}
        done = _classes(integer, rows, groups, wishes)
    done = done._replace(remarks=done.remarks + _over_budget(opened, done.model))
    save(done.model, output, opened.about | done.about)
    if as_json:
        source = {"model": output, "data": rows.source, "part": rows.part}
        remarks = {"remarks": list(done.remarks), "notes": list(rows.notes)}
        print_json(source | done.result | remarks)
    elif not quiet:
        place = ("data", f"{rows.part} of {rows.source}")
        print_pairs([place, *done.pairs, ("file", str(output))])
        judging.print_notes(rows.notes)
        judging.print_notes(done.remarks, "caution")


def _over_budget(file: ModelFile, model: IntegerModel) -> tuple[str, ...]:
    """Say that a calibrated model takes more than the budget that it was trained for."""
    from tinykernel.run.report import report

    if file.target in (None, "host"):
        return ()
    result = report(model, str(file.target), file.budget_for(str(file.target)))
    advice = "calibrate a model of a smaller --budget"
    return tuple(f"{problem}; {advice}" for problem in result.over_budget)


def _refuse(options: Mapping[str, Any], problem: str) -> None:
    """Refuse options that were given."""
    for name in filter(options.get, options):
        raise args.misuse(f"--{name.replace('_', '-')}", problem)


_AT_PROMISES = ("threshold", "hits", "misses", "false_alarms")


class _Done(NamedTuple):
    model: IntegerModel
    about: dict[str, Any]
    result: dict[str, Any]
    pairs: list[tuple[str, str]]
    remarks: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()  # of a table that is printed, too
    lines: Sequence[tuple[str, ...]] = ()
    worst: Sequence[Mistake] = ()


def _with_background(file: ModelFile, assignments: list[str]) -> ModelFile:
    """Return the model file with the classes of ``--set background``."""
    setting = SETTINGS["background"]
    for text, place in args.typed_settings(
        {"assignments": assignments}, {"background": setting}
    ).values():
        names, classes = setting.parse(text), list(map(str, file.model.classes))
        if not set(names) <= set(classes) and set(names) <= set(file.origin.background or ()):
            return file  # training made one class of them
        lacking = next((name for name in names if name not in classes), None)
        if lacking is not None:
            raise args.misuse(place, f"{lacking!r} is no class of the model: {join(classes, 8)}")
        origin = replace(file.origin, background=tuple(names))
        return replace(file, origin=origin)
    return file


def _events(
    file: ModelFile, data: str, an_hour: float, confidence: float | None, threshold: int | None
) -> _Done:
    """Choose the events of a stream on recordings that were not trained on."""
    from tinykernel.judge import events
    from tinykernel.judge.events import worst_of

    sources = events.recordings_for(file.model, file.source(data))
    if sources is None:
        raise DataError(f"{data}: a rate of false alarms needs recordings, and a model with a hop")
    if not sources.is_long:
        judged = rows_to_judge(file, data, unseen=True)
        _refuse_seen(file, judged.rows)
        names = {name.rpartition(":")[0] for name in judged.rows.names or ()}
        cut = file.origin.recordings
        sources = replace(
            sources,
            recordings=tuple(r for r in sources.recordings if r.name in names),
            are_whole=cut is not None and cut.clips in ("auto", "whole"),
        )
    else:
        sources = without_training(file, data, sources)
        used = judging.usage_in_words(file.seen_share(events.some_windows(file.model, sources)))
        if used:
            raise DataError(f"{data}: {used}; give recordings that were not trained on")
    model, hop = _often(file, sources.rate)
    silent = file.origin.background_of(model.classes)
    result = events.calibrate_events(model, sources, silent, an_hour, confidence, threshold)
    facts = result.to_dict() | {"hop": model.hop}
    table = events.CURVE_COLUMNS, events.curve_in_words(result)
    about: dict[str, Any] = {"events": facts}
    if file.origin.background is not None:
        about["background"] = list(file.origin.background)
    pairs = [("decisions", hop), *result.in_words()]
    remarks = *sources.notes, *result.remarks
    if not sources.is_long:
        return _Done(result.model, about, facts, pairs, remarks, *table)
    streams = events.streams_of(result.model, sources, silent)
    worst = worst_of(result.model, sources, streams)
    shown = {
        "promises": events.at_promises(model, streams, silent, an_hour, confidence),
        "worst": [mistake.fields() for mistake in worst],
    }
    return _Done(result.model, about, facts | shown, pairs, remarks, *table, worst)


def _print_promises(done: _Done) -> None:
    """Print what three promises cost, and when the worst mistakes are."""
    from tinykernel.judge.events import FIELDS

    rows = [
        [f"{p['false_alarms_an_hour']:.3g}/h", *(str(p[name]) for name in _AT_PROMISES)]
        for p in done.result.get("promises", ())
    ]
    if rows:
        columns = ["promised", "threshold", *_AT_PROMISES[1:]]
        print_table([name.replace("_", " ") for name in columns], rows, right=columns)
    mistakes = [mistake.fields() for mistake in done.worst]
    if mistakes:
        print_table(FIELDS, [[str(each[name]) for name in FIELDS] for each in mistakes])


def _save_worst(folder: Path, file: ModelFile, done: _Done) -> None:
    """Write the worst mistakes; clips that are joined have none."""
    from tinykernel.judge.events import save_worst as write

    silent = list(map(str, file.origin.background_of(done.model.classes)))
    if "worst" not in done.result:
        raise args.misuse("--save-worst", "needs long recordings with labels, not clips")
    if not silent:
        raise args.misuse("--save-worst", "needs a class of background; name one with --set")
    write(folder, done.worst, done.model.input.rows, silent[0])


def _often(file: ModelFile, rate: float | None) -> tuple[IntegerModel, str]:
    """Return a model that decides often enough for events, and how often.

    A hop of half a window is nobody's choice; a shorter one stays.
    """
    from tinykernel.run.estimate import hop_for_events
    from tinykernel.run.report import report

    model = file.model
    target = "cortex-m4" if file.target in (None, "host") else str(file.target)
    if rate is None:
        return model, ""
    if 2 * model.hop >= model.input.rows - 1:
        often = replace(model, hop=hop_for_events(model, target, rate))
        if report(often, target, compiler="none").fits:
            model = often
    longer = f", in place of {file.model.hop / rate:.3g} s" * (model.hop < file.model.hop)
    return model, f"one every {model.hop / rate:.3g} s{longer}"


def _classes(
    model: IntegerModel, rows: Rows, groups: NDArray[Any] | None, wishes: dict[str, Any]
) -> _Done:
    """Fit the decision part of a classifier."""
    from tinykernel.data.splits import record_of
    from tinykernel.judge.drift import expected_counts
    from tinykernel.learn.calibration import calibrate

    assert rows.y is not None
    result = calibrate(model, rows.X, rows.y, groups=groups, **wishes)
    about = {
        "calibration": {"data": rows.source, **result.to_dict()},
        "held_out": expected_counts(result.model, rows.X).to_dict(),
        "calibration_rows": {"rows": result.rows, **record_of(rows.X)},
    }
    pairs = result.words()
    return _Done(result.model, about, result.to_dict(), pairs, result.remarks)


def _one_class(
    model: IntegerModel,
    rows: Rows,
    false_alarms: float | None,
    confidence: float,
    groups: NDArray[Any] | None,
) -> _Done:
    """Set the threshold of a model of one class."""
    from tinykernel.kinds.estimators.oneclass import CLASSES, calibrate_one_class

    if false_alarms is None:
        raise args.misuse("--false-alarms", "missing; a model of one class needs it")
    if rows.y is not None and (rows.y != CLASSES[0]).any():
        raise DataError(f"{rows.source}: has rows that are not {CLASSES[0]!r}; remove them")
    new, alarms = calibrate_one_class(
        model, rows.X, false_alarms, confidence=confidence, groups=groups
    )
    promise = promise_of(alarms)
    pairs = alarms.words(alarms.threshold)
    return _Done(new, {"calibration": promise}, promise, pairs)


def _refuse_seen(file: ModelFile, rows: Rows) -> None:
    """Refuse training rows, on which a model is too sure."""
    used = judging.usage_in_words(file.seen_share(rows.X))
    if used:
        raise DataError(
            f"{rows.source}: {used}; the promise would not hold for new rows, so give other rows"
        )


def _known_rows(file: ModelFile, data: str, others: Rows) -> tuple[NDArray[Any], NDArray[Any]]:
    """Load the training rows in DATA; refuse those used to calibrate, which are too near."""
    from tinykernel.data.splits import record_of, seen_before

    known = own_training(file, data) or training_part(file, data)
    record = record_of(others.X.reshape(len(others.X), -1))
    share = seen_before(known.X_train.reshape(len(known.X_train), -1), record)
    if share:
        raise DataError(
            f"--known: {100 * share:.3g} % of the rows of {data} are also used to calibrate; give "
            "the training rows"
        )
    return known.X_train, known.y_train


def train_novelty(options: Mapping[str, Any]) -> None:
    """Train, save and print the guarantee; exit status 1 without one."""
    from tinykernel.model.file import save

    output = Path(options["output"])
    with showing_progress(options["quiet"]):
        rows = _read(options)
        say("training", 0, None)
        watch, sizes = _fit(rows, options, options["budget"])
    model = watch.quantize()
    save(model, output, _about(rows, watch, options))
    if watch.alarms_ is None:
        raise DataError(
            f"{rows.source}: {watch.refusal_}; {output} holds the model anyway, to which a row is "
            "novel that is farther than all held-out rows"
        )
    threshold, n_prototypes = -int(model.readout.offset[0]), watch.n_prototypes_
    if options["as_json"]:
        print_json(
            {
                "data": rows.source,
                "rows": len(rows.X_train),
                "features": model.n_inputs,
                "prototypes": n_prototypes,
                "threshold": threshold,
                "compared": watch.areas_,
                "novelty": watch.alarms_.to_dict(),
                "report": None if sizes is None else sizes.to_dict(),
                "file": str(output),
            }
        )
    elif not options["quiet"]:
        judging.print_notes(rows.notes)
        inputs = f"{model.n_features} {'inputs' if model.input.is_table else 'counts'}"
        pairs = [
            ("data", f"{count(len(rows.X_train), 'row')} of {rows.source}"),
            ("model", f"{count(n_prototypes, 'prototype')} of {inputs}"),
            ("compared", areas_in_words(watch.areas_)),
            *watch.alarms_.words(threshold),
        ]
        if sizes is not None:
            memory = f"{size(sizes.flash)} of flash, {size(sizes.ram)} of RAM ({sizes.source})"
            pairs.append((sizes.target, memory))
        print_pairs([*pairs, ("file", str(output))])


def _read(options: Mapping[str, Any]) -> Dataset:
    from tinykernel.data.load import PictureSource
    from tinykernel.data.normal import normal_rows, normal_windows
    from tinykernel.data.recordings import RecordingSource
    from tinykernel.face.dataset import selection_of, source_of

    data = options["data"]
    say("reading", 0, None, data)
    source = source_of(options)
    if isinstance(source, RecordingSource):
        return normal_windows(source)
    if isinstance(source, PictureSource):
        raise DataError(f"{data}: a model of one class takes rows or recordings, not pictures")
    if options["missing"] is not None:
        raise args.misuse("--missing", "not an option for rows of one class; leave it out")
    if options["hop"] is not None:
        raise args.misuse("--hop", "only for recordings; give --window")
    return normal_rows(data, selection_of(options))


def _fit(
    rows: Dataset, options: Mapping[str, Any], limits: Limits | None
) -> tuple[NoveltyDetector, Report | None]:
    """Train, with fewer prototypes until the linked model keeps to the budget."""
    import numpy as np

    from tinykernel.kinds.estimators.oneclass import NoveltyDetector
    from tinykernel.kinds.planning import usage
    from tinykernel.run.report import report

    target, cut = options["target"], rows.origin.recordings
    sizes: list[Report] = []
    watch = NoveltyDetector(
        false_alarms=options["false_alarms"],
        hop=0 if cut is None else int(cut.hop or 0),
        window_shape=rows.X_train.shape[1:] if rows.X_train.ndim == 3 else options["window_shape"],
        n_kernels=options["n_kernels"],
        budget=limits,
        target=target,
        random_state=options["seed"],
    )

    def linked(model: IntegerModel) -> Usage:
        sizes.append(report(model, target, limits))
        return usage(model, limits, target, sizes[-1])

    is_host = find_target(target).family == "host"
    watch.fit_within(rows.X_train, rows.group_train, *(() if is_host else (linked,)))
    if rows.columns is not None:
        watch.feature_names_in_ = np.array(rows.columns, dtype=object)
    return watch, sizes[-1] if sizes else None


def _about(rows: Dataset, watch: NoveltyDetector, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of the model file."""
    from tinykernel.data.splits import record_of_training

    flat = rows.X_train.reshape(len(rows.X_train), -1)
    record = record_of_training(flat, rows.y_train)
    names = {name: options[name] for name in ("label", "groups", "seed")}
    origin = replace(rows.origin, data=rows.source, training_rows=record, **names)
    entries = {
        "one_class": True,
        "target": options["target"],
        "calibration": None if watch.alarms_ is None else promise_of(watch.alarms_),
        **origin.entries(),
    }
    return {name: value for name, value in entries.items() if value is not None}


def promise_of(alarms: Alarms) -> dict[str, Any]:
    """Return the guarantee for the model file."""
    return {"statement": alarms.statement.removeprefix("; "), **alarms.to_dict()}


def areas_in_words(areas: Mapping[str, float]) -> str:
    """Return how well what was compared told simulated anomalies from held-out windows."""
    every = ", ".join(f"{name} {100 * area:.1f} %" for name, area in areas.items())
    return every and f"area under the ROC curve of simulated anomalies: {every}"
