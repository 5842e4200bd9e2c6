"""Other ways to levels of bands, as prototypes: scalings of the transform, Walsh, an octave tree.

python benchmarks/sound_fronts.py --write docs/results/sounds-ablation.md

puts their table at the end of that page: bins against float64, and spoken digits.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from _page import page_arguments, print_section
from numpy.typing import NDArray
from sounds import RATE, WINDOW, load

from tinykernel.estimator import TernaryKernelClassifier
from tinykernel.model.stages.spectrum import Spectrum

TITLE = "## Other fronts"
N_KERNELS = 350
LOUDNESS = (-6, -30, -60, -80)
_ROWS_AT_ONCE = 100
_Bins = tuple[NDArray[Any], NDArray[Any]]
# A butterfly adds to a part at most 1 + sqrt(2) times the largest one: this stays in 16 bits.
_ROOM = 13572


def transform(x: NDArray[np.int64], scaling: str) -> _Bins:
    """Return bins (n, N/2 + 1) of frames (n, N) of 16 bits, and by which power of 2 to multiply.

    "fixed" halves in every stage and "block" where a frame needs it, both in 16 bits; "wide" starts
    with 26 bits and halves in all but two stages, as the stage *spectrum* does.
    """
    m = x.shape[1] // 2
    exponent = np.zeros((len(x), 1), np.int64)
    if scaling == "wide":
        exponent -= 11
    elif scaling == "block":
        exponent -= 14 - np.ceil(np.log2(np.abs(x).max(1, keepdims=True) + 1)).astype(np.int64)
    z = np.where(exponent < 0, x << np.maximum(-exponent, 0), x >> np.maximum(exponent, 0))
    order = Spectrum(2 * m, 1, np.array([2, 3]), 2, 0).order()
    re, im = np.empty((2, len(x), m), np.int64)
    re[:, order], im[:, order] = z[:, ::2], z[:, 1::2]
    half = 1
    while half < m:
        top = np.maximum(np.abs(re).max(1), np.abs(im).max(1))[:, None]
        halve = {"fixed": top >= 0, "wide": (top >= 0) & (half > 2), "block": top >= _ROOM}[scaling]
        shift = halve.astype(np.int64)[:, :, None]
        exponent += shift[:, :, 0]
        turn = np.exp(-1j * np.pi * np.arange(half) / half)
        c, s = np.rint(32768 * turn.real).astype(np.int64), np.rint(-32768 * turn.imag)
        s = s.astype(np.int64)
        a, b = (part.reshape(len(x), -1, 2, half) for part in (re, im))
        tr = a[:, :, 1] * c + b[:, :, 1] * s >> 15 + shift
        ti = b[:, :, 1] * c - a[:, :, 1] * s >> 15 + shift
        xr, xi = a[:, :, 0] >> shift, b[:, :, 0] >> shift
        re = np.stack([xr + tr, xr - tr], axis=2).reshape(len(x), m)
        im = np.stack([xi + ti, xi - ti], axis=2).reshape(len(x), m)
        half *= 2
    return split(re, im), exponent + 1


def split(re: NDArray[np.int64], im: NDArray[np.int64]) -> NDArray[np.complex128]:
    """Return half of the bins of real samples from those of their pairs, rounded down."""
    m = re.shape[1]
    z = np.concatenate([re + 1j * im, (re + 1j * im)[:, :1]], axis=1)
    back = np.conj(z[:, ::-1])
    turn = np.exp(-1j * np.pi * np.arange(m + 1) / m)
    y = ((z + back) - 1j * turn * (z - back)) / 4
    return np.floor(y.real) + 1j * np.floor(y.imag)


def levels_of(power: NDArray[np.float64], stage: Spectrum) -> NDArray[np.uint8]:
    """Return levels of powers of windowed bins of samples, on the scale of the stage."""
    raised = power * 4.0 ** (26 - 15 - np.log2(stage.length) + 2)
    level = np.floor(2**stage.log_bits * np.log2(np.maximum(raised, 1e-9))) - stage.floor
    return np.clip(level, 0, 255).astype(np.uint8)


def of_transform(frames: NDArray[np.int64], stage: Spectrum, scaling: str) -> NDArray[np.uint8]:
    """Return the levels of frames (n, N) by a transform."""
    y, exponent = transform(frames, scaling)
    v = 2 * y[:, 1:-1] - y[:, :-2] - y[:, 2:]
    squares = np.square(np.abs(v)) * 4.0**exponent
    return levels_of(np.add.reduceat(squares, stage.edges.astype(int) - 1, axis=1)[:, :-1], stage)


def of_walsh(frames: NDArray[np.int64], stage: Spectrum) -> NDArray[np.uint8]:
    """Return the levels of bands of sequencies: additions alone, no window."""
    z, n = frames.copy(), frames.shape[1]
    half = 1
    while half < n:
        a = z.reshape(len(z), -1, 2, half)
        z = np.stack([a[:, :, 0] + a[:, :, 1], a[:, :, 0] - a[:, :, 1]], axis=2).reshape(z.shape)
        half *= 2
    number = np.arange(n)
    gray = number ^ number >> 1
    bits = int(np.log2(n))
    place = sum((gray >> i & 1) << bits - 1 - i for i in range(bits))  # by changes of sign
    squares = 6.0 * np.square(z[:, place].astype(np.float64))  # 6 is the gain of the window
    ends = 2 * stage.edges.astype(int)
    ends[-1] = min(ends[-1], n - 1)
    return levels_of(np.add.reduceat(squares, ends, axis=1)[:, :-1], stage)


def halves(x: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the lower and the upper half of the band of signals (n, samples), at half the rate."""
    p = np.pad(x, ((0, 0), (3, 3)))
    n = x.shape[1]
    near = 9 * (p[:, 2 : 2 + n] + p[:, 4 : 4 + n]) - p[:, :n] - p[:, 6 : 6 + n]
    low, high = 16 * x + near >> 5, 16 * x - near >> 5
    return low[:, ::2], high[:, ::2]


