"""Names of forms: a layout of components, a linear part, or both."""

from __future__ import annotations

import re

#: Layouts that have a name, by their widths (`is_layout`).
PRESETS = {
    "compact": "g4",
    "phases": "g8-b8",
    "windows": "g8-b8-t8-rows-ternary",
    "full": "g4-b4-t4-ternary",
}
DEFAULT_LAYOUT = "compact"
LINEAR_BITS = (2, 4, 8)
#: Values of the option `model` that leave nothing but trees.
OF_TREES = ("trees", "tree")

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


def form_of(layout: str | None, linear_bits: int | None) -> str:
    """Return the name of a form: a layout, a linear part, or both, as in ``compact+linear4``."""
    linear = "" if linear_bits is None else f"linear{linear_bits}"
    return "+".join(filter(None, (layout, linear)))


def parts_of(form: str) -> tuple[str | None, int | None]:
    """Return layout and bits of the linear part of a form: None for a missing one."""
    layout, _, linear = form.rpartition("linear")
    if not linear.isdigit():
        return form, None
    return layout.removesuffix("+") or None, int(linear)


def is_form(form: object) -> bool:
    """Whether this is the name of a form."""
    if not isinstance(form, str):
        return False
    layout, bits = parts_of(form)
    known = (layout is None or is_layout(layout)) and bits in (None, *LINEAR_BITS)
    return known and form_of(layout, bits) == form
