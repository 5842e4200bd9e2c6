"""Folders as people have them: the first command trains, or names the one that does.

They are the rows of the table in docs/data.md, and what loggers and recorders do besides.
"""

import json
import re
import shlex
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.io import wavfile

from benchmarks.counts import ROOT
from tests.cli.tools import failed, json_of, run, sets
from tests.data.test_formats import acquired, edf, heart, packed, session

_PAGE = ROOT / "docs" / "data.md"
ROWS = re.findall(r"^\| (.+) \| `(train [^`]+)` \|$", _PAGE.read_text(encoding="utf-8"), re.M)
QUICK = ("--effort", "quick", *sets("n_kernels=32", "model=kernels"), "--quiet")
TAKES = [f"{label}_{n}" for label in ("walk", "run") for n in (1, 2)]
N = 150

#: What writes a source into a folder; the second argument finds a library.
Writer = Callable[[Path, Callable], None]


def logged(folder: Path, head: str, row: str, rates: tuple[int, ...] = (50,)) -> None:
    """Write four takes of three seconds."""
    folder.mkdir()
    for n, take in enumerate(TAKES):
        rate = rates[n % len(rates)]
        X = np.random.default_rng(n).normal(size=(N, 3)).round(2).tolist()
        rows = []
        for i, (x, y, z) in enumerate(X):
            ns = i * 10**9 // rate
            times = {"f": ns / 1e9, "t": ns // 10**6, "s": i // rate, "ns": ns % 10**9}
            rows.append(row.format(x=x, y=y, z=z, l=take[:-2], batch=i // 5 / 10, **times))
        (folder / f"{take}.csv").write_text(head + "".join(rows))


def of_logger(head: str, row: str, rates: tuple[int, ...] = (50,)) -> Writer:
    return lambda here, _: logged(here / "motion", head, row, rates)


def of_app(app: str, archive: str | None = None) -> Writer:
    """Return what writes a folder for each take, an archive for each, or one of all."""

    def write(here: Path, _: Callable) -> None:
        for take in TAKES:
            session(here / ("open" if archive else "motion") / take, app)
            if archive == "each":
                packed(here / "motion" / f"{take}.zip", here / "open" / take)
        if archive == "all":
            packed(here / "motion.zip", here / "open")

    return write


def of_notes(here: Path, _: Callable) -> None:
    head = "time,seconds_elapsed,text,millisecond_press_duration\n"
    for take in TAKES[:2]:
        session(here / "motion" / take, "Sensor Logger")
        rows = [f"17{1e9 * s:0>17.0f},{s},{text},90\n" for s, text in ((0, "walk"), (2, "run"))]
        (here / "motion" / take / "Annotation.csv").write_text(head + "".join(rows))


def of_edge_impulse(suffix: str) -> Writer:
    def write(here: Path, require: Callable) -> None:
        dumps = require("cbor2").dumps if suffix == "cbor" else lambda x: json.dumps(x).encode()
        (here / "motion").mkdir()
        for take in TAKES:
            file = here / "motion" / f"{take[:-2]}.{take[-1]}.{suffix}"
            file.write_bytes(dumps(acquired(take[:-2], N)))

    return write


def of_project(here: Path, _: Callable) -> None:
    files = []
    for n in range(4):
        file = here / "motion" / "training" / f"x{n}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(acquired("x", N)))
        label = {"type": "label", "label": ("up", "down")[n % 2]}
        files.append({"path": f"training/x{n}.json", "label": label})
    (here / "motion" / "info.labels").write_text(json.dumps({"version": 1, "files": files}))


def of_nanoedge(here: Path, _: Callable) -> None:
    (here / "motion").mkdir()
    for label in ("idle", "run"):
        rows = np.random.default_rng(0).integers(-99, 99, (8, 96)).tolist()
        text = "".join(f"{' '.join(map(str, row))}\n" for row in rows)
        (here / "motion" / f"{label}.csv").write_text(text)


def of_physionet(fmt: str) -> Writer:
    def write(here: Path, require: Callable) -> None:
        (here / "heart").mkdir()
        for name in ("100", "101"):
            heart(here / "heart", require("wfdb"), name, fmt)

    return write


def of_edf(suffix: str) -> Writer:
    def write(here: Path, require: Callable) -> None:
        (here / "sleep").mkdir()
        for name in "ab":
            edf(here / "sleep" / f"{name}.{suffix}", require("pyedflib"))

    return write


def of_archive(here: Path, _: Callable) -> None:
    (here / "series").mkdir()
    X = np.random.default_rng(0).normal(size=(12, 32)).round(3)
    lines = [f"{','.join(map(str, x))}:{'ab'[i % 2]}\n" for i, x in enumerate(X)]
    (here / "series" / "A.ts").write_text("@classLabel true a b\n@data\n" + "".join(lines))
    rows = ["\t".join(["ab"[i % 2], *map(str, x)]) for i, x in enumerate(X)]
    (here / "series" / "B.tsv").write_text("\n".join(rows))


def of_unequal_series(here: Path, _: Callable) -> None:
    (here / "series").mkdir()
    X = np.random.default_rng(0).normal(size=(12, 40)).round(3)
    series = (",".join(map(str, x[: 20 + 4 * (i % 6)])) for i, x in enumerate(X))
    lines = [f"{each}:{'ab'[i % 2]}\n" for i, each in enumerate(series)]
    (here / "series" / "A.ts").write_text("@classLabel true a b\n@data\n" + "".join(lines))


def spoken(here: Path, write: Callable[[Path, np.ndarray], None], name: str = "{}.wav") -> None:
    """Write two clips of a second of each word."""
    for i, label in enumerate(("yes", "no", "silence")):
        for n in range(2):
            file = here / "words" / label / name.format(n)
            file.parent.mkdir(parents=True, exist_ok=True)
            write(file, np.random.default_rng(n).integers(-90, 90, 8000) * 9**i)


def of_microphone(here: Path, _: Callable) -> None:
    spoken(here, lambda file, x: wavfile.write(file, 8000, x.astype(np.int16)))


def of_broken_recorder(said: int) -> Writer:
    """Return what writes headers that say another length."""

    def written(file: Path, samples: np.ndarray) -> None:
        form = struct.pack("<HHIIHH", 1, 1, 8000, 16000, 2, 16)
        chunks = b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", said)
        whole = chunks + samples.astype("<i2").tobytes()
        file.write_bytes(b"RIFF" + struct.pack("<I", len(whole)) + whole)

    return lambda here, _: spoken(here, written)


def of_form(suffix: str, form: str, subtype: str, volume: float = 1 / 32768) -> Writer:
    """Return what writes sounds of a form that soundfile knows."""

    def write(here: Path, require: Callable) -> None:
        soundfile = require("soundfile")

        def written(file: Path, samples: np.ndarray) -> None:
            soundfile.write(file, samples * volume, 8000, format=form, subtype=subtype)

        spoken(here, written, "{}" + suffix)

    return write


def of_dead_microphone(here: Path, _: Callable) -> None:
    of_microphone(here, _)
    for file in (here / "words" / "yes").iterdir():
        wavfile.write(file, 8000, np.zeros(8000, np.int16))


def of_audacity(here: Path, _: Callable) -> None:
    (here / "days").mkdir()
    for name in "ab":
        noise = np.random.default_rng(0).integers(-900, 900, 64_000).astype(np.int16)
        wavfile.write(here / "days" / f"{name}.wav", 8000, noise)
        (here / "days" / f"{name}.txt").write_text("1.0\t4.0\tbark\n")


def of_spreadsheet(here: Path, _: Callable) -> None:
    rows = [f"{i % 7},5;{i % 3};{'ab'[i % 2]}\n" for i in range(60)]
    (here / "table.csv").write_text("width;height;label\n" + "".join(rows))


def of_pandas(here: Path, require: Callable) -> None:
    pandas = require("pandas")
    require("pyarrow")
    (here / "motion").mkdir()
    for n, take in enumerate(TAKES):
        X = np.random.default_rng(n).normal(size=(N, 2))
        index = pandas.MultiIndex.from_arrays([[take[:-2]] * N, 20 * np.arange(N)])
        pandas.DataFrame(X, index, ["ax", "ay"]).to_parquet(here / "motion" / f"{take}.parquet")


def of_short_gestures(here: Path, _: Callable) -> None:
    logged(here / "motion", *_XYZ)
    file = here / "motion" / "walk_2.csv"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:30]))


