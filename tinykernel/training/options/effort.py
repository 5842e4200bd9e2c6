"""How much of a search and of a training is done, in plain numbers."""

from dataclasses import dataclass
from math import inf
from typing import Any

from tinykernel.errors import OptionError


@dataclass(frozen=True)
class Effort:
    """Trainings that compare, and the final one, as far as they are done.

    As text ``share/trials/final``, with ``/quick`` behind it where settings are not searched:

    >>> Effort.of("0.25/12/0.4").trials, str(Effort(0.5, is_quick=True))
    (12, '0.5/all/1/quick')
    """

    share: float = 1.0  # of the usual epochs, in trainings that compare.
    trials: float = inf  # of settings, after the first of each kind.
    final: float = 1.0  # of the usual epochs, in the final training.
    is_quick: bool = False  # whether settings have their usual values.

    @staticmethod
    def of(text: str) -> "Effort":
        """Read a name, or the text of another effort."""
        if text in NAMED:
            return NAMED[text]
        try:
            share, trials, final = str(text).removesuffix("/quick").split("/")
            most, is_quick = inf if trials == "all" else int(trials), text.endswith("/quick")
            effort = Effort(float(share), most, float(final), is_quick)
        except ValueError:
            effort = Effort(0.0)
        if not (0 < effort.share <= 1 and 0 < effort.final <= 1 and effort.trials >= 0):
            raise OptionError(
                f"effort: {text!r}; give normal, quick, or what a training in limited time has "
                "printed, as 0.25/12/0.4"
            )
        return effort

    def __str__(self) -> str:
        """Return the text that `of` reads."""
        trials = "all" if self.trials == inf else f"{self.trials:.0f}"
        return f"{self.share:g}/{trials}/{self.final:g}{'/quick' * self.is_quick}"


#: Efforts with a name.
NAMED = {"normal": Effort(), "quick": Effort(0.25, 8, is_quick=True)}


def check_effort(name: str, value: Any) -> None:
    """Refuse what is no effort."""
    Effort.of(value)


check_effort.kind = '{"normal", "quick", "0.2/9/1"}'  # type: ignore[attr-defined]
