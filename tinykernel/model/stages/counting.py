"""The counts of the stage *kernels* in compiled code."""

from __future__ import annotations

import numpy as np

from tinykernel.compiled import njit


@njit(nogil=True)
def count_images(begin, end, levels, kernels, cut, out):  # type: ignore[no-untyped-def]
    """Count threshold crossings of some inputs; `levels` (n, n_mixed, rows, columns)."""
    # kernels: ends, places, taps, dilations, channels, thresholds; cut: rows of a kernel, padding,
    # cells down and across, columns of a cell. A tap is added to a row of responses at once, which
    # compilers turn into vector instructions.
    ends, places, taps, dilations, channels, thresholds = kernels
    kernel_rows, padding, n_cells_y, n_cells_x, cell_columns = cut
    _, _, rows, columns = levels.shape
    response = np.empty(columns, dtype=np.int32)
    for n in range(begin, end):
        for k in range(dilations.shape[0]):
            d, plane = dilations[k], levels[n, channels[k]]
            span = (kernel_rows - 1) * d
            n_rows = rows + 2 * padding - span
            for y in range(n_rows):
                cell = (k * n_cells_y + y * n_cells_y // n_rows) * n_cells_x
                newest = y + span - padding
                response[:] = 0
                for t in range(ends[k], ends[k + 1]):
                    row, aside = newest + places[t, 0] * d, places[t, 1] * d
                    if not 0 <= row < rows:
                        continue
                    first = max(0, -aside)
                    last = max(first, min(columns, columns - aside))  # kernels may be wider
                    moved, level = response[first:last], plane[row, first + aside : last + aside]
                    tap = taps[t]
                    for x in range(moved.size):
                        moved[x] += tap * level[x]
                for i in range(n_cells_x):
                    inside = response[i * cell_columns : (i + 1) * cell_columns]
                    count = 0
                    for x in range(inside.size):
                        count += inside[x] > thresholds[k]
                    out[n, cell + i] += count


@njit(nogil=True)
def count_signals(begin, end, levels, kernels, cut, out):  # type: ignore[no-untyped-def]
    """Count threshold crossings of some windows; `levels` (n, n_mixed, rows, 1), rest as above."""
    ends, places, taps, dilations, channels, thresholds = kernels
    kernel_rows, _, n_cells, _, _ = cut
    rows = levels.shape[2]
    responses = np.empty(rows, dtype=np.int32)
    for n in range(begin, end):
        for k in range(dilations.shape[0]):
            d, level = dilations[k], levels[n, channels[k], :, 0]
            n_rows = rows - (kernel_rows - 1) * d
            response = responses[:n_rows]
            response[:] = 0
            for t in range(ends[k], ends[k + 1]):
                tap, moved = taps[t], level[(kernel_rows - 1 + places[t, 0]) * d :]
                for y in range(n_rows):
                    response[y] += tap * moved[y]
            for y in range(n_rows):
                out[n, k * n_cells + y * n_cells // n_rows] += response[y] > thresholds[k]
