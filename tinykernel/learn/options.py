"""Options of the trainer, which are parameters of the estimators; and all kinds of models.

`tinykernel.base.options` says what a declaration holds. The command line imports this module before
anything heavy.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from math import inf
from numbers import Real
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tinykernel.base import checks
from tinykernel.base.errors import OptionError, ShapeError
from tinykernel.base.options import declared, option, options_of
from tinykernel.base.reading import loss as read_loss
from tinykernel.learn.announcement import HINTED, IMAGES, INPUTS, SIGNALS, Announcement, Inputs
from tinykernel.learn.components.options import ComponentsOptions
from tinykernel.learn.convolutions.options import SEPARABLE
from tinykernel.learn.linear.options import LINEAR
from tinykernel.learn.perceptron.options import PERCEPTRON

if TYPE_CHECKING:
    import numpy as np

    from tinykernel.learn.convolutions.options import ConvolutionsOptions
    from tinykernel.learn.perceptron.options import PerceptronOptions
    from tinykernel.learn.signals.options import SignalsOptions


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


#: The folders of kinds, which are found by listing this one.
ROOMS = tuple(sorted(path.parent.name for path in Path(__file__).parent.glob("*/options.py")))
_NAMES = [vars(import_module(f"{__package__}.{room}.options")) for room in ROOMS]
#: All kinds of models of labels and values; the first that applies is taken where nothing is
#: compared.
KINDS = tuple(
    sorted(
        (each for names in _NAMES for each in names.values() if isinstance(each, Announcement)),
        key=attrgetter("rank"),
    )
)
#: The options that fix the size of a model.
SIZE_OPTIONS = tuple(dict.fromkeys(kind.size for kind in KINDS if kind.size))
_BITS_ON_COUNTS = 4  # of the weights of a linear part.
#: spectrum="auto" needs windows of so many samples, and so many samples a second.
LEAST_RATE, LEAST_SAMPLES = 1000.0, 1000


@dataclass(kw_only=True, eq=False, repr=False)
class CommonOptions:
    """The options of all kinds."""

    epochs: int | None = option(
        None,
        checks.at_least(1),
        "Passes over the training rows.",
        chosen="6 to 120, fewer for more rows",
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
        type='{"normal", "quick", "0.2/9/1"}',
        form="normal|quick|0.2/9/1",
    )
    linear: int | str = option(
        "auto",
        checks.one_of("auto", "off", *checks.LINEAR_BITS),
        "Bits of each weight of the linear part, which adds to the scores. It takes the quantized "
        'inputs of tables, or the counts of signals and images. "auto": the best that fits a '
        "budget; else 8 bits on inputs and 4 bits on counts, and none beside components of a "
        "classifier.",
    )
    validation_fraction: float | None = option(
        None,
        checks.between(0, 0.5, "above 0 and below 0.5", open_ends=True),
        "Share of training rows to choose the epoch. Whole groups are held out, or else rows of "
        "every class. In Python `fit` also takes validation rows.",
        typed={"name": "validation", "form": "SHARE"},
    )
    random_state: int | np.random.RandomState | None = option(  # noqa: RUF009
        None,
        checks.Check(checks.check_seed, f"0 to {checks.LARGEST_SEED}"),
        "Random seed.",
        type="int, RandomState or None",
        form="int",
        typed={"name": "seed", "default": 0, "usual": 0},
    )
    n_jobs: int | None = option(
        None,
        checks.Check(checks.threads, "1 or more, or -1"),
        "Number of threads. It does not change the result.",
        chosen="all that numba uses, as with -1",
    )


@dataclass(kw_only=True, eq=False, repr=False)
class MachineParameters(CommonOptions, ComponentsOptions):
    """The options of kernel machines."""


def _titles(inputs: Inputs) -> str:
    """Return the names of the kinds of inputs, and what they are."""
    kinds = [kind.names.items() for kind in KINDS if inputs in kind.inputs]
    titles = [f'"{name}": {title}' for names in kinds for name, title in names]
    return f"{inputs.name.capitalize()}: {'; '.join(titles)}"


if TYPE_CHECKING:

    class _OptionsOfKinds(ConvolutionsOptions, SignalsOptions, PerceptronOptions): ...

else:
    # A class of options stands behind its announcements; those of later kinds come first.
    _RANKS = {
        each: max(kind.rank for kind in names.values() if isinstance(kind, Announcement))
        for names in _NAMES
        for each in names.values()
        if isinstance(each, type) and each.__module__ == names["__name__"]
    }
    _BASES = sorted(_RANKS.keys() - {ComponentsOptions}, key=_RANKS.__getitem__, reverse=True)
    _OptionsOfKinds = type("_OptionsOfKinds", tuple(_BASES), {})


@dataclass(kw_only=True, eq=False, repr=False)
class Parameters(_OptionsOfKinds, MachineParameters):
    """The options of all kinds of models."""

    model: str = option(
        "auto",
        checks.one_of("auto", *(name for kind in KINDS for name in kind.names)),
        f'Kind of model. {". ".join(map(_titles, INPUTS))}. "auto": the best on held-out rows.',
    )


@dataclass(kw_only=True, eq=False, repr=False)
class ClassParameters:
    """The options of classifiers alone."""

    class_weight: Mapping[Any, float] | str | None = option(
        None,
        checks.Check(checks.class_weight),
        'Weights of the classes: "balanced", or such as %s. "balanced" gives all classes the same '
        "total weight. They multiply the weights of the rows.",
        type='dict, "balanced" or None',
        form="WEIGHTS",
        example={"yes": 2, "no": 1},
    )


@declared
@dataclass(kw_only=True, eq=False, repr=False)
class TrainerOptions(ClassParameters, Parameters):
    """All options of the trainer.

    Parameters
    ----------
    {options}

    Examples
    --------
    >>> TrainerOptions(n_components=64).size
    'n_components'
    """

    of_values: ClassVar[bool] = False
    usual_layout: ClassVar[str] = checks.DEFAULT_LAYOUT
    #: Usual bits of the linear part beside components; None without one.
    bits_beside: ClassVar[int | None] = None

    def check(self) -> None:
        """Refuse values that are not allowed or contradict each other."""
        for name, declaration in options_of(type(self)).items():
            declaration.check(name, getattr(self, name))
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
                raise OptionError("spectrum: give the samples a second, as in {rate}", rate=16000)
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
        inputs = next(inputs for inputs in INPUTS if inputs.sides == n_sides)
        for key, amount in (self.augment or {}).items():
            if amount and key not in inputs.varied_by:
                problem = f"augment: {key} is not for {inputs.called}"
                raise OptionError(problem, **dict.fromkeys(HINTED))
        takers = [kind for kind in KINDS if inputs in kind.inputs]
        kinds = [kind for kind in takers if self.model in ("auto", *kind.names)]
        if not kinds:
            known = ", ".join(kind.name for kind in takers)
            raise OptionError(f"model: {self.model} is not for {inputs.name}; give {known}")
        sized = [kind for kind in kinds if self.size in ("", kind.size)]
        self._check_effects(inputs, sized or kinds)
        self._check_pairs(shape)

    def _check_effects(self, inputs: Inputs, kinds: list[Announcement]) -> None:
        """Refuse options that only other inputs or kinds read."""
        for name, declaration in options_of(type(self)).items():
            value = getattr(self, name)
            if isinstance(value, Hashable) and value in (declaration.default, *declaration.idle):
                continue
            for other in INPUTS:
                if name in other.options and other is not inputs:
                    raise OptionError(f"{name}: {other.hint}", **HINTED)
            readers = [kind for kind in KINDS if kind.reads(name, self.of_values)]
            if readers and not any(kind in readers for kind in kinds):
                hints = {kind.hint for kind in readers}
                hint = f"not an option of {inputs.name}; leave it out"
                raise OptionError(f"{name}: {hints.pop() if len(hints) == 1 else hint}", **HINTED)

    def _check_pairs(self, shape: tuple[int, ...] | None) -> None:
        """Refuse options that exclude each other, or the inputs."""
        of_signals = shape is not None and len(shape) == SIGNALS.sides
        of_planes = "streaming" if self.streaming == "on" else "teachers" * (self.teachers > 0)
        if of_planes and not (of_signals and self.model == SEPARABLE.name):
            problem = "only for separable convolutions of signals; give {model}"
            raise OptionError(f"{of_planes}: {problem}", model=SEPARABLE.name)
        channels, is_off = 0 if shape is None else shape[-1], self.linear == "off"
        is_rotated = bool((self.augment or {}).get("rotate"))
        wrong = {
            f"frame: {IMAGES.hint}": self.frame is not None and self.image_shape is None,
            "linear: signals and images need a linear part; leave linear out": is_off
            and shape is not None,
            "linear: off is the opposite of {model}; leave one out": is_off
            and self.model == LINEAR.name,
            "linear: the scores of a perceptron are a linear part; leave linear out": is_off
            and self.kinds() == [PERCEPTRON.name],
            f"augment: rotate turns three channels at a time; windows have {channels}": is_rotated
            and channels % 3 != 0,
        }
        for problem, is_wrong in wrong.items():
            if is_wrong:
                raise OptionError(problem, model=LINEAR.name, **HINTED)

    def kinds(self) -> list[str]:
        """Return the names of the kinds that are allowed: by `model`, and by a size."""
        return [
            kind.name
            for kind in KINDS
            if self.model in ("auto", *kind.names) and self.size in ("", kind.size)
        ]

    @property
    def size(self) -> str:
        """The option that fixes the size of the model; "" for none."""
        return next((name for name in SIZE_OPTIONS if getattr(self, name) is not None), "")

    def linear_bits(self, shape: tuple[int, ...] | None) -> int | None:
        """Return the bits of the linear part beside components, or on counts; None for none."""
        if self.linear == "auto":
            return self.bits_beside if shape is None else _BITS_ON_COUNTS
        return None if self.linear == "off" else int(self.linear)

    def width(self) -> int | str:
        """Return the bits of quantized inputs; "auto" depends on the rows."""
        return "auto"


LOSSES = ("squared", "absolute")


def _loss(name: str, value: Any) -> None:
    if isinstance(value, str) and value in LOSSES:
        return
    is_list = hasattr(value, "__len__") and not isinstance(value, str)
    levels = list(value) if is_list else []
    good = all(isinstance(q, Real) and not isinstance(q, int) and 0 < float(q) < 1 for q in levels)
    if not levels or not good or sorted(set(levels)) != levels:
        raise OptionError(
            f"{name}: {value!r}; give {', '.join(LOSSES)}, or levels of quantiles above 0 and "
            "below 1, ascending, e.g. (0.1, 0.5, 0.9)"
        )


@dataclass(kw_only=True, eq=False, repr=False)
class ValueParameters:
    """The options of regressors alone."""

    loss: str | Sequence[float] = option(
        "squared",
        _loss,
        'Loss to minimise. "squared" predicts the mean; "absolute" the median, which outliers '
        "hardly change. Levels such as %s predict quantiles, with an output for each: "
        "here an 80 % interval and the median.",
        type='{"squared", "absolute"} or sequence of float',
        form="squared|absolute|LEVELS",
        read=read_loss,
        example=(0.1, 0.5, 0.9),
    )


@declared
@dataclass(kw_only=True, eq=False, repr=False)
class RegressorOptions(ValueParameters, TrainerOptions):
    """All options of the trainer of a regressor.

    Parameters
    ----------
    {options}

    Examples
    --------
    >>> RegressorOptions(n_components=64, loss=(0.1, 0.9)).losses(1)
    (0.1, 0.9)
    """

    # Smooth values need learned starts and widths more than many components: docs/training.md.
    of_values: ClassVar[bool] = True
    usual_layout: ClassVar[str] = "windows"
    bits_beside: ClassVar[int | None] = 8
    class_weight: ClassVar[None] = None  # type: ignore[misc]

    def width(self) -> int | str:
        """Return the bits of quantized inputs; 8 leave more of 32 to a linear part."""
        return "auto" if self.linear == "off" else 8

    def levels(self) -> tuple[float, ...]:
        """Return the losses of one value (`Recipe.losses`)."""
        if isinstance(self.loss, str):
            return (0.0,) if self.loss == "squared" else (0.5,)
        return tuple(map(float, self.loss))

    def losses(self, n_values: int) -> tuple[float, ...]:
        """Return the losses of all outputs, those of a value side by side."""
        return self.levels() * n_values

    def names(self, values: Sequence[str]) -> tuple[str, ...]:
        """Return the names of all outputs."""
        if isinstance(self.loss, str):
            return tuple(values)
        return tuple(f"{value} q{level:g}" for value in values for level in self.levels())
