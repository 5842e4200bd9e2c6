"""Forests and linear models of scikit-learn in C: tinykernel, emlearn, m2cgen and micromlgen.

Run it with ``python benchmarks/converted.py --write docs/results/converted.md``; the others come
with ``pip install emlearn m2cgen micromlgen``, and are left out where they are missing. Everything
is linked for Cortex-M4 by the same compiler, runs over the same rows on this computer, and its
instructions are counted in the emulator. The code of micromlgen is C++ only around its functions;
these are compiled as C.

``--random 1000`` compares models of all families and options with their conversions instead, and
``--damaged 2000`` reads damaged files; both print counts, and each fault with its seed and number.
"""

import argparse
import importlib
import importlib.util
import itertools
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from _environment import describe_machine
from _page import print_section, rendered
from peers.building import Sources, count_instructions, flash_and_ram, header, run_on_host
from peers.converted import emlearn_sources
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from tests.fuzz import foreign
from tinykernel.conversion.models import convert
from tinykernel.run.bench import bench
from tinykernel.run.report import report

SETS = {"digits": load_digits, "cancer": load_breast_cancer, "wine": load_wine}
SETS |= {"digits in bytes": load_digits}
BYTES = "digits in bytes"  # rows in uint8, all others in float32
MODELS: dict[str, Any] = {
    "tree": DecisionTreeClassifier(random_state=0),
    "forest, 10 trees": RandomForestClassifier(10, random_state=0),
    "forest, 10 trees of 6 levels": RandomForestClassifier(10, max_depth=6, random_state=0),
    "forest, 20 trees of 6 levels": RandomForestClassifier(20, max_depth=6, random_state=0),
    "extra trees, 10": ExtraTreesClassifier(10, random_state=0),
    "logistic regression": LogisticRegression(max_iter=3000),
}
COUNTED = 3  # rows whose instructions are counted; the largest is shown
ROWS = 20000


class NotConvertedError(Exception):
    """A peer refuses a class of models."""


def rows_near(X: np.ndarray) -> np.ndarray:
    """Draw rows near those of X, of its type."""
    rng = np.random.default_rng(0)
    rows = X[rng.integers(0, len(X), ROWS)]
    noise = rng.normal(size=rows.shape) * X.std(axis=0) * 0.3
    rows = np.where(rng.random(rows.shape) < 0.3, rows + noise, rows)
    return (np.rint(rows).clip(0, 255) if X.dtype == np.uint8 else rows).astype(X.dtype)


def emlearn(model: Any, X: np.ndarray) -> Sources:
    """Trees that compare floats or int16, and shares in 8 bits in the leaves, or votes."""
    if isinstance(model, LogisticRegression):
        raise NotConvertedError("no linear models")
    n = X.shape[1]
    if X.dtype != np.uint8:
        call = f"net_predict(row, {n})"
        return emlearn_sources(model, call, X.dtype, n, method="inline", dtype="float")
    call = f"net_predict(wide, {n})"
    sources = emlearn_sources(model, call, X.dtype, n, method="inline", dtype="int16_t")
    widened = f"int16_t wide[{n}];\n    for (int i = 0; i < {n}; i++) wide[i] = row[i];\n    return"
    return replace(
        sources,
        files=sources.files | {"peer.c": sources.files["peer.c"].replace("return", widened)},
    )


def m2cgen(model: Any, X: np.ndarray) -> Sources:
    """Nested conditions on doubles."""
    code = importlib.import_module("m2cgen").export_to_c(model)
    n, classes = X.shape[1], len(model.classes_)
    is_line = classes == 2 and isinstance(model, LogisticRegression)
    best = f"for (int i = 1; i < {classes}; i++) if (output[i] > output[label]) label = i;"
    call = "label = score(input) > 0.0;" if is_line else f"score(input, output); {best}"
    code = re.sub(r"^(void|double) score", r"static \1 score", code, flags=re.M)
    text = f"""#include "peer.h"
#include <math.h>
{code}
int32_t peer_predict(const peer_input_t *row)
{{
    double input[{n}], output[{classes}];
    int label = 0;
    for (int i = 0; i < {n}; i++) {{ input[i] = row[i]; }}
    (void)output;
    {call}
    return label;
}}
"""
    return Sources({"peer.h": header(X.dtype, n), "peer.c": text})


