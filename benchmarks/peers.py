"""Other classifiers of the same bytes: trained in the same run, built and counted in the same way.

- **int8 perceptron**: one hidden layer, `peers/int8_mlp.c`; trained with Adam, a decaying step and
  a penalty, all rows. Penalty, number of hidden units and, for images, averaging of 2 x 2 pixels
  are the best on rows held out of the training rows.
- **emlearn MLP**, **emlearn trees**: a scikit-learn `MLPClassifier` or `RandomForestClassifier`
  converted to C by emlearn (https://github.com/emlearn/emlearn), where it is installed.
- **boosted trees**: scikit-learn's histogram gradient boosting; bytes by estimate of a compact
  layout, not built.

What is built is linked for Cortex-M4 as a model of tinykernel is, runs over the test rows on this
computer, and its instructions are counted in the emulator.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from _data import BALANCED, IMAGES, Data, accuracy
from _environment import describe_machine
from elftools.elf.elffile import ELFFile
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from tinykernel import resources
from tinykernel.build.program import build, find_platforms
from tinykernel.build.toolchains import Toolchain, find_toolchain
from tinykernel.codegen.targets import find_target
from tinykernel.measure.stages import function_ranges

__all__ = ["PEERS", "Peer", "available", "measure_peer"]

TARGET = "cortex-m4"
#: Data sets of which one value a column is measured in its own unit.
_TABLES = ("covtype", "har", "dna", "gas_drift")
_SOURCES = Path(__file__).parent / "peers"
_TRIAL_ROWS, _ROWS = 20000, 100000
_TREE_TRIES = 6
_C_TYPES = {"uint8": "uint8_t", "int16": "int16_t", "int32": "int32_t", "float32": "float"}


@dataclass(frozen=True)
class Peer:
    """What one of the others gave on a data set in a budget; accuracy in percent."""

    data: str
    kilobytes: float
    name: str
    what: str
    flash: int
    source: str
    accuracy: float
    instructions: int | None
    ram: int | None
    seconds: float
    measured: str


@dataclass(frozen=True)
class Outcome:
    """One trained classifier and the labels that it gives the test rows."""

    what: str
    flash: int
    source: str
    labels: np.ndarray
    instructions: int | None = None
    ram: int | None = None


def measure_peer(peer: str, name: str, kilobytes: float, parts: list[Data]) -> Peer:
    """Train, build and measure a peer on all parts; `what` is empty where nothing fits."""
    started, budget, found = time.perf_counter(), int(kilobytes * 1024), []
    for part in parts:
        outcome = PEERS[peer](name, part, budget)
        if outcome is None:
            seconds = time.perf_counter() - started
            return Peer(name, kilobytes, peer, "", 0, "", 0.0, None, None, seconds,
                        describe_machine())  # fmt: skip
        found.append(outcome)
    y = np.concatenate([part.y_test for part in parts])
    labels = np.concatenate([outcome.labels for outcome in found])
    counts = [outcome.instructions for outcome in found if outcome.instructions is not None]
    largest = max(found, key=lambda outcome: outcome.flash)
    return Peer(
        name, kilobytes, peer, largest.what, largest.flash, largest.source,
        accuracy(name, y, labels), max(counts, default=None), largest.ram,
        time.perf_counter() - started, describe_machine(),
    )  # fmt: skip


def available(peer: str, name: str) -> bool:
    """Say whether a peer is installed and made for such data."""
    if peer == "boosted trees":
        return name in _TABLES
    return not peer.startswith("emlearn") or importlib.util.find_spec("emlearn") is not None


# -- building -------------------------------------------------------------------------------------


class _WithMath(Toolchain):
    """A compiler that links the mathematical library, after all else."""

    def link(self, objects: Any, output: Path, **named: Any) -> None:
        super().link([*objects, Path("-lm")], output, **named)


def _with_math(chain: Toolchain) -> Toolchain:
    return _WithMath(**vars(chain))


@dataclass(frozen=True)
class Sources:
    """A peer in C: its files by name, one of them peer.c, and where other headers are."""

    files: dict[str, str]
    include: tuple[Path, ...] = ()


def flash_and_ram(sources: Sources) -> tuple[int, int]:
    """Return the bytes that a peer adds to an empty program, and its static data."""
    chain = find_toolchain(find_target(TARGET))
    assert chain is not None
    sizes = []
    with _written(sources) as folder:
        script = resources.folder("firmware") / "boards" / "size.ld"
        include = [folder, *sources.include]
        _with_math(chain).compile(folder / "peer.c", folder / "peer.o", include=include)
        for kind, flags in (("empty", ["-DEMPTY"]), ("full", [])):
            output = folder / f"{kind}.o"
            chain.compile(
                _SOURCES / "size.c", output, include=include, flags=["-Os", "-std=c99", *flags]
            )
            elf = folder / f"{kind}.elf"
            _with_math(chain).link([output, folder / "peer.o"], elf, script=script)
            sizes.append(_sections(elf))
    (empty, empty_ram), (full, full_ram) = sizes
    return full - empty, full_ram - empty_ram


def _sections(path: Path) -> tuple[int, int]:
    """Add up what lies in flash, and what lies in RAM."""
    flash = ram = 0
    with path.open("rb") as stream:
        for section in ELFFile(stream).iter_sections():
            if section["sh_flags"] & 2:
                flash += section["sh_size"] if section["sh_type"] != "SHT_NOBITS" else 0
                ram += section["sh_size"] if section["sh_flags"] & 1 else 0
    return flash, ram


@contextlib.contextmanager
def _written(sources: Sources) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tinykernel-") as name:
        for file, text in sources.files.items():
            (Path(name) / file).write_text(text)
        yield Path(name)


def run_on_host(sources: Sources, rows: np.ndarray) -> np.ndarray:
    """Return the labels that the C gives rows, on this computer."""
    with _written(sources) as folder:
        program = _program(sources, folder, "host")
        rows.tofile(folder / "in.bin")
        program.run()
        return np.fromfile(folder / "out.bin", "<i4")


def count_instructions(sources: Sources, row: np.ndarray) -> int:
    """Count the instructions of one decision on the target."""
    with _written(sources) as folder:
        program = _program(sources, folder, TARGET)
        row.tofile(folder / "in.bin")
        functions = function_ranges(program.path)
        begin = functions["peer_predict"].start
        outside = (functions["peer_measured"], functions["main"])
        count, inside = 0, False
        for address in program.trace():
            inside = inside or address == begin
            if inside and any(address in function for function in outside):
                return count
            count += inside
    raise SystemExit("the emulator's trace shows no decision")


def _program(sources: Sources, folder: Path, target: str) -> Any:
    platform = find_platforms(find_target(target))[-1]
    platform = replace(platform, chain=_with_math(platform.chain))
    flags = ["-Os", "-std=gnu99"]
    files = [_SOURCES / "harness.c", folder / "peer.c"]
    return build(platform, files, folder, include=[folder, *sources.include], flags=flags)


def finished(what: str, sources: Sources, flash: int, ram: int, X_test: np.ndarray,
             classes: np.ndarray) -> Outcome:  # fmt: skip
    """Run a peer that fits over the test rows."""
    labels = classes[run_on_host(sources, X_test)]
    counts = [count_instructions(sources, X_test[i : i + 1]) for i in range(min(3, len(X_test)))]
    return Outcome(what, flash, "linked", labels, max(counts), ram)


def header(dtype: np.dtype[Any], n_inputs: int) -> str:
    """Write peer.h."""
    return (
        f"#include <stdint.h>\ntypedef {_C_TYPES[dtype.name]} peer_input_t;\n"
        f"#define PEER_INPUTS {n_inputs}\nint32_t peer_predict(const peer_input_t *row);\n"
    )


def held_out(part: Data, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return which of the training rows are learned from to choose, and which are scored."""
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(part.y))[:_TRIAL_ROWS]
    if part.groups is None:
        out = np.arange(chosen.size) % 5 == 0
    else:
        names = rng.permutation(np.unique(part.groups))
        out = np.isin(part.groups[chosen], names[: max(1, len(names) // 4)])
    return chosen[~out], chosen[out]


def balanced_rows(y: np.ndarray) -> np.ndarray:
    """Draw as many rows of each class; a class with fewer is repeated in whole rounds."""
    rng = np.random.default_rng(0)
    classes = np.unique(y)
    each = max(1, len(y) // len(classes))
    drawn = [np.resize(rng.permutation(np.flatnonzero(y == label)), each) for label in classes]
    return rng.permutation(np.concatenate(drawn))


# -- int8 perceptron ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Bytes:
    """How raw inputs become bytes: `low` and `factor` of some inputs or of all, and pooling."""

    low: np.ndarray
    factor: np.ndarray
    shape: tuple[int, int] | None
    pool: int
    identity: bool
    flags: bool  # the inputs after those with a factor are 0 or 1

    @classmethod
    def of(cls, name: str, X: np.ndarray, pool: int) -> Bytes:
        """Take ranges from training rows, one a column where columns have units of their own."""
        width = {"har_raw": 6, "covtype": 54, "gas_drift": 128}.get(name, 1)
        few = X[np.random.default_rng(0).permutation(len(X))[:_TRIAL_ROWS]]
        columns = few.reshape(-1, width).astype(np.float64)
        low, high = np.quantile(columns, (0.001, 0.999), axis=0)
        flags = columns.min(axis=0) >= 0
        flags &= columns.max(axis=0) <= 1
        n = int(np.flatnonzero(~flags).max()) + 1 if not flags.all() else width
        identity = X.dtype == np.uint8 and width == 1 and high[0] > 200
        factor = 255 / np.maximum(high - low, 1e-6)
        return cls(low[:n], factor[:n], IMAGES.get(name), pool, bool(identity), n < width)

    def apply(self, X: np.ndarray) -> np.ndarray:
        """Return the bytes of rows, as the C does but for a rounding."""
        if self.identity:
            found = X.astype(np.int32)
        else:
            n, width = self.low.size, X.shape[1]
            scaled = X[:, :n] if self.flags else X.reshape(len(X), -1, n)
            found = np.clip(np.floor((scaled - self.low) * self.factor + 0.5), 0, 255)
            found = found.astype(np.int32).reshape(len(X), -1)
            if self.flags:
                found = np.hstack([found, 255 * (X[:, n:width] != 0)])
        if self.pool == 1 or self.shape is None:
            return found.astype(np.uint8)
        height, width = self.shape[0] // 2, self.shape[1] // 2
        images = found.reshape(-1, *self.shape)[:, : 2 * height, : 2 * width]
        sums = images.reshape(-1, height, 2, width, 2).sum(axis=(2, 4))
        return ((sums + 2) >> 2).reshape(len(X), -1).astype(np.uint8)


@dataclass(eq=False)
class Perceptron:
    """One hidden layer of ReLU on bytes, less their mean, over 64."""

    mean: np.ndarray
    layers: list[np.ndarray]  # weights, biases, weights, biases

    def forward(self, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return scaled inputs, hidden values and decisions."""
        X = (inputs.astype(np.float32) - self.mean) / np.float32(64)
        hidden = np.maximum(X @ self.layers[0] + self.layers[1], 0)
        return X, hidden, hidden @ self.layers[2] + self.layers[3]

    def predict(self, inputs: np.ndarray) -> np.ndarray:
        """Return the codes of labels."""
        return self.forward(inputs)[2].argmax(axis=1)


def train_perceptron(inputs: np.ndarray, codes: np.ndarray, n_hidden: int, penalty: float,
                     epochs: int) -> Perceptron:  # fmt: skip
    """Minimise cross-entropy by Adam; the step falls along half a cosine to 0."""
    rng = np.random.default_rng(0)
    sizes = (inputs.shape[1], n_hidden, int(codes.max()) + 1)
    layers = []
    for a, b in pairwise(sizes):
        drawn = rng.standard_normal((a, b)) * np.sqrt(2 / a)
        layers += [drawn.astype(np.float32), np.zeros(b, np.float32)]
    model = Perceptron(inputs.mean(axis=0, dtype=np.float64).astype(np.float32), layers)
    first = [np.zeros_like(layer) for layer in layers]
    second = [np.zeros_like(layer) for layer in layers]
    rows = 64 if len(inputs) < 10000 else 128
    steps = max(1, len(inputs) // rows) * epochs
    step = 0
    for _ in range(epochs):
        order = rng.permutation(len(inputs))
        for at in range(0, max(1, len(order) // rows) * rows, rows):
            chosen = order[at : at + rows]
            X, hidden, out = model.forward(inputs[chosen])
            out = np.exp(out - out.max(axis=1, keepdims=True))
            error = out / out.sum(axis=1, keepdims=True)
            error[np.arange(len(chosen)), codes[chosen]] -= 1
            error /= len(chosen)
            back = (error @ layers[2].T) * (hidden > 0)
            gradients = [X.T @ back, back.sum(0), hidden.T @ error, error.sum(0)]
            step += 1
            rate = 3e-3 * 0.5 * (1 + np.cos(np.pi * step / steps))
            for i, gradient in enumerate(gradients):
                first[i] += 0.1 * (gradient - first[i])
                second[i] += 0.001 * (gradient**2 - second[i])
                mean, square = first[i] / (1 - 0.9**step), second[i] / (1 - 0.999**step)
                layers[i] -= np.float32(rate) * (
                    mean / (np.sqrt(square) + 1e-8) + np.float32(penalty) * layers[i] * (i % 2 == 0)
                )
    return model


def array(kind: str, name: str, values: np.ndarray) -> str:
    """Write a table in C."""
    suffix = "f" if kind == "float" else ""
    text = ", ".join(f"{float(v):.9e}{suffix}" if suffix else str(int(v)) for v in values.ravel())
    return f"static const {kind} {name}[{values.size}] = {{{text}}};\n"


def perceptron_sources(model: Perceptron, how: Bytes, inputs: np.ndarray,
                       dtype: np.dtype[Any], n_raw: int) -> Sources:  # fmt: skip
    """Write a perceptron in C with int8 weights, one scale a layer."""
    W1, b1, W2, b2 = (layer.astype(np.float64) for layer in model.layers)
    step1, step2 = (max(float(np.abs(W).max()), 1e-9) / 127 for W in (W1, W2))
    w1, w2 = np.rint(W1 / step1), np.rint(W2 / step2)
    largest = max(float(np.quantile(model.forward(inputs[:5000])[1], 0.9995)), 1e-6)
    bias1 = np.rint(b1 * 64 / step1 - model.mean.astype(np.float64) @ w1)
    bias2 = np.rint(b2 / (step2 * largest / 255))
    factor1 = round(step1 / 64 * 255 / largest * 2**31)
    is_float = dtype.kind == "f"
    height, width = how.shape or (1, 1)
    macros = {
        "INPUTS": W1.shape[0], "HIDDEN": W1.shape[1], "OUTPUTS": W2.shape[1],
        "FACTOR1": factor1, "POOL": how.pool, "HEIGHT": f"{height}u", "WIDTH": f"{width}u",
        "IDENTITY": int(how.identity), "FLOAT": int(is_float and not how.identity),
        "BITS": int(how.flags), "SCALES": how.low.size,
    }  # fmt: skip
    text = '#include "peer.h"\n'
    text += "".join(f"#define MLP_{name} {value}\n" for name, value in macros.items())
    if not how.identity:
        kinds = ("float", "float") if is_float else ("int16_t", "int32_t")
        factor = how.factor if is_float else np.rint(how.factor * 65536)
        text += array(kinds[0], "mlp_low", how.low) + array(kinds[1], "mlp_factor", factor)
    text += array("int8_t", "mlp_weights1", w1.T) + array("int32_t", "mlp_bias1", bias1)
    text += array("int8_t", "mlp_weights2", w2.T) + array("int32_t", "mlp_bias2", bias2)
    code = (_SOURCES / "int8_mlp.c").read_text()
    return Sources({"peer.h": header(dtype, n_raw), "tables.h": text, "peer.c": code})


def int8_perceptron(name: str, part: Data, budget: int) -> Outcome | None:
    """Train perceptrons that fill the budget, and one of half as many units."""
    classes, codes = np.unique(part.y, return_inverse=True)
    n_raw, n_outputs = part.X.shape[1], len(classes)
    side = min(IMAGES.get(name, (1,)))
    inside, outside = held_out(part)
    if name in BALANCED:
        inside = inside[balanced_rows(part.y[inside])]
    best: tuple[float, Any] = (-1.0, None)
    for pool in (1, 2) if side >= 16 else (1,):
        how = Bytes.of(name, part.X, pool)
        given, scored = how.apply(part.X[inside]), how.apply(part.X[outside])
        drawn = train_perceptron(given[:256], np.arange(256) % n_outputs, 1, 0.0, 1)
        code, _ = flash_and_ram(perceptron_sources(drawn, how, given, part.X.dtype, n_raw))
        most = 1 + (budget - code - 4) // (given.shape[1] + 4 + n_outputs)
        if most < 1:
            continue
        for n_hidden in dict.fromkeys((most, max(1, most // 2))):
            for penalty in (0.0, 0.01, 0.05):
                tried = train_perceptron(given, codes[inside], n_hidden, penalty, 15)
                labels = classes[tried.predict(scored)]
                share = accuracy(name, part.y[outside], labels)
                if share > best[0]:
                    best = (share, (how, n_hidden, penalty))
    if best[1] is None:
        return None
    how, n_hidden, penalty = best[1]
    rows = np.random.default_rng(1).permutation(len(part.y))[:_ROWS]
    if name in BALANCED:
        rows = rows[balanced_rows(part.y[rows])]
    given = how.apply(part.X[rows])
    epochs = int(np.clip(1_500_000 // len(rows), 20, 120))
    while True:
        model = train_perceptron(given, codes[rows], n_hidden, penalty, epochs)
        sources = perceptron_sources(model, how, given, part.X.dtype, n_raw)
        flash, ram = flash_and_ram(sources)
        if flash <= budget:
            pooled = ", 2 x 2 pixels averaged" if how.pool == 2 else ""
            what = f"{n_hidden} hidden units{pooled}"
            return finished(what, sources, flash, ram, part.X_test, classes)
        n_hidden -= 1


# -- emlearn --------------------------------------------------------------------------------------


def _emlearn() -> Any:
    return importlib.import_module("emlearn")


@contextlib.contextmanager
def _in_folder() -> Iterator[None]:
    """Work in a folder of its own: emlearn writes and builds in the present one."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="tinykernel-") as name:
        os.chdir(name)
        try:
            yield
        finally:
            os.chdir(before)


def emlearn_sources(model: Any, call: str, raw: np.dtype[Any], n_inputs: int,
                    **options: Any) -> Sources:  # fmt: skip
    """Convert a scikit-learn classifier to C; `call` is the function of the generated code."""
    emlearn = _emlearn()
    with _in_folder():
        converted = emlearn.convert(model, **options)
        code = converted.save(name="net")
    text = '#include "peer.h"\n#include "model.h"\n'
    text += f"int32_t peer_predict(const peer_input_t *row)\n{{\n    return {call};\n}}\n"
    files = {"peer.h": header(raw, n_inputs), "model.h": code, "peer.c": text}
    return Sources(files, (Path(emlearn.includedir),))


def emlearn_mlp(name: str, part: Data, budget: int) -> Outcome | None:
    """Train perceptrons of float weights, which is what emlearn makes of them."""
    classes, codes = np.unique(part.y, return_inverse=True)
    n_inputs = part.X.shape[1]
    low, high = np.quantile(part.X[:_TRIAL_ROWS].astype(np.float64), (0.001, 0.999))
    columns = name in _TABLES and name not in ("har", "dna")
    mean = part.X.mean(axis=0, dtype=np.float64) if columns else (low + high) / 2
    spread = part.X.std(axis=0, dtype=np.float64) + 1e-9 if columns else (high - low) / 2
    X, X_test = (((given - mean) / spread).astype(np.float32) for given in (part.X, part.X_test))
    inside, outside = held_out(part)
    rows = np.random.default_rng(1).permutation(len(part.y))[:_ROWS]

    def fit(rows: np.ndarray, n_hidden: int, penalty: float, epochs: int) -> MLPClassifier:
        drawn = rows[balanced_rows(part.y[rows])] if name in BALANCED else rows
        model = MLPClassifier((n_hidden,), alpha=penalty, max_iter=epochs, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(X[drawn], codes[drawn])

    convert = functools.partial(
        emlearn_sources, call=f"eml_net_predict(&net, row, {n_inputs})", raw=X.dtype,
        n_inputs=n_inputs, method="loadable",
    )  # fmt: skip
    n_outputs = 1 if len(classes) == 2 else len(classes)
    code, _ = flash_and_ram(convert(fit(inside[:500], 1, 0.0, 2)))
    n_hidden = 1 + (budget - code) // (4 * (n_inputs + 1 + n_outputs))
    if n_hidden < 1:
        return None
    shares = {}
    for penalty in (1e-4, 1e-2):
        labels = classes[fit(inside, n_hidden, penalty, 20).predict(X[outside])]
        shares[penalty] = accuracy(name, part.y[outside], labels)
    penalty = max(shares, key=lambda penalty: shares[penalty])
    epochs = int(np.clip(1_500_000 // len(rows), 20, 120))
    while True:
        sources = convert(fit(rows, n_hidden, penalty, epochs))
        flash, ram = flash_and_ram(sources)
        if flash <= budget:
            what = f"{n_hidden} hidden units, float"
            return finished(what, sources, flash, ram, X_test, classes)
        n_hidden -= 1


def emlearn_trees(name: str, part: Data, budget: int) -> Outcome | None:
    """Train random forests whose leaves fill the budget: how many trees is chosen."""
    classes, codes = np.unique(part.y, return_inverse=True)
    # emlearn's trees compare int16 and cut thresholds between whole numbers: values are spread out,
    # by the application.
    factor = 32000 / max(float(np.abs(part.X).max()), 1e-9)
    factor = max(1.0, np.floor(factor)) if part.X.dtype.kind != "f" else factor
    X, X_test = (
        np.clip(np.rint(given * factor), -32767, 32767).astype(np.int16)
        for given in (part.X, part.X_test)
    )
    weight = "balanced" if name in BALANCED else None
    inside, outside = held_out(part)
    rows = np.random.default_rng(1).permutation(len(part.y))[:_ROWS]

    def fit(rows: np.ndarray, n_trees: int, n_leaves: int) -> RandomForestClassifier:
        model = RandomForestClassifier(
            n_trees, max_leaf_nodes=max(2, n_leaves), class_weight=weight, random_state=0,
            max_features=min(X.shape[1], max(16, int(2 * np.sqrt(X.shape[1])))),
        )  # fmt: skip
        return model.fit(X[rows], codes[rows])

    def smallest(model: RandomForestClassifier) -> tuple[int, int, Sources]:
        found = []
        for method in ("inline", "loadable")[: 2 if X.shape[1] <= 127 else 1]:
            for bits in (0, 4):
                sources = emlearn_sources(
                    model, f"net_predict(row, {X.shape[1]})", X.dtype, X.shape[1], method=method,
                    dtype="int16_t", leaf_bits=bits,
                )  # fmt: skip
                found.append((bits, *flash_and_ram(sources), sources))
        # Shares in the leaves vote better than labels; where they cost much, the forest shrinks.
        bits, flash, ram, sources = min(found, key=lambda f: f[1] - 300 * (f[0] > 0))
        return flash, ram, sources

    tried = fit(inside, 4, 40)
    leaves = sum(tree.get_n_leaves() for tree in tried.estimators_)
    each = smallest(tried)[0] / leaves
    shares = {}
    for n_trees in (1, 3, 6, 10, 16, 30):
        n_leaves = int(budget / each / n_trees)
        if n_leaves >= 4:
            labels = classes[fit(inside, n_trees, n_leaves).predict(X[outside])]
            shares[n_trees] = accuracy(name, part.y[outside], labels)
    if not shares:
        return None
    n_trees = max(shares, key=lambda n: shares[n])
    n_leaves = int(budget / each / n_trees)
    largest = None
    for _ in range(_TREE_TRIES):  # up while there is room, down where there is none
        n_leaves = max(2, n_leaves)
        flash, ram, sources = smallest(fit(rows, n_trees, n_leaves))
        if flash <= budget and (largest is None or flash > largest[1]):
            largest = (f"{n_trees} trees of at most {n_leaves} leaves", flash, ram, sources)
        if 0.95 * budget <= flash <= budget:
            break
        n_leaves = int(n_leaves * 0.98 * budget / flash)
    if largest is None:
        return None
    what, flash, ram, sources = largest
    return finished(what, sources, flash, ram, X_test, classes)


# -- boosted trees --------------------------------------------------------------------------------

_BOOSTED_CODE = 300


def boosted_bytes(model: Any, value_bytes: int) -> int:
    """Estimate a compact layout: input, threshold and jump of each split, a byte a leaf, code."""
    splits = leaves = 0
    for trees in model._predictors:
        for tree in trees:
            n = int(tree.nodes["is_leaf"].sum())
            leaves, splits = leaves + n, splits + len(tree.nodes) - n
    wide = 2 if model.n_features_in_ > 256 else 1
    return _BOOSTED_CODE + splits * (wide + value_bytes + 1) + leaves


def boosted_trees(name: str, part: Data, budget: int) -> Outcome | None:
    """Boost trees that fill the budget by estimate: leaves and rate are chosen."""
    classes, codes = np.unique(part.y, return_inverse=True)
    value_bytes = 1 if part.X.dtype == np.uint8 else 2
    each = (2 if part.X.shape[1] > 256 else 1) + value_bytes + 2
    n_outputs = 1 if len(classes) == 2 else len(classes)
    inside, outside = held_out(part)
    weight = "balanced" if name in BALANCED else None

    def fit(rows: np.ndarray, n_leaves: int, rate: float, rounds: int) -> Any:
        return HistGradientBoostingClassifier(
            max_iter=rounds, max_leaf_nodes=n_leaves, learning_rate=rate, early_stopping=False,
            class_weight=weight, random_state=0,
        ).fit(part.X[rows], codes[rows])  # fmt: skip

    shares = {}
    for n_leaves in (4, 8, 16, 32, 64):
        rounds = (budget - _BOOSTED_CODE) // (n_outputs * each * n_leaves)
        if rounds < 2:
            continue
        for rate in (0.1, 0.25, 0.5):
            labels = classes[fit(inside, n_leaves, rate, rounds).predict(part.X[outside])]
            shares[n_leaves, rate, rounds] = accuracy(name, part.y[outside], labels)
    if not shares:
        return None
    chosen = max(shares, key=lambda key: shares[key])
    model = fit(np.arange(len(codes)), *chosen)
    what = f"{chosen[2] * n_outputs} trees of at most {chosen[0]} leaves"
    labels = classes[model.predict(part.X_test)]
    return Outcome(what, boosted_bytes(model, value_bytes), "estimate", labels)


PEERS: dict[str, Callable[[str, Data, int], Outcome | None]] = {
    "int8 perceptron": int8_perceptron,
    "emlearn MLP": emlearn_mlp,
    "emlearn trees": emlearn_trees,
    "boosted trees": boosted_trees,
}
