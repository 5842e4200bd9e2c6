"""Handwritten digits in a page of Python: train, quantise, verify, report, export.

Run it with ``python examples/digits.py [FOLDER]``; the firmware project for a Cortex-M4 is written
to FOLDER (default: ``digits-firmware``). It prints::

    split:           1347 training rows, 450 test rows (stratified, seed 0)
    model:           99.11 % of the test rows, as on the chip
    C on the host:   450 rows, 4500 scores, 0 differences
    cortex-m4:       9284 bytes flash, 568 bytes RAM (linked)
    project:         digits-firmware
"""

import sys
from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import tinykernel


def _line(name: str, text: str) -> None:
    print(f"{name:<16} {text}")


def main(folder: Path) -> int:
    """Train on scikit-learn's digits and leave a firmware project in `folder`."""
    X, y = load_digits(return_X_y=True)
    # Pixels are 0..16: as uint8 the firmware takes bytes and needs no float at all.
    X_train, X_test, y_train, y_test = train_test_split(
        X.astype("uint8"), y, test_size=0.25, stratify=y, random_state=0
    )
    rows = f"{len(X_train)} training rows, {len(X_test)} test rows (stratified, seed 0)"
    _line("split:", rows)

    classifier = tinykernel.TernaryKernelClassifier(n_components=2048, random_state=0)
    classifier.fit(X_train, y_train)
    accuracy = 100 * classifier.score(X_test, y_test)
    _line("model:", f"{accuracy:.2f} % of the test rows, as on the chip")
    model = classifier.quantize()

    check = tinykernel.verify(model, X_test, y_test)
    counts = f"{check.rows} rows, {check.scores} scores, {check.differences} differences"
    _line("C on the host:", counts)
    size = tinykernel.report(model, "cortex-m4", "30KB")
    _line("cortex-m4:", f"{size.flash} bytes flash, {size.ram} bytes RAM ({size.source})")

    tinykernel.export(model, "cortex-m4", folder, name="digits", vectors=X_test[:8])
    _line("project:", str(folder))
    return 0 if check.ok and size.fits else 1


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "digits-firmware")))
    except tinykernel.TinykernelError as error:
        sys.exit(f"error: {error}")
