"""From files of recordings to windows."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tinykernel.base.errors import ModelError, RowsError
from tinykernel.base.progress import report as say
from tinykernel.base.text import count, join
from tinykernel.data.clips import Recordings, loudest, uncut, with_one_background, words_in
from tinykernel.data.clock import alike
from tinykernel.data.cutting import Windows, cut, lengths, long_enough, often_within, short_in_words
from tinykernel.data.labels import NO_SPAN, NamePattern, background_among, is_background
from tinykernel.data.origin import Origin, Taker
from tinykernel.data.partition import Dataset, Rows
from tinykernel.data.paths import SOUNDS, parts_of
from tinykernel.data.reading import Columns, Reading, Recording
from tinykernel.data.recording_files import find_all, note_on_unread, read_recording
from tinykernel.data.splits import as_dataset, split_recordings
from tinykernel.data.takes import TAKE, in_takes
from tinykernel.data.tracks import check_channels, read_tracks


def windows(
    recordings: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    window: str | int | None = None,
    hop: str | int | None = None,
    *,
    label: str | None = None,
    groups: str | None = None,
    name: str | None = None,
    inputs: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    rate: float | None = None,
    time: str | None = None,
    mixed: str = "drop",
    missing: str = "error",
    short: str | None = None,
    label_at: str = "all",
    axes: int | None = None,
    beside: Sequence[str] = (),
    background: Sequence[str] = (),
    labels_needed: bool = True,
) -> Windows:
    r"""Cut recordings into windows.

    ============  ==================================================================
    ``.csv``      a header; columns of channels, one of labels, and possibly one of times; also
                  ``.tsv``; missing values are empty cells, ``NA`` or ``nan``
    ``.parquet``  the same; needs pyarrow
    ``.npz``      ``X`` of shape (samples, channels), ``y`` of shape (samples,), possibly ``time``
                  (``time_ms``, ...), ``group``, ``rate`` (Hz) and ``channels`` (names)
    ``.wav``      PCM of 8 to 32 bits or floats, converted to 16 bits; the label is the name of
                  the folder; ``.flac``, ``.ogg`` and others need soundfile
    others        ``.hea`` of PhysioNet, ``.edf``, ``.bdf``, ``.json`` and ``.cbor`` of Edge
                  Impulse, ``.ts``, ``.tsv`` of the UCR archive, folders of phyphox and Sensor
                  Logger
    ============  ==================================================================

    Times are the column with such a name (``time``, ``t``, ``timestamp``, also with a unit:
    ``time_ms``, ``t [s]``). A step of more than 1.5 median steps, or backwards, is a gap. The rate
    is the number of steps a second between gaps.

    Parameters
    ----------
    recordings : path-like or sequence of path-like
        Files or folders; a folder stands for all recordings in it and below it. One file is one
        recording.
    window, hop : str or int
        Length of a window and distance to the next: ``"2.56s"``, ``"2560ms"``, or samples as
        ``128`` or ``"128"``. The hop is half a window if not given; of sounds that are no longer
        than a window at most 0.1 s.
    label : str, optional
        The column or array of labels; if not given the one that is called label, target, class or
        y. Where labels are not needed, a file may be without it.
    groups : str, optional
        The column or array of the groups of samples (a person, a machine), instead of the file.
        Windows never span two groups.
    name : str, optional
        Where label and group are in the path of a file, as in ``"{label}_{person}_{n}"`` or
        ``"{person}/{label}/*"``; see `NamePattern`. `label` and `groups` may name its fields.
    inputs : sequence of str, optional
        The columns to take as channels, in this order; all that are left if not given.
    drop : sequence of str, default=()
        Columns to treat as if they were not in the file. Without its times a file has no gaps.
    rate : float, optional
        Samples a second, if the file does not have it. If it does, both must agree within 2 %;
        sounds are resampled.
    time : str, optional
        The column of times, where its name does not say so.
    mixed : {"drop", "majority"}, default="drop"
        A window with several labels is dropped, or takes the label of most of its samples; of a
        tie the last one.
    missing : {"error", "drop"}, default="error"
        A window with a missing value or label is an error, or dropped.
    short : {"pad", "drop"}, optional
        A recording shorter than a window is padded with zeros, or dropped. If not given, sounds
        are padded and others are an error.
    label_at : {"all", "peak"}, default="all"
        A window has the label of all its samples, or that at its strongest sample; see
        `at_peak` of ``data/resting.py``.
    axes : int, optional
        Each line of a text file is a signal: the values of so many axes for each sample. The
        label is the name of the file, or `name` says it; each line is a group.
    beside : sequence of str, default=()
        Columns that are not channels but numbers beside a window, such as a temperature; the value
        at its last sample is used.
    background : sequence of str, default=()
        Labels of background; if none is given, those whose words say so, as silence or noise do.
        Samples without a label, in recordings where others have one, are background if a label
        is. Where labels are not needed, `background` may hold others than those of the files.
    labels_needed : bool, default=True
        Whether a file without labels, or with one label only, is an error.

    Returns
    -------
    Windows

    Raises
    ------
    TinykernelError
        If a file cannot be read or is without labels, if a window is longer than a recording, if
        channels or rates of two files differ, if seconds are given but no rate is known, if the
        hop is 0 or longer than the window, or if a channel is a counter or an identifier that was
        not asked for with `inputs`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name) / "walk.csv"
    >>> rows = [f"{20 * i},{i % 7},{'up' if i < 50 else 'down'}" for i in range(100)]
    >>> _ = file.write_text("time_ms,ax,label\n" + "\n".join(rows))
    >>> cut = windows(file, "400ms", "200ms")
    >>> print(cut)
    walk.csv: 8 windows of 20 samples x 1 channel, hop 10, 50 Hz, from 1 file;
    left out: 1 window of several labels
    >>> cut.end_times.tolist()
    [0.38, 0.58, 0.78, 0.98, 1.38, 1.58, 1.78, 1.98]
    >>> folder.cleanup()
    """
    options = {option: value for option, value in locals().items() if option != "recordings"}
    return RecordingSource(recordings, Reading(**options)).windows()


ADVICE_ON_EVENTS = (
    "no window lies within an event; 'calibrate --false-alarms 1/h' makes a model of events, which "
    "'evaluate' judges along time"
)
_ADVICE_ON_ONE_WORD = (
    ", or all that is heard becomes this one; add a folder of background, such as speech without "
    "it: examples/words.py makes babble"
)
_ADVICE_ON_CHANNELS = (
    "the clips have several channels, so that each window has the label of its clip; to look for "
    "words somewhere in clips leave one channel, as by --set drop='channel 2'"
)
_FEW_CLIPS = 20  # of a word
_ADVICE_ON_SILENCE = (
    "no class is background, so silence and noise become one of the words; add recordings called "
    "silence, or let the model refuse: tinykernel calibrate"
)


@dataclass(frozen=True, eq=False)
class RecordingSource:
    """Recordings, whose files are read once; for a training, or for a finished model."""

    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
    reading: Reading
    taker: Taker | None = None

    @cached_property
    def _files(self) -> tuple[list[Columns], list[str], str]:
        """The files, sounds at the rate asked for; their names, and one for all."""
        files, names, source = find_all(self.path)
        tables, rate = list[Columns](), self.reading.rate
        for file, title in zip(files, names, strict=True):
            say("reading", len(tables), len(files), title)
            table = read_recording(file, self.reading)
            is_other = rate is not None and table.rate is not None and not alike(table.rate, rate)
            tables.append(table.at_rate(rate) if is_other and table.is_sound and rate else table)
        paths = [self.path] if isinstance(self.path, (str, os.PathLike)) else self.path
        tables[0].notes |= dict.fromkeys(note_on_unread(paths), 0)
        if not _asks_for_groups(self.reading):
            _forget_one_group(tables)
        for table, part in zip(tables, parts_of(names), strict=False):
            table.name_group(part)
        return tables, names, source

    def windows(self, mixed: str | None = None) -> Windows:
        """Cut the recordings; `mixed` overrides that of the reading.

        For a finished model labels are its classes, and other channels are refused.
        """
        reading = self.reading if mixed is None else replace(self.reading, mixed=mixed)
        if self.taker is not None and not reading.hop:
            raise ModelError(
                "the model has no hop, so it takes windows, not recordings; train it with --hop"
            )
        tables, names, source = self._files
        say("cutting windows", 0, None)
        labels = {each for table in tables for each in table.labels()}
        if not reading.labels_needed:
            labels |= {*reading.background}
        still = background_among(labels, reading.background)
        if reading.mixed == "majority" and not reading.labels_needed:  # a stream, without holes
            still = still or NO_SPAN
        labelled = [table.with_labels(still) for table in tables]
        cut = _cut(labelled, names, reading, source, mixed is not None)
        of_sounds = _ADVICE_ON_ONE_WORD * _are_sounds(cut)
        if reading.labels_needed and cut.y is not None and (cut.y == cut.y[0]).all():
            raise RowsError(
                f"{source}: one class only, all {len(cut.y)} windows have the label "
                f"{cut.y[0]}{tables[0].labels_are}; training needs two" + of_sounds
            )
        if self.taker is not None:
            return self._of_taker(cut, mixed is not None)
        return with_one_background(cut) if cut.words else cut

    def tracks(self) -> tuple[list[Recording], tuple[str, ...]]:
        """Return the recordings before they are cut, and notes on their files."""
        tables, names, _ = self._files
        labels = {each for table in tables for each in table.labels()}
        still = background_among(labels, self.reading.background)
        tables = [table.with_labels(still) for table in tables]
        return _tracks(tables, names, self.reading), _remarks(tables)

    def _of_taker(self, cut: Windows, is_stream: bool) -> Windows:
        """Check the channels of windows, and turn labels into classes."""
        assert self.taker is not None
        check_channels(cut.source, cut.channels, self.taker.input.channels)
        if cut.y is None:
            return cut
        labels, of_window = np.unique(cut.y, return_inverse=True)
        in_names = is_stream and _are_sounds(cut)
        known = as_classes(labels.tolist(), self.taker.classes, self.reading.background, in_names)
        if known is None:
            return replace(cut, y=None)
        values = list(known.values())
        kind = object if len(set(map(type, values))) > 1 else None
        return replace(cut, y=np.array(values, dtype=kind)[of_window])

    def train_rows(self, test_size: float, seed: int) -> Dataset:
        """Cut recordings, and hold out whole ones."""
        cut = self.windows()
        dataset = replace(
            as_dataset(cut, test_size, seed),
            shape=(cut.X.shape[1], len(cut.channels)),
            beside=len(cut.numbers),
            origin=Origin(recordings=cut.as_cut(self.reading)),
            windows=str(cut),
            words=cut.words,
        )
        if cut.words:
            groups = set(np.asarray(dataset.group_train).tolist())
            clips, held_out = cut.clips(groups), cut.clips(groups, inside=False)
            dataset = replace(dataset, clips=clips, clips_test=held_out)
            few = _notes_on_few(clips, cut.words)
            return replace(dataset, notes=(*dataset.notes, *_notes_on_words(cut), *few))
        if not _are_sounds(cut):
            return dataset
        are_clips = all(table.spans is None for table in self._files[0])
        may_be_words = are_clips and self.reading.clips == "auto" and len(cut.channels) > 1
        has_silence = any(map(is_background, np.unique(dataset.y_train).tolist()))
        advice = [_ADVICE_ON_CHANNELS] * may_be_words + [_ADVICE_ON_SILENCE] * (not has_silence)
        return replace(dataset, notes=(*dataset.notes, *advice))

    def rows(self, test_size: float | None = None, seed: int = 0) -> Rows:
        """Return all windows as rows, or with `test_size` the test windows of the training."""
        cut = self.windows()
        test, where = np.ones(len(cut.X), bool), "all windows"
        if test_size is not None:
            _, test = split_recordings(cut, test_size, seed)
            where = f"recordings held out, {100 * test.mean():.3g} % of the windows, seed {seed}"
        y = None if cut.y is None else cut.y[test]
        # Recordings without windows, because their labels are mixed, stay in the stream.
        train = set(cut.groups[~test])
        streams = tuple(stretch.X for stretch in cut.stretches if stretch.group not in train)
        clip, starts = cut.recording[test], cut.starts[test].tolist()
        names = tuple(
            f"{cut.recordings[i]}:{at}" for i, at in zip(clip.tolist(), starts, strict=True)
        )
        parts = (cut.inputs[test], y, cut.source, where, cut.groups[test])
        still = y is not None and cut.dropped["mixed"] and all(map(is_background, set(y.tolist())))
        notes = (*cut.notes, ADVICE_ON_EVENTS) if still else cut.notes
        return Rows(*parts, notes, streams, clip=clip, names=names)

    def uncut(self) -> Recordings:
        """Return them whole; stretches between gaps are recordings of their own."""
        tables, names, source = self._files
        tracks = _tracks(tables, names, self.reading)
        if self.taker is not None:
            n_channels = self.taker.input.channels + self.taker.n_numbers
            check_channels(source, tracks[0].channels, n_channels)
        return replace(uncut(tracks, source), notes=_remarks(tables))


def _asks_for_groups(reading: Reading) -> bool:
    pattern = reading.name and NamePattern(reading.name, reading.label, reading.groups)
    return reading.groups is not None or bool(pattern and pattern.group)


def _forget_one_group(tables: Sequence[Columns]) -> None:
    """Where all recordings are of one group that was not asked for, each is one of its own."""
    if len(tables) < 2 or any(table.group is None for table in tables):
        return
    groups = {str(group) for table in tables for group in np.unique(np.array(table.group))}
    if len(groups) == 1:
        for table in tables:
            table.group = None
        tables[0].notes[f"all are of one group, {groups.pop()}: recordings are held out"] = 0


def _notes_on_words(cut: Windows) -> Iterator[str]:
    """Say how words in longer recordings are learned, judged and held out."""
    yield (
        f"{join(cut.words, 5)}: somewhere in their recordings, where training finds them; the "
        "table has the loudest window of each, and 'calibrate --false-alarms 1/h' judges along time"
    )
    n, n_takes = len(np.unique(cut.recording)), len(np.unique(cut.groups))
    if all(group.startswith(TAKE) for group in cut.groups.tolist()):
        yield (
            f"{count(n, 'recording')} seem to come from {count(n_takes, 'person')} or rooms, each "
            "held out as a whole; give --groups to say better"
        )


def _notes_on_few(clips: Sequence[tuple[Any, Any, str]], words: Sequence[str]) -> Iterator[str]:
    """Say which words have few recordings in the training."""
    for word in words:
        n = sum(str(label) == word for _, label, _ in clips)
        if n < _FEW_CLIPS:
            yield (
                f"{word}: {count(n, 'recording')} in the training, by which others are hardly "
                "heard; record 50 or more, by whoever will say it"
            )


def as_classes(
    labels: Iterable[object], classes: Sequence[Any], background: Sequence[str], in_names: bool
) -> dict[str, Any] | None:
    """Return the classes of labels, by the text of a label; one of no class stays as it is.

    A label of background, also that of what no span labels, becomes a class of background. With
    `in_names` labels are folders of sounds, which may have any name: None where none is a class.
    """
    named = {str(label): label for label in classes}
    still = background_among(classes, background) or ""
    texts, known = isinstance(classes[0], str), dict[str, Any]()
    for label in labels:
        name = str(label)
        means = is_background(label) or name in background
        is_still = name not in named and still and means
        known[name] = named.get(still if is_still else name, name if texts else label)
    if in_names and not any(map(is_background, known)) and not set(known) & set(named):
        return None
    return known


def _are_sounds(cut: Windows) -> bool:
    return all(Path(name).suffix.lower() in SOUNDS for name in cut.recordings)


def _tracks(tables: Sequence[Columns], names: Sequence[str], reading: Reading) -> list[Recording]:
    """Find the channels and times of recordings."""
    inputs = _shared(tables) if reading.inputs is None else [*reading.inputs, *reading.beside]
    return read_tracks(tables, names, inputs, reading)


def _cut(
    tables: Sequence[Columns],
    names: Sequence[str],
    reading: Reading,
    source: str,
    is_stream: bool = False,
) -> Windows:
    """Find the channels of recordings and cut them."""
    tracks = _tracks(tables, names, reading)
    window, hop = lengths(tracks, reading)
    words = () if is_stream else words_in(tracks, window, reading)
    long, padded = long_enough(tracks, window, reading, source)
    if words:
        # Training sees all of a clip; the windows are for the tests.
        hop = often_within(tracks, window) if reading.hop is None else hop
        windows = cut(long, window, max(1, window // 2 // hop) * hop, reading, source)
        windows = in_takes(loudest(replace(windows, hop=hop), words))
    else:
        windows = cut(long, window, hop, reading, source)
    windows.dropped["short"] += len(tracks) - len(long)
    too_short = short_in_words(tracks, window, reading)
    sounds = (table for table in tables if table.is_sound)
    others = {column for table in sounds for column in table.columns} - set(windows.channels)
    resampled = sum(table.own_rate is not None for table in tables)
    remarks = *_remarks(tables), *windows.remarks, *too_short
    result = replace(windows, not_taken=tuple(sorted(others)), remarks=remarks)
    return replace(result, padded=padded, resampled=resampled)


def _remarks(tables: Sequence[Columns]) -> tuple[str, ...]:
    """Return the notes on files, with the number of samples and of files."""
    samples, n_files = Counter[str](), Counter[str]()
    for table in tables:
        samples.update(table.notes)
        n_files.update(table.notes.keys())
    return tuple(
        note.replace("{n}", str(samples[note])) + (f" ({n} files)" if n > 1 else "")
        for note, n in n_files.items()
    )


def _shared(tables: Sequence[Columns]) -> list[str] | None:
    """Return the channels that all sounds have, if some have more; else None."""
    if not all(table.is_sound for table in tables):
        return None
    shared = [name for name in tables[0].columns if all(name in t.columns for t in tables)]
    return shared if any(len(table.columns) > len(shared) for table in tables) else None
