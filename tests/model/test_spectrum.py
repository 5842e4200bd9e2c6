"""The stage *spectrum*: its arithmetic, its proved ranges, and how near it is to floats."""

from fractions import Fraction
from itertools import pairwise
from math import cos, floor, pi

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from tests.spectra import hard_frames
from tinykernel.base.errors import ModelError
from tinykernel.learn.signals.spectrum import spectrum_for
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.spectrum.sample import random_spectrum
from tinykernel.pieces.spectrum.spec import Spectrum

pytestmark = pytest.mark.usefixtures("page")


class Slow:
    """The specification by recursion on Python's integers; keeps the extremes of every step."""

    def __init__(self, stage: Spectrum, bits: int):
        self.stage, self.bits = stage, bits
        n = stage.length
        self.c = [round(32768 * cos(2 * pi * i / n)) for i in range(n // 4 + 1)]
        self.s = self.c[::-1]
        self.seen: dict[str, int] = {}

    def keep(self, name: str, *values: int) -> None:
        self.seen[name] = max(self.seen.get(name, 0), *map(abs, values))

    def fourier(self, z: list[tuple[int, int]]) -> list[tuple[int, int]]:
        if len(z) == 1:
            return z
        even, odd = self.fourier(z[::2]), self.fourier(z[1::2])
        half, m = len(even), self.stage.length // 2
        lost = int(half > 2)
        out = [(0, 0)] * len(z)
        for k in range(half):
            turned = 2 * k >= half > 1
            i = (k - half // 2 if turned else k) * m // half
            (x, y), c, s = odd[k], self.c[i], self.s[i]
            if i == 0:
                t = (x >> lost, y >> lost)
                t = (t[1], -t[0]) if turned else t
            elif turned:
                t = (y * c >> 16) - (x * s >> 16), -(y * s >> 16) - (x * c >> 16)
            else:
                t = (x * c >> 16) + (y * s >> 16), (y * c >> 16) - (x * s >> 16)
            a = even[k][0] >> lost, even[k][1] >> lost
            out[k] = a[0] + t[0], a[1] + t[1]
            out[k + half] = a[0] - t[0], a[1] - t[1]
            self.keep("transform", *out[k], *out[k + half])
        return out

    def bins(self, x: list[int]) -> list[tuple[int, int]]:
        m = self.stage.length // 2
        shift = 26 - self.bits
        loaded = [v << shift if shift >= 0 else v >> -shift for v in x]
        self.keep("pair of samples", *loaded)
        z = self.fourier(list(zip(loaded[::2], loaded[1::2], strict=True)))
        y = [(0, 0)] * (m + 1)
        y[0] = (z[0][0] >> 1) + (z[0][1] >> 1), 0
        y[m] = (z[0][0] >> 1) - (z[0][1] >> 1), 0
        y[m // 2] = z[m // 2][0] >> 1, -(z[m // 2][1] >> 1)
        for k in range(1, m // 2):
            (a, b), (p, q) = z[k], z[m - k]
            self.keep("sum of two bins", a + p, b - q, b + q, p - a)
            e, d = ((a + p) >> 2, (b - q) >> 2), ((b + q) >> 1, (p - a) >> 1)
            t = (
                (d[0] * self.c[k] >> 16) + (d[1] * self.s[k] >> 16),
                (d[1] * self.c[k] >> 16) - (d[0] * self.s[k] >> 16),
            )
            y[k], y[m - k] = (e[0] + t[0], e[1] + t[1]), (e[0] - t[0], t[1] - e[1])
        self.keep("bin", *(part for one in y for part in one))
        return y

    def levels(self, x: list[int]) -> list[int]:
        y, edges = self.bins(x), self.stage.edges.tolist()
        v = {
            k: [2 * y[k][i] - y[k - 1][i] - y[k + 1][i] for i in (0, 1)]
            for k in range(edges[0], edges[-1])
        }
        self.keep("windowed bin", *(part for one in v.values() for part in one))
        widest = max(np.diff(edges))
        a = max(a for a in range(16) if widest * 2 ** (2 * a + 1) < 2**32)
        exponent = 0
        while any(not -(2**a) <= part >> exponent < 2**a for one in v.values() for part in one):
            exponent += 1
        out = []
        for low, high in pairwise(edges):
            power = sum((part >> exponent) ** 2 for k in range(low, high) for part in v[k])
            self.keep("power of a band", power)
            out.append(self.level(power, exponent))
        return out

    def level(self, power: int, exponent: int) -> int:
        if power == 0:
            return 0
        top = power.bit_length() - 1
        mantissa = floor(Fraction(power, 2**top) * 2**15)
        digits = top + 2 * exponent
        for _ in range(self.stage.log_bits):
            digit, mantissa = divmod(mantissa * mantissa, 2**31)[0], mantissa * mantissa
            mantissa >>= 15 + digit
            digits = 2 * digits + digit
        return min(255, max(0, digits - self.stage.floor))


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.sampled_from(["int8", "uint8", "int16", "uint16", "int32"]))
def test_levels_are_those_of_the_specification(seed: int, dtype: str) -> None:
    """The compiled code computes what the docstring says, and no step leaves its proved range."""
    stage = random_spectrum(seed)
    samples = hard_frames(stage, dtype, seed)
    grid = Grid.raw(dtype, samples.shape[1], 1)
    info = np.iinfo(dtype)
    slow = Slow(stage, max(-int(info.min) - 1, int(info.max)).bit_length())
    found = stage.run(samples, grid).reshape(len(samples), -1, stage.n_bands)
    for row, levels in zip(samples.tolist(), found[:, ::-1].tolist(), strict=True):
        for i, got in enumerate(levels):
            end = len(row) - i * stage.hop
            assert got == slow.levels(row[end - stage.length : end])
    proved = {one.stage: one for one in stage.ranges(grid)}
    assert all(one.fits for one in proved.values())
    assert all(value <= proved[name].high for name, value in slow.seen.items())


@pytest.mark.parametrize(("decibels", "least"), [(-6, 92), (-30, 92), (-60, 75), (-80, 55)])
def test_the_spectrum_is_as_good_as_the_samples(decibels: int, least: int) -> None:
    """Noise of the roundings stays below that of 16-bit samples, at any level of the signal."""
    rng = np.random.default_rng(0)
    n = np.arange(256)
    loud = 10 ** (decibels / 20) * 32767
    for _ in range(20):
        tone = np.sin(2 * np.pi * rng.uniform(3, 125) * n / 256 + rng.uniform(0, 6))
        x = np.rint(loud * (tone + rng.uniform(-1, 1, 256)) / 2).astype(int)
        y = np.array(Slow(Spectrum(256, 1, [2, 128], 2, 0), 15).bins(x.tolist())) @ [1, 1j]
        got = 2 * y[1:-1] - y[:-2] - y[2:]
        exact = np.fft.rfft(x * (1 - np.cos(2 * np.pi * n / 256)))[1:-1] * 2**14 / 256
        noise = np.abs(got - exact)[1:] ** 2
        assert 10 * np.log10((np.abs(exact[1:]) ** 2).sum() / noise.sum()) > least


def test_levels_of_a_full_tone_and_of_the_last_bit() -> None:
    """What docs/signals.md says that levels are, of the frames that `train` takes."""
    stage, given = spectrum_for("auto", 16000, 16000, 8000), Grid.raw("int16", 512, 1)
    tone = np.rint(32767 * np.sin(np.pi * np.arange(512) / 4)).astype(np.int16)
    noise = np.random.default_rng(0).integers(-1, 2, (200, 512)).astype(np.int16)
    assert stage.run(tone.reshape(1, -1), given).max() == 146
    assert stage.run(noise, given).mean(axis=0).max() < 20


@pytest.mark.parametrize(
    "change",
    [
        {"length": 100},
        {"hop": 0},
        {"hop": 65},
        {"edges": [1, 5]},
        {"edges": [2, 5, 5]},
        {"edges": [2, 33]},
    ],
)
def test_what_is_refused(change: dict) -> None:
    """Every field that is out of range is one line."""
    fields = {"length": 64, "hop": 32, "edges": [2, 9], "log_bits": 2, "floor": 0}
    refused(ModelError, Spectrum, **fields | change)


def test_inputs_that_are_no_signal_are_refused() -> None:
    """Floats, images and windows shorter than a frame."""
    stage = Spectrum(64, 32, [2, 9], 2, 0)
    for grid in (Grid.raw("float32", 64, 1), Grid.raw("int16", 64, 2), Grid.raw("int16", 63, 1)):
        refused(ModelError, stage.gives, grid)


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), channels=st.integers(1, 64))
def test_the_work_on_a_frame_ends_before_the_next(seed: int, channels: int) -> None:
    """A stream that spreads its work has done it within a hop, whatever the hop."""
    stage, grid = random_spectrum(seed), Grid.raw("int16", 1024, 1, channels)
    calls, at_once = stage.calls(grid), stage.at_once(grid)
    assert at_once * stage.hop >= stage.steps * channels
    assert 0 <= stage.delay(grid) < stage.hop
    assert calls == 1 or at_once == 1
