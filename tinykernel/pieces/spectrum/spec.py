"""Spectrum: frames of samples to the levels of frequency bands."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.compiled import inlined, njit
from tinykernel.base.hadamard import run_on_rows, useful_threads
from tinykernel.base.windows import SEGMENTS
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Stage
from tinykernel.pieces.proof import Range
from tinykernel.pieces.record import limits

#: Samples are shifted to so many bits before the transform.
_LOADED_BITS = 26
# Samples of a stream over which kernels are counted, where there is time.
_CALLS = 24
_INT32 = (-(1 << 31), (1 << 31) - 1)


@dataclass(frozen=True, eq=False)
class Spectrum(Stage):
    """The stage *spectrum*: how loud each band of frequencies is, frame by frame.

    It takes a signal of whole numbers. A frame is `length` samples of one channel, and the next one
    begins `hop` samples later; the last one ends with the last sample, so that the first begins at
    ``(rows - length) % hop``. ``>>`` rounds down, ``N = length``, ``M = N / 2``, and ``C[i] =
    round(32768 cos(2 pi i / N))`` for i = 0..N/4 is the only table; with ``S[i] = C[N/4 - i]`` it
    holds the sines.

    **1. Pairs.** ``z[n] = x[2 n] 2**shift + j x[2 n + 1] 2**shift``, a right shift where `shift` is
    negative: ``shift = 26 - b`` where all values are in ``-2**b..2**b``.

    **2. Transform.** z is put into bit-reversed order; then come log2(M) stages of half = 1, 2, 4,
    ... Each replaces all pairs a, b = z[i], z[i + half] by ``a' + t`` and ``a' - t``. In the first
    two stages ``a' = a``, and t is b or ``-j b``. In the others ``a' = a >> 1``, and with c, s the
    entries of C and S at ``k M / half``, k = i mod 2 half::

        k = 0            t = b >> 1
        0 < k < half/2   tr = (br c >> 16) + (bi s >> 16),  ti =  (bi c >> 16) - (br s >> 16)

    and for k from half/2 on ``-j`` times that of ``k - half/2``, products rounded first: ``tr = (bi
    c >> 16) - (br s >> 16)``, ``ti = -(bi s >> 16) - (br c >> 16)``.

    **3. Split.** The bins of the real samples, for 0 < k < M/2 and n = M - k::

        e = (re z[k] + re z[n]) >> 2,  (im z[k] - im z[n]) >> 2
        d = (im z[k] + im z[n]) >> 1,  (re z[n] - re z[k]) >> 1
        t = (dr C[k] >> 16) + (di S[k] >> 16),  (di C[k] >> 16) - (dr S[k] >> 16)
        y[k] = e + t,  y[n] = the conjugate of e - t

    ``y[0], y[M] = (re z[0] >> 1) +- (im z[0] >> 1)``; ``y[M/2]`` is half of the conjugate of
    ``z[M/2]``, rounded down before its sign turns.

    **4. Window.** ``v[k] = 2 y[k] - y[k - 1] - y[k + 1]``: a Hann window, exactly.

    **5. Power.** exponent is the least one for which every ``v >> exponent``, of all bins of all
    bands, is in ``-2**A..2**A - 1``; A is the largest number up to 15 for which 2**(2 A + 1) times
    the bins of the widest band is below 2**32. Band b has the power ``p = sum of (re v >>
    exponent)**2 + (im v >> exponent)**2`` over the bins ``edges[b] <= k < edges[b + 1]``.

    **6. Levels.** With l = `log_bits`, ``level = floor(2**l log2(p 4**exponent)) - floor``, held
    within 0..255; 0 where p is 0. The logarithm is computed by squaring: p is ``2**top``
    times m / 2**15, with m cut to 16 bits; a digit is ``m m >> 31``, and the next m is ``m m >>
    (15 + digit)``.

    It gives a signal of uint8: a row a frame, ``(rows - length) // hop + 1`` of them, and for each
    channel of the input a channel a band.

    **A stream** spreads the work on a frame over the samples of the next hop. A channel takes
    ``log2(N) + 2`` steps: each half of the pairs with two stages, each other stage, split, window,
    levels. Each sample, from the last one of the frame on, does ``ceil(steps channels / hop)``.
    Where that is one, the next sample takes the levels, and up to 24 that are left before the next
    frame count the kernels.

    >>> stage = Spectrum(length=64, hop=32, edges=[2, 4, 8, 16, 32], log_bits=2, floor=64)
    >>> n = np.arange(128)
    >>> tone = np.rint(20000 * np.sin(2 * np.pi * 10 * n / 64)).astype(np.int16)  # bin 10
    >>> stage.run(tone.reshape(1, -1), Grid.raw("int16", 128, 1)).reshape(3, 4)[0].tolist()
    [60, 60, 156, 71]
    """

    KIND = "spectrum"
    TAKES = ("samples",)
    GIVES = "rows"
    NAMES = True
    SIMPLER = "on the spectrum, "
    SHARES = True

    length: int  # of `SEGMENTS`
    hop: int  # 1 to `length`
    # rising; from 2, as bins 0 and 1 hold the constant part, to ``length / 2``
    edges: NDArray[np.uint16]
    # 2, 4 or 8 levels an octave of power; one of 4 is 0.75 dB
    log_bits: int = field(metadata=limits(1, 3))
    floor: int = field(metadata=limits(0, 511))  # subtracted, in levels

    def check(self) -> None:
        if self.length not in SEGMENTS:
            raise self.refuse(f"length is {self.length}, not one of {SEGMENTS}")
        self.require("hop", 1, self.length)
        edges = self.edges.astype(int)
        if not 2 <= edges.size <= 65 or edges[0] < 2 or edges[-1] > self.length // 2:
            raise self.refuse("edges are 2 to 65 numbers of bins, from 2 to half of the length")
        if np.any(np.diff(edges) < 1):
            raise self.refuse("edges do not rise")

    @property
    def step(self) -> int:
        return self.hop

    @property
    def title(self) -> str:
        return f"spectrum of {self.n_bands} bands"

    @property
    def steps(self) -> int:
        """Steps of the work on a frame of one channel."""
        return int(np.log2(self.length)) + 2

    def at_once(self, grid: Grid) -> int:
        """Return how many steps a sample of a stream does."""
        return -(-self.steps * grid.channels // self.hop)

    def calls(self, grid: Grid) -> int:
        """Return over how many samples the kernels are counted; see `Stage`."""
        return max(1, min(_CALLS, self.hop - self.steps * grid.channels - 1))

    def delay(self, grid: Grid) -> int:
        """Return how many samples after the last one of a window a stream gives its last row."""
        steps, calls = self.steps * grid.channels, self.calls(grid)
        return steps + calls if calls > 1 else -(-steps // self.at_once(grid)) - 1

    @property
    def n_bands(self) -> int:
        """Number of bands."""
        return len(self.edges) - 1

    @property
    def amplitude_bits(self) -> int:
        """A of step 5."""
        widest = int(np.diff(self.edges.astype(int)).max())
        return next(a for a in range(15, 0, -1) if widest << (2 * a + 1) < 1 << 32)

    def cosines(self) -> NDArray[np.uint16]:
        """Return the table C, shape (length / 4 + 1,)."""
        turn = 2 * np.pi * np.arange(self.length // 4 + 1) / self.length
        return np.asarray(np.rint(32768 * np.cos(turn)), np.uint16)

    def order(self) -> NDArray[np.int64]:
        """Return the bit-reversed numbers of the pairs, shape (length / 2,)."""
        order = np.zeros(1, dtype=np.int64)
        while order.size < self.length // 2:
            order = np.concatenate([2 * order, 2 * order + 1])
        return order

    def shift(self, grid: Grid) -> int:
        """Return the left shift of samples in step 1; it may be negative."""
        return _LOADED_BITS - max(abs(grid.low) - 1, grid.high).bit_length()

    def frames(self, rows: int) -> int:
        """Return the number of frames in so many samples."""
        return (rows - self.length) // self.hop + 1

    def first(self, rows: int) -> int:
        """Return the sample at which the first frame begins."""
        return (rows - self.length) % self.hop

    def gives(self, grid: Grid) -> Grid:
        if grid.columns != 1 or np.dtype(grid.dtype).kind not in "iu":
            raise self.refuse("it takes signals of whole numbers")
        if grid.rows < self.length:
            raise self.refuse(f"a window of {grid.rows} samples is shorter than a segment")
        return Grid(self.frames(grid.rows), 1, grid.channels * self.n_bands, "uint8", 0, 255)

    def run(self, values: NDArray[np.generic], grid: Grid) -> NDArray[np.generic]:
        made = self.gives(grid)
        # Bytes become int16, as it is compiled for each type.
        samples = np.ascontiguousarray(values, np.promote_types(values.dtype, np.int16))
        samples = samples.reshape(-1, grid.rows, grid.channels)
        out = np.empty((len(samples), made.rows, made.channels), dtype=np.uint8)
        numbers = np.array([self.amplitude_bits, self.log_bits, self.floor])
        run_on_rows(
            spectra,
            len(samples),
            useful_threads(out.shape[0] * made.rows * grid.channels * 8 * self.length),
            samples,
            self.first(grid.rows),
            self.hop,
            self.shift(grid),
            self.order(),
            self.cosines(),
            self.edges.astype(np.int64),
            numbers,
            out,
        )
        return out.reshape(len(samples), made.size)

    def ranges(self, grid: Grid) -> tuple[Range, ...]:
        """Return the bounds of every step; see `Stage`."""
        # They bound magnitudes of complex numbers, hence both parts. The magnitude of a sum is at
        # most the sum of theirs. A product with c - j s exceeds its factor by at most 2**-15, the
        # error of the table; each rounding down then adds at most 1 to a part.
        root = 2**0.5
        pair = root * 2.0**_LOADED_BITS
        last = 4 * pair
        for _ in range(int(np.log2(self.length)) - 3):
            last = last * (1 + 2.0**-16) + 4 * root
        bins = last * (1 + 2.0**-16) + 4 * root
        # The largest logarithm of a power below 2**octaves, in levels.
        octaves = 32 + 2 * (31 - self.amplitude_bits)
        level = (octaves << self.log_bits) - 1
        whole = [
            ("pair of samples", pair, _INT32[1]),
            ("transform", last, _INT32[1]),
            ("sum of two bins", 2 * last, _INT32[1]),
            ("bin", bins, _INT32[1]),
            ("windowed bin", 4 * bins, _INT32[1]),
        ]
        widest = int(np.diff(self.edges.astype(int)).max())
        amplitude = 1 << self.amplitude_bits
        return (
            *(Range(name, -int(most) - 1, int(most) + 1, -top, top) for name, most, top in whole),
            Range("amplitude", -amplitude, amplitude - 1, -32768, 32767),
            Range("power of a band", 0, widest * 2 * amplitude**2, 0, (1 << 32) - 1),
            Range("logarithm", 0, level, 0, 1023),
        )

    def work(self, grid: Grid) -> dict[str, float]:
        """Return butterflies, bins and bands; see `Stage`."""
        frames = self.frames(grid.rows) * grid.channels
        pairs = self.length // 2
        bins = int(self.edges[-1]) - int(self.edges[0])
        return {
            "frame": frames,
            "butterfly": frames * pairs // 2 * int(np.log2(pairs)),
            "split": frames * pairs // 2,
            "bin": frames * bins,
            "band": frames * self.n_bands,
        }


@njit(nogil=True)
def fourier(z, cosines):  # type: ignore[no-untyped-def]
    """Transform z (2, M) int64 in place, its columns in bit-reversed order; see `Spectrum`."""
    re, im = z[0], z[1]
    m = re.shape[0]
    half = 1
    while half < m:
        quarter = half // 2
        step = m // half  # of the table, which has 2 m entries a turn
        plain = half <= 2
        for k in range(half):
            turned = quarter > 0 and k >= quarter
            place = (k - quarter if turned else k) * step
            c = np.int64(cosines[place])
            s = np.int64(cosines[m // 2 - place])
            for a in range(k, m, 2 * half):
                b = a + half
                x, y = re[b], im[b]
                if place == 0:
                    tr, ti = (x, y) if plain else (x >> 1, y >> 1)
                    if turned:
                        tr, ti = ti, -tr
                elif turned:
                    tr = (y * c >> 16) - (x * s >> 16)
                    ti = -(y * s >> 16) - (x * c >> 16)
                else:
                    tr = (x * c >> 16) + (y * s >> 16)
                    ti = (y * c >> 16) - (x * s >> 16)
                x, y = (re[a], im[a]) if plain else (re[a] >> 1, im[a] >> 1)
                re[a], im[a] = x + tr, y + ti
                re[b], im[b] = x - tr, y - ti
        half *= 2


@inlined
def split(z, cosines, y):  # type: ignore[no-untyped-def]
    """Fill y (2, M + 1) with the transform of 2 M real samples, from that of their pairs."""
    re, im = z[0], z[1]
    m = re.shape[0]
    y[0, 0], y[1, 0] = (re[0] >> 1) + (im[0] >> 1), 0
    y[0, m], y[1, m] = (re[0] >> 1) - (im[0] >> 1), 0
    y[0, m // 2], y[1, m // 2] = re[m // 2] >> 1, -(im[m // 2] >> 1)
    for k in range(1, m // 2):
        n = m - k
        c, s = np.int64(cosines[k]), np.int64(cosines[m // 2 - k])
        er, ei = (re[k] + re[n]) >> 2, (im[k] - im[n]) >> 2
        dr, di = (im[k] + im[n]) >> 1, (re[n] - re[k]) >> 1
        tr = (dr * c >> 16) + (di * s >> 16)
        ti = (di * c >> 16) - (dr * s >> 16)
        y[0, k], y[1, k] = er + tr, ei + ti
        y[0, n], y[1, n] = er - tr, ti - ei


@inlined
def log2_of(value, digits):  # type: ignore[no-untyped-def]
    """Return floor(2**digits log2(value)) of 1 to 2**32 - 1, digit by digit."""
    top = 0
    while value >> top > 1:
        top += 1
    mantissa, level = value << (31 - top) >> 16, top  # 2**15 to 2**16 - 1
    for _ in range(digits):
        square = mantissa * mantissa
        bit = square >> 31
        mantissa = square >> (15 + bit)
        level = 2 * level + bit
    return level


@inlined
def band_levels(y, edges, amplitude_bits, log_bits, floor, out):  # type: ignore[no-untyped-def]
    """Fill out (n_bands,) with the levels of the windowed spectrum of y (2, M + 1)."""
    first, end = edges[0], edges[-1]
    v = np.empty((2, end - first), dtype=np.int64)
    top = np.int64(0)
    for part in range(2):
        for k in range(first, end):
            value = 2 * y[part, k] - y[part, k - 1] - y[part, k + 1]
            v[part, k - first] = value
            top |= value ^ (value >> 63)
    exponent = 0
    while top >> exponent >> amplitude_bits:
        exponent += 1
    for band in range(edges.shape[0] - 1):
        power = np.int64(0)
        for k in range(edges[band] - first, edges[band + 1] - first):
            power += (v[0, k] >> exponent) ** 2 + (v[1, k] >> exponent) ** 2
        level = 0  # of power * 4**exponent
        if power > 0:
            level = log2_of(power, log_bits) + (2 * exponent << log_bits) - floor
        out[band] = min(max(level, 0), 255)


@njit(nogil=True)
def spectra(  # type: ignore[no-untyped-def]
    begin, end, samples, first, hop, shift, order, cosines, edges, numbers, out
):
    """Fill out[begin:end] (n, frames, channels * bands) from samples (n, rows, channels).

    The first frame begins at row `first`, the others `hop` rows later each.
    """
    # `order` has the bit-reversed numbers of the pairs; `numbers` amplitude_bits, log_bits, floor.
    m = order.shape[0]
    z, y = np.empty((2, m), dtype=np.int64), np.empty((2, m + 1), dtype=np.int64)
    bands = edges.shape[0] - 1
    for n in range(begin, end):
        for frame in range(out.shape[1]):
            for channel in range(samples.shape[2]):
                x = samples[n, first + frame * hop :, channel]
                for i in range(m):
                    even, odd = np.int64(x[2 * i]), np.int64(x[2 * i + 1])
                    if shift >= 0:
                        z[0, order[i]], z[1, order[i]] = even << shift, odd << shift
                    else:
                        z[0, order[i]], z[1, order[i]] = even >> -shift, odd >> -shift
                fourier(z, cosines)
                split(z, cosines, y)
                made = out[n, frame, channel * bands : (channel + 1) * bands]
                band_levels(y, edges, numbers[0], numbers[1], numbers[2], made)
