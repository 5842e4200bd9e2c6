"""What labels and values have in common when they are compared with true ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

#: Confidence of intervals and comparisons.
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Baseline:
    """A model that costs next to nothing, on the same rows.

    Parameters
    ----------
    name : str
        What it is, in words.
    n_bytes : int
        Of its table: weights as int8, splits of eight bytes.
    training_rows : int
        It was trained on.
    figures : dict of str to float
        On the test rows: "accuracy" and "balanced_accuracy", or "rmse" and "mae".
    by : str
        Which figure was compared: balanced where the model was trained so.
    made_of : {"weights", "splits"}
    worse : bool
        Whether that figure is worse than the model's, if only by chance.
    as_good : bool
        Whether the test rows leave it open that it is as good as the model.
    better : bool
        Whether they say that it is better than the model.
    """

    name: str
    n_bytes: int
    training_rows: int
    figures: dict[str, float]
    by: str
    made_of: str
    worse: bool
    as_good: bool
    better: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON types, the figures among them."""
        found = dict(vars(self))
        return {**found.pop("figures"), **found}

    @staticmethod
    def of_dict(found: dict[str, Any]) -> Baseline:
        """Read what `to_dict` gave of a baseline of labels; other contents raise some error."""
        kinds = {"name": str, "n_bytes": int, "training_rows": int, "by": str, "made_of": str}
        kinds |= dict.fromkeys(("worse", "as_good", "better"), bool)
        figures = {
            name: float(found[name]) for name in ("accuracy", "balanced_accuracy", "macro_f1")
        }
        fields = {name: kind(found[name]) for name, kind in kinds.items()}
        return Baseline(figures=figures, **fields)


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluation(ABC):
    """What a model gets right on rows whose labels or values are known.

    Parameters
    ----------
    n_groups : int or None
        How many people, records or batches the rows come from, where that is known.
    interval : tuple of float or None
        In which the accuracy or RMSE of new rows (or, about, of new groups) lies, with 95 %
        confidence; None of fewer than 8 groups.
    baselines : dict of str to Baseline
        "majority" or "mean", "linear" and "tree"; empty where the training rows were not at hand.
    cautions : tuple of str
        One line each.
    """

    n_groups: int | None
    interval: tuple[float, float] | None
    baselines: dict[str, Baseline] = field(default_factory=dict)
    cautions: tuple[str, ...] = ()

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many rows were compared."""

    @property
    @abstractmethod
    def figures(self) -> dict[str, float]:
        """What is compared with baselines."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON types; every command prints these keys."""
        return {
            "rows": self.rows,
            "groups": self.n_groups,
            **self.figures,
            "interval": None if self.interval is None else list(self.interval),
            "baselines": {name: found.to_dict() for name, found in self.baselines.items()},
            "cautions": list(self.cautions),
        }
