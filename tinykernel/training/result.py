"""The result of every training: the model, and how it was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tinykernel.model.integer import IntegerModel
from tinykernel.training.loop import History

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """A trained machine, and how it was found."""

    machine: IntegerModel
    recipe: DataclassInstance  # all settings: a `Recipe`, or another recipe or plan.
    # Loss, seconds and, with validation rows, accuracy of each epoch; where Ctrl-C ended the
    # training, the machine is the best until then.
    history: History
    # Kernel width at the start of training, in scaled inputs; None without components.
    sigma: float | None = None
