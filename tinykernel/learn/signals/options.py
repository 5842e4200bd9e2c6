"""Kernels of signals: what they are called, and the options of signals."""

from __future__ import annotations

from dataclasses import dataclass

from tinykernel.base import checks
from tinykernel.base.checks import MOST_CELLS, Check, at_least, check_positive, sides
from tinykernel.base.options import option
from tinykernel.base.reading import number_or_names, shape
from tinykernel.learn.announcement import SIGNALS, Announcement

KERNELS = Announcement(
    "kernels",
    "counts of kernels, and a linear part on these",
    (SIGNALS,),
    rank=4,
    size="n_kernels",
    options=("cells",),
    options_of_values=("epochs",),
    hint="only for kernels of signals; give signals, e.g. {window_shape}",
)


@dataclass(kw_only=True, eq=False, repr=False)
class SignalsOptions:
    """The options of signals."""

    n_kernels: int | None = option(
        None,
        at_least(1),
        "Signals: number of kernels. Flash and time grow in proportion.",
        chosen="as many as fit a budget, or 256",
    )
    window_shape: tuple[int, int] | None = option(
        None,
        sides("(samples, channels)", 2),
        "Samples and channels of a window. In a row, the channels of a sample are side by side. "
        "Arrays (n, samples, channels) need no shape.",
        type="(int, int) or None",
        form="SxC",
        read=shape("SAMPLESxCHANNELS", (2,), "128x6"),
        typed={"part": "data"},
    )
    hop: int = option(
        0, at_least(0), "Signals: samples from one window of a stream to the next; 0 for no stream."
    )
    rate: float | None = option(
        None,
        Check(check_positive, "above 0"),
        "Signals: sampling rate in Hz, which sets the segments and bands of a spectrum.",
    )
    cells: int | str = option(
        "auto",
        Check(checks.cells, f"1 to {MOST_CELLS}"),
        "Signals: number of equal parts of a window, each with its own counts. More cells tell "
        'when in the window something happens. "auto" is 2 with a spectrum, else 1; `train` uses '
        "16 if that is better on held-out windows. With more than 2, kernels of samples do not "
        "see the signal level.",
        type='int or "auto"',
        form="auto|int",
    )
    spectrum: str = option(
        "auto",
        checks.spectrum,
        "Signals of integers: whether kernels take the levels of frequency bands instead of "
        'samples. "512/320/12" has segments of 512 samples, a hop of 320 samples and 12 bands. '
        '"auto" is "on" if `rate` is 1000 Hz or more and a window has 1000 samples or more.',
        type='{"auto", "off", "on"} or str',
        form="auto|off|on|LENGTH/HOP/BANDS",
        idle=("off",),
    )
    beside: int = option(
        0,
        at_least(0),
        "Signals: number of values at the end of a row that are not samples. They have the type of "
        "the samples, bypass the kernels and feed the linear part. On the command line, for "
        "recordings: their columns, of which the last sample of each window is used.",
        form="int|COLUMNS",
        read=number_or_names,
    )
