"""Names of forms: a layout of components, a linear part, or both."""

from __future__ import annotations

#: Names in `tinykernel.training.layouts.LAYOUTS`, which takes longer to import.
LAYOUT_NAMES = ("compact", "phases", "windows")
DEFAULT_LAYOUT = "compact"
LINEAR_BITS = (2, 4, 8)
#: Values of the option `model` that leave nothing but trees.
OF_TREES = ("trees", "tree")


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
    known = (layout is None or layout in LAYOUT_NAMES) and bits in (None, *LINEAR_BITS)
    return known and form_of(layout, bits) == form
