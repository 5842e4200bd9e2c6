"""All settings of ``train``, ``tune`` and ``export``: name, kind, default, range, text, reader.

Those of the trainer are the fields of its options (`tinykernel.learn.options`).
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import Field, dataclass, fields
from functools import partial
from typing import Any

from tinykernel.base.checks import LARGEST_SEED
from tinykernel.base.errors import OptionError
from tinykernel.base.options import kind_of
from tinykernel.compile.targets import TARGETS
from tinykernel.learn.options import TrainerOptions
from tinykernel.learn.recipe import RegressorOptions
from tinykernel.run.limits import parse_limits, parse_size

# Default amounts of augmentations.
_USUAL = {"affine": 1.0, "flip": 0.5, "shift": 1, "rotate": 0.15, "noise": 0.05, "scale": 0.1}
_WHOLE = r"\d{1,9}"  # more digits are a mistake
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}

Reader = Callable[[str], Any]


def plain(text: str) -> Any:
    """Read a number, a mapping NAME:VALUE,..., several numbers, or else a word.

    >>> plain("64"), plain("compact:64,windows:32"), plain("0.1,0.9"), plain("10:30:2")
    (64, {'compact': 64, 'windows': 32}, (0.1, 0.9), {'10:30': 2})
    >>> plain("(0.1, 0.5, 0.9)"), plain("[0.5]")
    ((0.1, 0.5, 0.9), (0.5,))
    """
    if (text[:1], text[-1:]) in (("(", ")"), ("[", "]")):  # as messages and Python write several
        text = text[1:-1].strip().removesuffix(",") + ","
    parts = [part.strip() for part in text.split(",")]
    if not parts[-1] and len(parts) > 1:
        return tuple(map(_word, parts[:-1]))
    if all(":" in part for part in parts):
        pairs = (part.rpartition(":") for part in parts)
        return {_word(name): _word(value) for name, _, value in pairs}
    return tuple(map(_word, parts)) if len(parts) > 1 else _word(text)


def _word(text: str) -> Any:
    """Read a finite number, or else a word."""
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        if math.isfinite(value):
            return value
    return text


def choice(*names: str, **others: str) -> Reader:
    """Return a reader of one of `names`; `others` are aliases."""

    def read(text: str) -> str:
        if text not in names and text not in others:
            raise OptionError(f"{text!r}: choose from {', '.join(names)}")
        return others.get(text, text)

    return read


def truth(text: str) -> bool:
    """Read true or false."""
    return bool(choice("false", "true")(text) == "true")


def number(low: float, high: float, wanted: str, kind: type = float) -> Reader:
    """Return a reader of numbers from low to high."""

    def read(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            raise OptionError(f"{text!r}: give {wanted}")
        return value

    return read


def or_file(read: Reader) -> Reader:
    """Return a reader of numbers; anything else is the name of a file."""

    def number_or_file(text: str) -> Any:
        try:
            float(text.rstrip("% "))
        except ValueError:
            return text
        return read(text)

    return number_or_file


def names(text: str) -> list[str] | None:
    """Read names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()] or None


def number_or_names(text: str) -> int | list[str] | None:
    """Read a whole number, or else names."""
    return int(text) if re.fullmatch(_WHOLE, text) else names(text)


def loss(text: str) -> str | tuple[float, ...]:
    """Read the name of a loss, or levels of quantiles separated by commas."""
    try:
        return tuple(map(float, text.split(",")))
    except ValueError:
        return text


def shape(form: str, lengths: tuple[int, ...], example: str) -> Reader:
    """Return a reader of whole numbers separated by x or commas."""

    def read(text: str) -> tuple[int, ...]:
        sides = re.fullmatch(rf"{_WHOLE}(?:[x,]{_WHOLE})*", text.strip().lower())
        numbers = tuple(map(int, re.split("[x,]", text.strip().lower()))) if sides else ()
        if len(numbers) not in lengths:
            raise OptionError(f"{text!r}: write {form}, as in {example}")
        return numbers

    return read


