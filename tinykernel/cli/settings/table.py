"""Every setting of ``train``, ``tune`` and ``export``: name, kind, default, range, text, reader.

Those of the trainer are the fields of its options, declared in `tinykernel.training.options`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import Field, dataclass, fields
from typing import Any

from tinykernel.cli.settings import parsing
from tinykernel.training.options.fields import TrainerOptions
from tinykernel.training.options.ranges import LARGEST_SEED
from tinykernel.training.options.regression import RegressorOptions

CLASSES, NUMBERS, NOVELTY = TASKS = ("classes", "numbers", "novelty")
LEARNED, PAPER = METHODS = ("learned", "paper")
#: The tables of ``tinykernel.toml``.
PARTS = ("data", "train", "tune", "export")
#: What `train` has options for, in the order in which one thinks.
OPTIONS_OF_TRAIN = (
    "label",
    "groups",
    "name",
    "task",
    "budget",
    "target",
    "window",
    "hop",
    "window_shape",
    "image_shape",
    "augment",
    "class_weight",
    "missing",
    "effort",
    "validation",
    "test",
    "seed",
)
_SUPERVISED = (CLASSES, NUMBERS)


@dataclass(frozen=True)
class Setting:
    """One setting."""

    name: str
    # The table of ``tinykernel.toml`` that it stands in.
    part: str  # {"data", "train", "tune", "export"}
    kind: str  # what is given, for people: ``int``, ``TIME``, ``drop|median``.
    read: parsing.Reader  # takes text, raises TinykernelError.
    text: str  # what it is.
    default: Any = None  # None for what is chosen, or has no default.
    range: str = ""
    tasks: tuple[str, ...] = TASKS  # for which it is.
    methods: tuple[str, ...] = METHODS
    of_trainer: bool = False  # whether `tinykernel.train` takes it as a parameter of the estimator.

    @property
    def hint(self) -> str:
        """How `train` takes it: an option of its own, or ``--set NAME``."""
        return self.option if self.name in OPTIONS_OF_TRAIN else f"--set {self.name}"

    @property
    def option(self) -> str:
        """The option of a command, where a command has one."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def summary(self) -> str:
        """The first sentence of the text, as ``--help`` shows it."""
        first = re.split(r"(?<=[a-z)])\. ", self.text)[0].rstrip(".")
        return first[0].lower() + first[1:]


