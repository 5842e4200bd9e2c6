"""What a model file remembers of its training, as defaults of the commands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinykernel.budget import TrainResult
    from tinykernel.data.partition import Dataset
    from tinykernel.data.pictures import PictureReading
    from tinykernel.evaluation import Evaluation
    from tinykernel.model import IntegerModel

# The record is n x n: of 600 classes it takes 2.9 MB, and of 1500 no file takes it.
_MOST_CLASSES = 200
_OF_PICTURES = ("name", "label", "groups")


@dataclass(frozen=True)
class ModelFile:
    """A model, and what its file says of its training; None where it does not say.

    `about` is all that stands in the file, and `limits` the whole budget where there is more than
    flash.
    """

    path: Path
    model: IntegerModel
    about: dict[str, Any]
    data: str | None = None
    label: str | None = None
    groups: str | None = None
    target: str | None = None
    limits: str | None = None
    budget: int | None = None
    seed: int | None = None
    test_size: float | None = None

    def names(self, data: str) -> dict[str, Any]:
        """Return which columns are what, as `load_rows` takes it; inputs as in the training."""
        from tinykernel.coding.codes import Coding
        from tinykernel.data.formats import names_in
        from tinykernel.data.paths import data_folder, find_data, is_pictures
        from tinykernel.data.selection import Selection

        if is_pictures(data) or data_folder(data):
            pictures = self.pictures() if is_pictures(data) else None
            selection = Selection()
            return {"label": None, "groups": None, "selection": selection, "pictures": pictures}
        file = find_data(data)
        # Of an .npy, label and groups are files, which belong to the rows of the training.
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
        """Return how pictures become inputs of a model; None where it takes none."""
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
        """Return the budget where it is one for this target: bytes of flash, or limits."""
        return (self.limits or self.budget) if target == self.target else None

    def share_seen(self, X: Any) -> float | None:
        """Return the share of rows that were trained on, or None where the file does not say."""
        from tinykernel.data.trained_rows import seen_before

        return seen_before(X, self.about.get("training_rows"))

    def share_near(self, X: Any) -> float:
        """Return the share of rows that are training rows with little changed, at least."""
        from tinykernel.data.trained_rows import near_copies

        return near_copies(X, self.about.get("training_rows"))

    def share_calibrated(self, X: Any) -> float | None:
        """Return the share of rows that decisions were fitted to, or None as above."""
        from tinykernel.data.trained_rows import seen_before

        return seen_before(X, self.about.get("calibration_rows"))


def open_model(path: Path) -> ModelFile:
    """Load a model with what its file remembers."""
    from tinykernel.codegen.targets import TARGETS
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
    """Return what the model file is to remember; the same for the same training.

    `target` is that of the budget; `settings` has further names and values, as the user gave them.
    """
    from tinykernel.data.trained_rows import hash_of, record_of

    sizes = trained.sizes  # not the linked ones: the same file whatever compiler is installed
    searched = getattr(trained.classifier, "search_", None) or {}
    entries = {
        "data": dataset.source,
        "split": dataset.split,
        **settings,
        "method": trained.method,
        "target": target,
        "budget": trained.budget,
        "limits": str(trained.limits) if trained.limits and trained.limits.beside_flash else None,
        "training_rows": {
            "rows": len(dataset.X_train),
            "sha256": hash_of(dataset.X_train, dataset.y_train),  # drawn ones, where so many
            **record_of(dataset.X_train),
        },
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
    """Return what a model file keeps of the rows kept aside, for its page; of labels only."""
    from tinykernel.evaluation import LabelEvaluation

    if not isinstance(judged, LabelEvaluation) or len(judged.classes) > _MOST_CLASSES:
        return {}
    return {"evaluation": judged.to_record()}
