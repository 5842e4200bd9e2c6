"""The sorts of problems, and the words that scripts tell them by."""

import pickle

import pytest

import tinykernel
from tinykernel import errors


def test_codes_stay_the_same() -> None:
    """Scripts compare these words: a new sort may come, but none goes, and none is renamed."""
    codes = {sort.code: sort for sort in errors.TinykernelError.__subclasses__()}
    words = "board budget convert data file format link model option range rows shape target tool"
    assert " ".join(sorted(codes)) == words
    for code, sort in codes.items():
        assert pickle.loads(pickle.dumps(sort("text"))).code == code


def test_a_file_that_is_not_there_has_the_code_of_files(tmp_path) -> None:
    """The code of an error with the name of a file before it is that of the first error."""
    with pytest.raises(tinykernel.TinykernelError) as caught:
        tinykernel.load(tmp_path / "model.tkm")
    assert caught.value.code == "file"
    (tmp_path / "model.tkm").write_bytes(b"damaged")
    with pytest.raises(errors.FormatError, match=r"model\.tkm"):
        tinykernel.load(tmp_path / "model.tkm")