_XYZ = ("time_ms,x,y,z\n", "{t},{x},{y},{z}\n")
WRITERS: list[Writer] = [
    of_logger(*_XYZ),
    of_logger("time_ms,x,y,z,activity\n", "{t},{x},{y},{z},{l}\n"),
    of_logger("time_s,x,y,z,label,group\n", "{f},{x},{y},{z},{l},ann\n"),
    of_app("phyphox", "each"),
    of_app("Sensor Logger", "all"),
    of_logger("epoch (ms),elapsed (s),x-axis (g),y-axis (g)\n", "{t},{s},{x},{y}\n"),
    of_logger("sec,nanosec,x,y,z\n", "17{s:0>8},{ns},{x},{y},{z}\n"),
    of_edge_impulse("json"),
    of_nanoedge,
    of_physionet("212"),
    of_edf("edf"),
    of_archive,
    of_microphone,
    of_audacity,
    of_spreadsheet,
]
_MOTION, _WORDS = "train motion --window 1s --name '{label}_*'", "train words --window 1s"
# The name of a source, what writes it, what is typed first, and what the refusal of that says.
OTHERS: list[tuple[str, Writer, str, str]] = [
    ("axes XYZ", of_logger("time_ms,X,Y,Z\n", _XYZ[1]), _MOTION, ""),
    ("no label said", of_logger(*_XYZ), "train motion --window 1s", "--name '{label}_*'"),
    ("short gestures", of_short_gestures, _MOTION, "--set short=pad"),
    ("trailing comma", of_logger("t_ms,x,y,z,\n", "{t},{x},{y},{z},\n"), _MOTION, ""),
    ("empty column", of_logger("t_ms,x,temp,y\n", "{t},{x},,{y}\n"), _MOTION, ""),
    ("line of units", of_logger("time,x,y,z\nms,g,g,g\n", _XYZ[1]), _MOTION, ""),
    ("comments", of_logger("# logger 2\n# nano\ntime_ms,x,y,z\n", _XYZ[1]), _MOTION, ""),
    ("blanks", of_logger("", "{t} {x} {y} {z}\n"), _MOTION, "--set rate=50"),
    ("one name", of_logger("time_ms,x,x,x\n", _XYZ[1]), _MOTION, ""),
    ("48.6 Hz", of_logger(*_XYZ, (50, 48)), _MOTION, "--set rate=50"),
    ("ns of 1970", of_logger("time,x,y\n", "17{s:0>8}{ns:0>9},{x},{y}\n"), _MOTION, ""),
    ("packets", of_logger("time_s,x,y\n", "{batch},{x},{y}\n"), _MOTION, ""),
    ("group", of_logger("t_ms,x,y,z,label,person\n", "{t},{x},{y},{z},{l},3\n"), _MOTION, ""),
    ("MultiIndex", of_pandas, "train motion --window 32", "--name '{label}_*'"),
    ("phyphox", of_app("phyphox"), _MOTION, ""),
    ("Sensor Logger", of_app("Sensor Logger", "each"), _MOTION, ""),
    ("a bare .zip", of_app("phyphox", "all"), "train motion.zip --window 1s", "--name '{label}_*'"),
    ("annotations", of_notes, "train motion --window 1s", ""),
    ("CBOR", of_edge_impulse("cbor"), "train motion --window 1s", ""),
    ("project", of_project, "train motion --window 1s", ""),
    ("unequal series", of_unequal_series, "train series --window 24", ""),
    ("16 bits", of_physionet("16"), "train heart --window 0.5s", ""),
    ("24 bits", of_physionet("24"), "train heart --window 0.5s", ""),
    ("BDF", of_edf("bdf"), "train sleep --window 1s", ""),
    ("length 0", of_broken_recorder(0), _WORDS, ""),
    ("short length", of_broken_recorder(400), _WORDS, ""),
    ("RF64", of_form(".wav", "RF64", "PCM_16"), _WORDS, ""),
    ("Wave64", of_form(".w64", "W64", "PCM_16"), _WORDS, ""),
    ("mu-law", of_form(".wav", "WAV", "ULAW"), _WORDS, ""),
    ("AIFF", of_form(".aiff", "AIFF", "PCM_16"), _WORDS, ""),
    ("loud", of_form(".ogg", "OGG", "VORBIS", 3e-4), _WORDS, ""),
    ("all zeros", of_dead_microphone, _WORDS, ""),
]


