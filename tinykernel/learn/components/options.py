"""The kernel machine: what it is called, and the options that only it reads."""

from __future__ import annotations

from dataclasses import dataclass

from tinykernel.base import checks
from tinykernel.base.checks import MOST_COMPONENTS, Check, check_positive, one_of
from tinykernel.base.options import option
from tinykernel.learn.announcement import TABLES, Announcement

COMPONENTS = Announcement(
    "components",
    "binary components, perhaps with a linear part",
    (TABLES,),
    rank=0,
    size="n_components",
    options=("layout", "sigma", "code", "epochs"),
    hint="only for components; leave it out",
)


@dataclass(kw_only=True, eq=False, repr=False)
class ComponentsOptions:
    """The options of kernel machines."""

    n_components: int | None = option(
        None,
        Check(checks.components, f"32 to {MOST_COMPONENTS}"),
        "Number of binary components (p). Flash grows in proportion.",
        chosen="as many as fit a budget, or 2048",
        form="int",
    )
    layout: str = option(
        "auto",
        Check(checks.layout),
        'Which numbers of a component are learned and stored. "compact": G in 4 bits and weights '
        'of +-1. "phases": G and starts in 8 bits. "full": G, starts and widths in 4 bits, ternary '
        'weights. "windows": these in 8 bits, and S for each row; each component is more accurate '
        'and takes more bytes. Widths such as "g4-b8" name others. "auto": for a budget, '
        'the better of "full" and "windows" on held-out rows, else "full", or "windows" of a '
        "regressor.",
    )
    sigma: float | None = option(
        None,
        Check(check_positive, "above 0"),
        "Initial width of the Gaussian kernel, in units of the scaled inputs.",
        chosen="searched",
    )
    code: str = option(
        "auto",
        one_of("auto", "fast", "small"),
        'Machine code of components. "small" takes 0.4 to 1 KB less flash and up to twice the '
        'instructions; the scores are the same. "auto" is "small" in `train` where fast code would '
        'fill more than 30 % of the flash budget, else "fast".',
    )
