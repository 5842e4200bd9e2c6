"""The table of code sizes beside the sample that it was measured with."""

import pytest

from tests.spectra import spectral_model
from tinykernel.compile.targets import TARGETS
from tinykernel.run import estimate
from tinykernel.run.estimate import code_properties, estimate_footprint


@pytest.mark.slow
def test_every_property_of_the_sample_was_measured(import_benchmark) -> None:
    """A property without a size is code that no estimate counts; every target has a core."""
    for model in import_benchmark("code_size").sample(3):
        for name, row in TARGETS.items():
            if row.family != "host":
                assert estimate_footprint(model, name).parts["code"] > 100
        for core, measured in estimate._code_sizes().items():
            assert code_properties(model).keys() <= measured["code"].keys(), core


def test_a_stage_without_a_measurement_has_an_estimate(monkeypatch) -> None:
    """A new stage counts as more code than any other, and the note says so."""
    model = spectral_model(1)
    measured = estimate_footprint(model, "cortex-m4")
    core = estimate._code_sizes()["cortex-m4"]
    code = {name: size for name, size in core["code"].items() if name != "spectrum"}
    monkeypatch.setattr(estimate, "_code_sizes", lambda: {"cortex-m4": core | {"code": code}})
    wide = estimate_footprint(model, "cortex-m4")
    assert wide.flash > measured.flash
    assert "the code of spectrum was not measured: 1536 bytes are assumed" in wide.notes
