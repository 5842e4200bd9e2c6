"""The sorts of problems, and the words that scripts tell them by."""

import pickle
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import tinykernel
from tinykernel.base import errors
from tinykernel.learn.components import learner as interruption
from tinykernel.learn.loop import History, run_epochs


def test_a_warning_names_the_line_that_called_the_package(monkeypatch) -> None:
    """It named one of this package, or one further out, as calls lay more or less deep."""
    monkeypatch.setattr(interruption, "run_epochs", _interrupted)
    X, y = np.eye(20), np.arange(20) % 2
    how = {"model": "components", "n_components": 32, "epochs": 2, "effort": "quick"}
    for call in (tinykernel.Classifier(**how).fit, partial(tinykernel.train, **how)):
        with pytest.warns(ConvergenceWarning, match="interrupted") as said:
            call(X, y)
        assert [each.filename for each in said] == [__file__]


def _interrupted(*arguments: Any, **options: Any) -> History:
    return replace(run_epochs(*arguments, **options), interrupted=True)


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
