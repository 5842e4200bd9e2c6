"""The counts of kernels in compiled code."""

from __future__ import annotations

import numpy as np

from tinykernel.compiled import njit


@njit(nogil=True)
def count_windows(begin, end, levels, kernels, n_cells, out):  # type: ignore[no-untyped-def]
    """Add up steps 1 and 2 of some windows; `levels` (n, n_mixed, rows).

    kernels: ends, rows and values of taps, dilations, channels, thresholds.
    """
    ends, places, taps, dilations, channels, thresholds = kernels
    rows = levels.shape[2]
    responses = np.empty(rows, dtype=np.int32)
    for n in range(begin, end):
        for k in range(dilations.shape[0]):
            d, level = dilations[k], levels[n, channels[k]]
            n_rows = rows - 8 * d
            response = responses[:n_rows]
            response[:] = 0
            for t in range(ends[k], ends[k + 1]):
                tap, moved = taps[t], level[places[t] * d :]
                for y in range(n_rows):
                    response[y] += tap * moved[y]
            for y in range(n_rows):
                out[n, k * n_cells + y * n_cells // n_rows] += response[y] > thresholds[k]
