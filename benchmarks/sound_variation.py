"""What varied copies of sounds give to new persons, in quiet and in noise; and mixes of neighbours.

python benchmarks/sound_variation.py --write docs/results/sounds-ablation.md

puts its section at the end of that page.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from _page import page_arguments, print_section
from numpy.typing import NDArray
from sounds import RATE, WINDOW, load

from tinykernel.estimator import TernaryKernelClassifier
from tinykernel.training.local import signals

TITLE = "## Varied copies, and neighbouring bands"
_KERNELS, _DECIBELS = 296, 10
_FOLDS = (1, 3, 5)
VARIANTS: dict[str, dict[str, float]] = {
    "as it is": {},
    "mixes of near bands more often": {},
    "affine": {"affine": 1.0},
    "affine,noise:0.1": {"affine": 1.0, "noise": 0.1},
}


def near_mixes(n_bands: int, most: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Draw single bands, then means of two, in proportion to 1 over their distance."""
    pairs = [(a, b, sign) for a in range(n_bands) for b in range(a) for sign in (1, -1)]
    share = np.array([1 / (a - b) for a, b, _ in pairs])
    rows = np.zeros((most, n_bands), dtype=np.int8)
    rows[:n_bands] = np.eye(n_bands)
    drawn = rng.choice(len(pairs), most - n_bands, replace=False, p=share / share.sum())
    for row, number in zip(rows[n_bands:], drawn, strict=True):
        a, b, sign = pairs[number]
        row[[a, b]] = 1, sign
    return rows


def in_noise(X: NDArray[np.int16], kind: str) -> NDArray[np.int16]:
    """Add noise to windows (n, samples, 1), 10 dB below the deviation of each."""
    rng, n = np.random.default_rng(77), X.shape[1]
    noise = rng.standard_normal(X.shape)
    if kind == "pink":  # a value a sample, one every two, four, ...
        for octave in range(1, 12):
            held = rng.standard_normal((len(X), (n >> octave) + 1, 1))
            noise += np.repeat(held, 1 << octave, axis=1)[:, :n]
    size = X.std(axis=1, keepdims=True) / noise.std(axis=1, keepdims=True)
    noisy = X + noise * size * 10 ** (-_DECIBELS / 20)
    return np.clip(np.rint(noisy), -32768, 32767).astype(np.int16)


def row(name: str, folder: Path) -> str:
    """Train on the folds; return a line of the table."""
    X, y, group, folds = load("speech", folder)
    right: list[list[float]] = []
    options: dict[str, Any] = {"rate": RATE["speech"], "hop": WINDOW["speech"] // 2}
    near = patch.object(signals, "_draw_mixes", near_mixes)
    with near if name.startswith("mixes") else nullcontext():
        for inside, outside in (folds[i] for i in _FOLDS):
            model = TernaryKernelClassifier(
                n_kernels=_KERNELS, augment=VARIANTS[name] or None, random_state=0, **options
            )
            integer = model.fit(X[inside], y[inside], groups=group[inside]).quantize()
            clips = [X[outside], *(in_noise(X[outside], kind) for kind in ("white", "pink"))]
            right.append([100 * float((integer.predict(x) == y[outside]).mean()) for x in clips])
    quiet, white, pink = np.mean(right, axis=0)
    each = ", ".join(f"{one[0]:.1f}" for one in right)
    return f"| {name} | {quiet:.2f} | {each} | {white:.1f} | {pink:.1f} |"


def section(folder: Path) -> Iterator[str]:
    """Yield the lines of the section."""
    yield TITLE
    yield ""
    yield f"Spoken words in {_KERNELS} kernels, three of six folds of GroupKFold by person:"
    yield f"accuracy in % of clips as they are, and with made noise {_DECIBELS} dB below a clip."
    yield "Written by `benchmarks/sound_variation.py`."
    yield ""
    yield "| `--augment` | quiet | each fold | white noise | pink noise |"
    yield "|---|---|---|---|---|"
    for name in VARIANTS:
        yield row(name, folder)


if __name__ == "__main__":
    given = page_arguments(__doc__, "").parse_args()
    print_section(section(Path(given.data)), given.write)
