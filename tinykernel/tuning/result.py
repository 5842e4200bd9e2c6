"""The result of a tuning: the curve, its models, and the recommendation."""

from dataclasses import dataclass, field
from typing import Any

from tinykernel.errors import BudgetError
from tinykernel.measure.limits import parse_size
from tinykernel.measure.report import Report
from tinykernel.model import IntegerModel
from tinykernel.text import percent
from tinykernel.tuning.curve import Point, kilobytes


@dataclass(frozen=True, eq=False)
class TuneResult:
    """The curve of accuracy against size, and the models on it.

    Parameters
    ----------
    points : tuple of Point
        One for each size, the smallest first.
    best : Point
        The recommended one: the smallest within one standard error of the most accurate.
    highest : Point
        The most accurate one.
    models : dict of int to IntegerModel
        By budget in bytes; trained on all training rows.
    reports : dict of int to Report
        Memory of the models.
    searches : dict of int to dict
        Choice and gain of the search of each model.
    target : str
    score : {"accuracy", "balanced accuracy"}
        The compared figure.
    n_folds : int
        Number of folds of every point.
    done, total : int
        Trials finished, and planned.
    stopped : str
        Why trials are missing: "the time was up", "interrupted", "nothing was trained", or empty.
    left_out : dict of int to str
        Sizes without a model, and why.
    """

    points: tuple[Point, ...]
    best: Point
    highest: Point
    models: dict[int, IntegerModel]
    reports: dict[int, Report]
    searches: dict[int, dict[str, Any]]
    target: str
    score: str
    n_folds: int
    done: int
    total: int
    stopped: str = ""
    left_out: dict[int, str] = field(default_factory=dict)

    @property
    def front(self) -> tuple[Point, ...]:
        """The points that no other one beats in accuracy, flash, RAM and instructions at once."""
        return tuple(point for point in self.points if point.on_front)

    @property
    def model(self) -> IntegerModel:
        """The recommended model."""
        return self.models[self.best.budget]

    @property
    def recommendation(self) -> str:
        """A sentence on which size to take, and why."""
        best, highest = self.best, self.highest
        figures = (
            f"{kilobytes(best.budget)}: {percent(best.accuracy)} {self.score} on held-out "
            f"rows (standard error {percent(best.standard_error)}) in {best.flash} bytes of "
            f"flash and {best.ram} of RAM ({best.measured})"
        )
        if self.stopped and self.n_folds == 1:
            # One fold tells two sizes apart by chance.
            return f"No size is recommended, as one fold alone was finished. So far {figures}."
        text = f"Take {figures}"
        if self.stopped and len(self.points) == 1:
            return f"{text}, the only size that was finished."
        if best == highest:
            return f"{text}, which no other {'finished ' * bool(self.stopped)}size surpasses."
        limit = percent(highest.standard_error)
        top = f"{percent(highest.accuracy)} at {kilobytes(highest.budget)}"
        return f"{text}, within one standard error ({limit}) of the best, {top}."

    def pick(self, size: str | int) -> Point:
        """Return the point of the largest size that is not above `size`.

        Parameters
        ----------
        size : str or int
            Such as ``"4KB"``.

        Raises
        ------
        TinykernelError
            If all models are larger.
        """
        limit = parse_size(size)
        fitting = [point for point in self.points if point.budget <= limit]
        if not fitting:
            sizes = ", ".join(kilobytes(point.budget) for point in self.points)
            raise BudgetError(f"no model has {kilobytes(limit)} or less; choose from {sizes}")
        return fitting[-1]

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the models as JSON types."""
        return {
            "target": self.target,
            "score": self.score,
            "folds": self.n_folds,
            "best": self.best.to_dict(),
            "highest": self.highest.to_dict(),
            "recommendation": self.recommendation,
            "front": [point.to_dict() for point in self.front],
            "points": [point.to_dict() for point in self.points],
            "left_out": {str(size): why for size, why in self.left_out.items()},
            "trials": {"done": self.done, "total": self.total},
            "stopped": self.stopped or None,
        }
