"""Mutated data files: rows and recordings come out whole, or one line says what is wrong."""

import contextlib
import datetime
import io
import tempfile
import warnings
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import wavfile

from tests.fuzz.batch import Batch
from tests.fuzz.mutate import mutate_array, mutate_bytes
from tests.loading import load_data, load_rows
from tinykernel.data.reading import Reading
from tinykernel.data.recordings import RecordingSource
from tinykernel.data.tables import Selection

_CELLS = (
    *("", "?", "red", "*/", "nan", "inf", "1e999", '"', '"a', "a b", "1,5", "-", " 1 ", "True"),
    *("\u00e4", "\u0661", "\x1b[31m", "0x10", "2026-01-01T00:00:00", "99999999999999999999"),
)


def _npz(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def _wav(samples: np.ndarray, rate: int) -> bytes:
    stream = io.BytesIO()
    wavfile.write(stream, rate, samples.astype("<i2"))
    return stream.getvalue()


def _parquet(columns: dict[str, Any]) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    stream = io.BytesIO()
    parquet.write_table(pa.table(columns), stream)
    return stream.getvalue()


@cache
def seeds() -> list[tuple[str, bytes, bool]]:
    """Return names, contents, and whether they are recordings."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(24, 4)).astype("f4"), np.arange(24) % 3
    signal = rng.integers(-99, 99, (80, 2))
    lines = (f"{a:.3f};{b:.3f};c{k}\n" for (a, b, *_), k in zip(X, y, strict=True))
    table = "a;b;label\n" + "".join(lines)
    track = "time,x,y,label\n" + "".join(
        f"{i / 20},{a},{b},{'walk' if i < 40 else 'run'}\n" for i, (a, b) in enumerate(signal)
    )
    texts = "colour,ripe,weight,label\n" + "".join(
        f"{('red', 'blue', '?', 'green')[i % 4]},{'yes' if i % 3 else 'no'},{i % 7 or ''},{i % 2}\n"
        for i in range(40)
    )
    columns = {"a": X[:, 0], "b": X[:, 1].astype(int), "label": [f"c{k}" for k in y]}
    found = [
        ("rows.npz", _npz(X=X, y=y, group=y), False),
        (
            "parts.npz",
            _npz(X_train=X, y_train=y.astype(str), X_test=X, y_test=y.astype(str)),
            False,
        ),
        ("rows.csv", table.replace(";", ",").encode(), False),
        ("rows.tsv", table.replace(";", "\t").encode(), False),
        ("comma.csv", table.replace(".", ",").encode(), False),
        ("texts.csv", texts.encode(), False),
        ("track.csv", track.encode(), True),
        ("track.npz", _npz(X=signal, y=np.repeat([0, 1], 40), rate=20), True),
        ("track.wav", _wav(signal, 20), True),
    ]
    with contextlib.suppress(ImportError):
        found += [("rows.parquet", _parquet(columns), False)]
    return found


def mutated(rng: np.random.Generator) -> tuple[str, bytes, bool]:
    """Return a damaged data file: its name, its content, whether it is a recording."""
    name, data, is_recording = seeds()[rng.integers(len(seeds()))]
    other = seeds()[rng.integers(len(seeds()))][1]
    if rng.random() < 0.5:
        if name.endswith("npz"):
            data = _other_arrays(data, rng)
        elif name.endswith(("csv", "tsv")):
            data = _other_cells(data, rng)
        elif name.endswith("parquet"):
            data = _other_columns(rng)
    if rng.random() < 0.6:
        data = mutate_bytes(data, other, rng)
    return name, data, is_recording != bool(rng.random() < 0.1)


def _other_arrays(data: bytes, rng: np.random.Generator) -> bytes:
    with np.load(io.BytesIO(data)) as archive:
        arrays = dict(archive)
    for _ in range(int(rng.integers(1, 3))):
        name = str(rng.choice(sorted(arrays)))
        changed = mutate_array(arrays.pop(name), rng)
        arrays[name if rng.random() < 0.9 else "other"] = changed
    if rng.random() < 0.1:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", rng.choice([8, 12, 14])) as archive:
            for name, array in arrays.items():
                member = io.BytesIO()
                np.save(member, array)
                archive.writestr(f"{name}.npy", member.getvalue())
        return stream.getvalue()
    return _npz(**arrays)


def _other_cells(data: bytes, rng: np.random.Generator) -> bytes:
    mark = next(m for m in ("\t", ";", ",") if m in data.decode())
    lines = [line.split(mark) for line in data.decode().splitlines()]
    for _ in range(int(rng.integers(1, 4))):
        line = lines[0 if rng.random() < 0.2 else rng.integers(len(lines))]
        kind = rng.random()
        if kind < 0.7 and line:
            line[rng.integers(len(line))] = str(rng.choice(_CELLS))
        elif kind < 0.8:
            line.append(str(rng.choice(_CELLS)))
        elif kind < 0.9 and line:
            line.pop()
        else:
            lines.insert(int(rng.integers(len(lines))), list(line))
    return "\n".join(mark.join(line) for line in lines).encode()


def _other_columns(rng: np.random.Generator) -> bytes:
    kinds: list[Any] = [
        *([1.5, None, 2.0, float("nan")], [1, 2, 3, 2**62], [b"a", b"\xff", b"b", b"a"]),
        *([[1], [2], [], [3]], [{"x": 1}] * 4, ["a", "b", None, "a"], [True, False, True, None]),
        *([None] * 4, [datetime.date(2026, 1, 1)] * 4, ["1", "2", "x", "4"]),
    ]
    names = ("a", "b", "label", "label ", "", "a")
    chosen = {names[rng.integers(len(names))]: kinds[rng.integers(len(kinds))] for _ in range(4)}
    return _parquet(chosen)


def check_rows(X: Any, y: Any) -> None:
    """Ask of what was read what training relies on."""
    if len(X) != len(y) or len(X) == 0 or not np.all(np.isfinite(X)):
        raise ValueError(f"rows {np.shape(X)}, labels {np.shape(y)}, or not finite")


def read(path: Path, is_recording: bool) -> None:
    """Read a file as train does, with and without its options."""
    if is_recording:
        dataset = RecordingSource(path, Reading(window="0.5s")).train_rows(0.2, 0)
    else:
        dataset = load_data(path)
        rows = load_rows(path, selection=Selection(coding=dataset.coding))
        check_rows(rows.X, rows.X if rows.y is None else rows.y)
    check_rows(dataset.X_train, dataset.y_train)
    if dataset.X_test is not None:
        check_rows(dataset.X_test, dataset.y_test)


def run(batch: Batch, size: int) -> None:
    """Damage `size` files."""
    warnings.simplefilter("error", RuntimeWarning)
    with tempfile.TemporaryDirectory() as folder:
        for name, data, is_recording in seeds():  # imports what is to be imported
            Path(folder, name).write_bytes(data)
            Batch("", 0).load(lambda: read(Path(folder, name), is_recording))  # noqa: B023
        for index in range(size):
            rng = np.random.default_rng((batch.seed, index))
            name, data, is_recording = mutated(rng)
            path = Path(folder, name)
            path.write_bytes(data)
            batch.counts["data files"] += 1
            batch.load(lambda path=path, kind=is_recording: read(path, kind), data, f"-{name}")