def of_tree(samples: NDArray[np.int64], stage: Spectrum) -> NDArray[np.uint8]:
    """Return the levels of an octave tree of half-band filters, two bands an octave."""
    n, frames = len(samples), stage.frames(samples.shape[1])
    first, parts, low = stage.first(samples.shape[1]), [], samples
    for octave in range(stage.n_bands // 2):
        low, high = halves(low)
        for part in reversed(halves(high)):  # the upper half of a decimated band is turned round
            total = np.cumsum(np.square(np.pad(part, ((0, 0), (1, 0))).astype(np.float64)), axis=1)
            begin = (first + stage.hop * np.arange(frames)) >> octave + 2
            end = np.minimum(begin + (stage.length >> octave + 2), total.shape[1] - 1)
            parts.append((total[:, end] - total[:, begin]) * 4.0 ** (octave + 1))
    return levels_of(6.0 * stage.length * np.stack(parts[::-1], axis=2), stage).reshape(n, -1)


def recognition(levels: Callable[..., NDArray[np.uint8]], folder: Path) -> float:
    """Return % right of spoken digits, new clips of known persons, with another front."""

    def run(self: Spectrum, values: NDArray[Any], given: Any) -> NDArray[np.uint8]:
        rows = np.asarray(values).reshape(-1, given.rows).astype(np.int64)
        return np.concatenate(
            [
                levels(part, self)
                for part in np.split(rows, range(_ROWS_AT_ONCE, len(rows), _ROWS_AT_ONCE))
            ]
        ).reshape(len(rows), -1)

    X, y, _, ((inside, outside),) = load("spoken_digits", folder)
    classifier = TernaryKernelClassifier(
        rate=RATE["spoken_digits"],
        hop=WINDOW["spoken_digits"] // 2,
        random_state=0,
        n_kernels=N_KERNELS,
    )
    with patch.object(Spectrum, "run", run):
        model = classifier.fit(X[inside], y[inside]).quantize()
        return 100 * float((model.predict(X[outside]) == y[outside]).mean())


def framed(levels: Callable[..., NDArray[np.uint8]], *more: str) -> Callable[..., NDArray[Any]]:
    """Return what takes whole rows of samples from what takes frames."""

    def of_rows(rows: NDArray[np.int64], stage: Spectrum) -> NDArray[np.uint8]:
        view = np.lib.stride_tricks.sliding_window_view(rows, stage.length, axis=1)
        frames = view[:, stage.first(rows.shape[1]) :: stage.hop]
        return levels(frames.reshape(-1, stage.length), stage, *more)

    return of_rows


FRONTS = {
    "transform, 16 bits, fixed shifts": framed(of_transform, "fixed"),
    "transform, 16 bits, block exponent": framed(of_transform, "block"),
    "transform, 32-bit work array": framed(of_transform, "wide"),
    "Walsh-Hadamard": framed(of_walsh),
    "octave tree, two bands an octave": of_tree,
}


def noise_ratio(scaling: str, decibels: float, length: int = 256) -> float:
    """Return the SNR in dB of the bins of noise of so many dB below full scale."""
    rng = np.random.default_rng(0)
    x = np.rint(32767 * 10 ** (decibels / 20) * rng.uniform(-1, 1, (50, length))).astype(np.int64)
    y, exponent = transform(x, scaling)
    true = np.fft.rfft(x, axis=1)
    error = np.square(np.abs(y * 2.0**exponent - true)).sum()
    return 10 * float(np.log10(np.square(np.abs(true)).sum() / error))


def section(folder: Path) -> Iterator[str]:
    """Yield the lines of the section."""
    yield TITLE
    yield ""
    yield f"NumPy prototypes of other ways to 12 levels of a frame; {N_KERNELS} kernels, clips 0"
    yield "to 4 of each person and digit as test. SNR in dB of the bins of noise in a frame of 256"
    yield "samples, against float64. The stage has the transform with a 32-bit work array."
    yield "Written by `benchmarks/sound_fronts.py`."
    yield ""
    yield f"| front | {' | '.join(f'{one} dBFS' for one in LOUDNESS)} | spoken digits |"
    yield "|---|" + "---|" * (len(LOUDNESS) + 1)
    scalings = ("fixed", "block", "wide")
    for place, (name, levels) in enumerate(FRONTS.items()):
        ratios = [""] * len(LOUDNESS)
        if place < len(scalings):
            ratios = [f"{noise_ratio(scalings[place], one):.1f}" for one in LOUDNESS]
        yield f"| {name} | {' | '.join(ratios)} | {recognition(levels, folder):.1f} |"


if __name__ == "__main__":
    given = page_arguments(__doc__, "").parse_args()
    print_section(section(Path(given.data)), given.write)
