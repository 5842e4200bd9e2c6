"""Hostile input through whole commands: texts, many texts, nested columns, many files, no memory.

Every command must end with status 0, or with 1 or 2 and one line. The same training must give the
same bytes whatever the number of threads, and a stream must not depend on how long it has run.
"""

import csv
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import wavfile
from typer.testing import CliRunner

from tests.firmware.compiling import run_program
from tests.fuzz.batch import ROOT, Batch, no_limit
from tests.processes import captured
from tests.random_fronts import local_model, offset_model, random_signal_stage
from tests.spectra import spectral_model
from tinykernel.face import app

_SIGNS = (
    *("*/", '"', "\\", "??/", "\n", "\r", "\x1b[31m", "\u202e", "%s", "{{", "<b>", ",", ";", "="),
)
_MANY = 10_000
_LITTLE = 3 << 30  # addresses, of which NumPy and numba reserve most
_EFFORT = ("--effort", "quick", "-q")
_QUICK = (*_EFFORT, "--set", "epochs=1", "--set", "n_components=32")


def text(rng: np.random.Generator, most: int = 12) -> str:
    """Draw a text of signs that mean something somewhere, and of any others."""
    parts = [
        str(rng.choice(_SIGNS)) if rng.random() < 0.3 else chr(int(rng.integers(32, 0xD7FF)))
        for _ in range(int(rng.integers(1, most)))
    ]
    return "".join(parts)


