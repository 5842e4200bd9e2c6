"""Classifiers for tests."""

from __future__ import annotations

from tinykernel import TernaryKernelClassifier
from tinykernel.training.options.parameters import sorted_out

NAMES = TernaryKernelClassifier().get_params()


def quick(**parameters):
    """Make a classifier that trains in a fraction of a second."""
    chosen = {"n_components": 128, "epochs": 6, "effort": "quick", "random_state": 0}
    return TernaryKernelClassifier(**sorted_out(NAMES, chosen | parameters))
