"""From recordings of a motion sensor to firmware that decides while samples arrive.

A folder of recordings, one file a person: a time, the channels of the sensor, a label. They are cut
into windows of 2.56 s every 1.28 s; whole recordings are held out, as the chip will meet people
whom nobody recorded. The model is a local stage, small kernels whose crossings of a threshold are
counted, and a linear part on these counts. The firmware takes the samples one by one, does its work
as they come, and decides every 1.28 s. Python and C compute the same integers at every decision.

Run it with ``python examples/sensor.py [FOLDER] [--data RECORDINGS]``. RECORDINGS is a folder of
.csv with the columns time_ms, channels and activity; by default it is har_recordings in the folder
TINYKERNEL_DATA. Where there is none, recordings of eight people are generated; ``--record FOLDER``
writes only these. The firmware project
for an ESP32-C3 is written to FOLDER (default: ``sensor-firmware``). With generated recordings it
prints, after half a minute::

    recordings:      generated: 552 windows of 128 samples x 3 channels, hop 64, 50 Hz, from 8
                     files; left out: 64 windows of several labels
    split:           414 training windows, 138 test windows (2 of 8 recordings held out:
                     person_03.csv, person_06.csv; seed 0)
    model:           512 kernels, a linear part of 512 counts
    tinykernel:      100.0 % of the windows held out
    C on the host:   138 windows and 275 decisions of a stream, 0 differing scores
    esp32c3:         6168 bytes flash, 3208 bytes RAM (linked)
    project:         sensor-firmware
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from textwrap import fill

import numpy as np
from numpy.typing import NDArray

import tinykernel
from tinykernel.data.splits import as_dataset
from tinykernel.pieces.kernels.spec import Kernels

RATE = 50  # samples a second
COUNTS = 4096  # of 1 g
SECONDS = 20  # that each person records of each motion
PACE = {"circling": 1.1, "running": 2.7, "shaking": 4.5, "still": 0.0, "walking": 1.8}  # hertz


def _rotation(angle: float, i: int, j: int) -> NDArray[np.float64]:
    turned = np.eye(3)
    turned[i, i] = turned[j, j] = np.cos(angle)
    turned[j, i] = np.sin(angle)
    turned[i, j] = -turned[j, i]
    return turned


def _strap(rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw how a person wears the sensor: turned by up to 30 degrees and tilted by about 15."""
    turn, (roll, pitch) = rng.uniform(-0.5, 0.5), 0.25 * rng.normal(size=2)
    return _rotation(turn, 0, 1) @ _rotation(roll, 1, 2) @ _rotation(pitch, 0, 2)


def _acceleration(
    motion: str, gait: tuple[float, float], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Generate one recording in g, shape (samples, 3), with z up; the pace wanders."""
    samples = SECONDS * RATE
    wander = 1 + 0.05 * np.cumsum(rng.normal(size=samples)) / np.sqrt(RATE)
    pace = PACE[motion] * rng.uniform(0.8, 1.2)
    angle = 2 * np.pi * (np.cumsum(pace * wander) / RATE + rng.uniform())
    zero = np.zeros(samples)
    # Two steps make a stride, so the body sways sideways at half the pace.
    stride = np.cos(angle) + gait[0] * np.cos(2 * angle + gait[1])
    axes = {
        "circling": (0.6 * np.cos(angle), 0.6 * np.sin(angle), zero),
        "running": (0.33 * np.sin(angle / 2), 0.33 * np.sin(angle), 1.1 * stride),
        "shaking": (1.2 * np.cos(angle), 0.24 * np.sin(angle), 0.12 * np.cos(2 * angle)),
        "still": (zero, zero, zero),
        "walking": (0.14 * np.sin(angle / 2), 0.1 * np.sin(angle), 0.35 * stride),
    }
    moved = rng.uniform(0.7, 1.3) * np.stack(axes[motion], axis=1)
    sway = np.cumsum(rng.normal(size=moved.shape), axis=0)
    return moved + 0.002 * (sway - sway.mean(axis=0)) + np.array([0.0, 0.0, 1.0])


def record(folder: Path, people: int, seed: int) -> None:
    """Generate recordings.

    Parameters
    ----------
    folder : pathlib.Path
        Gets one .csv a person.
    people : int
        How many people move.
    seed : int
        Of the random numbers.
    """
    rng = np.random.default_rng(seed)
    for person in range(people):
        strap, noise = _strap(rng), rng.uniform(0.03, 0.1)
        gait = (rng.uniform(0.2, 0.6), rng.uniform(0, 2 * np.pi))
        lines = ["time_ms,acc_x,acc_y,acc_z,activity"]
        for motion in PACE:
            signal = _acceleration(motion, gait, rng) @ strap.T
            signal += noise * rng.normal(size=signal.shape)
            for x, y, z in np.clip(np.rint(signal * COUNTS), -32768, 32767).astype(int).tolist():
                lines.append(f"{(len(lines) - 1) * 1000 // RATE},{x},{y},{z},{motion}")
        (folder / f"person_{person + 1:02d}.csv").write_text("\n".join(lines) + "\n")


def _line(name: str, text: str) -> None:
    print(fill(f"{name:<16} {text}", 96, subsequent_indent=17 * " "))


def build(recordings: Path, folder: Path) -> int:
    """Train on some recordings, test on others, and leave a firmware project in `folder`."""
    cut = tinykernel.windows(recordings, "2.56s", "1.28s", label="activity")
    _line("recordings:", str(cut))
    data = as_dataset(cut)
    _line("split:", data.split)
    trained = tinykernel.train(
        data.X_train,
        data.y_train,
        groups=data.group_train,
        hop=cut.hop,
        budget="8KB",
        target="esp32c3",
        random_state=0,
    )
    model = trained.model
    assert data.X_test is not None
    assert data.y_test is not None
    kernels = model.find(Kernels)
    assert kernels is not None
    _line("model:", f"{kernels.n_kernels} kernels, a linear part of {model.n_features} counts")
    said = model.predict(data.X_test)
    _line("tinykernel:", f"{100 * np.mean(said == data.y_test):.1f} % of the windows held out")
    check = tinykernel.verify(model, data.X_test, data.y_test)
    _line(
        "C on the host:",
        f"{check.rows} windows and {check.hops} decisions of a stream, "
        f"{check.differences} differing scores",
    )
    size = trained.memory
    assert size is not None
    _line("esp32c3:", f"{size.flash} bytes flash, {size.ram} bytes RAM ({size.source})")
    tinykernel.export(model, "esp32c3", folder, name="sensor", vectors=data.X_test[:8])
    _line("project:", str(folder))
    return 0 if check.ok and size.fits else 1


def main() -> int:
    """Read the command line; without recordings, generate some."""
    parser = argparse.ArgumentParser(description="from recordings to firmware")
    parser.add_argument("folder", nargs="?", default="sensor-firmware", type=Path)
    parser.add_argument("--data", type=Path, metavar="RECORDINGS")
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="only generate")
    given = parser.parse_args()
    if given.record is not None:
        given.record.mkdir()
        record(given.record, people=8, seed=1)
        return 0
    shared = Path(os.environ.get("TINYKERNEL_DATA", ".")) / "har_recordings"
    recordings = given.data or (shared if shared.is_dir() else None)
    if recordings is not None:
        return build(recordings, given.folder)
    with tempfile.TemporaryDirectory() as made:
        generated = Path(made) / "generated"
        generated.mkdir()
        record(generated, people=8, seed=1)
        return build(generated, given.folder)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except tinykernel.TinykernelError as error:
        sys.exit(f"error: {error}")
