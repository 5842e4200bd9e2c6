"""Compiled steps of coordinate descent on formula (7) of Lei & Lan 2021, for one output.

With ``h_i = w.z_i``, an integer, and r the number of weights that are not 0, the objective is::

    sum_i c_i loss(y_i (alpha h_i + beta)) + lambda alpha^2 r          sum_i c_i = 1

The last term is the penalty ``lambda alpha^2 sum w^2`` of (7); beta is an intercept, 0 in the
paper. The loss of a margin m is the squared hinge, ``max(0, 1 - m)^2``.

The loss of all integers h is tabulated at fixed alpha and beta, with its differences, as
``levels[y, h, :]``. Moving w_j by s changes every h_i by +s or -s, so the change of the loss is
``sum_i below_i + sum over set bits of (above_i - below_i)``, with below and above the changes at
h - s and h + s: the first sum does not depend on j, the second is a masked sum over the bits of
the feature. (10)-(11) for one j is one or two of them.

Masked sums run over differences rounded to 22-bit integers: exact, fast and independent of the
order. A change is checked in float64 before it is made, so the objective never rises.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tinykernel.compiled import njit
from tinykernel.papers.bits import add_feature, masked_sum

_LIMIT = 2.0**21 - 1.0
# Differences may double within a sweep before they saturate.
_TOP = 2.0**20
_SMALLEST_ALPHA = 1e-8
_LONGEST = 1e8  # end of a line search, in units of its direction
# Columns of the levels, and of the sums over the rows.
_HERE, _BELOW_1, _SPREAD_1, _BELOW_2, _SPREAD_2 = 0, 1, 2, 3, 4


@njit(nogil=True)
def _loss(margin):  # type: ignore[no-untyped-def]
    short = max(0.0, 1.0 - margin)
    return short * short


@njit(nogil=True)
def _fill_levels(alpha, beta, levels):  # type: ignore[no-untyped-def]
    """Tabulate the loss and its differences for every h in [-p, p] and both classes."""
    p = (levels.shape[1] - 1) // 2
    for side in range(2):
        y = 2.0 * side - 1.0
        value = np.empty(2 * p + 5)
        for k in range(2 * p + 5):
            value[k] = _loss(y * (alpha * (k - p - 2) + beta))
        for k in range(2 * p + 1):
            level = levels[side, k]
            level[_HERE] = value[k + 2]
            level[_BELOW_1] = value[k + 1] - value[k + 2]
            level[_SPREAD_1] = value[k + 3] - value[k + 1]
            level[_BELOW_2] = value[k] - value[k + 2]
            level[_SPREAD_2] = value[k + 4] - value[k]


@njit(nogil=True)
def _units(sums, side, share, levels, units):  # type: ignore[no-untyped-def]
    """Choose how many integer units one unit of weighted loss has."""
    p = (levels.shape[1] - 1) // 2
    for k, spread in ((0, _SPREAD_1), (1, _SPREAD_2)):
        largest = 0.0
        for i in range(share.shape[0]):
            size = abs(levels[side[i], sums[i] + p, spread])
            largest = max(largest, share[i] * size, 1e-12 * share[i])
        units[k] = _TOP / largest


@njit(nogil=True)
def _refresh(sums, side, share, levels, units, steps, totals):  # type: ignore[no-untyped-def]
    """Recompute the integer differences of all rows, and the sums that do not depend on j."""
    p = (levels.shape[1] - 1) // 2
    unit_1, unit_2 = units[0], units[1]
    here, below_1, spread_1, below_2, spread_2 = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(share.shape[0]):
        level = levels[side[i], sums[i] + p]
        weight = share[i]
        here += weight * level[_HERE]
        below_1 += weight * level[_BELOW_1]
        spread_1 += weight * level[_SPREAD_1]
        below_2 += weight * level[_BELOW_2]
        spread_2 += weight * level[_SPREAD_2]
        change = np.rint(weight * level[_SPREAD_1] * unit_1)
        steps[0, i] = np.int32(min(_LIMIT, max(-_LIMIT, change)))
        change = np.rint(weight * level[_SPREAD_2] * unit_2)
        steps[1, i] = np.int32(min(_LIMIT, max(-_LIMIT, change)))
    totals[:] = (here, below_1, spread_1, below_2, spread_2)


@njit(nogil=True)
def _best_move(feature, weight, price, steps, units, totals):  # type: ignore[no-untyped-def]
    """Return the best move of one weight, and the change of the objective: (10) and (11)."""
    move = 0
    best = 0.0
    spread = masked_sum(feature, steps[0]) / units[0]
    # From 0 a weight costs the price, to 0 it saves it.
    cost = price if weight == 0 else -price
    rise = totals[_BELOW_1] + spread + cost
    fall = totals[_BELOW_1] + totals[_SPREAD_1] - spread + cost
    if weight <= 0 and rise < best:
        move, best = 1, rise
    if weight >= 0 and fall < best:
        move, best = -1, fall
    if weight != 0:
        spread = masked_sum(feature, steps[1]) / units[1]
        if weight < 0:
            rise = totals[_BELOW_2] + spread
            if rise < best:
                move, best = 2, rise
        else:
            fall = totals[_BELOW_2] + totals[_SPREAD_2] - spread
            if fall < best:
                move, best = -2, fall
    return move, best


# --- formula (8): alpha, and the intercept, at fixed weights -------------------------------------


@njit(nogil=True)
def _histogram(sums, side, share, counts):  # type: ignore[no-untyped-def]
    """Add up the shares of the rows by class and h; return the smallest and largest h."""
    p = (counts.shape[1] - 1) // 2
    counts[:] = 0.0
    low = sums[0]
    high = sums[0]
    for i in range(share.shape[0]):
        counts[side[i], sums[i] + p] += share[i]
        low = min(low, sums[i])
        high = max(high, sums[i])
    return low, high


@njit(nogil=True)
def _mean_loss(alpha, beta, counts, low, high):  # type: ignore[no-untyped-def]
    p = (counts.shape[1] - 1) // 2
    total = 0.0
    for side in range(2):
        y = 2.0 * side - 1.0
        for h in range(low, high + 1):
            count = counts[side, h + p]
            if count > 0.0:
                total += count * _loss(y * (alpha * h + beta))
    return total


@njit(nogil=True)
def _slope(t, alpha, beta, d_alpha, d_beta, rate, counts, low, high):  # type: ignore[no-untyped-def]
    """Compute the derivative of the objective on a line, t along it; rate is ``2 lambda r``."""
    p = (counts.shape[1] - 1) // 2
    alpha, beta = alpha + t * d_alpha, beta + t * d_beta
    total = rate * alpha * d_alpha
    for side in range(2):
        y = 2.0 * side - 1.0
        for h in range(low, high + 1):
            count = counts[side, h + p]
            if count > 0.0:
                slope = count * y * -2.0 * max(0.0, 1.0 - y * (alpha * h + beta))
                total += slope * (d_alpha * h + d_beta)
    return total


@njit(nogil=True)
def _search(scale, d_alpha, d_beta, rate, counts, low, high):  # type: ignore[no-untyped-def]
    """Minimise along a line, in place: bisection on the derivative, which never decreases."""
    alpha, beta = scale[0], scale[1]
    slope = _slope(0.0, alpha, beta, d_alpha, d_beta, rate, counts, low, high)
    if slope > 0.0:
        d_alpha, d_beta = -d_alpha, -d_beta
    limit = _LONGEST
    if d_alpha < 0.0:
        limit = (alpha - _SMALLEST_ALPHA) / -d_alpha
    if slope == 0.0 or limit <= 0.0:
        return
    line = (alpha, beta, d_alpha, d_beta, rate, counts, low, high)
    left, right = 0.0, min(1.0, limit)
    slope = _slope(right, *line)
    while slope < 0.0 and right < limit:
        left, right = right, min(2.0 * right, limit)
        slope = _slope(right, *line)
    if slope < 0.0:
        left = right
    while right - left > 1e-10 * right and right > 1e-12:
        middle = 0.5 * (left + right)
        if _slope(middle, *line) < 0.0:
            left = middle
        else:
            right = middle
    scale[0] = max(_SMALLEST_ALPHA, alpha + right * d_alpha)
    scale[1] = beta + right * d_beta


@njit(nogil=True)
def _scale_step(scale, penalty, r, counts, low, high, before):  # type: ignore[no-untyped-def]
    """Minimise over alpha (8) and the intercept, unless the result is worse.

    Lines along both axes and along the way so far take turns (Powell 1964).
    """
    new = scale.copy()
    rate = penalty * 2 * r
    for _ in range(4):
        old_alpha = new[0]
        old_beta = new[1]
        if r > 0:
            _search(new, new[0], 0.0, rate, counts, low, high)
        _search(new, 0.0, 1.0, rate, counts, low, high)
        d_alpha = new[0] - old_alpha
        d_beta = new[1] - old_beta
        if abs(d_alpha) <= 1e-4 * new[0] and abs(d_beta) <= 1e-4:
            break
        _search(new, d_alpha, d_beta, rate, counts, low, high)
    after = _mean_loss(new[0], new[1], counts, low, high) + penalty * new[0] ** 2 * r
    if after < before:
        scale[0], scale[1] = new[0], new[1]


# --- one sweep -----------------------------------------------------------------------------------
# Three compiled functions rather than one: LLVM takes many times longer over their union.


@njit(nogil=True)
def _solve(sums, side, share, p, penalty, r, scale):  # type: ignore[no-untyped-def]
    """Make the step of (8)."""
    counts = np.empty((2, 2 * p + 1))
    low, high = _histogram(sums[: share.shape[0]], side, share, counts)
    before = _mean_loss(scale[0], scale[1], counts, low, high)
    before += penalty * scale[0] ** 2 * r
    _scale_step(scale, penalty, r, counts, low, high, before)


@njit(nogil=True)
def _prepare(sums, side, share, scale, levels, units):  # type: ignore[no-untyped-def]
    _fill_levels(scale[0], scale[1], levels)
    _units(sums, side, share, levels, units)


@njit(nogil=True)
def _visit(planes, side, share, order, price, weights, sums, levels, units):  # type: ignore[no-untyped-def]
    """Visit every weight once; return the objective and the number of changes."""
    steps = np.zeros((2, sums.shape[0]), np.int32)
    totals = np.zeros(5)
    r = np.int64(0)
    for k in range(weights.shape[0]):
        r += abs(np.int64(weights[k]))
    # Changes below the rounding error of the integer differences are skipped.
    noise = 2.0 * np.sqrt(share.shape[0]) / min(units[0], units[1])
    n_changes = 0
    j, weight, move = np.int64(0), np.int64(0), np.int64(0)
    for visited in range(-1, order.shape[0]):
        before = np.inf  # the visit before the first changes nothing; it fills steps and totals
        if visited >= 0:
            j = order[visited]
            weight = np.int64(weights[j])
            move, change = _best_move(planes[j], weight, price, steps, units, totals)
            before = totals[_HERE] + price * r
            if change >= -noise - 1e-13 * before:
                continue
        new_r = r - abs(weight) + abs(weight + move)
        # Second time: float64 finds no gain, and the move is taken back.
        for direction in (1, -1):
            add_feature(planes[j], direction * move, sums)
            _refresh(sums, side, share, levels, units, steps, totals)
            if direction == 1 and totals[_HERE] + price * new_r < before:
                if visited >= 0:
                    weights[j] = weight + move
                    r = new_r
                    n_changes += 1
                break
    return totals[_HERE] + price * r, n_changes


def sweep(
    planes: NDArray[np.uint8],
    side: NDArray[np.int8],
    share: NDArray[np.float64],
    order: NDArray[np.int64],
    penalty: float,
    weights: NDArray[np.int8],
    scale: NDArray[np.float64],
    sums: NDArray[np.int32],
) -> tuple[float, int]:
    """Solve (8), then visit every weight once and give it its best value (10)-(11).

    `side` is 1 for the rows with y = +1 and else 0, `share` is c_i, `order` that of the visits,
    `penalty` lambda. `weights`, `scale` (alpha and beta) and `sums` (h of all rows) change in
    place. Returns the objective, and how many weights changed.
    """
    p, r = planes.shape[0], int(np.count_nonzero(weights))
    _solve(sums, side, share, p, penalty, r, scale)
    levels, units = np.empty((2, 2 * p + 1, 5)), np.empty(2)
    _prepare(sums, side, share, scale, levels, units)
    price = penalty * float(scale[0]) ** 2
    objective, n_changes = _visit(planes, side, share, order, price, weights, sums, levels, units)
    return float(objective), int(n_changes)