def augmentation(text: str) -> dict[str, float] | None:
    """Read KIND or KIND:AMOUNT, several separated by commas."""
    amounts: dict[str, float] = {}
    for part in names(text) or ():
        match = re.fullmatch(r"([a-z]+)(?::(\d+(?:\.\d*)?|\.\d+))?", part)
        whole = match is not None and match[1] == "shift" and "." in (match[2] or "")
        if match is None or match[1] not in _USUAL or whole:
            known = ", ".join(f"{kind}:{usual:g}" for kind, usual in _USUAL.items())
            raise OptionError(f"{part!r}: write KIND or KIND:AMOUNT, such as {known}")
        amount = _USUAL[match[1]] if match[2] is None else float(match[2])
        amounts[match[1]] = int(amount) if match[1] == "shift" else amount
    return amounts or None


class Rate(float):
    """How often an hour."""


def share_or_rate(text: str) -> float:
    """Read a share, or how often an hour, a minute or a day.

    >>> share_or_rate("1%"), share_or_rate("12/day")
    (0.01, 0.5)
    """
    count, _, unit = text.strip().partition("/")
    try:
        rate = Rate(float(count) * {"h": 1.0, "min": 60.0, "day": 1 / 24}[unit])
    except (KeyError, ValueError):
        return share(text)
    if not 0 < rate <= 3600:
        raise OptionError(f"{text!r}: write a rate of at most one a second, as 1/h or 12/day")
    return rate


