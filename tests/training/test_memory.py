"""What the rows take while a model is trained: no copies of 64 bits of all of them."""

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from tinykernel.learn.inputs import choose_scaling, draw_transform
from tinykernel.learn.linear.training import input_moments

N, D = 150_000, 30


def peak_of(call: Callable[[], object]) -> float:
    """Return the most bytes that were allocated at a time."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["int16", "float32"])
def test_rows_are_quantized_a_few_at_a_time(kind):
    """Quantized inputs, mixed inputs and moments of many rows take what they hold, and little."""
    X = np.random.default_rng(0).integers(-2000, 2000, (N, D)).astype(kind)
    bits, scaling = choose_scaling(X[:1000], kind, 16, "feature")
    transform = draw_transform(scaling, bits, kind, np.random.default_rng(1))
    transform.mixed(X[:8])  # compiles
    q = transform.scaler.quantize(X)
    little = 12e6
    assert peak_of(lambda: transform.scaler.quantize(X)) < q.nbytes + little
    assert peak_of(lambda: input_moments(q)) < little
    assert peak_of(lambda: transform.mixed(X)) < N * transform.dimension * 4 + little
