"""Motion recognition from raw accelerometer windows, tested on people never seen in training.

A three-axis accelerometer is sampled 50 times a second as int16 (one g is 4096 counts), and each
window of 0.64 s is classified: still, walking, shaking or circling. The signal is generated here:
each "person" has their own pace, strength, sensor orientation and noise. The firmware takes the 96
raw samples of a window; no feature extraction and no float runs on the chip.

Run it with ``python examples/motion.py [FOLDER]``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import tinykernel

RATE = 50  # samples a second
WINDOW = 32  # samples a window and axis
GRAVITY = 4096  # counts
MOTIONS = ("circling", "shaking", "still", "walking")


def _rotation(rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw a sensor orientation within about 20 degrees of upright."""
    tilt = np.eye(3) + 0.2 * rng.normal(size=(3, 3))
    return np.linalg.qr(tilt)[0] * np.sign(np.diag(np.linalg.qr(tilt)[1]))


def _motion(name: str, seconds: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Generate the acceleration of one motion in g, shape (samples, 3)."""
    time = np.arange(int(seconds * RATE)) / RATE
    pace = {"circling": 1.0, "shaking": 5.0, "still": 0.0, "walking": 1.8}[name]
    angle = 2 * np.pi * pace * rng.uniform(0.85, 1.15) * time + rng.uniform(0, 2 * np.pi)
    strength = rng.uniform(0.7, 1.3)
    zero = np.zeros_like(time)
    if name == "circling":
        waves = 0.5 * np.stack([np.cos(angle), np.sin(angle), zero], axis=1)
    elif name == "shaking":
        waves = 0.9 * np.stack([np.cos(angle), 0.2 * np.sin(angle), zero], axis=1)
    elif name == "walking":
        step = np.cos(angle) + 0.4 * np.cos(2 * angle + 0.5)
        waves = 0.4 * np.stack([0.3 * np.sin(angle / 2), 0.2 * step, step], axis=1)
    else:
        waves = np.stack([zero, zero, zero], axis=1)
    return strength * waves + np.array([0.0, 0.0, 1.0])


def windows(
    people: int, seed: int, seconds: float = 20.0
) -> tuple[NDArray[np.int16], NDArray[np.str_]]:
    """Generate the labelled windows of several people.

    Parameters
    ----------
    people : int
        How many people move, each with a sensor of their own.
    seed : int
        Of the random numbers.
    seconds : float, default=20.0
        Length of each motion.

    Returns
    -------
    X : ndarray of int16, shape (n_windows, 96)
        x, y, z of the first sample, then of the second, and so on.
    y : ndarray of str, shape (n_windows,)
    """
    rng = np.random.default_rng(seed)
    rows, labels = [], []
    for _ in range(people):
        orientation, noise = _rotation(rng), rng.uniform(0.02, 0.08)
        for name in MOTIONS:
            signal = _motion(name, seconds, rng) @ orientation.T
            signal += noise * rng.normal(size=signal.shape)
            counts = np.clip(np.rint(signal * GRAVITY), -32768, 32767).astype(np.int16)
            for first in range(0, len(counts) - WINDOW + 1, WINDOW // 2):
                rows.append(counts[first : first + WINDOW].reshape(-1))
                labels.append(name)
    return np.array(rows), np.array(labels)


def main(folder: Path) -> int:
    """Train on some people, test on others, and leave a firmware project in `folder`."""
    X_train, y_train = windows(people=12, seed=1)
    X_test, y_test = windows(people=6, seed=2)
    classifier = tinykernel.TernaryKernelClassifier(
        method="paper", n_components=512, scaler_scope="global", random_state=0
    )
    model = classifier.fit(X_train, y_train).quantize()
    accuracy = (model.predict(X_test) == y_test).mean()
    print(f"{len(X_train)} windows of 12 people for training, {len(X_test)} of 6 others for test")
    print(f"integer model: {100 * accuracy:.2f} % of the test windows")

    tinykernel.export(model, "esp32c3", folder, name="motion", vectors=X_test[::64])
    print(f"project:       {folder}")

    check = tinykernel.verify(model, X_test, y_test)
    print(f"C on the host: {check.rows} rows, {check.differences} differing scores")
    return 0 if check.differences == 0 else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "motion-firmware")))
