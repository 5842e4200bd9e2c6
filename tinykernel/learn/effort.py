"""What effort means: how many trainings compare, and which share of its epochs each has."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any

from tinykernel.base.errors import OptionError


@dataclass(frozen=True)
class Effort:
    """Trainings that compare, and the final one, as far as they are done.

    As text ``share/trials/final``, with ``/quick`` behind it where settings are not searched, and
    ``+3-8`` behind ``final`` where after 3 epochs the plan was cut to 8:

    >>> Effort.of("0.25/12/0.4+3-8").cuts, str(Effort(0.5, is_quick=True))
    (((3, 8),), '0.5/all/1/quick')
    """

    share: float = 1.0  # of the usual epochs, in trainings that compare.
    trials: float = inf  # of settings, after the first of each kind.
    final: float = 1.0  # of the usual epochs, in the final training.
    is_quick: bool = False  # whether settings have their usual values.
    # After so many epochs of the final training, how many there were to be in all.
    cuts: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def of(text: str) -> Effort:
        """Read a name, or the text of another effort."""
        if text in NAMED:
            return NAMED[text]
        try:
            share, trials, final = str(text).removesuffix("/quick").split("/")
            most, is_quick = inf if trials == "all" else int(trials), text.endswith("/quick")
            final, *cut = final.split("+")
            cuts = tuple((int(done), int(total)) for done, total in (c.split("-") for c in cut))
            effort = Effort(float(share), most, float(final), is_quick, cuts)
        except ValueError:
            effort = Effort(0.0)
        # Totals need not fall: each training of a succession has an epoch at least.
        rises = all(0 < done < total for done, total in effort.cuts) and all(
            a[0] < b[0] for a, b in pairwise(effort.cuts)
        )
        shares = 0 < effort.share <= 1 and 0 < effort.final <= 1
        if not (shares and rises and effort.trials >= 0):
            raise OptionError(
                f"effort: {text!r}; give normal, quick, or what a training in limited time has "
                "printed, as 0.25/12/0.4"
            )
        return effort

    def __str__(self) -> str:
        """Return the text that `of` reads."""
        trials = "all" if self.trials == inf else f"{self.trials:.0f}"
        cuts = "".join(f"+{done}-{total}" for done, total in self.cuts)
        return f"{self.share:g}/{trials}/{self.final:g}{cuts}{'/quick' * self.is_quick}"


#: Efforts with a name.
NAMED = {"normal": Effort(), "quick": Effort(0.25, is_quick=True)}


def check_effort(name: str, value: Any) -> None:
    """Refuse what is no effort."""
    Effort.of(value)
