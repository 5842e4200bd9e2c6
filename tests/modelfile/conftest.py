"""A classifier for all tests of model files."""

import pytest

from tests.modelfile.files import fit
from tinykernel.kinds.estimators.supervised import TernaryKernelClassifier


@pytest.fixture(scope="session")
def classifier() -> TernaryKernelClassifier:
    """Return one fitted classifier that no test changes."""
    return fit()