_OWN = (
    Setting(
        "label",
        "data",
        "COLUMN",
        str,
        "Column (tables), array (.npz) or file (.npy) of the labels.",
    ),
    Setting(
        "groups",
        "data",
        "COLUMN",
        str,
        "Column, array or file of the person, record or batch of a row. Whole groups are left out "
        "to choose and to test.",
    ),
    Setting("inputs", "data", "COLUMNS", parsing.names, "Columns that are inputs."),
    Setting("drop", "data", "COLUMNS", parsing.names, "Columns that are none: an id, a time."),
    Setting(
        "missing",
        "data",
        "keep|drop|median|error",
        parsing.choice("keep", "drop", "median", "error"),
        "Rows that lack a value: keep gives it a number of its own (the default for tables), drop "
        "leaves them out, median fills them, as your firmware must then, error refuses them. "
        "Windows of recordings: drop, or error (the default).",
    ),
    Setting(
        "input_type",
        "data",
        "TYPE",
        parsing.choice("uint8", "int8", "uint16", "int16", "int32", "float32"),
        "What the firmware takes: uint8, int8, uint16, int16, int32 or float32. As in the file if "
        "not given.",
        tasks=_SUPERVISED,
    ),
    Setting(
        "window",
        "data",
        "TIME",
        str,
        "Recordings: length of a window, as 2.56s, 2560ms or a number of samples.",
    ),
    Setting(
        "hop",
        "data",
        "TIME",
        str,
        "Recordings: from one decision to the next. Half a window if not given.",
    ),
    Setting(
        "rate",
        "data",
        "HZ",
        parsing.number(1e-9, 1e12, "samples a second"),
        "Recordings: samples a second, where no file tells it. Sounds of another rate are "
        "brought to it.",
        range="above 0",
    ),
    Setting(
        "time", "data", "COLUMN", str, "Recordings: column of times, where its name does not say."
    ),
    Setting(
        "mixed",
        "data",
        "drop|majority",
        parsing.choice("drop", "majority"),
        "Recordings: windows of several labels.",
        "drop",
    ),
    Setting(
        "broken",
        "data",
        "drop|error",
        parsing.choice("drop", "error"),
        "Pictures that cannot be read: left out, or refused.",
        "drop",
    ),
    Setting(
        "name",
        "data",
        "PATTERN",
        str,
        "Recordings and pictures: where label and group stand in the names of files and folders, "
        "as in '{label}_{person}_{n}' or '{person}/{label}/*'.",
    ),
    Setting(
        "short",
        "data",
        "pad|drop",
        parsing.choice("pad", "drop"),
        "Recordings shorter than a window: padded with zeros (the default for sounds) or left out.",
    ),
    Setting(
        "test",
        "data",
        "SHARE|FILE",
        parsing.or_file(parsing.number(0, 0.99, "a share, as in 0.2, or a file")),
        "Share kept aside to test, where DATA has no test part; or the file of the test rows.",
        0.2,
        range="0 to 0.99",
        tasks=_SUPERVISED,
    ),
    Setting(
        "task",
        "train",
        "|".join(TASKS),
        parsing.choice(*TASKS, regression=NUMBERS),
        "Tell classes, predict numbers (or: regression), or learn from normal rows alone what is "
        "novel.",
        CLASSES,
    ),
    Setting(
        "budget",
        "train",
        "SIZE|LIMITS",
        parsing.limits,
        "Flash, as 30KB, or limits: flash=30KB,ram=8KB,stack=512B,time=2ms@80MHz or "
        "instructions=200k. 30KB if neither it nor a size of the model is given.",
    ),
    Setting("target", "train", "TARGET", str, "Processor.", "cortex-m4"),
    Setting(
        "seed",
        "train",
        "int",
        parsing.number(0, LARGEST_SEED, f"a whole number from 0 to {LARGEST_SEED}", int),
        "Of every random choice.",
        0,
        range=f"0 to {LARGEST_SEED}",
    ),
    Setting(
        "validation",
        "train",
        "DATA|SHARE",
        parsing.share_or_file,
        "Choose the best epoch by the rows of this file, or by this share of the training rows.",
        tasks=_SUPERVISED,
        methods=(LEARNED,),
    ),
    Setting(
        "method",
        "train",
        "|".join(METHODS),
        parsing.choice(*METHODS),
        "The trainer, or that of the papers, to compare with.",
        LEARNED,
        tasks=_SUPERVISED,
    ),
    Setting(
        "max_error",
        "train",
        "SHARE",
        parsing.share,
        "Answer only as often as an error among the answers of at most this can be promised. "
        "Calibrates on training rows that are kept aside, whole groups of them.",
        tasks=(CLASSES,),
    ),
    Setting(
        "calibration_size",
        "train",
        "SHARE",
        parsing.number(0.01, 0.9, "a share from 0.01 to 0.9"),
        "Share of the training rows that is kept aside for max_error, or for false_alarms.",
        0.2,
        "0.01 to 0.9",
        (CLASSES, NOVELTY),
    ),
    Setting(
        "false_alarms",
        "train",
        "SHARE",
        parsing.share,
        "Take at most this share of normal rows for novel, by rows that are kept aside.",
        0.01,
        tasks=(NOVELTY,),
    ),
    Setting(
        "n_prototypes",
        "train",
        "int",
        parsing.number(1, 1 << 20, "a whole number, 1 or more", int),
        "What is normal is what is near one of them; half a byte an input each. One for 25 rows, "
        "at most 4096 bytes, if not given.",
        range="1 or more",
        tasks=(NOVELTY,),
    ),
    Setting(
        "regularization",
        "train",
        "float",
        parsing.plain,
        "lambda of the papers. Searched if not given.",
        range="0 or more",
        tasks=(CLASSES,),
        methods=(PAPER,),
        of_trainer=True,
    ),
    Setting("max_time", "tune", "TIME", parsing.seconds, "Begin nothing that would end later."),
    Setting(
        "pick",
        "tune",
        "SIZE",
        parsing.n_bytes,
        "With -o: write the model of this size. Where there is a journal, nothing is trained.",
    ),
    Setting(
        "sizes",
        "tune",
        "SIZES",
        parsing.sizes,
        "Sizes to try, instead of 1KB,2KB,3KB,4KB,6KB,... up to the budget.",
    ),
    Setting(
        "folds",
        "tune",
        "int",
        parsing.number(2, 1000, "a whole number, 2 or more", int),
        "Parts of the training rows, each held out once.",
        4,
        "2 or more",
    ),
    Setting("csv", "tune", "FILE", str, "Also write the curve as a table: .csv."),
    Setting("plot", "tune", "FILE", str, "Also draw the curve: .svg or .png."),
    Setting(
        "journal",
        "tune",
        "DIR",
        str,
        "Where finished trainings are kept. DATA.tune beside the output if not given.",
    ),
    Setting(
        "jobs",
        "tune",
        "int",
        parsing.number(1, 4096, "a whole number, 1 or more", int),
        "Trainings at a time. One a processor if not given.",
        range="1 or more",
    ),
    Setting(
        "backend",
        "tune",
        "threading|loky|dask",
        parsing.choice("threading", "loky", "dask"),
        "Of joblib.",
        "threading",
    ),
    Setting("scheduler", "tune", "ADDRESS", str, "Of Dask, with backend dask."),
    Setting("board", "export", "NAME", str, "PlatformIO board."),
    Setting("framework", "export", "NAME", str, "arduino, espidf, cmsis, ..."),
    Setting(
        "platform", "export", "NAME", str, "PlatformIO platform, for a board that is not listed."
    ),
    Setting(
        "ci",
        "export",
        "github",
        parsing.choice("github"),
        "Add a workflow that generates, verifies and measures the model on every commit of your "
        "firmware.",
    ),
    Setting(
        "ci_budget",
        "export",
        "SIZE|LIMITS",
        parsing.limits,
        "What that workflow checks. The budget of the training if not given.",
    ),
)
# Fields of the trainer that are settings of another name, or none.
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
    "class_weight": "balanced|LABEL:WEIGHT,...",
    "n_components": "int|LAYOUT:int,...",
    "loss": "squared|absolute|LEVELS",
    "spectrum": "auto|off|on|LENGTH/HOP/BANDS",
}
_IN_NOVELTY = ("n_kernels", "window_shape")
_IN_PAPER = ("n_components", "sigma", "n_jobs")


