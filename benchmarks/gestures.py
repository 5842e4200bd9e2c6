"""Gestures of new people in streams of real motion: hits at a promised rate of false alarms.

python benchmarks/gestures.py --data DIR [--tree CHECKOUT] [--option label_at=peak] [--rate 20]

DIR holds ``har_recordings``. Two of its people are the motion of eight takes to train on, the other
two that of eight takes to choose the threshold on, each of another hand: its own tempo, strength
and tilt. Every eight seconds there is a wave, a circle or a knock of 0.4 to 1.5 s. `calibrate`
judges each take with the threshold of others. ``--tree`` runs the commands of another checkout.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HERTZ, EVERY, G = 50, 8.0, 8192
PEOPLE = {"train": ("person_01", "person_05"), "new": ("person_03", "person_06")}
TAKES = 4  # of each person's motion
Samples = NDArray[np.float64]


def gesture(kind: str, rng: np.random.Generator, tempo: float) -> Samples:
    """Return the acceleration of a gesture in units of its strength, shape (n, 3)."""
    seconds = {"wave": 1.1, "circle": 1.0, "knock": 0.5}[kind] * rng.uniform(0.8, 1.25) / tempo
    t = np.arange(max(12, round(seconds * HERTZ))) / HERTZ
    way, still = 2 * np.pi * t / t[-1], np.zeros(len(t))
    if kind == "wave":
        axes = np.sin(3 * way), 0.2 * np.sin(6 * way), still
    elif kind == "circle":
        axes = np.cos(way) - 1, np.sin(way), still
    else:
        axes = still, still, 1.6 * np.maximum(np.sin(2 * way), 0) ** 3
    return np.column_stack(axes) * np.hanning(len(t)).reshape(-1, 1) ** 0.3


def tilt(rng: np.random.Generator) -> Samples:
    """Return a rotation by about 20 degrees."""
    skew = rng.normal(0, 0.2, 3)
    cross = np.array([[0, -skew[2], skew[1]], [skew[2], 0, -skew[0]], [-skew[1], skew[0], 0]])
    return np.linalg.qr(np.eye(3) + cross)[0] * np.array([-1, -1, -1])


def write_take(source: Path, file: Path, rng: np.random.Generator) -> None:
    """Write the motion of a person with gestures of a hand, and a label a sample."""
    rows = np.loadtxt(source, delimiter=",", skiprows=1, usecols=range(4))
    X, labels = rows[:, 1:].copy(), np.full(len(rows), "nothing", object)
    tempo, strength, turn = rng.uniform(0.75, 1.3), rng.uniform(0.5, 1.2) * G, tilt(rng)
    for place in range(round(4 * HERTZ), len(X) - 3 * HERTZ, round(EVERY * HERTZ)):
        kind = str(rng.choice(["wave", "circle", "knock"]))
        at = place + int(rng.integers(0, 2 * HERTZ))
        motion = strength * rng.uniform(0.8, 1.2) * gesture(kind, rng, tempo) @ turn
        X[at : at + len(motion)] += motion
        labels[at : at + len(motion)] = kind
    lines = [
        f"{t:.0f},{x:.0f},{y:.0f},{z:.0f},{label}\n"
        for (t, x, y, z), label in zip(np.column_stack([rows[:, 0], X]), labels, strict=True)
    ]
    file.write_text("time_ms,ax,ay,az,label\n" + "".join(lines), encoding="utf-8")


def write_folders(data: Path, folder: Path) -> None:
    """Write the takes of both parts."""
    for number, (part, people) in enumerate(PEOPLE.items()):
        (folder / part).mkdir()
        rng = np.random.default_rng(number)
        for person in people:
            for take in range(TAKES):
                file = folder / part / f"{person}_{take}.csv"
                write_take(data / "har_recordings" / f"{person}.csv", file, rng)


def run(tree: Path, *words: str) -> str:
    """Run a command of a checkout, and return what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "NUMBA_NUM_THREADS": "1"}
    command = [
        sys.executable,
        "-c",
        "import runpy; runpy.run_module('tinykernel', None, '__main__')",
    ]
    return subprocess.run(
        [*command, *words], env=environment, check=True, capture_output=True, text=True, cwd=tree
    ).stdout


def main() -> None:
    """Print hits, false alarms and the seconds of a processor."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=os.environ.get("TINYKERNEL_DATA", "."))
    parser.add_argument("--window", default="1s")
    parser.add_argument("--tree", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--rate", default="20")
    asked = parser.parse_args()
    options = [word for option in asked.option for word in ("--set", option)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_folders(asked.data, folder)
        model, found = str(folder / "m.tkm"), str(folder / "e.tkm")
        cut = ("--window", asked.window, "--hop", "100ms", "--label", "label", "--test", "0")
        size = ("--effort", "quick", "--budget", "8KB", "--quiet")
        run(asked.tree, "train", str(folder / "train"), *cut, *size, *options, "-o", model)
        chosen = ("--false-alarms", f"{asked.rate}/h", "--json", "-o", found)
        facts = json.loads(run(asked.tree, "calibrate", model, str(folder / "new"), *chosen))
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    names = ("events", "hits", "confused", "false_alarms", "hours", "promised_an_hour")
    told = {name: facts.get(name, facts.get("promise", {}).get(name)) for name in names}
    print(
        json.dumps(
            {
                "window": asked.window,
                "option": asked.option,
                **told,
                "processor_seconds": round(seconds),
            }
        )
    )


if __name__ == "__main__":
    main()
