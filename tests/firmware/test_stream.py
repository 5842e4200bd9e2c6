"""The stream of the generated C against the window call of Python, over a long recording."""

import os
import subprocess
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.firmware.local_models import ALL, SIGNALS
from tests.firmware.test_decisions import deciding
from tinykernel import Classifier, windows
from tinykernel.build.parity import verify
from tinykernel.build.program import write_sources
from tinykernel.codegen.projects import generated_inputs
from tinykernel.codegen.sources import render_sources
from tinykernel.model.answers.values import Values
from tinykernel.model.integer import IntegerModel

WINDOW, HOP = 128, 8
# A stream whose running counts, which only grow, stand just below the end of their type.
_LONG = """
#include "m.c"
#include <string.h>
int main(void)
{
    enum { N = M_WINDOW + 9 * M_HOP };
    static m_state_t state;
    static m_scratch_t scratch;
    static m_input_t samples[N * M_CHANNELS];
    int32_t stream[M_CLASSES], window[M_CLASSES];
    uint32_t noise = 1u, i;
    int ends = 0;
    for (i = 0u; i < N * M_CHANNELS; i++) {
        noise = noise * 1664525u + 1013904223u;
        samples[i] = (m_input_t)(noise >> 16);
    }
    m_init(&state);
    for (i = tk_kernels_1.running; i < tk_kernels_1.counts; i++) {
        ((uint32_t *)&state)[i] = 0xfefefefeu;
    }
    for (i = 0u; i < N; i++) {
        if (m_push(&state, samples + i * M_CHANNELS)) {
            ends++;
            m_stream_scores(&state, scratch, stream);
            m_scores(samples + (i + 1 - M_WINDOW) * M_CHANNELS, scratch, window);
            if (memcmp(stream, window, sizeof window) != 0) {
                return 1;
            }
        }
    }
    return ends == 10 ? 0 : 2;
}
"""
# A stream that is asked at any time, beside one that is asked where a window ended.
_ASKED = """
#include "m.h"
#include <string.h>
int main(void)
{
    static m_state_t asked, state;
    static uint32_t scratch[M_STREAM_SCRATCH_WORDS];
    int32_t early[M_CLASSES], scores[M_CLASSES];
    uint32_t noise = 1u, i;
    int ends = 0;
    m_init(&asked);
    m_init(&state);
    for (i = 0u; i < M_WINDOW + M_DELAY + 999u * M_HOP; i++) {
        m_input_t sample[M_CHANNELS];
        uint32_t c;
        for (c = 0u; c < M_CHANNELS; c++) {
            noise = noise * 1664525u + 1013904223u;
            sample[c] = (m_input_t)(noise >> 16);
        }
        (void)m_push(&asked, sample);
        if ((noise >> 16) % 8u == 0u) {
            m_stream_scores(&asked, scratch, early);
        }
        if (m_push(&state, sample)) {
            ends++;
            m_stream_scores(&state, scratch, scores);
            if ((noise >> 16) % 8u == 0u && memcmp(early, scores, sizeof scores) != 0) {
                return 1;
            }
        } else if (COUNTED_ONCE && ends > 0 && (noise >> 16) % 8u == 0u) {
            m_stream_scores(&state, scratch, early);
            if (memcmp(early, scores, sizeof scores) != 0) {
                return 3;
            }
        }
    }
    return ends == 1000 ? 0 : 2;
}
"""
# Samples in blocks of any length, beside samples that are pushed one by one.
_BLOCKS = """
#include "m.h"
#include <string.h>
enum { MOST = 3 * M_HOP + 2, ALL = M_WINDOW + M_DELAY + 40 * M_HOP };
int main(void)
{
    static m_state_t blocks, state;
    static uint32_t scratch[M_STREAM_SCRATCH_WORDS];
    static m_input_t samples[MOST * M_CHANNELS];
    uint32_t noise = 1u, done = 0u, i;
    int ends = 0;
    m_init(&blocks);
    m_init(&state);
    while (done < ALL) {
        OUT one[WIDTH] = {0}, all[(MOST / M_HOP + 1) * WIDTH];
        uint32_t n, ended, margin, expected = 0u;
        (void)margin;
        noise = noise * 1664525u + 1013904223u;
        n = (noise >> 16) % (MOST + 1u);
        for (i = 0u; i < n * M_CHANNELS; i++) {
            noise = noise * 1664525u + 1013904223u;
            samples[i] = (m_input_t)(noise >> 16);
        }
        ended = m_push_block(&blocks, samples, n, scratch, all);
        if (ended > n / M_HOP + 1u) {
            return 3;
        }
        for (i = 0u; i < n; i++) {
            if (m_push(&state, samples + i * M_CHANNELS)) {
                DECIDE;
                if (memcmp(one, all + expected++ * WIDTH, sizeof one) != 0) {
                    return 1;
                }
            }
        }
        if (expected != ended) {
            return 2;
        }
        ends += (int)ended;
        done += n;
    }
    return ends > 40 ? 0 : 4;
}
"""
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

    def compiled(model, text, *flags):
        include = write_sources(tmp_path, render_sources(model, "m"))
        source, program = tmp_path / "src" / "main.c", tmp_path / "program"
        source.write_text(text)
        sources = [source] if '#include "m.c"' in text else [source, tmp_path / "src" / "m.c"]
        command = [require_tool("gcc"), "-std=c99", "-O1", "-fsanitize=address,undefined", *flags]
        command += ["-fno-sanitize-recover=all", *(f"-I{folder}" for folder in include)]
        subprocess.run([*command, *sources, "-o", program], check=True)
        return subprocess.run([program]).returncode

    return compiled


@pytest.mark.parametrize("kind", ["averaged", "16-bit counts, float"])
def test_a_stream_of_more_samples_than_a_counter_holds(kind, status):
    """Scores of a stream do not change where its running counts pass the end of their type."""
    assert status(SIGNALS[kind](), _LONG) == 0


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
    assert status(ALL[name](), _ASKED, f"-DCOUNTED_ONCE={int(name == 'offset, int16')}") == 0


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
    assert status(model, _BLOCKS, f"-DOUT={result}", f"-DWIDTH={width}", f"-DDECIDE={decide}") == 0


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
