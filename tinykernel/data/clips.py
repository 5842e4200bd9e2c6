"""Recordings of one source, and clips that are joined to a long one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import DataError, OptionError
from tinykernel.data.cutting import Windows, segments_of
from tinykernel.data.labels import NO_SPAN, Span, backgrounds_among, is_background
from tinykernel.data.reading import Reading, Recording, of_all_alike

#: Windows of a joined recording for each clip in it: ten seconds for words of one second.
SLOT = 10
#: The most gain of background below a clip: `background_volume` of TensorFlow's speech commands.
_MOST_BELOW = 0.1
# Windows that clips of a word have at least, in the median, and at most: a word fills shorter ones,
# and in a longer recording a label is usually all the time.
_SHORTEST, _LONGEST = 1.5, 5


@dataclass(frozen=True, eq=False)
class Recordings:
    """Recordings of one file or folder."""

    recordings: tuple[Recording, ...]
    rate: float | None
    source: str
    is_long: bool  # whether a label begins or ends within a recording.
    are_whole: bool = False  # whether labels are of words somewhere in their clips.
    notes: tuple[str, ...] = ()  # on how the files were read

    @property
    def hours(self) -> float:
        """Their length."""
        if self.rate is None:
            raise DataError(f"{self.source}: has no sampling rate; give --set rate=HZ")
        return float(sum(len(each.X) for each in self.recordings) / self.rate / 3600)


def uncut(tracks: Sequence[Recording], source: str) -> Recordings:
    """Return whole recordings; stretches between gaps are recordings of their own."""
    recordings = tuple(each for track in tracks for each in _at_gaps(track))
    is_long = any(
        len(each.spans) != 1 or each.spans[0].end - each.spans[0].first < len(each.X)
        for each in recordings
    )
    return Recordings(recordings, tracks[0].rate, source, is_long)


def _at_gaps(track: Recording) -> list[Recording]:
    """Cut a recording at its gaps; its labels become spans."""
    spans = track.table.spans
    if spans is None:
        spans = () if track.y is None else tuple(_runs(track.y, track.unlabelled))
    whole = replace(track, spans=spans)
    return [whole.part(first, end) for first, end in segments_of(track)]


def _runs(y: NDArray[Any], unlabelled: NDArray[np.bool_]) -> list[Span]:
    """List the runs of equal labels; those without a label are no spans."""
    if of_all_alike(y):
        return [] if unlabelled[0] else [Span(0, len(y), y[0].item())]
    changes = (y[1:] != y[:-1]) | (unlabelled[1:] != unlabelled[:-1])
    firsts = [0, *(np.flatnonzero(changes) + 1).tolist()]
    ends = [*firsts[1:], len(y)]
    return [Span(a, b, y[a].item()) for a, b in zip(firsts, ends, strict=True) if not unlabelled[a]]


def words_in(tracks: Sequence[Recording], window: int, reading: Reading) -> tuple[str, ...]:
    """Return the labels that are somewhere in their recordings, and not all the time.

    They are those of sounds much longer than a window, if there is background besides. "off" is
    none: a machine is off all the time. With ``clips="whole"`` sounds may be of any length.
    """
    if reading.clips not in ("auto", "whole"):
        return ()
    are_whole = all(
        t.table.is_sound and t.X.shape[1] == 1 and t.y is not None and not any(t.y.strides)
        for t in tracks
    )
    lengths: dict[str, list[int]] = {}
    for track in tracks if are_whole else ():
        assert track.y is not None
        lengths.setdefault(str(track.y[0]), []).append(len(track.X))
    named = set(map(str, reading.background))
    if named and reading.labels_needed and not named <= set(lengths):
        return ()
    still = named or {each for each in backgrounds_among(lengths) if each.lower() != "off"}
    words = sorted(set(lengths) - still)
    spoken = [length for word in words for length in lengths[word]]
    is_asked = reading.clips == "whole"
    may_be = words and still & set(lengths) and np.median(spoken) >= _SHORTEST * window
    if may_be and (is_asked or max(spoken) <= _LONGEST * window):
        return tuple(words)
    if is_asked:
        raise OptionError(
            "clips: whole ones are sounds of one channel, longer than a window, with a label each, "
            "of which some are background; give --set background=LABELS"
        )
    return ()


def loudest(windows: Windows, words: Sequence[str]) -> Windows:
    """Leave of each recording of a word the loudest window, and none of silence."""
    assert windows.y is not None
    is_word = np.isin(windows.y.astype(np.str_), words)
    power = np.array(
        [
            np.square(X - X.mean()).sum() if w else 1.0
            for X, w in zip(windows.X, is_word, strict=True)
        ]
    )
    best: dict[int, int] = {}
    for row in np.flatnonzero(is_word).tolist():
        clip = int(windows.recording[row])
        if power[row] > power[best.setdefault(clip, row)]:
            best[clip] = row
    silent = [row for row in best.values() if power[row] == 0]
    for word in words:
        if {row for row in best.values() if windows.y[row] == word} <= set(silent):
            raise DataError(f"{windows.source}: every recording of {word!r} is silent; record it")
    taken = sorted({*best.values(), *np.flatnonzero(~is_word).tolist()} - set(silent))
    dropped = windows.dropped | {"silent": len(silent)}
    return replace(windows.at(np.array(taken)), dropped=dropped, words=tuple(words))


def with_one_background(windows: Windows) -> Windows:
    """Give all that is no word one label: to tell other words from speech would be in the way."""
    assert windows.y is not None
    still = sorted({*windows.y.astype(np.str_).tolist()} - set(windows.words))
    if len(still) < 2:
        return windows
    y = np.where(np.isin(windows.y, windows.words), windows.y, NO_SPAN)
    stretches = (
        each
        if each.y is None or str(each.y[0]) in windows.words
        else replace(each, y=np.broadcast_to(np.array([NO_SPAN]), len(each.X)))
        for each in windows.stretches
    )
    return replace(windows, y=y, stretches=tuple(stretches))


def join_whole(clips: Recordings, events: Sequence[object]) -> Recordings:
    """Join clips that are longer than the words in them, each once: those of events, and others.

    A clip of an event is its span; time without events is that of the others alone.
    """
    whole = []
    for name, is_event in ("background", False), ("events", True):
        parts = [each for each in clips.recordings if (each.spans[0].label in events) == is_event]
        ends = np.cumsum([0, *(len(each.X) for each in parts)]).tolist()
        places = list(zip(parts, ends[:-1], ends[1:], strict=True))
        spans = tuple(Span(at, end, each.spans[0].label) for each, at, end in places)
        groups = tuple(Span(at, end, each.groups[0].label) for each, at, end in places)
        if parts:
            X = np.concatenate([each.X for each in parts])
            whole.append(Recording(f"joined {name}", X, spans, groups))
        elif not is_event:
            raise DataError(
                f"{clips.source}: every clip is an event, so false alarms are not known; add clips "
                "of the background: speech and other words, by other voices than the training's"
            )
    return replace(clips, recordings=tuple(whole), is_long=True)


def join_clips(
    clips: Recordings, background: Sequence[object], window: int, hours: float, seed: int = 0
) -> Recordings:
    """Join clips of one label each to a long recording, as a microphone might hear them.

    In each slot of ten windows, or of two clips where that is longer, a clip of a random label lies
    at a random place, with a gain of 1/4 to 2. A floor of clips of background goes on all the time,
    each of which fades into the next one. Their gains are 0 to 1 between the clips of the slots,
    and 0 to 0.1 below them, as in the streams of TensorFlow's speech commands.
    Clips of background whose label says so by its words are the floor; others, such as words that
    are no command, take part in the slots, and have no span.
    """
    if clips.rate is None:
        raise DataError(f"{clips.source}: has no sampling rate; give --set rate=HZ")
    rng, total = np.random.default_rng(seed), round(hours * 3600 * clips.rate)
    by_label: dict[Any, list[Recording]] = {}
    for clip in clips.recordings:
        by_label.setdefault(clip.spans[0].label, []).append(clip)
    still = [label for label in by_label if label in background and is_background(label)]
    still = still or [label for label in by_label if label in background][:1]
    slot = max(SLOT * window, 2 * max(len(clip.X) for clip in clips.recordings))
    kind = clips.recordings[0].X.dtype
    X = np.zeros((max(total // slot, 1) * slot, clips.recordings[0].X.shape[1]), kind)
    names, spans, groups = [label for label in by_label if label not in still], [], []
    if not names:
        raise DataError(f"{clips.source}: every clip is background; give clips of events")
    for first in range(0, len(X), slot):
        label = names[rng.integers(len(names))]
        clip = by_label[label][rng.integers(len(by_label[label]))]
        at = first + int(rng.integers(0, slot - len(clip.X) + 1))
        _add(X, clip.X, at, 2.0 ** rng.uniform(-2, 1))
        groups.append(Span(first, first + slot, clip.groups[0].label))
        spans.append(Span(at, at + len(clip.X), label))
    _lay_floor(X, [clip for label in still for clip in by_label[label]], spans, window, rng)
    events = tuple(span for span in spans if span.label not in background)
    whole = Recording("joined clips", X, events, tuple(groups))
    return replace(clips, recordings=(whole,), is_long=True)


def _lay_floor(
    X: NDArray[Any],
    clips: Sequence[Recording],
    spoken: Sequence[Span],
    window: int,
    rng: np.random.Generator,
) -> None:
    """Add clips one after the other, quieter where another clip is."""
    at, ends = 0, np.array([span.end for span in spoken])
    while clips and at < len(X):
        clip = clips[int(rng.integers(len(clips)))].X
        place, fade = np.arange(len(clip)), max(min(window, len(clip)) // 4, 1)
        next_one = int(np.searchsorted(ends, at, side="right"))
        below = next_one < len(spoken) and spoken[next_one].first < at + len(clip)
        ramps = np.minimum(np.minimum(place, place[::-1]) / fade, 1).reshape(-1, 1)
        _add(X, clip, at, rng.uniform(0, _MOST_BELOW if below else 1) * ramps)
        at += max(len(clip) - fade, 1)


def _add(X: NDArray[Any], clip: NDArray[Any], at: int, gain: float | NDArray[np.float64]) -> None:
    """Add a clip to samples, which stay within their type."""
    part = X[at : at + len(clip)]
    mixed = part.astype(np.float64) + (gain * clip)[: len(part)]
    if X.dtype.kind in "iu":
        limits = np.iinfo(X.dtype)
        mixed = np.clip(np.rint(mixed), limits.min, limits.max)
    part[...] = mixed.astype(X.dtype)