def micromlgen(model: Any, X: np.ndarray) -> Sources:
    """Nested conditions on floats, a vote a tree."""
    try:
        code = importlib.import_module("micromlgen").port(model)
    except TypeError as error:  # by which it refuses a class of models
        raise NotConvertedError(str(error)) from error
    body = code[code.index("class ") :]
    around = r"class \w+ \{|public:|protected:|private:|/\*\*.*?\*/|#pragma once"
    functions = re.sub(around, "", body, flags=re.S)
    functions = functions[: functions.rindex("};")]
    functions = re.sub(r"\b(int|float|const char\*) (predict|dot)\(", r"static \1 \2(", functions)
    text = '#include "peer.h"\n#include <stdarg.h>\n#include <stdbool.h>\n'
    if "dot(" in functions:
        text += "static float dot(float *x, ...);\n"
    text += (
        functions
        + f"""
int32_t peer_predict(const peer_input_t *row)
{{
    float input[{X.shape[1]}];
    for (int i = 0; i < {X.shape[1]}; i++) {{ input[i] = row[i]; }}
    return predict(input);
}}
"""
    )
    return Sources({"peer.h": header(X.dtype, X.shape[1]), "peer.c": text})


PEERS: dict[str, Callable[[Any, np.ndarray], Sources]] = {
    "emlearn": emlearn,
    "m2cgen": m2cgen,
    "micromlgen": micromlgen,
}


def measured(model: Any, X: np.ndarray, rows: np.ndarray, peer: str) -> tuple[int, int, int]:
    """Return flash, instructions, and the rows with another label than scikit-learn's."""
    expected = model.predict(rows)
    if peer.startswith("tinykernel"):
        hard = {"votes": "hard"} if peer.endswith("votes") else {}
        converted = convert(model, X, max_change=1.0, **hard)
        flash = report(converted, "cortex-m4").flash
        wrong = int(np.sum(converted.predict(rows) != expected))
        return flash, bench(converted, "cortex-m4", X=rows[:COUNTED]).instructions, wrong
    sources = PEERS[peer](model, X)
    flash, _ = flash_and_ram(sources)
    counts = [count_instructions(sources, rows[i : i + 1]) for i in range(COUNTED)]
    return flash, max(counts), int(np.sum(model.classes_[run_on_host(sources, rows)] != expected))


def page(names: list[str], models: list[str]) -> Iterator[str]:
    """Yield the lines of the section, each as soon as it is measured."""
    lines, machine = _lines(names, models), describe_machine()
    return rendered("converted", n_rows=ROWS, counted=COUNTED, machine=machine, lines=lines)


def _lines(names: list[str], models: list[str]) -> Iterator[str]:
    peers = ["tinykernel"]
    for peer in PEERS:
        if importlib.util.find_spec(peer) is not None:
            peers.append(peer)
        else:
            print(f"{peer} is not installed, and left out", file=sys.stderr)
    for data in names:
        X, y = SETS[data](return_X_y=True)
        X = X.astype(np.uint8 if data == BYTES else np.float32)
        rows = rows_near(X)
        fitted = {name: MODELS[name].fit(X, y) for name in models}
        hard = ["tinykernel, hard votes"] if data == BYTES else []
        for (name, model), peer in itertools.product(fitted.items(), peers + hard):
            if peer in hard and not name.startswith(("forest", "extra")):
                continue
            line = f"| {data} | {name} | {peer} | "
            try:
                flash, count, wrong = measured(model, X, rows, peer)
            except NotConvertedError as error:
                print(f"{line}{error}", file=sys.stderr)
                yield f"{line}not converted | | |"
                continue
            yield f"{line}{flash:,} | {count:,} | {wrong} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--models", help="names of MODELS, with '; ' between them")
    parser.add_argument("--write", type=Path, help="file for the page")
    parser.add_argument("--random", type=int, help="compare so many random models instead")
    parser.add_argument("--damaged", type=int, help="read so many damaged files instead")
    parser.add_argument("--seed", type=int, default=0, help="of these models or files")
    arguments = parser.parse_args()
    if arguments.random or arguments.damaged:
        counts = Counter[str]()
        if arguments.random:
            counts += foreign.random_models(arguments.random, arguments.seed)
        if arguments.damaged:
            counts += foreign.damaged(arguments.damaged, arguments.seed)
        for name, number in sorted(counts.items()):
            print(f"{number:>8,} {name}")
        sys.exit(any(counts[fault] for fault in foreign.FAULTS))
    models = arguments.models.split("; ") if arguments.models else list(MODELS)
    print_section(page(arguments.sets.split(","), models), arguments.write)
