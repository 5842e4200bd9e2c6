"""What bands, levels, cells, kernels and bits of the transform give: spoken digits and words.

python benchmarks/sound_ablation.py --write docs/results/sounds-ablation.md

``--variants NAME NAME`` takes some alone. What is no setting of training is set in its modules.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from _page import page_arguments, print_section
from sounds import RATE, WINDOW, load

from tinykernel.estimator import TernaryKernelClassifier
from tinykernel.model.stages import spectrum as stage
from tinykernel.model.stages.frames import fourier, split
from tinykernel.training.local import signal_training as local
from tinykernel.training.local import spectrum as choice

_ON_LEVELS = local._ON_LEVELS
_KERNELS = 350
_SPEECH = ((296, 0), (512, 0), (800, 0), (1600, 0), (800, 960))
_SPEECH_FOLDS = (0, 1, 3, 4)
# What is set where; options of the classifier stand without a module.
VARIANTS: dict[str, tuple[tuple[Any, str, Any], ...]] = {
    "as it is": (),
    "8 bands": ((choice, "_BANDS", 8),),
    "16 bands": ((choice, "_BANDS", 16), (local, "_MIXES", 80)),
    "20 bands": ((choice, "_BANDS", 20), (local, "_MIXES", 100)),
    "frames of 16 ms, one every 10": ((None, "spectrum", "128/80/12"),),
    "frames of 64 ms, one every 20": ((None, "spectrum", "512/160/12"),),
    "levels of 1.5 dB": ((choice, "_LOG_BITS", 1), (choice, "_FLOOR", 40)),
    "levels of 0.38 dB": ((choice, "_LOG_BITS", 3), (choice, "_FLOOR", 200)),
    "no kernels of two bands": ((local, "_MIXES", 12),),
    "all kernels see changes only": ((local, "_ON_LEVELS", _ON_LEVELS | {"level_share": 0.0}),),
    "half of the kernels see the level": (
        (local, "_ON_LEVELS", _ON_LEVELS | {"level_share": 0.5}),
    ),
    "one cell of time": ((None, "cells", 1),),
    "shifts of up to 60 ms": ((None, "augment", {"shift": 480}),),
    "four cells of time": ((None, "cells", 4),),
    "128 kernels": ((None, "n_kernels", 128),),
    "800 kernels": ((None, "n_kernels", 800),),
    "transform of 21 bits": ((stage, "_LOADED_BITS", 21), (choice, "_FLOOR", 40)),
    "transform of 16 bits": ((stage, "_LOADED_BITS", 16), (choice, "_FLOOR", 0)),
}


def recognition(name: str, folder: Path) -> list[float]:
    """Return % right: of new clips of known persons, and of two persons left out."""
    right = []
    with ExitStack() as changed:
        options: dict[str, Any] = {"n_kernels": _KERNELS}
        others: dict[str, Any] = {}
        for module, key, value in VARIANTS[name]:
            if module is None:
                (others if key in ("spectrum", "cells") else options)[key] = value
            else:
                changed.enter_context(patch.object(module, key, value))
        for protocol, n in (("spoken_digits", 1), ("spoken_digits without", 2)):
            X, y, _, folds = load(protocol, folder)
            hop = WINDOW["spoken_digits"] // 2
            for inside, outside in folds[:n]:
                classifier = TernaryKernelClassifier(
                    rate=RATE["spoken_digits"], hop=hop, random_state=0, options=others, **options
                )
                model = classifier.fit(X[inside], y[inside]).quantize()
                right.append(100 * float((model.predict(X[outside]) == y[outside]).mean()))
    return right


def words(options: dict[str, Any], folder: Path) -> list[float]:
    """Return % right of spoken words, for some sixths of the persons."""
    X, y, _, folds = load("speech", folder)
    right = []
    for inside, outside in (folds[i] for i in _SPEECH_FOLDS):
        classifier = TernaryKernelClassifier(
            rate=RATE["speech"], hop=WINDOW["speech"] // 2, random_state=0, **options
        )
        model = classifier.fit(X[inside], y[inside]).quantize()
        right.append(100 * float((model.predict(X[outside]) == y[outside]).mean()))
    return right


def noise_ratio(loaded_bits: int, decibels: float, length: int = 256) -> float:
    """Return the SNR in dB of the bins of noise of so many dB below full scale."""
    rng = np.random.default_rng(0)
    made = stage.Spectrum(length, length, np.arange(2, 14), 2, 0)
    signal, error = 0.0, 0.0
    for _ in range(50):
        x = np.rint(32767 * 10 ** (decibels / 20) * rng.uniform(-1, 1, length)).astype(np.int64)
        shifted = x << loaded_bits - 15 if loaded_bits >= 15 else x >> 15 - loaded_bits
        z = np.zeros((2, length // 2), np.int64)
        z[:, made.order()] = shifted.reshape(-1, 2).T
        y = np.zeros((2, length // 2 + 1), np.int64)
        fourier(z, made.cosines())
        split(z, made.cosines(), y)
        found, true = y[0] + 1j * y[1], np.fft.rfft(x)
        scale = 2.0 ** (loaded_bits - 15 - np.log2(length) + 3 - 1)
        signal += float(np.square(np.abs(scale * true)).sum())
        error += float(np.square(np.abs(found - scale * true)).sum())
    return 10 * float(np.log10(signal / error))


def page(arguments: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of the page."""
    yield "# Sounds: what each choice gives"
    yield ""
    yield f"Accuracy in % of clips, integer models. Spoken digits with {_KERNELS} kernels: clips 0"
    yield "to 4 of each person and digit as test; and two of four persons left out, one after the"
    yield "other. A row changes one thing, and what goes with it: 16 and 20 bands have 80 and 100"
    yield "mixes of them, not 60. The floor of noise is 40 and 200 levels for steps of 1.5 and"
    yield "0.38 dB, 40 and 0 for 21 and 16 bits, else 80."
    yield "Written by `benchmarks/sound_ablation.py`. These tables and that of other fronts were"
    yield "learned by gradients, before ridge regression took over."
    yield ""
    yield "| variant | known persons | person left out: george | jackson |"
    yield "|---|---|---|---|"
    for name in arguments.variants or VARIANTS:
        right = recognition(name, Path(arguments.data))
        yield f"| {name} | {' | '.join(f'{share:.1f}' for share in right)} |"
    yield ""
    yield "Spoken words, by kernels and shifts in time, four of six folds of GroupKFold by person:"
    yield ""
    yield "| kernels | shifts | mean | each fold |"
    yield "|---|---|---|---|"
    for n_kernels, shift in _SPEECH:
        augment = {"shift": shift} if shift else None
        right = words({"n_kernels": n_kernels, "augment": augment}, Path(arguments.data))
        each = ", ".join(f"{share:.1f}" for share in right)
        told = f"{shift} samples" if shift else "none"
        yield f"| {n_kernels} | {told} | {np.mean(right):.2f} | {each} |"
    yield ""
    yield "SNR in dB of the bins of a frame of 256 samples of noise, against float64, by the bits"
    yield "of the samples that the transform begins with; spectra use 26:"
    yield ""
    yield "| peak | 26 bits | 21 bits | 16 bits |"
    yield "|---|---|---|---|"
    for decibels in (-6, -30, -60, -80):
        ratios = (f"{noise_ratio(bits, decibels):.1f}" for bits in (26, 21, 16))
        yield f"| {decibels} dBFS | {' | '.join(ratios)} |"


if __name__ == "__main__":
    parser = page_arguments(__doc__, "")
    parser.add_argument("--variants", nargs="*", choices=VARIANTS, help="these alone")
    given = parser.parse_args()
    print_section(page(given), given.write)
