"""The stream of the generated C against the window call of Python, over a long recording."""

import os
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.firmware.compiling import run_program
from tests.firmware.local_models import ALL, SIGNALS
from tests.firmware.test_decisions import deciding
from tinykernel import Classifier, windows
from tinykernel.compile.sources import generated_inputs
from tinykernel.model.answers import Values
from tinykernel.model.integer import IntegerModel
from tinykernel.run.parity import verify

WINDOW, HOP = 128, 8
CALLS = {
    "labels": "stream_predict(&state, scratch)",
    "decisions": "stream_decide(&state, scratch, &margin)",
    "events": "event(&state, scratch)",
    "values": "",
}
_Recordings = tuple[IntegerModel, list[NDArray[Any]]]


def write_walk(folder: Path) -> None:
    """Write half an hour at 50 Hz: gait of changing pace, rest, drift and knocks."""
    rng = np.random.default_rng(0)
    n = 83_000
    active = np.repeat(rng.permutation(np.arange(n // 1000) % 3), 1000)
    phase = np.cumsum(np.array([0.0, 0.22, 0.38])[active] * rng.uniform(0.9, 1.1, n))
    beats = np.sin(phase[:, np.newaxis] + np.arange(6)) + 0.4 * np.sin(3 * phase)[:, np.newaxis]
    drift = np.cumsum(rng.normal(size=(n, 6)), axis=0)
    knocks = (rng.random((n, 1)) < 0.001) * rng.normal(size=(n, 6)) * 20_000
    X = 2500 * beats * (active > 0)[:, np.newaxis] + 3 * drift + 60 * rng.normal(size=(n, 6))
    X = np.clip(X + knocks, -32768, 32767).astype(np.int16)
    np.savez(folder / "walk.npz", X=X, y=active, rate=50)


@pytest.fixture
def recorded(tmp_path: Path) -> _Recordings:
    """A small model, and all samples of each real recording, or of one of the same kind.

    Samples on both sides of a gap follow each other here: the longer, the more counters wrap.
    """
    real = Path(os.environ.get("TINYKERNEL_DATA", "")) / "har_recordings"
    folder, label = real, "activity"
    if not os.environ.get("TINYKERNEL_DATA") or not real.is_dir():
        folder, label = tmp_path, "y"
        write_walk(folder)
    cut = windows(folder, WINDOW, HOP, label=label)
    few = slice(None, None, 20)
    classifier = Classifier(n_kernels=24, hop=HOP, random_state=0)
    model = classifier.fit(cut.X[few], cut.y[few]).quantize()
    by_file = groupby(cut.stretches, key=lambda stretch: stretch.group)
    return model, [np.concatenate([one.X for one in stretches]) for _, stretches in by_file]


@pytest.fixture
def status(require_tool, tmp_path):
    """Return a function that runs a program with the C of a model and returns how it ended."""
    gcc = require_tool("gcc")
    return lambda name, model, *flags: run_program(gcc, name, model, tmp_path, "-O1", *flags)


@pytest.mark.parametrize("kind", ["averaged", "16-bit counts, float"])
def test_a_stream_of_more_samples_than_a_counter_holds(kind, status):
    """Scores of a stream do not change where its running counts pass the end of their type."""
    assert status("stream_wraps", SIGNALS[kind]()) == 0


@pytest.mark.parametrize(
    "name",
    [
        *("spectrum, kernels in turns", "spectrum, planes of a stream", "signal, averaged"),
        *("offset, numbers beside", "offset, int16"),
    ],
)
def test_a_question_at_another_time_spoiled_a_later_decision(name, status):
    """A stream may be asked before the last row of a window is counted, or after the next one.

    Less its mean, a window that ended last was counted anew for each question.
    """
    once = f"-DCOUNTED_ONCE={int(name == 'offset, int16')}"
    assert status("stream_asked", ALL[name](), once) == 0


@pytest.mark.parametrize("kind", CALLS)
def test_blocks_are_samples_one_by_one(kind, status):
    """A block of any length gives each decision of a stream, in order, and as many as it says."""
    models = {"events": "signal, events", "decisions": "spectrum, planes of a stream"}
    model = ALL[models.get(kind, "spectrum, kernels in turns")]()
    result, width, decide = "int", "1", f"*one = m_{CALLS[kind]}"
    if kind == "decisions":
        model = deciding(model, generated_inputs(model))
    elif kind == "values":
        model = replace(model, answers=Values(tuple(map(str, model.classes)), 8))
        result, width, decide = "int32_t", "M_OUTPUTS", "m_stream_predict(&state, scratch, one)"
    flags = f"-DOUT={result}", f"-DWIDTH={width}", f"-DDECIDE={decide}"
    assert status("stream_blocks", model, *flags) == 0


@pytest.mark.slow
def test_ten_thousand_hops(require_platforms, recorded):
    """What is pushed sample by sample scores at every hop as the window call of Python does.

    On this computer 10,000 times, on an emulated core a tenth of that.
    """
    model, recordings = recorded
    first = recordings[0][:WINDOW].reshape(1, -1)
    few = [recordings[0][: WINDOW + 1000 * HOP]]
    for core in ("host", "cortex-m0plus", "cortex-m3", "esp32c3"):
        require_platforms(core)
        chosen = recordings if core == "host" else few
        result = verify(model, first, target=core, recordings=chosen)
        assert result.first_difference is None, core
        assert result.hops == sum(1 + (len(samples) - WINDOW) // HOP for samples in chosen)
        assert core != "host" or result.hops >= 10_000
