"""Options of the trainer: one field of `TrainerOptions` each, and what effort means.

A field has name, default, check, and the text for docstrings and ``tinykernel options``. All are
parameters of the estimators. The command line imports this module before anything heavy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

from tinykernel.base import checks as ranges
from tinykernel.base.checks import (
    DEFAULT_LAYOUT,
    KIND_OF_MODEL,
    LINEAR_BITS,
    MOST_CELLS,
    MOST_COMPONENTS,
    Check,
    at_least,
    between,
    check_positive,
    one_of,
    sides,
)
from tinykernel.base.errors import OptionError, ShapeError
from tinykernel.base.options import (
    CHAINS,
    COMPONENTS,
    GRADIENTS,
    IMAGES,
    INPUTS,
    KINDS_OF_SIDES,
    PERCEPTRON,
    SEPARABLE,
    TABLES,
    WINDOWS,
    check_reads,
    declared,
    option,
)

if TYPE_CHECKING:
    import numpy as np


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


check_effort.kind = '{"normal", "quick", "0.2/9/1"}'  # type: ignore[attr-defined]


# Augmentations by the number of sides of a shape, and the name of such inputs.
_VARIED: dict[int | None, tuple[tuple[str, ...], str]] = {
    None: ((), "rows without a shape; give image_shape or window_shape"),
    2: (("shift", "affine", "scale", "noise", "rotate"), "signals"),
    3: (("shift", "affine", "flip"), "images"),
}
_BITS_ON_COUNTS = 4  # of the weights of a linear part.
#: spectrum="auto" needs windows of so many samples, and so many samples a second.
LEAST_RATE, LEAST_SAMPLES = 1000.0, 1000


@dataclass(kw_only=True, eq=False, repr=False)
class MachineParameters:
    """The options of kernel machines."""

    n_components: int | None = option(
        None,
        Check(ranges.components, f"32 to {MOST_COMPONENTS}"),
        "Number of binary components (p). Flash grows in proportion. By default as many as fit a "
        "budget, or 2048.",
        reads=(COMPONENTS,),
    )
    layout: str = option(
        "auto",
        Check(ranges.layout),
        'Which numbers of a component are learned and stored. "compact": G in 4 bits and weights '
        'of +-1. "phases": G and starts in 8 bits. "full": G, starts and widths in 4 bits, ternary '
        'weights. "windows": these in 8 bits, and S for each row; each component is more accurate '
        'and takes more bytes. Widths such as "g4-b8" name others. "auto": for a budget, '
        'the best of these on held-out rows, else "compact", or "windows" of a regressor.',
        reads=(COMPONENTS,),
    )
    sigma: float | None = option(
        None,
        Check(check_positive, "above 0"),
        "Initial width of the Gaussian kernel, in units of the scaled inputs. By default searched.",
        reads=(COMPONENTS,),
    )
    epochs: int | None = option(
        None,
        at_least(1),
        "Passes over the training rows. By default 6 to 120, fewer for more rows.",
        reads=(*TABLES, GRADIENTS, IMAGES),
    )
    effort: str = option(
        "normal",
        check_effort,
        'Search effort. "normal": choose sigma and the training noise '
        "by short trainings on part of the rows, which take about as long as the final training. "
        '"quick": compare the kinds of models by short trainings with default values. Convolutions '
        "then train for a third of their epochs. Three numbers are what a "
        "training in limited time printed: the share of the epochs of trainings that compare, how "
        "many settings these try, and the share of the epochs of the final training; /quick behind "
        "them is for usual values of settings.",
    )
    linear: int | str = option(
        "auto",
        one_of("auto", "off", *LINEAR_BITS),
        "Bits of each weight of the linear part, which adds to the scores. It takes the quantized "
        'inputs of tables, or the counts of signals and images. "auto": the best that fits a '
        "budget; else 8 bits on inputs and 4 bits on counts, and none beside components of a "
        "classifier.",
    )
    code: str = option(
        "auto",
        one_of("auto", "fast", "small"),
        'Machine code of components. "small" takes 0.4 to 1 KB less flash and up to twice the '
        'instructions; the scores are the same. "auto" is "small" in `train` where fast code would '
        'fill more than 30 % of the flash budget, else "fast".',
        reads=(COMPONENTS,),
    )
    validation_fraction: float | None = option(
        None,
        between(0, 0.5, "above 0 and below 0.5", open_ends=True),
        "Share of the training rows to hold out to choose the best epoch, if `fit` has no "
        "validation rows. Whole groups are held out, or else rows of every class.",
    )
    random_state: int | np.random.RandomState | None = option(  # noqa: RUF009
        None, ranges.seed, "Random seed.", kind="int, RandomState or None"
    )
    n_jobs: int | None = option(
        None,
        Check(ranges.threads, "1 or more, or -1"),
        "Number of threads. By default all that numba uses, as with -1. It does not change the "
        "result.",
    )


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters(MachineParameters):
    """The options of all kinds of models."""

    n_kernels: int | None = option(
        None,
        at_least(1),
        "Signals: number of kernels. Flash and time grow in proportion. By default as many as fit "
        "a budget, or 256.",
        reads=(WINDOWS,),
    )
    n_channels: int | None = option(
        None,
        at_least(1),
        "Number of channels of convolutions, in the last layer. Flash and time grow in "
        "proportion. By default as many as fit a budget, or 32.",
        reads=(CHAINS, SEPARABLE),
    )
    n_units: int | None = option(
        None,
        Check(ranges.units, "1 to 1024"),
        "Number of units in each hidden layer of a perceptron. By default as many as fit a budget, "
        "or 64.",
        reads=(PERCEPTRON,),
    )
    model: str = option(
        "auto",
        ranges.model,
        'Kind of model. Tables: "components", perhaps with a linear part; "linear": a linear '
        'part alone; "trees": boosted trees; "tree": one tree of at most 64 leaves for each '
        'output; "perceptron": hidden layers. Signals: "kernels", or "separable" convolutions of '
        "a spectrum. Images: "
        '"chains" of convolutions for images of one channel, or "separable" convolutions, '
        'whose layers mix channels. "auto": the best on held-out rows.',
    )
    window_shape: tuple[int, int] | None = option(
        None,
        sides("(samples, channels)", 2),
        "Samples and channels of a window. In a row, the channels of a sample are side by side. "
        "Arrays (n, samples, channels) need no shape.",
        kind="(int, int) or None",
        reads=(WINDOWS,),
    )
    image_shape: tuple[int, ...] | None = option(
        None,
        sides("(height, width) or (height, width, channels)", 2, 3),
        "Height, width and channels of an image. Rows are images in row-major order. An array "
        "(n, height, width, channels) needs no shape; (n, height, width) does.",
        kind="(int, int) or (int, int, int) or None",
        reads=(IMAGES,),
    )
    hop: int = option(
        0,
        at_least(0),
        "Signals: samples from one window of a stream to the next; 0 for no stream.",
        reads=(WINDOWS,),
    )
    rate: float | None = option(
        None,
        Check(check_positive, "above 0"),
        "Signals: sampling rate in Hz, which sets the segments and bands of a spectrum.",
        reads=(WINDOWS,),
    )
    augment: Mapping[str, float] | None = option(
        None,
        Check(ranges.augmentation, "0 to 10"),
        'Augmentation of windows or images, such as ``{"shift": 1, "affine": 0.5}``. Images: '
        '"shift" in pixels; "affine" for small rotations, scalings, shifts and shears of strength '
        '0 to 1; "flip" as the share of mirrored images. Signals: "shift" in samples; "scale" and '
        '"noise" as relative deviations; "rotate" in radians, of every three channels about a '
        'random axis. Spectra: "affine" stretches and moves time and frequency, and scales the '
        'loudness; "rotate" does not apply, and "shift" is rounded to segments. Convolutions have '
        "affine 0.3 by default; 0 turns it off.",
        kind="mapping or None",
    )
    cells: int | str = option(
        "auto",
        Check(ranges.cells, f"1 to {MOST_CELLS}"),
        "Signals: number of equal parts of a window, each with its own counts. More cells tell "
        'when in the window something happens. "auto" is 2 with a spectrum, else 1; `train` uses '
        "16 if that is better on held-out windows. With more than 2, kernels of samples do not "
        "see the signal level.",
        kind='int or "auto"',
        reads=(WINDOWS,),
    )
    spectrum: str = option(
        "auto",
        ranges.spectrum,
        "Signals of integers: whether kernels take the levels of frequency bands instead of "
        'samples. "512/320/12" has segments of 512 samples, a hop of 320 samples and 12 bands. '
        '"auto" is "on" if `rate` is 1000 Hz or more and a window has 1000 samples or more.',
        kind='{"auto", "off", "on"} or str',
        reads=(WINDOWS,),
        idle=("off",),
    )
    streaming: str = option(
        "off",
        one_of("off", "on"),
        "Separable convolutions of a spectrum: whether a stream computes each segment once and can "
        "decide at every other one. Else each decision computes all segments of its window.",
    )
    teachers: int = option(
        0,
        at_least(0),
        "Separable convolutions of a spectrum: so many are trained first, and their mean teaches "
        "the model. It knows more of what belongs to no class; training takes several times as "
        "long. 3 to 5 are usual.",
    )
    beside: int = option(
        0,
        at_least(0),
        "Signals: number of values at the end of a row that are not samples. They have the type of "
        "the samples, bypass the kernels and feed the linear part. On the command line, for "
        "recordings: their columns, of which the last sample of each window is used.",
        reads=(WINDOWS,),
    )
    frame: str | None = option(
        None,
        ranges.frame,
        "Images: size and format of camera frames, such as 160x120:rgb565. Formats are grey8, "
        "rgb888, rgb565 (upper byte first), rgb565le and yuyv. The rows are then frames, which the "
        "model crops and resizes to the image_shape, line by line.",
        reads=(IMAGES,),
    )


@dataclass(kw_only=True, eq=False, repr=False)
class ClassParameters:
    """The options of classifiers alone."""

    class_weight: Mapping[Any, float] | str | None = option(
        None,
        Check(ranges.class_weight),
        'Weights of the classes: "balanced", or such as ``{"yes": 2, "no": 1}``. "balanced" gives '
        "all classes the same total weight. They multiply the weights of the rows.",
        kind='dict, "balanced" or None',
    )


@declared
@dataclass(kw_only=True, eq=False, repr=False)
class TrainerOptions(ClassParameters, Parameters):
    """All options of the trainer.

    The metadata of each field hold "check" (a function of name and value), "type", "range", "text",
    "reads": the kinds of models that read it, and "idle": values without effect.

    Parameters
    ----------
    {options}

    Examples
    --------
    >>> TrainerOptions(n_components=64).is_sized
    True
    """

    usual_layout: ClassVar[str] = DEFAULT_LAYOUT
    #: Kinds of signals that learn by epochs of gradients.
    by_gradients: ClassVar[tuple[str, ...]] = (SEPARABLE,)
    #: Usual bits of the linear part beside components; None without one.
    bits_beside: ClassVar[int | None] = None

    def check(self) -> None:
        """Refuse values that are not allowed or contradict each other."""
        for item in fields(self):
            item.metadata["check"](item.name, getattr(self, item.name))
        self._check_shape()

    def _check_shape(self) -> None:
        """Refuse two shapes, and shifts of more than half an input."""
        if self.window_shape is not None and self.image_shape is not None:
            raise OptionError("window_shape, image_shape: give one of them")
        shift = int((self.augment or {}).get("shift", 0))
        sides = (self.image_shape or ())[:2] or (self.window_shape or ())[:1]
        if sides and shift > max(sides) // 2:
            unit = "samples" if self.image_shape is None else "pixels"
            raise OptionError(
                f"augment: a shift of {shift} {unit} is more than half of "
                f"{' x '.join(map(str, sides))}; give at most {max(sides) // 2}"
            )

    def has_spectrum(self, shape: tuple[int, ...], raw_dtype: str) -> bool:
        """Whether inputs of this shape go through a spectrum."""
        if self.spectrum == "off" or len(shape) != 2:
            return False
        if self.spectrum != "auto":
            if self.rate is None:
                raise OptionError("spectrum: give the samples a second, as in rate=16000")
            return True
        is_fast = self.rate is not None and self.rate >= LEAST_RATE
        return is_fast and shape[0] >= LEAST_SAMPLES and not raw_dtype.startswith("float")

    def input_shape(self, sides: tuple[int, ...] | None = None) -> tuple[int, ...] | None:
        """Return (samples, channels), (height, width, channels), or None for tables.

        `sides` is the shape of one input of an array, if it has one.
        """
        chosen = self.image_shape or self.window_shape
        if chosen is None:
            return None if sides is None else tuple(sides)
        shape = tuple(map(int, chosen))
        if self.image_shape is not None and len(shape) == 2:
            shape = (*shape, 1)
        if self.frame is None and sides is not None and math.prod(sides) != math.prod(shape):
            raise ShapeError(f"inputs have the shape {sides}, but {shape} is given; correct it")
        return shape

    def check_for(self, shape: tuple[int, ...] | None) -> None:
        """Refuse options that have no effect on inputs of a shape (`input_shape`)."""
        n_sides = None if shape is None else len(shape)
        varied, of = _VARIED[n_sides]
        for key, amount in (self.augment or {}).items():
            if amount and key not in varied:
                raise OptionError(f"augment: {key} is not for {of}")
        inputs, kinds = INPUTS[n_sides], KINDS_OF_SIDES[n_sides]
        named = KIND_OF_MODEL.get(self.model, self.model)
        if named not in ("auto", *kinds):
            raise OptionError(f"model: {self.model} is not for {inputs}; give {', '.join(kinds)}")
        kinds = kinds if named == "auto" else (named,)
        learning = (GRADIENTS,) if set(kinds) & set(self.by_gradients) else ()
        check_reads(self, (inputs, *kinds, *learning))
        channels = 0 if shape is None else shape[-1]
        rotated = bool((self.augment or {}).get("rotate"))
        of_planes = "streaming" if self.streaming == "on" else "teachers" * (self.teachers > 0)
        wrong = {
            "frame: only for images; give the image_shape, as 32x32x3": self.frame is not None
            and self.image_shape is None,
            f"{of_planes}: only for separable convolutions of signals; give model=separable": (
                bool(of_planes) and (n_sides != 2 or named != SEPARABLE)
            ),
            "linear: signals and images need a linear part; leave linear out": shape is not None
            and self.linear == "off",
            "linear: off is the opposite of model=linear; leave one out": named == "linear"
            and self.linear == "off",
            f"augment: rotate turns three channels at a time; windows have {channels}": rotated
            and channels % 3 != 0,
        }
        for text, is_wrong in wrong.items():
            if is_wrong:
                raise OptionError(text)

    @property
    def is_sized(self) -> bool:
        """Whether the number of components, kernels, channels or units is fixed."""
        sizes = self.n_components, self.n_kernels, self.n_channels, self.n_units
        return any(n is not None for n in sizes)

    def linear_bits(self, shape: tuple[int, ...] | None) -> int | None:
        """Return the bits of the linear part beside components, or on counts; None for none."""
        if self.linear == "auto":
            return self.bits_beside if shape is None else _BITS_ON_COUNTS
        return None if self.linear == "off" else int(self.linear)

    def width(self) -> int | str:
        """Return the bits of quantized inputs; "auto" depends on the rows."""
        return "auto"
