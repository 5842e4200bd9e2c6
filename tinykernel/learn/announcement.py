"""What a kind of model announces: all lists of kinds and of their options follow from it."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Inputs:
    """A sort of inputs, by the number of sides of one."""

    name: str
    sides: int | None
    options: tuple[str, ...] = ()  # that only such inputs read.
    hint: str = ""  # for who gives one of these options, but other inputs.
    varied_by: tuple[str, ...] = ()  # augmentations.
    called: str = ""  # where an augmentation is refused.


#: Options that hints advise.
HINTED = {"window_shape": (128, 6), "image_shape": (32, 32, 3)}
_WITHOUT_SHAPE = "rows without a shape; give {image_shape} or {window_shape}"
TABLES = Inputs("tables", None, called=_WITHOUT_SHAPE)
SIGNALS = Inputs(
    "signals",
    2,
    options=("window_shape", "hop", "rate", "spectrum", "beside"),
    hint="give signals, e.g. {window_shape}",
    varied_by=("shift", "affine", "scale", "noise", "rotate"),
    called="signals",
)
IMAGES = Inputs(
    "images",
    3,
    options=("image_shape", "frame"),
    hint="only for images; give their shape, as {image_shape}",
    varied_by=("shift", "affine", "flip"),
    called="images",
)
INPUTS = (TABLES, SIGNALS, IMAGES)


@dataclass(frozen=True)
class Announcement:
    """What a kind of model is called, takes and reads."""

    name: str  # as in the option `model`.
    title: str
    inputs: tuple[Inputs, ...]
    #: Its place among all kinds: that of the least rank is taken where nothing is compared.
    rank: int = 9
    #: The option with the number that a budget decides; "" if there is none.
    size: str = ""
    #: Options that it reads, beside its size, those of its inputs and those of all kinds.
    options: tuple[str, ...] = ()
    #: Options that it reads only where values are predicted.
    options_of_values: tuple[str, ...] = ()
    #: For who gives one of its options to other kinds.
    hint: str = ""
    #: Other values of the option `model` that are this kind, with titles.
    forms: dict[str, str] = field(default_factory=dict, hash=False)

    @property
    def names(self) -> dict[str, str]:
        """Titles by the values of the option `model`."""
        return {self.name: self.title} | self.forms

    def reads(self, name: str, of_values: bool) -> bool:
        """Whether an option has an effect."""
        more = self.options_of_values if of_values else ()
        return name == self.size or name in (*self.options, *more)
