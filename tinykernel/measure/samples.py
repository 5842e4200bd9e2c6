"""Models with random numbers in them, for measuring code and for tests; they classify nothing."""

from __future__ import annotations

import numpy as np

from tinykernel.hadamard import padded_dimension
from tinykernel.model import InputScaler, IntegerModel
from tinykernel.model.diagonals import LARGEST
from tinykernel.model.permutation import Permutation

__all__ = ["random_model"]


def _scaler(raw_dtype: str, bits: int, n: int, rng: np.random.Generator) -> InputScaler:
    """Make a scaler; `n` is the number of features, or 1 for one scale for all."""
    top = 2**bits - 1
    if raw_dtype == "float32":
        offset = rng.uniform(-2.0, 0.0, n).astype(np.float32)
        return InputScaler("float32", bits, offset, (top / rng.uniform(1, 4, n)).astype(np.float32))
    limits = np.iinfo(raw_dtype)
    low = rng.integers(max(limits.min, -1000), min(limits.max // 4, 1000), n)
    span = rng.integers(1, np.minimum(limits.max - low, 30000), n) + 1
    span = np.minimum(span, limits.max - low)
    multiplier = (top * 65536 // span).astype(np.uint32)
    return InputScaler(raw_dtype, bits, low.astype(np.int32), multiplier, span.astype(np.uint32))


def random_model(
    n_features: int = 64,
    n_components: int = 256,
    n_classes: int = 10,
    *,
    raw_dtype: str = "uint8",
    bits: int = 8,
    diagonal_kind: str = "int8",
    permutation: str = "orbit",
    scaler_per_feature: bool = False,
    block_scales: bool = False,
    zero_weights: bool = True,
    dropped_rows: float = 0.0,
    constant_features: int = 0,
    windows: str = "rows",
    seed: int = 0,
) -> IntegerModel:
    """Make a valid integer model with the shape and the layouts that are asked for.

    Parameters
    ----------
    n_features, n_components, n_classes : int
    raw_dtype : str, default="uint8"
    bits : {8, 16}, default=8
    diagonal_kind : {"int8", "int4", "sign"}, default="int8"
    permutation : {"identity", "orbit", "stored"}, default="orbit"
    scaler_per_feature : bool, default=False
        One scale for each feature in place of one for all.
    block_scales : bool, default=False
        Equal phase scales within each block.
    zero_weights : bool, default=True
        Whether weights may be 0.
    dropped_rows : float, default=0.0
        Share of rows, scattered over all blocks, that are no components.
    constant_features : int, default=0
        Number of features that are ignored.
    windows : {"rows", "phases", "half turns"}, default="rows"
        Start and width by row; starts only, the windows being half a turn; or starts that alternate
        along the rows.
    seed : int, default=0

    Returns
    -------
    IntegerModel
        Its transforms halve at every stage that could overflow.

    Examples
    --------
    >>> random_model(16, 64, 3).scores([[0] * 16]).shape
    (1, 3)
    """
    rng = np.random.default_rng(seed)
    d = padded_dimension(n_features)
    stages = d.bit_length() - 1
    n_blocks = -(-n_components // d)
    kept = np.arange(n_blocks * d) < n_components
    kept &= rng.random(n_blocks * d) >= dropped_rows
    kept[0] = True
    p = int(kept.sum())
    n_outputs = 1 if n_classes == 2 else n_classes
    sign = rng.choice([-1, 1], n_features).astype(np.int8)
    sign[:constant_features] = 0
    n_scales = n_features if scaler_per_feature or constant_features else 1
    scaler = _scaler(raw_dtype, bits, n_scales, rng)
    if constant_features:
        multiplier = scaler.multiplier.copy()
        multiplier[:constant_features] = 0
        scaler = InputScaler(raw_dtype, bits, scaler.offset, multiplier, scaler.span)
    table = rng.permutation(d).astype(np.uint16) if permutation == "stored" else None
    spread = rng.integers(1, 256, n_blocks).repeat(d)[kept] if block_scales else (
        rng.integers(1, 256, p))  # fmt: skip
    diagonal = rng.choice([-1, 1], (n_blocks, d))
    if diagonal_kind != "sign":
        largest = LARGEST[diagonal_kind]
        diagonal = rng.integers(-largest, largest + 1, (n_blocks, d))
    start, width = rng.integers(0, 256, p), rng.integers(1, 256, p)
    if windows == "half turns":
        start = np.resize([64, 128], n_blocks * d)[kept]
    if windows != "rows":
        width[:] = 128
    safe = max(0, 15 - bits)  # stages before the sum of 2**(bits - 1) can reach 2**15
    return IntegerModel(
        n_features=n_features,
        scaler=scaler,
        sign=sign,
        permutation=Permutation(permutation, multiplier=5, increment=3, table=table),
        diagonal=diagonal.astype(np.int8),
        diagonal_kind=diagonal_kind,
        halve_first=tuple(stage >= safe for stage in range(stages)),
        halve_second=(True,) * stages,
        row_kept=kept.reshape(n_blocks, d),
        scale=spread.astype(np.uint8),
        start=start.astype(np.uint8),
        width=width.astype(np.uint8),
        phase_shift=int(rng.integers(16, 24)),
        weights=rng.choice([-1, 0, 1] if zero_weights else [-1, 1], (n_outputs, p)).astype(np.int8),
        multiplier=rng.integers(1, 100, n_outputs).astype(np.int32),
        offset=rng.integers(-1000, 1000, n_outputs).astype(np.int32),
        classes=tuple(range(n_classes)),
    )
