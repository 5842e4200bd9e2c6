"""Recordings that are held out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.test_recordings import log, refused
from tinykernel.base.errors import TinykernelError
from tinykernel.data.cutting import Windows
from tinykernel.data.recordings import windows
from tinykernel.data.splits import as_dataset, split_recordings

pytestmark = pytest.mark.usefixtures("page")


def made(groups: list[str], y: list[int]) -> Windows:
    n, zeros = len(y), np.zeros(len(y), np.int64)
    X, labels, names = np.zeros((n, 4, 1), np.int16), np.array(y), np.array(groups)
    where = (("f",), zeros, zeros, np.arange(n), None, None)
    return Windows(X, labels, names, *where, ("a",), None, 2, {}, None, "f")


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 2)), min_size=1, max_size=40),
    st.integers(0, 3),
)
def test_split_is_by_recording_and_keeps_every_class(rows, seed):
    """Whole recordings are held out, training sees all classes; else no such split exists."""
    rows = sorted(rows)
    groups, y = [g for g, _ in rows], [label for _, label in rows]
    try:
        train, test = split_recordings(made(groups, y), 0.25, seed)
    except TinykernelError:
        for aside in set(groups):
            kept = {label for g, label in rows if g != aside}
            assert kept != set(y)
        return
    assert train.any()
    assert test.any()
    assert (train ^ test).all()
    assert not set(np.array(groups)[test]) & set(np.array(groups)[train])
    assert {label for label, t in zip(y, train, strict=True) if t} == set(y)


def test_one_recording_is_not_split(tmp_path):
    """Windows of one recording are too alike to test on: the message names the ways out."""
    found = windows(log(tmp_path / "a.csv"), 10)
    refused(found, call=split_recordings)
    assert as_dataset(found, 0).split == "18 training windows, no test windows"


def test_several_recordings_of_one_person_are_called_a_group(tmp_path):
    """Who has files of one person reads that it is one group, not one recording."""
    for name in "ab":
        log(tmp_path / "all" / f"anna_{name}.csv")
    found = windows(tmp_path / "all", 10, name="{person}_*")
    refused(found, call=split_recordings)
    alone = made(["a", "a", "b", "b"], [0, 0, 1, 1])
    refused(alone, call=split_recordings)


def test_folders_of_parts_are_the_split(tmp_path):
    """As Edge Impulse exports them; a person in both is two groups, so that no clip leaks."""
    for place in ("training/ann_1", "training/ann_2", "testing/ann_3"):
        file = log(tmp_path / f"{place}.csv")
    found = windows(tmp_path, 10, name="{person}_*")
    dataset = as_dataset(found, 0.5)
    assert (len(dataset.y_train), len(dataset.y_test)) == (36, 18)
    assert (set(dataset.group_train), set(dataset.group_test)) == (
        {"training ann"},
        {"testing ann"},
    )
    assert "testing, training" in dataset.split
    assert as_dataset(found, 0).X_test is None
    file.write_text(file.read_text().replace("down", "left"))
    refused(windows(tmp_path, 10, name="{person}_*"), call=split_recordings)
