"""Headers of models whose names, labels and columns are macros, behind headers of C and POSIX."""

import re
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.fuzz.batch import Batch
from tests.random_models import random_model
from tests.separable import separable_model
from tinykernel.base.coding import Coding
from tinykernel.base.errors import TinykernelError
from tinykernel.compile.sources import render_sources
from tinykernel.model.answers import Labels
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.tables import check_name
from tinykernel.run.program import write_sources

_HEADERS = (
    "assert ctype errno fenv float inttypes limits locale math setjmp signal stdarg stddef stdint "
    "stdio stdlib string time wchar wctype unistd fcntl sys/stat sys/time sys/types"
)
_INCLUDED = "".join(f"#include <{header}.h>\n" for header in _HEADERS.split())
_COMPILERS = (("gcc", "-xc", "-std=gnu99"), ("g++", "-xc++", "-std=gnu++17"))
_JUNK = ("", " ", "_", "*/", "\\", "??/", "\u00e4", "int", "EOF", "F", "B1", "a" * 200, "9")


def macros() -> list[str]:
    """List the macros of more than one word that the compiler of this computer has."""
    command = ["gcc", "-D_GNU_SOURCE", "-dM", "-E", "-xc", "-"]
    done = subprocess.run(command, input=_INCLUDED, capture_output=True, text=True, check=True)
    return sorted(re.findall(r"^#define ([A-Za-z][A-Za-z0-9]*_\w*)", done.stdout, re.MULTILINE))


def drawn(rng: np.random.Generator, known: list[str]) -> tuple[str, tuple[str, ...]]:
    """Draw the name of a model, and labels that begin some macro or end it."""
    words = str(rng.choice(known)).split("_")
    place = int(rng.integers(1, len(words)))
    name, rest = "_".join(words[:place]), "_".join(words[place:])
    others = [macro[len(name) + 1 :] for macro in known if macro.startswith(f"{name}_")]
    labels = [rest, *rng.choice(others, 3), *rng.choice(_JUNK, 3)]
    styles = (str.upper, str.lower, str.title, lambda text: text.replace("_", " "))
    labels = [styles[rng.integers(len(styles))](str(label)) for label in labels]
    return name.lower(), tuple(dict.fromkeys(label.strip() for label in labels))


def any_model(rng: np.random.Generator, labels: tuple[str, ...]) -> tuple[IntegerModel, Coding]:
    """Return a table or an image of such classes, the table with columns and texts of the same."""
    if rng.random() < 0.3:
        model = separable_model(1, n_classes=len(labels))
        return replace(model, answers=Labels(labels)), Coding()
    model = random_model(1, n_features=len(labels), n_classes=len(labels))
    columns = tuple(map(str, rng.permutation(labels)))
    coding = Coding({columns[0]: labels}, {columns[0]: 7.0})
    return replace(model, answers=Labels(labels), feature_names=columns), coding


def run(batch: Batch, size: int) -> None:
    """Compile the headers of `size` models, as C and as C++."""
    known = macros()
    for index in range(size):
        rng = np.random.default_rng((batch.seed, index))
        name, labels = drawn(rng, known)
        try:
            check_name(name)
            model, coding = any_model(rng, labels)
            files = render_sources(model, name, coding=coding)
        except TinykernelError:
            batch.counts["refused names"] += 1
            continue
        with tempfile.TemporaryDirectory() as folder:
            write_sources(Path(folder), files)
            text = f'{_INCLUDED}#include "{name}.h"\n#include "{name}_field.h"\n'
            for compiler, *options in _COMPILERS:
                command = [compiler, "-D_GNU_SOURCE", *options, "-Wall", "-Werror", "-Wno-unused"]
                command += [f"-I{folder}/include", "-fsyntax-only", "-"]
                done = subprocess.run(command, input=text, capture_output=True, text=True)
                batch.counts["headers"] += 1
                if done.returncode:
                    error = done.stderr.splitlines()[:3]
                    batch.find("differences", f"model {name!r} with {labels}: {error}")
