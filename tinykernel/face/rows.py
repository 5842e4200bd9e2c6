"""A model file as defaults of commands, and rows for it, cut and split as in its training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinykernel.base.errors import DataError, TinykernelError
from tinykernel.base.progress import report as say
from tinykernel.base.text import count, join, similar, visible
from tinykernel.compile.targets import TARGETS
from tinykernel.run.limits import budget_of_training

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tinykernel.data.clips import Recordings
    from tinykernel.data.origin import Origin
    from tinykernel.data.partition import Dataset, Rows
    from tinykernel.data.pictures import Camera
    from tinykernel.data.sources import Source
    from tinykernel.judge.figures import Evaluation
    from tinykernel.kinds.train.fitting import TrainResult
    from tinykernel.model.integer import IntegerModel

_MOST_CLASSES = 200  # of a stored confusion matrix; for 600 classes it takes 2.9 MB
# What a training of components chose, and what the method of the paper is told.
_CHOSEN, _OF_PAPERS = ("layout", "sigma", "noise"), ("regularization", "loss", "penalty", "binary")
_ADVICE = "give the labels it was trained on"


@dataclass(frozen=True, eq=False)
class ModelFile:
    """A model, and what its file says about its training, where it does."""

    path: Path
    model: IntegerModel
    about: dict[str, Any]  # all entries of the file.
    origin: Origin  # those on its data
    target: str | None = None
    _sources: dict[str, Source] = field(default_factory=dict, init=False)

    def with_label(self, label: str) -> ModelFile:
        """Return it with another column or array of labels."""
        cutting = self.origin.recordings
        cutting = None if cutting is None else replace(cutting, label=label)
        return replace(self, origin=replace(self.origin, label=label, recordings=cutting))

    def source(self, data: str, *, keep_all: bool = False) -> Source:
        """Return DATA as they were read in the training; they are opened once."""
        from tinykernel.data.sources import again

        if data not in self._sources:
            say("reading", 0, None, data)
            image = self._image()
            source = again(data, self.model, self.origin, image, keep_all=keep_all)
            self._sources[data] = source
        return self._sources[data]

    def _image(self) -> tuple[tuple[int, ...], Camera | None] | None:
        """Return the shape of the images that the model takes, and the camera before them."""
        grid, camera = self.model.input, self.model.camera
        if camera is not None:
            grid = self.model.grids()[1]
        if grid.columns == 1 or grid.dtype != "uint8" or grid.channels not in (1, 3):
            return None
        return (grid.rows, grid.columns, grid.channels), camera

    def budget_for(self, target: str) -> str | int | None:
        """Return the budget of the training, if it was for this target, or the usual one."""
        return budget_of_training(self.about, target)

    def seen_share(self, X: Any, use: str = "training") -> float | None:
        """Return the share of rows used in training or "calibration", if the file has a record."""
        from tinykernel.data.splits import seen_before

        return seen_before(X, getattr(self.origin, f"{use}_rows"))


def open_model(path: Path, label: str | None = None) -> ModelFile:
    """Load a model with the entries of its file; another column of labels if one is given."""
    from tinykernel.data.origin import Origin
    from tinykernel.model.file import about, load
    from tinykernel.model.pipelines import as_integer_model

    content = about(path)
    said = content.get("target")
    target = said if isinstance(said, str) and said in TARGETS else None
    opened = ModelFile(path, as_integer_model(load(path)), content, Origin.read(content), target)
    return opened if label is None else opened.with_label(label)


def about_training(
    trained: TrainResult, dataset: Dataset, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the entries of a training in the model file."""
    from tinykernel.data.splits import record_of_training
    from tinykernel.learn.components.training import N_DRAWS

    rows = record_of_training(dataset.X_train, dataset.y_train)
    sizes = trained.sizes  # not the linked ones, which depend on the compiler
    searched = getattr(trained.classifier, "search_", None) or {}
    attributes = ((name, getattr(trained.classifier, f"{name}_", None)) for name in _CHOSEN)
    chosen = {
        name: round(value, 4) if isinstance(value, float) else value
        for name, value in attributes
        if value is not None
    }
    if trained.method == "paper":
        chosen |= {name: getattr(trained.classifier, name) for name in _OF_PAPERS}
    draw = (getattr(trained.classifier, "options_", None) or {}).get("draw")
    entries = {
        "trials": getattr(trained.classifier, "trials_", None) or None,
        **replace(dataset.origin, training_rows=rows).entries(),
        "task": None if options["task"] == "classes" else options["task"],
        "method": trained.method,
        **chosen,
        "target": options["target"],
        "budget": trained.budget,
        "limits": str(trained.limits) if trained.limits and trained.limits.beside_flash else None,
        "sizes": sizes
        and {"flash": sizes.flash, "ram": sizes.ram, "measured": sizes.compiler or sizes.source},
        "signs_and_permutation": None
        if draw is None
        else f"draw {draw + 1} of {N_DRAWS}, the best in short trainings",
        "search": {name: value for name, value in searched.items() if value is not None} or None,
    }
    return {k: list(v) if isinstance(v, tuple) else v for k, v in entries.items() if v is not None}


