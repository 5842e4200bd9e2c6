"""Perceptrons: what they are called, and the option that only they read."""

from __future__ import annotations

from dataclasses import dataclass

from tinykernel.base.checks import MOST_UNITS, at_least
from tinykernel.base.options import option
from tinykernel.learn.announcement import TABLES, Announcement

PERCEPTRON = Announcement(
    "perceptron",
    "hidden layers",
    (TABLES,),
    rank=3,
    size="n_units",
    options=("epochs",),
    hint="only for perceptrons; leave it out",
)


@dataclass(kw_only=True, eq=False, repr=False)
class PerceptronOptions:
    """The option of perceptrons."""

    n_units: int | None = option(
        None,
        at_least(1, MOST_UNITS),
        "Number of units in each hidden layer of a perceptron.",
        chosen="as many as fit a budget, or 64",
        form="int",
    )
