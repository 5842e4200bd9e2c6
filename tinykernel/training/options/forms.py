"""Names of layouts of components."""

import re

#: Layouts that have a name, by their widths (`is_layout`).
PRESETS = {
    "compact": "g4",
    "phases": "g8-b8",
    "windows": "g8-b8-t8-rows-ternary",
    "full": "g4-b4-t4-ternary",
}
DEFAULT_LAYOUT = "compact"
_WIDTHS = re.compile(r"g[148](-b[48](-t[48])?)?(-rows)?(-ternary)?")


def is_layout(name: str) -> bool:
    """Whether this names a layout: a preset, or the widths of what a component stores.

    Widths are ``g1``, ``g4`` or ``g8``: bits of G; ``b4`` or ``b8`` after that: of the phase start
    of each row; ``t4`` or ``t8``: of the width of its window; ``rows``: S for each row instead of
    each block; ``ternary``: weights -1, 0, 1.

    >>> is_layout("g4-b8-ternary"), is_layout("t8")
    (True, False)
    """
    return name in PRESETS or _WIDTHS.fullmatch(name) is not None
