"""What tests of model files share: a small classifier, files, and how one is refused."""

from pathlib import Path
from typing import Any

import numpy as np

from tests.refusals import refused
from tinykernel.base.errors import TinykernelError
from tinykernel.kinds.estimators.supervised import TernaryKernelClassifier
from tinykernel.model.file import load

SUFFIXES = ["tkm", "pkl"]
X = np.random.default_rng(0).normal(size=(60, 3))


def fit(labels: Any = ("a", "b"), **parameters: Any) -> TernaryKernelClassifier:
    """Fit a small classifier with given labels."""
    y = np.asarray(labels)[np.digitize(X[:, 0], np.linspace(-1, 1, len(labels) - 1))]
    given = {"n_components": 32, "epochs": 2, "effort": "quick", "random_state": 0}
    return TernaryKernelClassifier(**(given | parameters)).fit(X, y)


def as_file(tmp_path: Path, data: bytes, suffix: str = "tkm") -> Path:
    """Write a model file with this content."""
    path = tmp_path / f"model.{suffix}"
    path.write_bytes(data)
    return path


def refusal(path: Path) -> str:
    """Return the one line with which a file is refused."""
    message = refused(TinykernelError, load, path)
    assert message.startswith(f"{path}: ")
    return message