def about_evaluation(judged: Evaluation | None) -> dict[str, Any]:
    """Return the evaluation of labels for the model file, shown on its page."""
    from tinykernel.judge.figures import LabelEvaluation

    if not isinstance(judged, LabelEvaluation) or len(judged.classes) > _MOST_CLASSES:
        return {}
    return {"evaluation": judged.to_record()}


def _columns(data: str) -> Sequence[str]:
    """Return the names of the columns of a table, or of the first of a folder, for a hint."""
    from tinykernel.data.delimited import read_table

    try:
        return tuple(read_table(next(Path(data).rglob("*.csv"), Path(data)), ()).names)
    except (OSError, TinykernelError):
        return ()


@dataclass(frozen=True)
class Judged:
    """Rows to judge a model on."""

    rows: Rows
    y: NDArray[Any] | None  # None without labels that the model knows.
    train: tuple[NDArray[Any], ...] | None  # training rows, labels and groups, where known.
    class_weight: str | None


def rows_to_judge(
    file: ModelFile,
    data: str,
    *,
    train: str | None = None,
    needs_labels: bool = True,
    unseen: bool = False,
) -> Judged:
    """Load the test part of DATA, or the rows held out by training, else all rows."""
    # Rows that equal training rows are dropped, except from a test part, unless `unseen`. `train`
    # is the file of the training rows, if not `data`. Labels none of which is a class are refused.
    from tinykernel.data.load import PictureSource
    from tinykernel.data.partition import TEST_PART
    from tinykernel.data.recordings import RecordingSource

    training = own_training(file, data)
    rows = rows_for(file, data, held_out=training is not None)
    rows = _without_background(rows, file.model.classes) if needs_labels else rows
    if rows.y is None and needs_labels:
        where = repr(file.origin.label) if file.origin.label else "label, target, class or y"
        hint = f"{similar(file.origin.label or '', _columns(data), repr)} "
        problem = f"has no labels; {hint.lstrip()}add a column or array called {where}"
        if isinstance(source := file.source(data), RecordingSource) and source.reading.name:
            problem = f"no name is like {source.reading.name!r}, which says the labels; rename the "
            problem += f"files, or add a column called {where}"
        elif isinstance(source, PictureSource):
            problem = "no picture is in the folder of a class "
            problem += f"({visible(join(file.model.classes, 4))}); rename its folder"
        raise DataError(f"{data}: {problem}")
    if train is not None:
        training = training_part(file, train)
    labels = _labels_to_judge_by(file.model, data, rows.y)
    if labels is None and needs_labels:
        known = " and ".join(map(str, file.model.classes))
        raise DataError(f"{data}: the model is judged by the labels {known}; give these")
    seen = _rows_of_training(rows, training, file)
    if seen.any() and not seen.all() and (unseen or (rows.part != TEST_PART and training is None)):
        note = f"left out: {int(seen.sum())} of {len(seen)} rows, which equal training rows"
        rows, labels = rows.at(~seen), None if labels is None else labels[~seen]
        rows = replace(rows, notes=(*rows.notes, note))
    trained = None if training is None else training.training
    return Judged(rows, labels, trained, file.origin.class_weight)


