"""Pickles of models: one call, and no other is ever made."""

import copy
import io
import os
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from tests.modelfile.files import SUFFIXES, X, as_file, fit, refusal
from tests.random_models import make_model
from tests.refusals import refused
from tinykernel.base.errors import ModelError
from tinykernel.kinds.estimators.supervised import TernaryKernelClassifier
from tinykernel.model import file as modelfile
from tinykernel.model import records as schema
from tinykernel.model.file import load, save

pytestmark = pytest.mark.usefixtures("page")


def pickles(obj: object) -> dict[str, bytes]:
    """Pickle in the ways that people use."""
    import cloudpickle
    import joblib

    found = {f"pickle {n}": pickle.dumps(obj, protocol=n) for n in (3, 4, 5)}
    joblib.dump(obj, stream := io.BytesIO())
    found["joblib"] = stream.getvalue()
    return found | {"cloudpickle": cloudpickle.dumps(obj)}


def test_pickles_of_users_hold_one_name_and_load(tmp_path, classifier) -> None:
    """What pickle, joblib and cloudpickle write is one call, which `load` and Python read."""
    for data in pickles(classifier).values():
        assert data.count(b"_from_bytes") == data.count(b"tinykernel.modelfile") == 1
        assert load(as_file(tmp_path, data, "pkl")).quantize() == classifier.quantize()
        assert pickle.loads(data).quantize() == classifier.quantize()


def test_copies_lose_nothing(classifier) -> None:
    """`clone`, `deepcopy` and pickles work, fitted or not, with what no file can hold, too."""
    odd = fit(random_state=np.random.RandomState(3))
    odd.notes = "mine"
    unfitted = TernaryKernelClassifier(random_state=np.random.RandomState(3))
    for model in (classifier, odd, unfitted):
        for made in (copy.deepcopy(model), copy.copy(model), pickle.loads(pickle.dumps(model))):
            assert {*vars(made), "_quantized"} == {*vars(model), "_quantized"}
            assert type(made.random_state) is type(model.random_state)
        assert "machine_" not in vars(clone(model))


class Second(TernaryKernelClassifier):
    """Another estimator."""


def test_each_estimator_of_the_table_comes_back_as_itself(tmp_path, monkeypatch) -> None:
    """A file names its class; a subclass that the table does not name is pickled as it is."""
    made = Second(**fit().get_params()).fit(X, X[:, 0] > 0)
    assert type(copy.deepcopy(made)) is Second
    refused(ModelError, save, made, tmp_path / "model.tkm")
    monkeypatch.setitem(schema.CLASSIFIERS, "Second", __name__)
    monkeypatch.setitem(schema.KINDS, "Second", "classifier")
    for suffix in SUFFIXES:
        save(made, tmp_path / f"model.{suffix}")
        assert type(load(tmp_path / f"model.{suffix}")) is Second


class Call:
    """Pickles as a call."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("place", ["alone", "nested", "argument", "beside"])
def test_calls_do_not_run(tmp_path, place, protocol) -> None:
    """A call is refused before it runs, wherever in the pickle it hides."""
    call = Call(os.system, f"touch {tmp_path / 'witness'}")
    model = modelfile._Pickled(modelfile.to_bytes(make_model(0)))
    hidden: Any = {
        "alone": call,
        "nested": [{"a": (1, [call])}],
        "argument": Call(modelfile._from_bytes, call),
        "beside": [model, call],
    }[place]
    data = pickle.dumps(hidden, protocol=protocol)
    refusal(as_file(tmp_path, data, "pkl"))
    assert not (tmp_path / "witness").exists()


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps({"a": 1}),
        pickle.dumps(modelfile._from_bytes),
        b"no pickle",
        b"",
        pickle.dumps([modelfile._Pickled(b"x")], 4),
        pickle.dumps(modelfile._Pickled(b"x"), 2),
        pickle.dumps(modelfile._Pickled(b"x"), 4) + b".",
        b"ctinykernel.modelfile\nload\n(S'x.pkl'\ntR.",
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7fN.",
        b"\x80\x03ctinykernel.modelfile\n_from_bytes\nq\0B\xff\xff\xff\x7fq\1\x85q\2Rq\3.",
    ],
)
def test_other_pickles_are_refused(tmp_path, data) -> None:
    """What is no model is refused in words; no number in a pickle makes us allocate anything."""
    refusal(as_file(tmp_path, data, "pkl"))


def test_pickles_of_damaged_models_and_of_objects(tmp_path) -> None:
    """What is in the call must be a whole model; an estimator that no file holds is refused."""
    data = pickle.dumps(modelfile._Pickled(b"x"), 4)
    refusal(as_file(tmp_path, data, "pkl"))
    odd = fit()
    odd.notes = "mine"
    refusal(as_file(tmp_path, pickle.dumps(odd), "pkl"))