@pytest.mark.parametrize(("said", "typed", "write"), [
    (*row, write) for row, write in zip(ROWS, WRITERS, strict=True)
], ids=[said[:20] for said, _ in ROWS])  # fmt: skip
def test_what_is_typed_reads_the_file(said, typed, write, tmp_path, monkeypatch, require_tool):
    """The first command is enough: two classes to train on, a test part, and no caution."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, require_tool)
    found = json_of("data", *shlex.split(typed)[1:])
    unit = "rows" if "spreadsheet" in said else "windows"
    assert found["cautions"] == []
    assert len(found["classes"]) >= 2
    assert all(facts[f"training {unit}"] > 0 for facts in found["classes"].values())
    assert any(facts.get(f"test {unit}") for facts in found["classes"].values())


@pytest.mark.slow
@pytest.mark.parametrize(("write", "typed", "wanted"), [
    *((write, typed, "") for (_, typed), write in zip(ROWS, WRITERS, strict=True)),
    *(each[1:] for each in OTHERS),
], ids=[*(said[:20] for said, _ in ROWS), *(name for name, *_ in OTHERS)])  # fmt: skip
def test_a_folder_trains(write, typed, wanted, tmp_path, monkeypatch, require_tool):
    """The first command does, or its refusal says what to add: then the second one."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, require_tool)
    words = shlex.split(typed)
    quick = sets("model=linear") if "table" in typed else QUICK
    if wanted:
        line = failed(*words, *quick, "-o", "a.tkm")
        assert wanted in line
        assert "tinykernel-" not in line  # the folder of what archives hold
        assert not (tmp_path / "a.tkm").exists()
        words += shlex.split(wanted)
    result = run(*words, *quick, "-o", "a.tkm")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "a.tkm").is_file()
