"""Which recordings of sound seem to be takes of one person or place.

Takes on one microphone in one room are near in noise floor and spectrum. Recordings are joined
(Ward, Journal of the American Statistical Association 58, 1963) until groups are 2.5 dB apart. 280
recordings by about 27 people, ten takes each, make 31 groups, 17 of which have 9 to 11.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.data.cutting import Windows
from tinykernel.data.labels import Span
from tinykernel.data.paths import parts_of
from tinykernel.data.reading import Recording

#: How groups are called.
TAKE = "take "
_APART = 2.5  # dB
_SEGMENT, _BANDS = 512, 24
_FEWEST = 3  # groups of each label
_MOST = 8000  # recordings, for whose distances there is memory


def takes_of(sounds: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """Return the number of the group of each recording (samples, channels), from 0."""
    from scipy.cluster.hierarchy import fcluster, linkage

    if len(sounds) < 2 or len(sounds) > _MOST:
        return np.arange(len(sounds))
    features = np.round([_features(sound[:, 0].astype(np.float64)) for sound in sounds], 2)
    groups: NDArray[np.int64] = fcluster(linkage(features, "ward"), _APART, "distance")
    return groups.astype(np.int64) - 1


def _features(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return noise floor and shape of the spectrum, in dB, so that distances are root means."""
    whole = np.pad(samples, (0, max(0, _SEGMENT - len(samples))))
    segments = np.lib.stride_tricks.sliding_window_view(whole, _SEGMENT)[:: _SEGMENT // 2]
    power = np.square(np.abs(np.fft.rfft(segments * np.hanning(_SEGMENT), axis=1)))
    edges = np.unique(np.geomspace(3, _SEGMENT // 2, _BANDS + 1).astype(int))
    bands = 10 * np.log10(np.add.reduceat(power, edges[:-1], axis=1) + 1)
    floor, mean = np.quantile(bands, 0.1, axis=0), bands.mean(axis=0)
    return np.asarray(np.concatenate([floor, mean - mean.mean()]) / np.sqrt(2 * len(mean)))


def in_takes(windows: Windows) -> Windows:
    """Put recordings that seem to be takes of one person or place into one group.

    Where a label has fewer than three of them, recordings stay apart: the voice is one's own.
    """
    names = [each.name for each in windows.stretches]
    are_said = parts_of(windows.recordings) or set(windows.groups.tolist()) - set(names)
    if are_said or len(set(names)) < len(names):
        return windows
    numbers = takes_of([each.X for each in windows.stretches]).tolist()
    labels = {each.name: str(each.y[0]) for each in windows.stretches if each.y is not None}
    for label in set(labels.values()):
        of_label = [n for n, name in zip(numbers, names, strict=True) if labels[name] == label]
        if len(set(of_label)) < _FEWEST:
            return windows
    take = {name: f"{TAKE}{number}" for name, number in zip(names, numbers, strict=True)}
    stretches = (_of_group(each, take[each.name]) for each in windows.stretches)
    of_windows = [take[windows.recordings[at]] for at in windows.recording.tolist()]
    return replace(windows, groups=np.array(of_windows), stretches=tuple(stretches))


def recordings_in_takes(recordings: Sequence[Recording]) -> tuple[Recording, ...]:
    """Put recordings, each of a group of its own, into groups of one person or place."""
    numbers = takes_of([each.X for each in recordings]).tolist()
    groups = {each.groups[0].label for each in recordings}
    if len(groups) < len(recordings) or len(set(numbers)) < _FEWEST:
        return tuple(recordings)
    pairs = zip(recordings, numbers, strict=True)
    return tuple(_of_group(each, f"{TAKE}{number}") for each, number in pairs)


def _of_group(recording: Recording, name: str) -> Recording:
    return replace(recording, groups=(Span(0, len(recording.X), name),))
