"""Linear parts, images and signals: the generated C against Python, in all its variants."""

import subprocess
from pathlib import Path

import pytest

from tests.firmware.compiling import compile_export
from tests.firmware.local_models import ALL
from tinykernel.compile.plan import pack
from tinykernel.compile.projects import export, generated_inputs
from tinykernel.run.parity import entry_rows, expected_values


@pytest.mark.sharp
@pytest.mark.parametrize(
    "kind", ["signal, averaged", "spectrum, numbers beside", "offset, numbers beside"]
)
def test_self_test_streams(require_compiler, tmp_path: Path, kind: str) -> None:
    """The program of an export streams its vectors, and prints PASS and the decisions."""
    model = ALL[kind]()
    export(model, "host", tmp_path / "project", name="gesture")
    program = compile_export(require_compiler("host"), tmp_path / "project")
    text = subprocess.run([program], capture_output=True, text=True).stdout
    rows = entry_rows(model, generated_inputs(model))
    labels = expected_values(model, rows)["stream"][:, -1]
    assert "PASS: 8 vectors" in text
    assert f"DECISIONS: {' '.join(str(label) for label in labels)}\n" in text


def test_scratch_of_whole_windows_holds_no_samples_of_a_stream() -> None:
    """The samples that a stream keeps are no part of it, of numbers beside either."""
    for kind in ("offset, int16", "offset, numbers beside", "spectrum, int16"):
        model = ALL[kind]()
        stages = {stage.KIND: stage for stage in model.stages}
        kept = 4 + stages["spectrum"].length // 2 if "spectrum" in stages else model.input.size // 2
        packed = pack(model)
        assert packed.scratch_words == packed.stream_words + packed.state_words - kept