def told(batch: Batch, *arguments: object) -> bool:
    """Run a command; note what is neither a success nor a refusal in one line."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    batch.counts["commands"] += 1
    batch.counts["refused commands"] += result.exit_code != 0
    lines = result.stderr.splitlines()
    refused = result.exit_code in (1, 2) and sum(x.startswith("error: ") for x in lines) >= 1
    if result.exit_code and not refused:
        batch.find("uncaught exceptions", f"{arguments}: {result.exception!r} {result.stderr}")
    if "\x1b" in result.output or "\u202e" in result.output:
        batch.find("uncaught exceptions", f"{arguments}: a terminal would obey the output")
    return result.exit_code == 0


def write(path: Path, header: list[str], rows: list[list[Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def hostile_texts(rng: np.random.Generator, folder: Path, batch: Batch) -> None:
    """Take random texts as names of columns, as cells and as labels through every command."""
    kinds, labels = [text(rng) for _ in range(5)], [text(rng), text(rng) + "b"]
    rows = [[kinds[i % 5], f"{rng.normal():.3f}", i * 7 % 10, labels[i % 2]] for i in range(60)]
    data = write(folder / "t.csv", [text(rng) + "1", text(rng) + "2", "c", "label"], rows)
    model, out = folder / "m.tkm", folder / "out"
    if not told(batch, "train", data, "-o", model, *_QUICK):
        return
    for command in (
        ("evaluate", model, data),
        ("verify", model, data),
        ("predict", model, data, "-o", folder / "p.csv"),
        ("calibrate", model, data, "-o", folder / "sure.tkm"),
        ("inspect", model, "--proof", folder / "proof.json"),
        ("report", model, "-t", "cortex-m4", "--compiler", "none", "--html", folder / "m.html"),
        ("bench", model, "-t", "cortex-m4"),
        ("export", model, "-t", "host", "-o", out, "--data", data, "--force"),
        ("export", model, "--data", data, "--check", out),
    ):
        told(batch, *command)


def many_texts(rng: np.random.Generator, folder: Path, batch: Batch) -> None:
    """Code a column of 10,000 different texts, which is asked for."""
    rows = [[f"t{i}", i % 7, "ab"[int(rng.integers(2))]] for i in range(_MANY)]
    data = write(folder / "many.csv", ["who", "x", "label"], rows)
    told(batch, "train", data, "-o", folder / "n.tkm", "--set", "inputs=who,x", *_QUICK)


def nested(rng: np.random.Generator, folder: Path, batch: Batch) -> None:
    """Read parquet with lists, structures, dates, bytes and dictionaries as columns."""
    import pyarrow as pa
    from pyarrow import parquet

    cells: list[list[Any]] = [
        *([[1, 2], None, [3]] * 20, [{"a": 1}, {"a": None}, None] * 20),
        *([b"\xff", b"a", b""] * 20, [np.datetime64("2024-01-01", "D").astype(object)] * 60),
        *([True, None, False] * 20, [float("nan"), 1.5, None] * 20),
    ]
    chosen = rng.permutation(len(cells))[: int(rng.integers(1, len(cells) + 1))]
    columns = {f"c{i}": pa.array(cells[i]) for i in chosen.tolist()}
    columns["x"] = pa.array(rng.normal(size=60))
    label = cells[int(rng.integers(len(cells)))] if rng.random() < 0.3 else ["a", "b"] * 30
    parquet.write_table(pa.table(columns | {"label": pa.array(label)}), folder / "n.parquet")
    told(batch, "train", folder / "n.parquet", "-o", folder / "q.tkm", *_QUICK)


def many_files(rng: np.random.Generator, folder: Path, batch: Batch) -> None:
    """Cut windows from a folder of 10,000 sounds."""
    for label in ("a", "b"):
        (folder / "sounds" / label).mkdir(parents=True, exist_ok=True)
        for i in range(_MANY // 2):
            samples = rng.integers(-99, 99, 64).astype(np.int16)
            wavfile.write(folder / "sounds" / label / f"{i}.wav", 8000, samples)
    out = folder / "s.tkm"
    told(batch, "train", folder / "sounds", "--window", "64", "-o", out, *_EFFORT)


def little_memory(rng: np.random.Generator, folder: Path, batch: Batch) -> None:
    """Train where a process may have few addresses: it works, or says so in one line."""
    np.savez(folder / "wide.npz", X=rng.normal(size=(20_000, 2_000)), y=np.arange(20_000) % 2)
    command = f"ulimit -v {(_LITTLE >> 10) // int(rng.integers(1, 4))}; exec {sys.executable} -m "
    command += f"tinykernel train {folder / 'wide.npz'} -o {folder / 'w.tkm'} {' '.join(_QUICK)}"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True)
    if "Traceback" in done.stderr or done.returncode not in (0, 1):
        batch.find("uncaught exceptions", f"{command}: {done.returncode} {done.stderr[-1000:]}")


def same_bytes(rng: np.random.Generator, folder: Path, batch: Batch) -> None:
    """Train a regressor and a model of one class with one thread and with two."""
    X = rng.normal(size=(1600, 5))  # of which a fifth is enough to promise 1 % false alarms
    np.savez(folder / "v.npz", X=X[:300], y=X[:300, 0] * 2 + np.sin(3 * X[:300, 1]))
    np.savez(folder / "one.npz", X=X)
    for name, words in (
        ("v.npz", ("--task", "numbers", "--effort", "quick")),
        ("one.npz", ("--task", "novelty")),
    ):
        made = []
        for threads in ("1", "2"):
            model = folder / f"{threads}.tkm"
            line = [sys.executable, "-m", "tinykernel", "train", str(folder / name)]
            environment = {**os.environ, "NUMBA_NUM_THREADS": threads}
            done = captured([*line, "-o", str(model), *words, "-q"], cwd=ROOT, env=environment)
            if done.returncode:
                batch.find("uncaught exceptions", f"{words}: {done.stderr[-1000:]}")
                return
            made.append(model.read_bytes())
        if made[0] != made[1]:
            batch.find("differences", f"{words}: another number of threads, another model")


def long_streams(rng: np.random.Generator, folder: Path, batch: Batch) -> None:
    """Push a constant until the state of a stream is one that it had.

    From there on it repeats itself, so that it is the same after 2^32 samples and more.
    """
    seed, hop = int(rng.integers(2**32)), int(rng.integers(1, 9))
    for model in (
        local_model(random_signal_stage(seed, height=40, hop=hop, average=1, n_kernels=5), seed),
        spectral_model(seed, hop=6, dilations=(1,), n_kernels=3),
        offset_model(seed, height=48, hop=hop, average=1),
    ):
        if run_program("gcc", "stream_repeats", model, folder / "m", "-O2", sanitised=False):
            batch.find("differences", f"stream {seed}: no state came again")
        batch.counts["streams"] += 1


CHECKS = (hostile_texts, nested, same_bytes, long_streams, little_memory, many_texts, many_files)


def run(batch: Batch, size: int) -> None:
    """Do `size` checks: each of them once, then hostile texts and nested columns by turns."""
    no_limit()
    with tempfile.TemporaryDirectory() as folder:
        for index in range(size):
            rng = np.random.default_rng((batch.seed, index))
            number = index if index < len(CHECKS) else index % 2
            CHECKS[number](rng, Path(folder), batch)
            batch.counts["hostile checks"] += 1
