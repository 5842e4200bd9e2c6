"""Handwritten digits: train, look at the integer model, export, verify and report.

Run it with ``python examples/digits.py [FOLDER]``; the firmware project is written to FOLDER
(default: ``digits-firmware``).
"""

from __future__ import annotations

import sys
from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import tinykernel


def main(folder: Path) -> int:
    """Train on scikit-learn's digits and leave a firmware project in `folder`."""
    X, y = load_digits(return_X_y=True)
    # Pixels are 0..16: as uint8 the firmware takes bytes and needs no float at all.
    X_train, X_test, y_train, y_test = train_test_split(
        X.astype("uint8"), y, test_size=0.25, stratify=y, random_state=0
    )

    classifier = tinykernel.TernaryKernelClassifier(
        method="paper", n_components=1024, random_state=0
    )
    classifier.fit(X_train, y_train)
    print(f"float model:   {100 * classifier.score(X_test, y_test):.2f} % of the test rows")

    model = classifier.quantize()
    print(f"integer model: {100 * (model.predict(X_test) == y_test).mean():.2f} %")

    tinykernel.export(model, "cortex-m4", folder, name="digits", vectors=X_test[:8])
    print(f"project:       {folder}")

    check = tinykernel.verify(model, X_test, y_test)
    print(f"C on the host: {check.rows} rows, {check.differences} differing scores")

    size = tinykernel.report(model, "cortex-m4", "30KB")
    print(f"cortex-m4:     {size.flash} bytes flash, {size.ram} bytes RAM ({size.source})")
    return 0 if check.differences == 0 and size.fits else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "digits-firmware")))
