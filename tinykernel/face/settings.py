"""All settings of ``train``, ``tune`` and ``export``.

Those of the trainer are its options (`tinykernel.learn.options`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from tinykernel.base import reading as parsing
from tinykernel.base.options import Option, options_of
from tinykernel.compile.targets import TARGETS
from tinykernel.learn.options import RegressorOptions, TrainerOptions
from tinykernel.run.limits import parse_limits, parse_size

CLASSES, NUMBERS, NOVELTY = TASKS = ("classes", "numbers", "novelty")
LEARNED, PAPER = METHODS = ("learned", "paper")
#: The tables of ``tinykernel.toml``.
PARTS = ("data", "train", "tune", "export")
#: Settings with an option of `train`, in the order of its help.
OPTIONS_OF_TRAIN = (
    *("label", "groups", "name", "task", "budget", "target", "window", "hop", "window_shape"),
    *("image_shape", "augment", "class_weight", "missing", "effort", "validation", "test", "also"),
    *("seed", "noise", "max_time"),
)
_SUPERVISED = (CLASSES, NUMBERS)


@dataclass(frozen=True, kw_only=True)
class Setting(Option):
    """One setting: an option, and where it is used."""

    part: str  # the table in ``tinykernel.toml``: one of `PARTS`.
    name: str
    parameter: str  # its name in Python.
    tasks: tuple[str, ...] = TASKS
    methods: tuple[str, ...] = METHODS
    usual: Any = None  # what holds where it is not set: for `default` None the trainer knows.
    of_trainer: bool = False  # whether it is an option of the trainer.

    def parse(self, text: str) -> Any:
        """Read and check a value; raises TinykernelError."""
        value = self.read(text)
        if value is not None and not isinstance(value, list):  # names of columns
            self.check(self.name, value)
        return value

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
        """The first sentence of the description, as ``--help`` shows it."""
        first = re.split(r"(?<=[\w)'%])[.;] ", self.description)[0].rstrip(".")
        word = first.split()[0]
        is_name = word == "C" or word[1:].lower() != word[1:]
        return first if is_name else first[0].lower() + first[1:]

    @property
    def usual_text(self) -> str:
        """The default as text: a value, or how one is chosen."""
        return self.chosen if self.usual is None else str(self.usual)

    @property
    def help(self) -> str:
        """The text of ``--help``: the summary and the default."""
        return self.summary + bounds(self.usual_text)


def bounds(default: str, range: str = "") -> str:
    """Return default and range as they stand at the end of the help of an option."""
    parts = {"default": default, "range": range}
    text = "; ".join(f"{name}: {value}" for name, value in parts.items() if value)
    return text and f"  [{text}]"


def sizes(text: str) -> list[int]:
    """Read sizes separated by commas."""
    return [parse_size(part) for part in text.split(",")]


def _own(part: str, name: str, form: str, text: str, chosen: str = "", **more: Any) -> Setting:
    """Return a setting that is no option of the trainer."""
    choices = form.split("|")
    more = {"read": parsing.choice(*choices) if len(choices) > 1 else str} | more
    more = {"parameter": name, "usual": more.get("default")} | more
    return Setting(part=part, name=name, form=form, text=text, chosen=chosen, **more)


_data, _train, _tune, _export = (partial(_own, part) for part in PARTS)
_paper = partial(_train, tasks=(CLASSES,), methods=(PAPER,))

_OWN = (
    _data("label", "COLUMN", "Column, array or file of the labels."),
    _data(
        "groups",
        "COLUMN",
        "Column, array or file of groups. A group, such as a person or a machine, is held out as a "
        "whole.",
    ),
    _data("inputs", "COLUMNS", "Columns to use as inputs.", read=parsing.names),
    _data("drop", "COLUMNS", "Columns to ignore.", read=parsing.names),
    _data(
        "missing",
        "keep|drop|error",
        "What to do with missing values. keep: give them a number of their own. drop: drop the "
        "rows. error: refuse the data. Recordings take drop and error.",
        "keep, for recordings error",
    ),
    _data(
        "input_type",
        "uint8|int8|uint16|int16|int32|float32",
        "C type of the inputs.",
        "the type of the data",
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
        "Recordings: hop. It is the time between two decisions; that of short clips is 0.1 s.",
        "half a window",
    ),
    _data(
        "rate",
        "HZ",
        "Recordings: sampling rate, if the files do not state it. Sounds are resampled to it.",
        read=parsing.number(1e-9, 1e12, "samples a second"),
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
        "What to do with recordings shorter than a window. pad: pad them with zeros. drop: drop "
        "them.",
        "pad for sounds",
    ),
    _data(
        "label_at",
        "all|peak",
        "Label of a window of a recording. all: that of all its samples. peak: that at its "
        "strongest sample, and windows of no more energy than 95 % of those of background become "
        "background.",
        default="all",
    ),
    _data(
        "axes",
        "N",
        "Recordings: axes of files whose lines are signals, each sample with all axes. The label "
        "is the name of the file.",
        read=parsing.number(1, 64, "a number of axes, 1 to 64", int),
        range="1 to 64",
    ),
    _data(
        "clips",
        "auto|whole|windows",
        "Sounds longer than a window, beside background: where the label is. whole: somewhere in a "
        "recording, as a word is; training finds where. windows: all the time. auto: whole, if the "
        "recordings have at most five windows.",
        default="auto",
        tasks=(CLASSES,),
    ),
    _train(
        "noise",
        "DIR|off",
        "Noise in words: a folder. Its sounds are mixed into clips of words, beside noise of all "
        "colours, blows and babble of the background, which are made. off: mix in none, and leave "
        "the loudness as it is.",
        "its own",
        read=str,
        tasks=(CLASSES,),
    ),
    _data(
        "background",
        "LABELS",
        "Classes that are not events of a stream.",
        "those called background, noise, silence, off, none or nothing",
        read=parsing.names,
        tasks=(CLASSES,),
    ),
    _data(
        "also",
        "DIR",
        "More recordings to train on. Such are those of calibrate --save-worst. A folder is the "
        "label of sounds, and a column called label that of others.",
        tasks=(CLASSES,),
    ),
    _data(
        "test",
        "SHARE|FILE",
        "Test rows: share or file. A share is held out, in whole groups if there are groups. It "
        "has no effect if DATA has a test part.",
        read=parsing.or_file(parsing.number(0, 0.99, "a share from 0 to 0.99, or a file")),
        default=0.2,
        range="0 to 0.99",
        tasks=_SUPERVISED,
    ),
    _train(
        "task",
        "|".join(TASKS),
        "What to predict. classes: labels. numbers (or regression): values. novelty: whether a row "
        "differs from the normal rows of the training.",
        read=parsing.choice(*TASKS, regression=NUMBERS),
        default=CLASSES,
    ),
    _train(
        "budget",
        "SIZE|LIMITS",
        "Flash limit, or limits. With a model size there is no limit. Write several as "
        "flash=30KB,ram=8KB,stack=512B,time=2ms@80MHz, or with instructions=200k in place of the "
        "time.",
        "30KB",
        read=parse_limits,
    ),
    _train(
        "target", "TARGET", "Target processor; 'tinykernel targets' lists all.", default="cortex-m4"
    ),
    _train(
        "max_time",
        "TIME",
        "Time limit, such as 5m. Search and epochs are laid out to end in time by the clock, and "
        "so by the speed of this computer; tune starts no training that would probably end "
        "later. none: search and train as long as it helps. By default train counts work, so that "
        "the model is the same on every computer, and tune has no limit.",
        "no clock",
        read=parsing.seconds,
        tasks=_SUPERVISED,
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
        "Weight of the penalty.",
        "0.1",
        parameter="regularization",
        read=parsing.number(0, 1e9, "a number of 0 or more"),
        range="0 or more",
    ),
    _paper(
        "paper_loss",
        "squared_hinge|hinge|logistic|squared",
        "Loss.",
        "squared_hinge",
        parameter="loss",
    ),
    _paper(
        "penalty",
        "l2|l1",
        "Penalty of the weights. l1: fewer weights that are not 0.",
        "l2",
    ),
    _paper(
        "binary",
        "false|true",
        "Whether weights are -1 or 1 only.",
        "false",
        read=parsing.truth,
    ),
    _train(
        "false_alarms",
        "SHARE",
        "Largest share of normal rows to call novel. A fifth of the rows is held out to prove it.",
        read=parsing.share,
        range="above 0, below 1",
        default=0.01,
        tasks=(NOVELTY,),
    ),
    _tune(
        "pick",
        "SIZE",
        "With -o: write the finished model of this size, or of the next smaller one. The options "
        "are those of the first call.",
        read=parse_size,
    ),
    _tune(
        "sizes",
        "SIZES",
        "Sizes to try.",
        "1KB, 2KB, 3KB, 4KB, 6KB and so on up to the budget",
        read=sizes,
    ),
    _tune(
        "folds",
        "int",
        "Number of folds of the cross-validation.",
        parameter="n_folds",
        read=parsing.number(2, 1000, "a whole number, 2 or more", int),
        default=4,
        range="2 or more",
    ),
    _tune(
        "backend",
        "ADDRESS",
        "Dask scheduler whose workers train, such as tcp://127.0.0.1:8786.",
        "none",
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
        read=parsing.choice("github"),
    ),
)

_OF_CLASSES, _OF_NUMBERS = options_of(TrainerOptions), options_of(RegressorOptions)
_TAKEN_BY = {
    CLASSES: _OF_CLASSES.keys(),
    NUMBERS: _OF_NUMBERS.keys(),
    NOVELTY: {"n_kernels", "window_shape", "random_state"},
    PAPER: {"n_components", "sigma", "n_jobs", "random_state"},
}


def _of_trainer() -> Iterator[Setting]:
    """Yield the options of the trainer that the command line does not declare itself."""
    before = {setting.name for setting in _OWN}
    for name, option in (_OF_CLASSES | _OF_NUMBERS).items():
        if name not in before:
            of_trainer = {
                "part": "train",
                "name": name,
                "parameter": name,
                "default": None,
                "usual": option.default,
                "tasks": tuple(task for task in TASKS if name in _TAKEN_BY[task]),
                "methods": METHODS if name in _TAKEN_BY[PAPER] else (LEARNED,),
                "of_trainer": True,
            }
            yield Setting(**{**vars(option), **of_trainer, **option.typed})


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
    choices = SETTINGS[name].form.split("|") if name in SETTINGS else []
    return [f"{name}={word}" for word in choices if len(choices) > 1 and word.startswith(begun)]
