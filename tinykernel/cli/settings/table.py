"""All settings of ``train``, ``tune`` and ``export``: name, kind, default, range, text, reader.

Those of the trainer are the fields of its options (`tinykernel.training.options`).
"""

import re
from collections.abc import Iterator
from dataclasses import Field, dataclass, fields
from functools import partial
from typing import Any

from tinykernel.cli.settings import parsing
from tinykernel.measure.limits import parse_limits, parse_size
from tinykernel.training.options.declarations import kind_of
from tinykernel.training.options.fields import TrainerOptions
from tinykernel.training.options.ranges import LARGEST_SEED
from tinykernel.training.options.regression import RegressorOptions

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
    reader: parsing.Reader | None = None  # by default for a text, or for one of the kinds.
    default: Any = None  # None for a value that is chosen, or without default.
    range: str = ""
    tasks: tuple[str, ...] = TASKS
    methods: tuple[str, ...] = METHODS
    of_trainer: bool = False  # whether it is an option of the trainer.

    def read(self, text: str) -> Any:
        """Read and check a value; raises TinykernelError."""
        choices = self.kind.split("|")
        return (self.reader or (parsing.choice(*choices) if len(choices) > 1 else str))(text)

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
    _data("inputs", "COLUMNS", "Columns to use as inputs.", reader=parsing.names),
    _data("drop", "COLUMNS", "Columns to ignore.", reader=parsing.names),
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
        reader=parsing.number(1e-9, 1e12, "samples a second"),
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
        reader=parsing.names,
        tasks=(CLASSES,),
    ),
    _data(
        "test",
        "SHARE|FILE",
        "Test rows: share or file. A share is held out, in whole groups if there are groups. It "
        "has no effect if DATA has a test part.",
        reader=parsing.or_file(parsing.number(0, 0.99, "a share from 0 to 0.99, or a file")),
        default=0.2,
        range="0 to 0.99",
        tasks=_SUPERVISED,
    ),
    _train(
        "task",
        "|".join(TASKS),
        "What to predict. classes: labels. numbers (or regression): values. novelty: whether a row "
        "differs from the normal rows of the training.",
        reader=parsing.choice(*TASKS, regression=NUMBERS),
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
        reader=parsing.seconds,
        tasks=_SUPERVISED,
    ),
    _train(
        "seed",
        "int",
        "Random seed.",
        reader=parsing.number(0, LARGEST_SEED, f"a whole number from 0 to {LARGEST_SEED}", int),
        default=0,
        range=f"0 to {LARGEST_SEED}",
    ),
    _train(
        "validation",
        "SHARE",
        "Share of training rows to choose the epoch.",
        reader=parsing.number(1e-9, 0.4999999, "a share above 0 and below 0.5"),
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
        reader=parsing.number(0, 1e9, "a number of 0 or more"),
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
        reader=parsing.truth,
    ),
    _train(
        "false_alarms",
        "SHARE",
        "Largest share of normal rows to call novel. A fifth of the rows is held out to prove it.",
        reader=parsing.share,
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
        reader=parsing.sizes,
    ),
    _tune(
        "folds",
        "int",
        "Number of folds of the cross-validation.",
        reader=parsing.number(2, 1000, "a whole number, 2 or more", int),
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
        reader=parsing.choice("github"),
    ),
)

# Trainer options that are settings of another name, or none.
_LEFT_OUT = ("random_state", "validation_fraction", "hop", "rate")
_READERS: dict[str, parsing.Reader] = {
    "augment": parsing.augmentation,
    "beside": parsing.number_or_names,
    "loss": parsing.loss,
    "window_shape": parsing.shape("SAMPLESxCHANNELS", (2,), "128x6"),
    "frame": str,
    "image_shape": parsing.shape("HEIGHTxWIDTH", (2, 3), "28x28 or 32x32x3"),
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


def _reader(field: Field[Any]) -> parsing.Reader:
    check, read = field.metadata["check"], _READERS.get(field.name, parsing.plain)

    def checked(text: str) -> Any:
        value = read(text)
        if value is not None and not isinstance(value, list):  # names of columns
            check(field.name, value)
        return value

    return checked


SETTINGS = {setting.name: setting for setting in (*_OWN, *_of_trainer())}
