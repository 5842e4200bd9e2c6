"""A model file as defaults of commands, and rows for it, cut and split as in its training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinykernel.base.errors import DataError, TinykernelError
from tinykernel.base.progress import report as say
from tinykernel.base.text import listed, similar, visible
from tinykernel.compile.targets import TARGETS
from tinykernel.data.paths import data_folder, find_data, is_pictures
from tinykernel.run.limits import budget_of_training

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tinykernel.data.cutting import Windows
    from tinykernel.data.labels import Recordings
    from tinykernel.data.partition import Dataset, Rows
    from tinykernel.data.pictures import PictureReading
    from tinykernel.judge.figures import Evaluation
    from tinykernel.kinds.train.fitting import TrainResult
    from tinykernel.model.integer import IntegerModel

_MOST_CLASSES = 200  # of a stored confusion matrix; for 600 classes it takes 2.9 MB
# What a training of components chose, and what the method of the paper is told.
_CHOSEN, _OF_PAPERS = ("layout", "sigma", "noise"), ("regularization", "loss", "penalty", "binary")
_OF_PICTURES = ("name", "label", "groups")


@dataclass(frozen=True)
class ModelFile:
    """A model, and what its file says about its training, where it does."""

    path: Path
    model: IntegerModel
    about: dict[str, Any]  # all entries of the file.
    data: str | None = None
    label: str | None = None
    groups: str | None = None
    target: str | None = None
    seed: int | None = None
    test_size: float | None = None

    def with_label(self, label: str) -> ModelFile:
        """Return it with another column or array of labels."""
        cutting = self.about.get("recordings")
        more = {"recordings": cutting | {"label": label}} if isinstance(cutting, dict) else {}
        return replace(self, label=label, about=self.about | more)

    def taken_from(self, data: str) -> dict[str, Any]:
        """Return the parameters of `load_rows` by which DATA are read as in the training."""
        from tinykernel.base.coding import Coding
        from tinykernel.data.tables import Selection

        if is_pictures(data) or data_folder(data):
            return {"pictures": self.pictures() if is_pictures(data) else None}
        file = find_data(data)
        # The label of an .npy is a file, for the training rows alone.
        is_its_own = file.suffix.lower() != ".npy" or file.name == self.data
        inputs, missing = map(self.about.get, ("inputs", "missing"))
        is_table = file.suffix.lower() not in (".npz", ".npy")
        is_named = is_table and isinstance(inputs, list) and all(isinstance(n, str) for n in inputs)
        selection = Selection(
            inputs=tuple(inputs) if is_named and inputs else None,
            missing=missing if missing in ("keep", "drop", "error") else None,
            coding=Coding.read(self.about.get("coding")),
            label=self.label if is_its_own else None,
            groups=self.groups if is_its_own else None,
        )
        return {"selection": selection}

    def pictures(self) -> PictureReading | None:
        """Return how pictures are read for the model; None for other models."""
        from tinykernel.data.pictures import PictureReading

        grid, camera = self.model.input, self.model.camera
        frame = None
        if camera is not None:
            frame = f"{camera.width}x{camera.height}:{camera.pixel_format}"
            grid = self.model.grids()[1]
        if grid.columns == 1 or grid.dtype != "uint8" or grid.channels not in (1, 3):
            return None
        record = self.about.get("pictures")
        texts = record if isinstance(record, dict) else {}
        known = {name: texts[name] for name in _OF_PICTURES if type(texts.get(name)) is str}
        return PictureReading((grid.rows, grid.columns, grid.channels), frame=frame, **known)

    def budget_for(self, target: str) -> str | int | None:
        """Return the budget of the training, if it was for this target, or the usual one."""
        return budget_of_training(self.about, target)

    def share_seen(self, X: Any, use: str = "training") -> float | None:
        """Return the share of rows used in training or "calibration", if the file has a record."""
        from tinykernel.data.splits import seen_before

        return seen_before(X, self.about.get(f"{use}_rows"))


def open_model(path: Path) -> ModelFile:
    """Load a model with the entries of its file."""
    from tinykernel.model.file import about, load
    from tinykernel.model.pipelines import as_integer_model

    texts = dict.fromkeys(("data", "label", "groups", "target"), str)
    kinds: dict[str, type] = texts | {"seed": int, "test_size": float}
    content = about(path)
    known = {name: content[name] for name, kind in kinds.items() if type(content.get(name)) is kind}
    if known.get("target") not in TARGETS:
        known.pop("target", None)
    return ModelFile(path, as_integer_model(load(path)), content, **known)


def about_training(
    trained: TrainResult, dataset: Dataset, target: str, settings: dict[str, Any]
) -> dict[str, Any]:
    """Return the entries of a training in the model file; `settings` are further ones."""
    from tinykernel.data.splits import record_of_training
    from tinykernel.learn.components.training import N_DRAWS

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
        "data": dataset.source,
        "split": dataset.split,
        "trials": getattr(trained.classifier, "trials_", None) or None,
        **settings,
        "method": trained.method,
        **chosen,
        "target": target,
        "budget": trained.budget,
        "limits": str(trained.limits) if trained.limits and trained.limits.beside_flash else None,
        "training_rows": record_of_training(dataset.X_train, dataset.y_train),
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
    from tinykernel.data.partition import TEST_PART
    from tinykernel.data.signals import labels_to_judge_by, without_background

    training = own_training(file, data)
    rows = rows_for(file, data, held_out=training is not None)
    rows = without_background(rows, file.model.classes) if needs_labels else rows
    if rows.y is None and needs_labels:
        where = repr(file.label) if file.label else "label, target, class or y"
        hint = f"{similar(file.label or '', _columns(data), repr)} "
        problem = f"has no labels; {hint.lstrip()}add a column or array called {where}"
        if is_pictures(data):
            problem = "no picture is in the folder of a class "
            problem += f"({visible(listed(file.model.classes, 4))}); rename its folder"
        raise DataError(f"{data}: {problem}")
    if train is not None:
        training = training_part(file, train)
    labels = labels_to_judge_by(file.model, data, rows.y)
    if labels is None and needs_labels:
        known = " and ".join(map(str, file.model.classes))
        raise DataError(f"{data}: the model is judged by the labels {known}; give these")
    seen = _seen(rows, training, file)
    if seen.any() and not seen.all() and (unseen or (rows.part != TEST_PART and training is None)):
        note = f"left out: {int(seen.sum())} of {len(seen)} rows, which equal training rows"
        rows, labels = rows.at(~seen), None if labels is None else labels[~seen]
        rows = replace(rows, notes=(*rows.notes, note))
    trained = None if training is None else training.training
    weight = file.about.get("class_weight")
    return Judged(rows, labels, trained, weight if weight == "balanced" else None)


def _seen(rows: Rows, training: Dataset | None, file: ModelFile) -> NDArray[np.bool_]:
    """Return a mask of rows that equal known training rows; False for windows."""
    import numpy as np

    from tinykernel.data.splits import digests, equal_rows

    if rows.streams:
        return np.zeros(len(rows.X), bool)
    if training is not None:
        return np.isin(digests(rows.X), digests(training.X_train))
    seen = equal_rows(rows.X, file.about.get("training_rows"))
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
    from tinykernel.data.load import load_rows
    from tinykernel.data.signals import signal_rows
    from tinykernel.judge.ranges import outside

    say("reading", 0, None, data)
    integer = file.model
    size, seed = file.test_size or None if held_out else None, file.seed or 0
    cut = recordings_for(file, data)
    if cut is not None:
        rows = signal_rows(cut, size, seed)
    else:
        axes = integer.input
        rows = load_rows(
            data,
            **file.taken_from(data),
            n_features=integer.n_inputs,
            feature_names=integer.feature_names,
            classes=integer.classes or None,
            values=integer.is_regressor,
            test_size=size,
            seed=seed,
            keep_all=keep_all,
            takes_gaps=integer.takes_gaps,
            in_order=axes.in_order if axes.order and not integer.n_numbers else None,
        )
    return replace(rows, notes=(*rows.notes, *outside(integer, rows.X, file.about)))


def recordings_for(file: ModelFile, data: str, *, mixed: str | None = None) -> Windows | None:
    """Cut recordings as for the training; None for other DATA. `mixed` overrides the setting."""
    from tinykernel.data import signals

    cutting = signals.remembered(file.about, file.model)
    if cutting is None or not signals.takes_recordings(data, file.model, file.about):
        return None
    return signals.cut_for(data, file.model, cutting, mixed=mixed)


def training_part(file: ModelFile, data: str, test_size: float = 0.0, seed: int = 0) -> Dataset:
    """Return rows with a split: those of a file, or windows of recordings."""
    from tinykernel.data.load import load_data
    from tinykernel.data.splits import as_dataset

    say("reading", 0, None, data)
    cut = recordings_for(file, data)
    if cut is not None:
        return as_dataset(cut, test_size, seed)
    how = file.taken_from(data)
    if not test_size and "selection" in how:
        how["selection"] = replace(how["selection"], groups=None)
    return load_data(data, test_size=test_size, seed=seed, values=file.model.is_regressor, **how)


def own_training(file: ModelFile, data: str) -> Dataset | None:
    """Return the data with the split of the training, if they are the same rows."""
    from tinykernel.data.splits import record_of

    record = file.about.get("training_rows")
    if not isinstance(record, dict):
        return None
    try:
        dataset = training_part(file, data, file.test_size or 0.0, file.seed or 0)
    except TinykernelError:  # rows without labels, of one class, too few to be split
        return None
    digests = record_of(dataset.X_train)
    # The record has further entries.
    here = {"rows": len(dataset.X_train), "all": digests["all"], "digests": digests["digests"]}
    return dataset if all(record.get(name) == value for name, value in here.items()) else None


def without_training(file: ModelFile, data: str, held: Recordings) -> Recordings:
    """Leave out recordings that were trained on, where DATA are those of the training."""
    training = own_training(file, data) if held.source == file.data else None
    if training is None or training.group_train is None or training.X_test is None:
        return held
    seen = set(training.group_train.tolist())
    rest = [each for each in held.recordings if each.groups[0].label not in seen]
    return replace(held, recordings=tuple(rest), source=f"recordings held out of {held.source}")
