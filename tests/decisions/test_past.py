"""Numbers relative to their own past, against the formula and against the C."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.firmware.compiling import program
from tests.firmware.test_host import SANITISERS
from tests.random_models import balanced, random_model
from tinykernel import relative
from tinykernel.compile.sources import render_sources
from tinykernel.run.program import WARNING_FLAGS, build, write_sources


@given(st.lists(st.tuples(st.integers(-65535, 65535), st.integers(0, 3))), st.integers(1, 8))
def test_numbers_follow_the_formula_in_their_stream(rows, shift):
    """Streams that alternate give what each gives alone, number by number."""
    numbers, streams = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    sums, less, over = {}, [], []
    for x, stream in rows:
        total = sums.get(stream, x << shift)
        mean = total >> shift
        sums[stream] = total + x - mean
        less.append(x - mean)
        over.append(min(128 * max(x, 0) // max(mean, 1), 1023))
    found = [relative(numbers, streams, n=1 << shift, how=how).tolist() for how in ("less", "over")]
    assert found == [less, over]


@given(st.integers(1, 60000), st.integers(1, 8), st.integers(0, 10**6))
def test_a_constant_past_is_the_unit(level, shift, seed):
    """What stays as it was gives 128 and 0; columns have pasts of their own."""
    n = 1 << shift
    numbers = np.column_stack([np.full(50, level), np.random.default_rng(seed).integers(0, 99, 50)])
    assert relative(numbers, n=n)[:, 0].tolist() == [128] * 50
    assert not relative(numbers, n=n, how="less")[:, 0].any()
    assert np.array_equal(relative(numbers, n=n)[:, 1], relative(numbers[:, 1], n=n))


@pytest.mark.parametrize("core", ["host", "cortex-m0", "cortex-m4", "esp32c3", "atmega328p"])
def test_the_c_gives_the_same(require_platforms, tmp_path, core):
    """Also after -65535, where a stream starts anew, and on emulated cores."""
    platform = require_platforms(core)[0]
    rng = np.random.default_rng(0)
    numbers = np.concatenate(
        [rng.integers(1, 400, 200), [-65535], rng.integers(-65535, 65536, 200), [65535] * 9]
    ).astype(np.int32)
    files = render_sources(balanced(random_model(6, n_features=20, raw_dtype="int16")), "gesture")
    include = write_sources(tmp_path, files)
    (tmp_path / "main.c").write_text(program("past"))
    (tmp_path / "in.bin").write_bytes(numbers.astype("<i4").tobytes())
    flags = (*WARNING_FLAGS, *(SANITISERS if core == "host" else ("-Os",)))
    build(platform, [tmp_path / "main.c"], tmp_path, include=include, flags=flags).run()
    found = np.frombuffer((tmp_path / "out.bin").read_bytes(), "<i4").reshape(-1, 8, 2)
    streams = np.cumsum(numbers == -65535)
    for i in range(8):
        for j, how in enumerate(("less", "over")):
            assert np.array_equal(found[:, i, j], relative(numbers, streams, n=2 << i, how=how))
