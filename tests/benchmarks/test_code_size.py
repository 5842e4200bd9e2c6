"""The table of code sizes beside the sample that it was measured with."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tinykernel.codegen.targets import TARGETS
from tinykernel.measure.estimate import estimate_footprint


@pytest.mark.parametrize(
    "kind", ["sample", "shaped_sample", "one_class_sample", "tree_sample", "spectral_sample"]
)
def test_every_model_of_the_sample_has_an_estimate(
    kind: str, monkeypatch: pytest.MonkeyPatch, checkout: Path
) -> None:
    """A property that gets lost when tables are merged would refuse models that were measured."""
    monkeypatch.syspath_prepend(checkout / "benchmarks")
    draw = getattr(importlib.import_module("code_size"), kind)
    for index in range(0, 40, 4):
        for name, row in TARGETS.items():
            if row.family != "host":
                assert estimate_footprint(draw(index), name).flash > 0
