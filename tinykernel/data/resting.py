"""Windows of a gesture that show rest, and gestures that are shorter than a window.

The energy of a window is the variance of its samples, summed over the channels.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import DataError
from tinykernel.base.text import count
from tinykernel.data.reading import Recording

# A window rests if it has no more energy than this share of the windows of background.
_SHARE_OF_REST = 0.95


def take_peaks(
    track: Recording, y: NDArray[Any] | None, starts: NDArray[np.int64], window: int
) -> NDArray[np.bool_]:
    """Give windows the label at their strongest sample, in place; return a mask of those it fits.

    It fits if that sample is in the middle half of the window. The strength of a sample is its
    distance from the median of the recording.
    """
    assert y is not None
    assert track.y is not None
    X = track.X.astype(np.float64)
    strength = np.square(X - np.median(X, axis=0)).sum(axis=1)
    peaks = np.array([int(strength[a : a + window].argmax()) for a in starts.tolist()], np.int64)
    y[:] = track.y[starts + peaks]
    return (4 * peaks >= window) & (4 * peaks < 3 * window)


def without_rest(
    X: NDArray[Any], y: NDArray[Any], recording: NDArray[np.int64], still: object, source: str
) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Label windows of the energy of rest as background, but the strongest of each recording.

    Rest is what 95 % of the windows of background, the class `still`, do not exceed.
    """
    rests = y.astype(np.str_) == str(still)
    if not rests.any():
        raise DataError(
            f"{source}: label_at=peak needs a class of rest, such as recordings called background; "
            "add some, name one with --set background=LABEL, or leave it out"
        )
    energy = np.array([rows.astype(np.float64).var(axis=0).sum() for rows in X])
    most = float(np.quantile(energy[rests], _SHARE_OF_REST))
    strongest = np.zeros(len(y), bool)
    order = np.lexsort((energy, recording))
    strongest[order[np.append(np.flatnonzero(np.diff(recording[order])), len(y) - 1)]] = True
    moved = ~rests & (energy <= most) & ~strongest
    note = (
        f"{count(int(moved.sum()), 'window')} of other classes are {still}: no more energy "
        f"(variance {most:.3g}) than 95 % of its windows; --set label_at=all keeps their labels"
    )
    return np.where(moved, y[rests][0], y), (note,) if moved.any() else ()
