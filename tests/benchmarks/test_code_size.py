"""The table of code sizes beside the sample that it was measured with."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from tests.spectra import spectral_model
from tinykernel.codegen.targets import TARGETS
from tinykernel.measure import estimate
from tinykernel.measure.estimate import estimate_footprint


@pytest.mark.parametrize(
    "kind",
    [
        "sample",
        "shaped_sample",
        "one_class_sample",
        "tree_sample",
        "spectral_sample",
        "offset_sample",
        "convolution_sample",
    ],
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


def test_a_stage_that_was_never_measured_has_an_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new stage before the levels counts as more code than any other, and the note says so."""
    model = spectral_model(1)
    measured = estimate_footprint(model, "cortex-m4")
    sizes = json.loads(json.dumps(estimate._code_sizes()))
    for name in [name for name in sizes["cortex-m4"]["code"] if name.startswith("spectrum, ")]:
        del sizes["cortex-m4"]["code"][name]
    monkeypatch.setattr(estimate, "_code_sizes", lambda: sizes)
    wide = estimate_footprint(model, "cortex-m4")
    assert wide.flash > measured.flash
    assert "the code of spectrum was not measured: 1536 bytes are assumed" in wide.notes