def share(text: str, example: float = 0.01) -> float:
    """Read a share, as 1% or 0.01; a number that may be percent if it is near an example."""
    text = text.strip()
    try:
        value = float(text.rstrip("% ")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        wish = f"{text}%, or " if max(1, 50 * example) <= value < 100 and "%" not in text else ""
        raise OptionError(f"{text!r}: write {wish}a share such as {example:.0%} or {example:g}")
    return value


def seconds(text: str) -> float:
    """Read a time, as 90s, 10m or 2h; none is infinite."""
    if text.strip() == "none":
        return math.inf
    match = re.fullmatch(rf"\s*({_WHOLE}(?:\.\d+)?)\s*([a-z]*)\s*", text)
    if match is None or match[2] not in _UNITS or float(match[1]) <= 0:
        raise OptionError(f"{text!r}: write a time, as in 90s, 10m or 2h, or none")
    return float(match[1]) * _UNITS[match[2]]


def sizes(text: str) -> list[int]:
    """Read sizes separated by commas."""
    return [parse_size(part) for part in text.split(",")]


CLASSES, NUMBERS, NOVELTY = TASKS = ("classes", "numbers", "novelty")
LEARNED, PAPER = METHODS = ("learned", "paper")
#: The tables of ``tinykernel.toml``.
PARTS = ("data", "train", "tune", "export")
#: Settings of the method of the papers, and the parameters that they are.
OF_PAPER = {
    **{"lambda": "regularization", "paper_loss": "loss"},
    **{name: name for name in ("penalty", "binary")},
}
#: Settings with an option of `train`, in the order of its help.
OPTIONS_OF_TRAIN = (
    *("label", "groups", "name", "task", "budget", "target", "window", "hop", "window_shape"),
    *("image_shape", "augment", "class_weight", "missing", "effort", "validation", "test", "seed"),
    "max_time",
)
_SUPERVISED = (CLASSES, NUMBERS)
_BY_DEFAULT = re.compile(r"By default (.*?)\.(?: |$)")


@dataclass(frozen=True)
class Setting:
    """One setting."""

    part: str  # the table in ``tinykernel.toml``: {"data", "train", "tune", "export"}
    name: str
    kind: str  # of its value: ``int``, ``TIME``, ``keep|drop``.
    text: str  # description.
    reader: Reader | None = None  # by default for a text, or for one of the kinds.
    default: Any = None  # None for a value that is chosen, or without default.
    range: str = ""
    tasks: tuple[str, ...] = TASKS
    methods: tuple[str, ...] = METHODS
    of_trainer: bool = False  # whether it is an option of the trainer.

    def read(self, text: str) -> Any:
        """Read and check a value; raises TinykernelError."""
        choices = self.kind.split("|")
        return (self.reader or (choice(*choices) if len(choices) > 1 else str))(text)

    @property
    def hint(self) -> str:
        """The option of `train`, or ``--set NAME``."""
        return self.option if self.name in OPTIONS_OF_TRAIN else f"--set {self.name}"

    @property
    def option(self) -> str:
        """The option of a command, if it has one."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def summary(self) -> str:
        """The first sentence of the text, as ``--help`` shows it."""
        first = re.split(r"(?<=[\w)'%])[.;] ", self.text)[0].rstrip(".")
        word = first.split()[0]
        is_name = word == "C" or word[1:].lower() != word[1:]
        return first if is_name else first[0].lower() + first[1:]

    @property
    def usual(self) -> Any:
        """The default; of trainer options that of their field."""
        return _TRAINER_DEFAULTS[self.name] if self.of_trainer else self.default

    @property
    def description(self) -> str:
        """The text without the sentence on the default."""
        return _BY_DEFAULT.sub("", self.text).rstrip()

    @property
    def usual_text(self) -> str:
        """The default as text: a value, or how one is chosen."""
        chosen = _BY_DEFAULT.search(self.text)
        return str(self.usual) if self.usual is not None else chosen[1] if chosen else ""

    @property
    def help(self) -> str:
        """The text of ``--help``: the summary and the default."""
        return self.summary + bounds(self.usual_text)


def bounds(default: str, range: str = "") -> str:
    """Return default and range as they stand at the end of the help of an option."""
    parts = {"default": default, "range": range}
    text = "; ".join(f"{name}: {value}" for name, value in parts.items() if value)
    return text and f"  [{text}]"


_data, _train, _tune, _export = (partial(Setting, part) for part in PARTS)
_paper = partial(_train, tasks=(CLASSES,), methods=(PAPER,))

_OWN = (
    _data("label", "COLUMN", "Column, array or file of the labels."),
    _data(
        "groups",
        "COLUMN",
        "Column, array or file of groups. A group, such as a person or a machine, is held out as a "
        "whole.",
    ),
    _data("inputs", "COLUMNS", "Columns to use as inputs.", reader=names),
    _data("drop", "COLUMNS", "Columns to ignore.", reader=names),
    _data(
        "missing",
        "keep|drop|error",
        "What to do with missing values. By default keep, for recordings error. "
        "keep: give them a number of their own. drop: drop the rows. error: refuse the "
        "data. Recordings take drop and error.",
    ),
    _data(
        "input_type",
        "uint8|int8|uint16|int16|int32|float32",
        "C type of the inputs. By default the type of the data.",
        tasks=_SUPERVISED,
    ),
    _data(
        "window",
        "TIME",
        "Recordings: window length, such as 2.56s. Also 2560ms, or a number of samples.",
    ),
    _data(
        "hop",
        "TIME",
        "Recordings: hop. By default half a window. It is the time between two decisions; that of "
        "short clips is 0.1 s.",
    ),
    _data(
        "rate",
        "HZ",
        "Recordings: sampling rate, if the files do not state it. Sounds are resampled to it.",
        reader=number(1e-9, 1e12, "samples a second"),
        range="above 0",
    ),
    _data("time", "COLUMN", "Recordings: column of times, if its name is not recognised."),
    _data(
        "name",
        "PATTERN",
        "Pattern that reads label and group from file names, such as '{label}_{person}_{n}'. For "
        "recordings and pictures. Folders count, as in '{person}/{label}/*'.",
    ),
    _data(
        "short",
        "pad|drop",
        "What to do with recordings shorter than a window. By default pad for sounds. pad: pad "
        "them with zeros. drop: drop them.",
    ),
    _data(
        "background",
        "LABELS",
        "Classes that are not events of a stream. By default those called background, noise, "
        "silence, off, none or nothing.",
        reader=names,
        tasks=(CLASSES,),
    ),
    _data(
        "test",
        "SHARE|FILE",
        "Test rows: share or file. A share is held out, in whole groups if there are groups. It "
        "has no effect if DATA has a test part.",
        reader=or_file(number(0, 0.99, "a share from 0 to 0.99, or a file")),
        default=0.2,
        range="0 to 0.99",
        tasks=_SUPERVISED,
    ),
    _train(
        "task",
        "|".join(TASKS),
        "What to predict. classes: labels. numbers (or regression): values. novelty: whether a row "
        "differs from the normal rows of the training.",
        reader=choice(*TASKS, regression=NUMBERS),
        default=CLASSES,
    ),
    _train(
        "budget",
        "SIZE|LIMITS",
        "Flash limit, or limits. By default 30KB. With a model size there is no limit. "
        "Write several as flash=30KB,ram=8KB,stack=512B,time=2ms@80MHz, or with instructions=200k "
        "in place of the time.",
        reader=parse_limits,
    ),
    _train(
        "target", "TARGET", "Target processor; 'tinykernel targets' lists all.", default="cortex-m4"
    ),
    _train(
        "max_time",
        "TIME",
        "Time limit, as 5m. By default 10m, for tables 1m. There is none for tune, "
        "and none if epochs are set. none: search and train as long as it helps. The search and "
        "the epochs are laid out to end in time, by the speed of this computer; tune starts no "
        "training that would probably end later.",
        reader=seconds,
        tasks=_SUPERVISED,
    ),
    _train(
        "seed",
        "int",
        "Random seed.",
        reader=number(0, LARGEST_SEED, f"a whole number from 0 to {LARGEST_SEED}", int),
        default=0,
        range=f"0 to {LARGEST_SEED}",
    ),
    _train(
        "validation",
        "SHARE",
        "Share of training rows to choose the epoch.",
        reader=number(1e-9, 0.4999999, "a share above 0 and below 0.5"),
        range="above 0, below 0.5",
        tasks=_SUPERVISED,
        methods=(LEARNED,),
    ),
    _train(
        "method",
        "|".join(METHODS),
        "Training method. paper is that of the source papers, for comparison.",
        default=LEARNED,
        tasks=_SUPERVISED,
    ),
    _paper(
        "lambda",
        "float",
        "Weight of the penalty. By default 0.1.",
        reader=number(0, 1e9, "a number of 0 or more"),
        range="0 or more",
    ),
    _paper("paper_loss", "squared_hinge|hinge|logistic|squared", "Loss. By default squared_hinge."),
    _paper(
        "penalty",
        "l2|l1",
        "Penalty of the weights. By default l2. l1: fewer weights that are not 0.",
    ),
    _paper(
        "binary",
        "false|true",
        "Whether weights are -1 or 1 only. By default false.",
        reader=truth,
    ),
    _train(
        "false_alarms",
        "SHARE",
        "Largest share of normal rows to call novel. A fifth of the rows is held out to prove it.",
        reader=share,
        range="above 0, below 1",
        default=0.01,
        tasks=(NOVELTY,),
    ),
    _tune(
        "pick",
        "SIZE",
        "With -o: write the finished model of this size, or of the next smaller one. The options "
        "are those of the first call.",
        reader=parse_size,
    ),
    _tune(
        "sizes",
        "SIZES",
        "Sizes to try. By default 1KB, 2KB, 3KB, 4KB, 6KB and so on up to the budget.",
        reader=sizes,
    ),
    _tune(
        "folds",
        "int",
        "Number of folds of the cross-validation.",
        reader=number(2, 1000, "a whole number, 2 or more", int),
        default=4,
        range="2 or more",
    ),
    _tune(
        "backend",
        "ADDRESS",
        "Dask scheduler whose workers train, such as tcp://127.0.0.1:8786. By default none.",
    ),
    _export(
        "board", "NAME", "PlatformIO board; PLATFORM:NAME if 'tinykernel targets' does not list it."
    ),
    _export("framework", "NAME", "Framework, such as arduino, espidf or cmsis."),
    _export(
        "version",
        "X.Y.Z",
        "Version of the model, such as 1.4.0, for the header, the manifest and the package.",
    ),
    _export(
        "ci",
        "github",
        "Add a CI workflow. On every commit of your firmware it checks that the model generates "
        "this C, compares all scores, and checks the budget of the training.",
        reader=choice("github"),
    ),
)

# Trainer options that are settings of another name, or none.
_LEFT_OUT = ("random_state", "validation_fraction", "hop", "rate")
_READERS: dict[str, Reader] = {
    "augment": augmentation,
    "beside": number_or_names,
    "loss": loss,
    "window_shape": shape("SAMPLESxCHANNELS", (2,), "128x6"),
    "frame": str,
    "image_shape": shape("HEIGHTxWIDTH", (2, 3), "28x28 or 32x32x3"),
}
_KINDS = {
    "augment": "KIND[:AMOUNT],...",
    "beside": "int|COLUMNS",
    "cells": "auto|int",
    "window_shape": "SxC",
    "image_shape": "HxW[xC]",
    "frame": "WxH:FORMAT",
    "class_weight": "WEIGHTS",
    "n_components": "int",
    "loss": "squared|absolute|LEVELS",
    "spectrum": "auto|off|on|LENGTH/HOP/BANDS",
}
_OF_CLASSES = {field.name: field for field in fields(TrainerOptions)}
_OF_NUMBERS = {field.name: field for field in fields(RegressorOptions)}
_TRAINER_DEFAULTS = {name: field.default for name, field in (_OF_NUMBERS | _OF_CLASSES).items()}
_TAKEN_BY = {
    CLASSES: _OF_CLASSES.keys(),
    NUMBERS: _OF_NUMBERS.keys(),
    NOVELTY: {"n_kernels", "window_shape"},
    PAPER: {"n_components", "sigma", "n_jobs"},
}


def _of_trainer() -> Iterator[Setting]:
    """Yield the settings from the trainer's options."""
    for name, field in (_OF_CLASSES | _OF_NUMBERS).items():
        if name not in _LEFT_OUT:
            yield Setting(
                "data" if name.endswith("_shape") else "train",
                name,
                _KINDS.get(name) or _kind(kind_of(field)),
                _as_typed(field.metadata["text"]),
                _reader(field),
                range=field.metadata["range"],
                tasks=tuple(task for task in TASKS if name in _TAKEN_BY[task]),
                methods=METHODS if name in _TAKEN_BY[PAPER] else (LEARNED,),
                of_trainer=True,
            )


def _as_typed(text: str) -> str:
    """Write the values of Python in a text as the command line takes them.

    >>> _as_typed('for instance ``{"yes": 2, "no": 1}``, or (0.1, 0.9)')
    'for instance yes:2,no:1, or 0.1,0.9'
    """
    plain = text.replace("`", "").replace('"', "")
    spaces = re.compile(r"(?<=[:,]) ")
    return re.sub(r"\{([^}]*)\}|\(([\d., ]+)\)", lambda m: spaces.sub("", m[1] or m[2]), plain)


def _kind(declared: str) -> str:
    """Convert a type of numpydoc for the command line."""
    return re.sub(r'[{}" ]', "", declared.removesuffix(" or None")).replace(",", "|")


def _reader(field: Field[Any]) -> Reader:
    check, read = field.metadata["check"], _READERS.get(field.name, plain)

    def checked(text: str) -> Any:
        value = read(text)
        if value is not None and not isinstance(value, list):  # names of columns
            check(field.name, value)
        return value

    return checked


SETTINGS = {setting.name: setting for setting in (*_OWN, *_of_trainer())}


def complete_targets(incomplete: str) -> list[str]:
    """Return the targets that begin like the text, or like its part after the last comma."""
    before, comma, begun = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in (*TARGETS, "all") if name.startswith(begun)]


def complete_settings(incomplete: str) -> list[str]:
    """Return the settings that begin like the text."""
    return [name for name in SETTINGS if name.startswith(incomplete)]


def complete_assignments(incomplete: str) -> list[str]:
    """Return NAME= of the settings that begin like the text; after it, the words to choose from."""
    name, equals, begun = incomplete.partition("=")
    if not equals:
        return [f"{name}=" for name in complete_settings(incomplete)]
    choices = SETTINGS[name].kind.split("|") if name in SETTINGS else []
    return [f"{name}={word}" for word in choices if len(choices) > 1 and word.startswith(begun)]
