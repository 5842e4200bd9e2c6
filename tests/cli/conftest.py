"""Data and a model that the tests of all commands use."""

from pathlib import Path

import numpy as np
import pytest

from tests.cli.tools import QUICK, blobs, run
from tinykernel.model.file import about, load, save
from tinykernel.model.pipelines import as_integer_model


@pytest.fixture(scope="session")
def work(tmp_path_factory) -> Path:
    """Return a folder with data.npz, and gesture.tkm and gesture.pkl trained on it."""
    folder = tmp_path_factory.mktemp("cli")
    (X, y), (X_test, y_test) = blobs(120, 0), blobs(30, 1)
    arrays = {"X_train": X, "y_train": y, "X_test": X_test, "y_test": y_test}
    np.savez(folder / "data.npz", group_train=np.arange(120) // 20, **arrays)
    result = run("train", folder / "data.npz", "-o", folder / "gesture.pkl", *QUICK)
    assert (result.exit_code, result.output) == (0, "")
    model = as_integer_model(load(folder / "gesture.pkl"))
    save(model, folder / "gesture.tkm", about(folder / "gesture.pkl"))
    return folder
