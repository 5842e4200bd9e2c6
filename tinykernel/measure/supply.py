"""What a chip draws, for the charge and energy of an inference."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tinykernel.errors import TinykernelError

_AMPERES = {"a": 1.0, "ma": 1e-3, "ua": 1e-6, "µa": 1e-6}


@dataclass(frozen=True)
class Supply:
    """What the chip draws while it computes."""

    amperes: float
    volts: float | None = None  # None if unknown; then there is a charge and no energy.

    def charge(self, seconds: float) -> float:
        """Return ampere-seconds."""
        return self.amperes * seconds


def parse_supply(text: str | None) -> Supply | None:
    """Read a current, or a current and a voltage, such as ``"4mA@3V"``."""
    if text is None:
        return None
    number = r"\s*(\d+(?:\.\d+)?|\.\d+)\s*"
    match = re.fullmatch(rf"{number}([mµu]?a)\s*(?:@{number}v\s*)?", str(text), re.IGNORECASE)
    amperes = float(match[1]) * _AMPERES[match[2].lower()] if match else 0.0
    if match is None or not amperes or (match[3] is not None and not float(match[3])):
        raise TinykernelError(
            f"current: {text!r}; write it with its unit, and perhaps the voltage of the chip, as "
            "in 4mA or 4mA@3V"
        )
    return Supply(amperes, None if match[3] is None else float(match[3]))
