"""Common parts of the evaluations of labels and of values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False)
class Baseline:
    """A simple model on the same rows.

    Parameters
    ----------
    name : str
    n_bytes : int
        Size of its table: weights as int8, splits of eight bytes.
    training_rows : int
    figures : dict of str to float
        On the test rows: "accuracy" and "balanced_accuracy", or "rmse" and "mae".
    by : str
        The compared figure.
    made_of : {"weights", "splits"}
    worse, as_good, better : bool
        Whether that figure is worse than the model's, possibly by chance; whether the model is not
        significantly better; whether the baseline is significantly better.
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
        fields = dict(vars(self))
        return {**fields.pop("figures"), **fields}

    @staticmethod
    def of_dict(record: dict[str, Any]) -> Baseline:
        """Read the `to_dict` of labels; another record raises any error."""
        kinds = {"name": str, "n_bytes": int, "training_rows": int, "by": str, "made_of": str}
        kinds |= dict.fromkeys(("worse", "as_good", "better"), bool)
        names = ("accuracy", "balanced_accuracy", "macro_f1")
        fields = {name: kind(record[name]) for name, kind in kinds.items()}
        return Baseline(figures={name: float(record[name]) for name in names}, **fields)


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluation(ABC):
    """How good a model is on labelled rows.

    Parameters
    ----------
    n_groups : int or None
        Number of people, records or batches that the rows come from, where it is known.
    interval : tuple of float or None
        95 % confidence interval of the accuracy or RMSE on new rows, approximate for new groups;
        None for fewer than 8 groups.
    baselines : dict of str to Baseline
        "majority" or "mean", "linear" and "tree"; empty without training rows.
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
        """Number of compared rows."""

    @property
    @abstractmethod
    def figures(self) -> dict[str, float]:
        """Figures to compare with baselines."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON types; every command prints these keys."""
        return {
            "rows": self.rows,
            "groups": self.n_groups,
            **self.figures,
            "interval": None if self.interval is None else list(self.interval),
            "baselines": {name: each.to_dict() for name, each in self.baselines.items()},
            "cautions": list(self.cautions),
        }
