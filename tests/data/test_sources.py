"""Each row of the table in docs/data.md: the file that it says, and what it says to type."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.io import wavfile

from benchmarks.counts import ROOT
from tests.cli.tools import json_of
from tests.data.test_formats import acquired, edf, heart, session

_PAGE = ROOT / "docs" / "data.md"
ROWS = re.findall(r"^\| (.+) \| `(train [^`]+)` \|$", _PAGE.read_text(encoding="utf-8"), re.M)
TAKES = [f"{label}_{n}" for label in ("walk", "run") for n in (1, 2)]
N = 150


def logged(folder: Path, head: str, row: str) -> None:
    """Write four takes at 50 Hz."""
    folder.mkdir()
    for take in TAKES:
        X = np.random.default_rng(len(take)).normal(size=(N, 3)).round(2)
        rows = [
            row.format(t=20 * i, s=i // 50, ns=i % 50 * 20_000_000, x=x, y=y, z=z, l=take[:-2])
            for i, (x, y, z) in enumerate(X)
        ]
        (folder / f"{take}.csv").write_text(head + "".join(rows))


def of_app(here: Path, _: Callable) -> None:
    for take in TAKES:
        session(here / "motion" / take, "phyphox")


def of_edge_impulse(here: Path, _: Callable) -> None:
    (here / "motion").mkdir()
    for take in TAKES:
        file = here / "motion" / f"{take[:-2]}.{take[-1]}.json"
        file.write_text(json.dumps(acquired(take[:-2], N)))


def of_nanoedge(here: Path, _: Callable) -> None:
    (here / "motion").mkdir()
    for label in ("idle", "run"):
        rows = np.random.default_rng(0).integers(-99, 99, (8, 96)).tolist()
        text = "".join(f"{' '.join(map(str, row))}\n" for row in rows)
        (here / "motion" / f"{label}.csv").write_text(text)


def of_physionet(here: Path, require: Callable) -> None:
    (here / "heart").mkdir()
    for name in ("100", "101"):
        heart(here / "heart", require("wfdb"), name)


def of_edf(here: Path, require: Callable) -> None:
    (here / "sleep").mkdir()
    for name in "ab":
        edf(here / "sleep" / f"{name}.edf", require("pyedflib"))


def of_archive(here: Path, _: Callable) -> None:
    (here / "series").mkdir()
    X = np.random.default_rng(0).normal(size=(12, 32)).round(3)
    lines = [f"{','.join(map(str, x))}:{'ab'[i % 2]}\n" for i, x in enumerate(X)]
    (here / "series" / "A.ts").write_text("@classLabel true a b\n@data\n" + "".join(lines))
    rows = ["\t".join(["ab"[i % 2], *map(str, x)]) for i, x in enumerate(X)]
    (here / "series" / "B.tsv").write_text("\n".join(rows))


def of_microphone(here: Path, _: Callable) -> None:
    for label in ("yes", "no", "silence"):
        for n in range(2):
            file = here / "words" / label / f"{n}.wav"
            file.parent.mkdir(parents=True, exist_ok=True)
            noise = np.random.default_rng(n).integers(-900, 900, 8000).astype(np.int16)
            wavfile.write(file, 8000, noise)


def of_audacity(here: Path, _: Callable) -> None:
    (here / "days").mkdir()
    for name in "ab":
        noise = np.random.default_rng(0).integers(-900, 900, 64_000).astype(np.int16)
        wavfile.write(here / "days" / f"{name}.wav", 8000, noise)
        (here / "days" / f"{name}.txt").write_text("1.0\t4.0\tbark\n")


def of_spreadsheet(here: Path, _: Callable) -> None:
    rows = [f"{i % 7},5;{i % 3};{'ab'[i % 2]}\n" for i in range(60)]
    (here / "table.csv").write_text("width;height;label\n" + "".join(rows))


def of_logger(head: str, row: str) -> Callable:
    return lambda here, _: logged(here / "motion", head, row)


WRITERS = [
    of_logger("time_ms,x,y,z\n", "{t},{x},{y},{z}\n"),
    of_logger("time_ms,x,y,z,activity\n", "{t},{x},{y},{z},{l}\n"),
    of_logger("time_ms,channel_x,channel_y,channel_z,label\n", "{t},{x},{y},{z},{l}\n"),
    of_app,
    of_logger("epoch (ms),elapsed (s),x-axis (g),y-axis (g)\n", "{t},{s},{x},{y}\n"),
    of_logger("sec,nanosec,x,y,z\n", "17{s:0>8},{ns},{x},{y},{z}\n"),
    of_edge_impulse,
    of_nanoedge,
    of_physionet,
    of_edf,
    of_archive,
    of_microphone,
    of_audacity,
    of_spreadsheet,
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
