"""Random components."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.hadamard import padded_dimension
from tinykernel.pieces.components.spec import Components
from tinykernel.pieces.fastfood import Permutation
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Sample
from tinykernel.pieces.proof import choose_schedules
from tinykernel.pieces.scale.sample import random_scaler
from tinykernel.pieces.scale.spec import Scale


def random_permutation(rng: np.random.Generator, kind: str) -> Permutation:
    """Return a permutation of the kind asked for."""
    if kind == "orbit":
        multiplier = 4 * int(rng.integers(0, 1 << 12)) + 1
        return Permutation("orbit", multiplier, 2 * int(rng.integers(0, 1 << 14)) + 1)
    return Permutation()


def random_kept(rng: np.random.Generator, kind: str, m: int, d: int) -> NDArray[np.bool_]:
    """Return which rows are components: 'all', a 'tail' dropped, 'some' or 'few' mask."""
    mask = np.ones((m, d), dtype=bool)
    if kind == "tail":
        mask[-1, int(rng.integers(1, d)) :] = False
    elif kind != "all":
        mask = rng.random((m, d)) < (0.8 if kind == "some" else 0.15)
        mask[0] = False if kind == "few" and m > 1 else mask[0]
        mask[-1, int(rng.integers(0, d))] = True
    return mask


def random_windows(
    rng: np.random.Generator, kind: str, rows: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return starts and widths of components in these rows of their blocks.

    Both differ by row ('rows'), the starts do ('phases': half a turn; 'one width': another width),
    the widths do ('two starts'), or neither does ('half turns', 'constant').
    """
    start, width = rng.integers(0, 256, rows.size), rng.integers(1, 256, rows.size)
    if kind in ("two starts", "half turns", "constant"):
        start = rng.integers(0, 256, 2)[rows % 2]
    if kind in ("sixteenths", "starts of four bits"):
        start, width = start & 240, np.maximum(width & 240, 16)
    if kind in ("phases", "half turns", "starts of four bits"):
        width[:] = 128
    if kind in ("one width", "constant"):
        width[:] = rng.integers(1, 256)
    return start.astype(np.uint8), width.astype(np.uint8)


def random_components(
    rng: np.random.Generator,
    scale: Scale,
    n_features: int,
    *,
    n_blocks: int = 2,
    diagonal_kind: str = "int8",
    permutation: str = "identity",
    rows: str = "all",
    one_scale: bool = False,
    phase_shift: int = 10,
    windows: str = "rows",
) -> Components:
    """Return components that are proved and use the whole range of every parameter."""
    n, m, d = n_features, n_blocks, padded_dimension(n_features)
    sign = np.where(scale.constant(n), 0, rng.choice([-1, 1], n)).astype(np.int8)
    if diagonal_kind == "sign":
        diagonal = rng.choice([-1, 1], (m, d)).astype(np.int8)
    else:
        largest = {"int8": 127, "int4": 7}[diagonal_kind]
        diagonal = rng.integers(-largest, largest + 1, (m, d)).astype(np.int8)
    mixing = random_permutation(rng, permutation)
    first, second = choose_schedules(sign, scale.bits, mixing, diagonal, diagonal_kind)
    row_kept = random_kept(rng, rows, m, d)
    scales = rng.integers(1, 256, int(row_kept.sum()))
    if one_scale:
        scales = rng.integers(1, 256, m)[np.nonzero(row_kept)[0]]
    start, width = random_windows(rng, windows, np.nonzero(row_kept)[1])
    return Components(
        sign=sign,
        permutation=mixing,
        diagonal=diagonal,
        diagonal_kind=diagonal_kind,
        halve_first=first,
        halve_second=second,
        row_kept=row_kept,
        scale=scales.astype(np.uint8),
        start=start,
        width=width,
        phase_shift=phase_shift,
    )


def samples(seed: int) -> Iterator[Sample]:
    """Yield components of every kind of diagonal and permutation."""
    for number, diagonal in enumerate(("int8", "int4", "sign")):
        rng = np.random.default_rng([seed, number])
        scale = random_scaler(rng, "int16", (8, 16)[number % 2], 20, False)
        kinds = {"diagonal_kind": diagonal, "permutation": ("identity", "orbit")[number % 2]}
        components = random_components(rng, scale, 20, rows="some", **kinds)
        yield Sample(Grid.table("int16", 20), (scale, components))
