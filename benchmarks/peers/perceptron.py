"""The int8 perceptron: one hidden layer on bytes, in C of its own."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from _data import BALANCED, IMAGES, Data, accuracy

from peers.building import SOURCES, Outcome, Sources, finished, flash_and_ram, header
from peers.rows import MOST_ROWS, TRIAL_ROWS, balanced_rows, held_out

__all__ = ["Bytes", "int8_perceptron", "perceptron_sources", "train_perceptron"]


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
    def of(cls, name: str, X: np.ndarray, pool: int) -> "Bytes":
        """Take ranges from training rows, one per column where columns have units of their own."""
        width = {"har_raw": 6, "covtype": 54, "gas_drift": 128}.get(name, 1)
        few = X[np.random.default_rng(0).permutation(len(X))[:TRIAL_ROWS]]
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


def train_perceptron(
    inputs: np.ndarray, codes: np.ndarray, n_hidden: int, penalty: float, epochs: int
) -> Perceptron:
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


def perceptron_sources(
    model: Perceptron, how: Bytes, inputs: np.ndarray, dtype: np.dtype[Any], n_raw: int
) -> Sources:
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
        "INPUTS": W1.shape[0],
        "HIDDEN": W1.shape[1],
        "OUTPUTS": W2.shape[1],
        "FACTOR1": factor1,
        "POOL": how.pool,
        "HEIGHT": f"{height}u",
        "WIDTH": f"{width}u",
        "IDENTITY": int(how.identity),
        "FLOAT": int(is_float and not how.identity),
        "BITS": int(how.flags),
        "SCALES": how.low.size,
    }
    text = '#include "peer.h"\n'
    text += "".join(f"#define MLP_{name} {value}\n" for name, value in macros.items())
    if not how.identity:
        kinds = ("float", "float") if is_float else ("int16_t", "int32_t")
        factor = how.factor if is_float else np.rint(how.factor * 65536)
        text += array(kinds[0], "mlp_low", how.low) + array(kinds[1], "mlp_factor", factor)
    text += array("int8_t", "mlp_weights1", w1.T) + array("int32_t", "mlp_bias1", bias1)
    text += array("int8_t", "mlp_weights2", w2.T) + array("int32_t", "mlp_bias2", bias2)
    code = (SOURCES / "int8_mlp.c").read_text()
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
    rows = np.random.default_rng(1).permutation(len(part.y))[:MOST_ROWS]
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