def _of_trainer() -> Iterator[Setting]:
    """Yield the settings that are fields of the trainer's options."""
    of_classes = {field.name: field for field in fields(TrainerOptions)}
    of_values = {field.name: field for field in fields(RegressorOptions)}
    for name, field in (of_classes | of_values).items():
        if name in _LEFT_OUT or field.metadata["found"]:
            continue
        tasks = tuple(
            task
            for task, there in (
                (CLASSES, name in of_classes),
                (NUMBERS, name in of_values),
                (NOVELTY, name in _IN_NOVELTY),
            )
            if there
        )
        yield Setting(
            name,
            "data" if name.endswith("_shape") else "train",
            _KINDS.get(name) or _kind(field.metadata["type"]),
            _reader(field),
            field.metadata["text"].replace("`", "").replace('"', ""),
            range=field.metadata["range"],
            tasks=tasks,
            methods=METHODS if name in _IN_PAPER else (LEARNED,),
            of_trainer=True,
        )


def _kind(declared: str) -> str:
    """Write a type for the command line.

    >>> _kind('{"auto", "off", 2} or None'), _kind("int or None")
    ('auto|off|2', 'int')
    """
    return re.sub(r'[{}" ]', "", declared.removesuffix(" or None")).replace(",", "|")


def _reader(field: Field[Any]) -> parsing.Reader:
    check, how = field.metadata["check"], _READERS.get(field.name, parsing.plain)

    def checked(text: str) -> Any:
        value = how(text)
        if value is not None and not isinstance(value, list):  # names of columns
            check(field.name, value)
        return value

    return checked


SETTINGS = {setting.name: setting for setting in (*_OWN, *_of_trainer())}
#: The defaults of the trainer, which `tinykernel options` shows.
TRAINER_DEFAULTS = {field.name: field.default for field in fields(RegressorOptions)} | {
    field.name: field.default for field in fields(TrainerOptions)
}
