"""The training that a model file describes, as defaults of the commands."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinykernel.codegen.targets import TARGETS
from tinykernel.errors import TinykernelError

if TYPE_CHECKING:
    from tinykernel.budget import TrainResult
    from tinykernel.data.partition import Dataset
    from tinykernel.data.pictures import PictureReading
    from tinykernel.decisions import Expected
    from tinykernel.evaluation import Evaluation
    from tinykernel.model import IntegerModel

_MOST_CLASSES = 200  # of a stored confusion matrix; for 600 classes it takes 2.9 MB
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
    limits: str | None = None  # the budget, if it limits more than flash.
    budget: int | None = None
    seed: int | None = None
    test_size: float | None = None

    def expected_counts(self) -> Expected | None:
        """Return the figures of held-out rows for drift, if the file has them."""
        from tinykernel.decisions import Expected

        return Expected.from_dict(self.about.get("held_out"), self.model.n_classes)

    def with_label(self, label: str, data: str) -> ModelFile:
        """Return it with another column or array of labels, which `data` must have."""
        from tinykernel.data.formats import names_in
        from tinykernel.data.paths import data_folder, find_data, is_pictures

        if not (is_pictures(data) or data_folder(data)):
            columns = names_in(find_data(data))
            if columns and label not in columns:
                shown = ", ".join(sorted(columns)[:12])
                raise TinykernelError(f"--label: {data} has no {label!r}; it has {shown}")
        cutting = self.about.get("recordings")
        more = {"recordings": cutting | {"label": label}} if isinstance(cutting, dict) else {}
        return replace(self, label=label, about=self.about | more)

    def names(self, data: str) -> dict[str, Any]:
        """Return label, groups and selection as parameters of `load_rows`, as in the training."""
        from tinykernel.coding.codes import Coding
        from tinykernel.data.formats import names_in
        from tinykernel.data.formats.tables import Selection
        from tinykernel.data.paths import data_folder, find_data, is_pictures

        if is_pictures(data) or data_folder(data):
            pictures = self.pictures() if is_pictures(data) else None
            selection = Selection()
            return {"label": None, "groups": None, "selection": selection, "pictures": pictures}
        file = find_data(data)
        # Label and groups of an .npy are files, for the training rows alone.
        is_own = file.suffix.lower() == ".npy" and file.name == self.data
        there = {self.label, self.groups} if is_own else names_in(file)
        inputs, medians, missing = map(self.about.get, ("inputs", "medians", "missing"))
        is_table = file.suffix.lower() not in (".npz", ".npy")
        is_named = is_table and isinstance(inputs, list) and all(isinstance(n, str) for n in inputs)
        numbers = medians if isinstance(medians, list) else []
        return {
            "label": self.label if self.label in there else None,
            "groups": self.groups if self.groups in there else None,
            "selection": Selection(
                inputs=tuple(inputs) if is_named and inputs else None,
                missing=missing if missing in ("keep", "drop", "median", "error") else None,
                medians=tuple(float(n) for n in numbers if isinstance(n, int | float)),
                coding=Coding.read(self.about.get("coding")),
            ),
            "pictures": None,
        }

    def pictures(self) -> PictureReading | None:
        """Return how pictures are read for the model; None for other models."""
        from tinykernel.data.pictures import PictureReading
        from tinykernel.model.stages.frame import Frame

        grid, first = self.model.input, self.model.stages[0]
        frame = None
        if isinstance(first, Frame):
            frame = f"{first.width}x{first.height}:{first.pixel_format}"
            grid = self.model.grids()[1]
        if grid.columns == 1 or grid.dtype != "uint8" or grid.channels not in (1, 3):
            return None
        record = self.about.get("pictures")
        texts = record if isinstance(record, dict) else {}
        known = {name: texts[name] for name in _OF_PICTURES if type(texts.get(name)) is str}
        return PictureReading((grid.rows, grid.columns, grid.channels), frame=frame, **known)

    def budget_for(self, target: str) -> str | int | None:
        """Return the budget of the training, if it was for this target."""
        return (self.limits or self.budget) if target == self.target else None

    def share_seen(self, X: Any, use: str = "training") -> float | None:
        """Return the share of rows used in training or "calibration", if the file has a record."""
        from tinykernel.data.trained_rows import seen_before

        return seen_before(X, self.about.get(f"{use}_rows"))

    def share_near(self, X: Any) -> float:
        """Return the share of near copies of training rows, at least."""
        from tinykernel.data.trained_rows import near_copies

        return near_copies(X, self.about.get("training_rows"))


def open_model(path: Path) -> ModelFile:
    """Load a model with the entries of its file."""
    from tinykernel.model import as_integer_model
    from tinykernel.modelfile import about, load

    texts = dict.fromkeys(("data", "label", "groups", "target", "limits"), str)
    kinds: dict[str, type] = texts | {"budget": int, "seed": int, "test_size": float}
    content = about(path)
    known = {name: content[name] for name, kind in kinds.items() if type(content.get(name)) is kind}
    if known.get("target") not in TARGETS:
        known.pop("target", None)
    return ModelFile(path, as_integer_model(load(path)), content, **known)


def about_training(
    trained: TrainResult, dataset: Dataset, target: str, settings: dict[str, Any]
) -> dict[str, Any]:
    """Return the entries of a training in the model file; `settings` are further ones."""
    from tinykernel.data.trained_rows import record_of_training

    sizes = trained.sizes  # not the linked ones, which depend on the compiler
    searched = getattr(trained.classifier, "search_", None) or {}
    entries = {
        "data": dataset.source,
        "split": dataset.split,
        **settings,
        "method": trained.method,
        "target": target,
        "budget": trained.budget,
        "limits": str(trained.limits) if trained.limits and trained.limits.beside_flash else None,
        "training_rows": record_of_training(dataset.X_train, dataset.y_train),
        "sizes": sizes
        and {"flash": sizes.flash, "ram": sizes.ram, "measured": sizes.compiler or sizes.source},
        "search": {name: value for name, value in searched.items() if value is not None} or None,
    }
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in entries.items()
        if value is not None
    }


def about_evaluation(judged: Evaluation | None) -> dict[str, Any]:
    """Return the evaluation of labels for the model file, shown on its page."""
    from tinykernel.evaluation import LabelEvaluation

    if not isinstance(judged, LabelEvaluation) or len(judged.classes) > _MOST_CLASSES:
        return {}
    return {"evaluation": judged.to_record()}