def _without_background(rows: Rows, classes: Sequence[object]) -> Rows:
    """Leave out windows that no span labels, where no class of a model stands for them."""
    import numpy as np

    from tinykernel.data.labels import NO_SPAN

    still = np.zeros(len(rows.X), bool) if rows.y is None else rows.y == NO_SPAN
    if not rows.streams or NO_SPAN in classes or not still.any() or still.all():
        return rows
    note = f"left out: {count(int(still.sum()), 'window')} of background, no class of the model"
    return replace(rows.at(~still), notes=(*rows.notes, note))


def _labels_to_judge_by(
    model: IntegerModel, data: str, y: NDArray[Any] | None
) -> NDArray[Any] | None:
    """Refuse labels none of which is a class; for a model of one class return None."""
    from tinykernel.data.labels import NO_SPAN
    from tinykernel.data.recordings import ADVICE_ON_EVENTS

    if y is None or model.is_regressor:
        return y
    labels = list(dict.fromkeys(y.tolist()))
    if not labels or not set(model.classes).isdisjoint(labels):
        return y
    if model.is_one_class:
        return None
    advice = ADVICE_ON_EVENTS if labels == [NO_SPAN] else _ADVICE
    theirs, known = (visible(join(each, 2)) for each in (labels, model.classes))
    raise DataError(
        f"{data}: none of its labels ({theirs}) is a class of the model ({known}); {advice}"
    )


def _rows_of_training(rows: Rows, training: Dataset | None, file: ModelFile) -> NDArray[np.bool_]:
    """Return a mask of rows that equal known training rows; False for windows."""
    import numpy as np

    from tinykernel.data.splits import digests, equal_rows

    if rows.streams:
        return np.zeros(len(rows.X), bool)
    if training is not None:
        return np.isin(digests(rows.X), digests(training.X_train))
    seen = equal_rows(rows.X, file.origin.training_rows)
    return np.zeros(len(rows.X), bool) if seen is None else seen


def accuracy_of(model: IntegerModel, X: NDArray[Any], y: NDArray[Any]) -> float | None:
    """Return the accuracy of a model, or R2; None of one value."""
    answers = model.predict(X)
    if y.dtype.kind == "f":  # values; labels are never floats
        from sklearn.metrics import r2_score

        columns = answers.reshape(len(y), -1)
        return float(r2_score(y, columns[:, columns.shape[1] // 2])) if len(y) > 1 else None
    return float((answers == y).mean())


def rows_for(file: ModelFile, data: str, *, held_out: bool = False, keep_all: bool = False) -> Rows:
    """Load the test part of DATA, or all rows, or with `held_out` the test rows of the training."""
    from tinykernel.judge.ranges import outside

    source, origin = file.source(data, keep_all=keep_all), file.origin
    rows = source.rows(origin.test_size or None if held_out else None, origin.seed or 0)
    return replace(rows, notes=(*rows.notes, *outside(file.model, rows.X, origin)))


def training_part(file: ModelFile, data: str, test_size: float = 0.0, seed: int = 0) -> Dataset:
    """Return rows with a split: those of a file, or windows of recordings."""
    from tinykernel.data.load import TableSource

    source = file.source(data)
    if isinstance(source, TableSource) and not test_size:
        source = replace(source, selection=replace(source.selection, groups=None))
    return source.train_rows(test_size, seed)


def own_training(file: ModelFile, data: str) -> Dataset | None:
    """Return the data with the split of the training, if they are the same rows."""
    from tinykernel.data.splits import record_of

    origin, record = file.origin, file.origin.training_rows
    if not record:
        return None
    try:
        dataset = training_part(file, data, origin.test_size or 0.0, origin.seed or 0)
    except TinykernelError:  # rows without labels, of one class, too few to be split
        return None
    digests = record_of(dataset.X_train)
    # The record has further entries.
    here = {"rows": len(dataset.X_train), "all": digests["all"], "digests": digests["digests"]}
    return dataset if all(record.get(name) == value for name, value in here.items()) else None


def without_training(file: ModelFile, data: str, held: Recordings) -> Recordings:
    """Leave out recordings that were trained on, where DATA are those of the training."""
    training = own_training(file, data) if held.source == file.origin.data else None
    if training is None or training.group_train is None or training.X_test is None:
        return held
    seen = set(training.group_train.tolist())
    rest = [each for each in held.recordings if each.group not in seen]
    return replace(held, recordings=tuple(rest), source=f"recordings held out of {held.source}")
