"""Motion recognition from raw accelerometer samples, tested on people never seen in training.

A three-axis accelerometer is read 50 times a second as int16 (1 g is 4096 counts). Every 0.64 s the
last 1.28 s, 64 samples of 3 axes, are labelled circling, running, shaking, still or walking. The
firmware takes those 192 integers as they are: no filter, no feature extraction, no float.

No sensor is needed to try it: the signal is generated. Each "person" has a pace, a strength and a
gait of their own and wears the sensor at an angle of their own. A window begins at any moment of
the movement, so no single sample says much: a linear classifier is lost here. Everything is chosen
on the 24 people of the training rows; the 12 people of the test rows are others.

Run it with ``python examples/motion.py [FOLDER]``; the firmware project for an ESP32-C3 is written
to FOLDER (default: ``motion-firmware``). It prints, after a minute of training::

    training:        3600 windows of 24 people
    test:            1800 windows of 12 other people
    linear model:    27.6 % of the test windows
    tinykernel:      98.0 %, in integers as on the chip
      circling       100.0 %
      running        95.0 %
      shaking        96.7 %
      still          100.0 %
      walking        98.3 %
    C on the host:   1800 windows, 0 differing scores
    esp32c3:         11990 bytes flash, 1156 bytes RAM (linked)
    project:         motion-firmware

`docs/c-interface.md` shows how a firmware feeds samples to it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tinykernel

RATE = 50  # samples a second
WINDOW = 64  # samples of a window
STEP = 32  # samples from one window to the next
COUNTS = 4096  # of 1 g
SECONDS = 20  # that each person records of each motion
PACE = {"circling": 1.1, "running": 2.7, "shaking": 4.5, "still": 0.0, "walking": 1.8}  # hertz


class Windows(NamedTuple):
    """Raw windows with their labels.

    Parameters
    ----------
    X : ndarray of int16, shape (n_windows, 3 * WINDOW)
        x, y, z of the first sample, then of the second, and so on.
    y : ndarray of str, shape (n_windows,)
        Names of the motions.
    person : ndarray of int, shape (n_windows,)
        Who moved.
    """

    X: NDArray[np.int16]
    y: NDArray[np.str_]
    person: NDArray[np.int64]


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


def record(people: int, seed: int) -> Windows:
    """Generate the windows of several people.

    Parameters
    ----------
    people : int
        How many people move.
    seed : int
        Of the random numbers; other people for another seed.

    Returns
    -------
    Windows
    """
    rng = np.random.default_rng(seed)
    rows, labels, persons = [], [], []
    for person in range(people):
        strap, noise = _strap(rng), rng.uniform(0.03, 0.1)
        gait = (rng.uniform(0.2, 0.6), rng.uniform(0, 2 * np.pi))
        for motion in PACE:
            signal = _acceleration(motion, gait, rng) @ strap.T
            signal += noise * rng.normal(size=signal.shape)
            counts = np.clip(np.rint(signal * COUNTS), -32768, 32767).astype(np.int16)
            for first in range(0, len(counts) - WINDOW + 1, STEP):
                rows.append(counts[first : first + WINDOW].reshape(-1))
                labels.append(motion)
                persons.append(person)
    return Windows(np.array(rows), np.array(labels), np.array(persons))


def _line(name: str, text: str) -> None:
    print(f"{name:<16} {text}")


def _print_accuracy(model: tinykernel.IntegerModel, test: Windows) -> None:
    right = model.predict(test.X) == test.y
    _line("tinykernel:", f"{100 * right.mean():.1f} %, in integers as on the chip")
    for motion in PACE:
        _line(f"  {motion}", f"{100 * right[test.y == motion].mean():.1f} %")


def main(folder: Path) -> int:
    """Train on some people, test on others, and leave a firmware project in `folder`."""
    training, test = record(people=24, seed=1), record(people=12, seed=2)
    _line("training:", f"{len(training.X)} windows of 24 people")
    _line("test:", f"{len(test.X)} windows of 12 other people")

    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    share = linear.fit(training.X, training.y).score(test.X, test.y)
    _line("linear model:", f"{100 * share:.1f} % of the test windows")
    # Hyper-parameters are chosen on people left out.
    trained = tinykernel.train(
        training.X, training.y, budget="12KB", target="esp32c3", groups=training.person,
        random_state=0,
    )  # fmt: skip
    model = trained.model
    _print_accuracy(model, test)

    check = tinykernel.verify(model, test.X, test.y)
    _line("C on the host:", f"{check.rows} windows, {check.differences} differing scores")
    size = trained.memory
    assert size is not None
    _line("esp32c3:", f"{size.flash} bytes flash, {size.ram} bytes RAM ({size.source})")

    # The self-test on the board runs a window of each motion.
    vectors = test.X[[np.flatnonzero(test.y == motion)[0] for motion in PACE]]
    tinykernel.export(model, "esp32c3", folder, name="motion", vectors=vectors)
    _line("project:", str(folder))
    return 0 if check.ok and size.fits else 1


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "motion-firmware")))
    except tinykernel.TinykernelError as error:
        sys.exit(f"error: {error}")
