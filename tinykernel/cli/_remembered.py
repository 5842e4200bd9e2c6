"""What a model file remembers of its training, as defaults of the commands."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from tinykernel.budget import TrainResult
    from tinykernel.data.load import Dataset

__all__ = ["Names", "Remembered", "about_training", "remembered"]


class Names(TypedDict):
    """Columns that are no inputs, as `load_rows` takes them."""

    label: str | None
    groups: str | None


@dataclass(frozen=True)
class Remembered:
    """What a model file says of its training; None where it does not say.

    Parameters
    ----------
    everything : dict
        As it stands in the file.
    data, label, groups, target : str or None
    budget, seed : int or None
    test_size : float or None
    """

    everything: dict[str, Any] = field(default_factory=dict)
    data: str | None = None
    label: str | None = None
    groups: str | None = None
    target: str | None = None
    budget: int | None = None
    seed: int | None = None
    test_size: float | None = None

    def names(self, data: str, label: str | None, groups: str | None) -> Names:
        """Return `label` and `groups`: as given, else as remembered where the file has them.

        Parameters
        ----------
        data : str
            The file.
        label, groups : str or None
            As given by the user.
        """
        from tinykernel.data.formats import names_in
        from tinykernel.data.load import find_data
        from tinykernel.data.signals import is_recording

        if is_recording(data):
            return {"label": label, "groups": groups}
        there = names_in(find_data(data))
        return {
            "label": label or (self.label if self.label in there else None),
            "groups": groups or (self.groups if self.groups in there else None),
        }

    def budget_for(self, target: str) -> int | None:
        """Return the budget in bytes where it is one for this target."""
        return self.budget if target == self.target else None

    def share_seen(self, X: Any) -> float | None:
        """Return the share of rows that were trained on, or None where the file does not say."""
        from tinykernel.data.seen import seen_before

        return seen_before(X, self.everything.get("training_rows"))


def remembered(model: Path) -> Remembered:
    """Read what a model file remembers.

    Parameters
    ----------
    model : pathlib.Path
    """
    from tinykernel.codegen.targets import TARGETS
    from tinykernel.modelfile import about

    found = about(model)
    kinds = {"data": str, "label": str, "groups": str, "target": str, "budget": int, "seed": int,
             "test_size": float}  # fmt: skip
    known = {name: found[name] for name, kind in kinds.items() if type(found.get(name)) is kind}
    if known.get("target") not in TARGETS:
        known.pop("target", None)
    return Remembered(found, **known)


def about_training(
    trained: TrainResult, dataset: Dataset, target: str, given: dict[str, Any]
) -> dict[str, Any]:
    """Return what the model file is to remember; the same for the same training.

    Parameters
    ----------
    trained : TrainResult
    dataset : Dataset
    target : str
        That the budget is for.
    given : dict
        Further names and values, as the user gave them.
    """
    from tinykernel.data.seen import record_of

    memory = trained.memory
    found = {
        "data": dataset.source,
        "split": dataset.split,
        **given,
        "method": trained.method,
        "target": target,
        "budget": trained.budget,
        "training_rows": {"rows": len(dataset.y_train), **record_of(dataset.X_train)},
    }
    if memory is not None:
        found |= {"sizes": {"flash": memory.flash, "ram": memory.ram,
                            "measured": memory.compiler or memory.source}}  # fmt: skip
    return {name: value for name, value in found.items() if value is not None}
