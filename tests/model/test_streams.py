"""Streams: what windows have in common is computed once, and gives the same scores."""

import numpy as np
import pytest

from tests.firmware.local_models import OFFSETS, SIGNALS, SPECTRA
from tinykernel.model import chain
from tinykernel.pieces.beside.spec import as_rows

MODELS = {
    f"{kind}: {name}": make
    for kind, models in (("signal", SIGNALS), ("spectrum", SPECTRA), ("offset", OFFSETS))
    for name, make in models.items()
    if "no stream" not in name
}


@pytest.mark.parametrize("name", MODELS)
def test_streams_are_their_windows(name, monkeypatch):
    """All windows of a stream have the scores of single ones, also in short stretches."""
    model = MODELS[name]()
    rng, rows = np.random.default_rng(0), model.input.rows
    shape = rows + 7 * model.hop + model.hop // 2, model.input.channels + model.n_numbers
    samples = (1000 * rng.standard_normal(shape)).astype(model.raw_dtype)
    view = np.lib.stride_tricks.sliding_window_view(samples, rows, axis=0)[:: model.hop]
    expected = model.scores(as_rows(view.transpose(0, 2, 1), model.n_numbers))
    assert model.stream_scores(samples).tolist() == expected.tolist()
    monkeypatch.setattr(chain, "LARGEST", (rows + 2 * model.hop) * shape[1])
    assert len(list(model.stream_inputs(samples, model.hop))) > 2
    assert model.stream_scores(samples).tolist() == expected.tolist()
    assert model.stream_scores(samples[: rows - 1]).shape == (0, model.n_scores)
