"""Model files: what comes back, and the same bytes."""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.modelfile.files import SUFFIXES, fit
from tests.random_models import make_model
from tests.refusals import refused
from tests.separable import separable_model
from tinykernel.base.errors import ModelError, TinykernelError
from tinykernel.kinds.estimators.supervised import TernaryKernelClassifier
from tinykernel.model import file as modelfile
from tinykernel.model import records as schema
from tinykernel.model.file import load, save
from tinykernel.model.records import VERSION, read_container, write_container
from tinykernel.pieces.record import PLAIN, contents
from tinykernel.pieces.separable.spec import Separable
from tinykernel.pieces.ternary.spec import Ternary

pytestmark = pytest.mark.usefixtures("page")


def test_fields_that_came_later_may_be_missing() -> None:
    """Files of separable convolutions from before `flat` and `border` were called damaged."""
    model = separable_model(0)
    header, arrays = read_container(modelfile.to_bytes(model))
    stages = header["object"]["record"][1]["stages"]["tuple"]
    (fields,) = (each["record"][1] for each in stages if each["record"][0] == "Separable")
    later = [field.name for field in Separable.FIELDS if field.later]
    assert later == ["flat", "border"]
    for name in later:
        del fields[name]
        assert not any(place.endswith(name) for place, _ in contents(model))
    assert modelfile._from_bytes(write_container(header, arrays)) == model


def test_feature_names_and_object_labels_come_back(tmp_path) -> None:
    """Tables of Python strings, as pandas gives them, are stored without pickled objects."""
    classifier = fit(np.array(["x", "y"], dtype=object))
    classifier.feature_names_in_ = np.array(["one", "two", "three"], dtype=object)
    save(classifier, tmp_path / "model.tkm")
    loaded = load(tmp_path / "model.tkm")
    assert loaded.feature_names_in_.tolist() == ["one", "two", "three"]
    assert loaded.feature_names_in_.dtype == object
    assert loaded.classes_.tolist() == ["x", "y"]
    save(classifier.quantize(), tmp_path / "integers.pkl")
    assert load(tmp_path / "integers.pkl").feature_names == ("one", "two", "three")
    for labels in (["a", "bé", "c"], [3, 5], [1.0, 2.0, 7.0], [False, True]):
        classifier = fit(labels, class_weight={labels[0]: 2.0}, layout="windows")
        save(classifier, tmp_path / "model.pkl")
        loaded = load(tmp_path / "model.pkl")
        assert loaded.classes_.dtype == classifier.classes_.dtype
        assert vars(loaded).keys() == vars(classifier).keys()
        assert loaded.get_params() == classifier.get_params()


def test_numpy_and_zip_open_a_tkm(tmp_path) -> None:
    """A .tkm is an .npz without pickles, whose header can be read in any text editor."""
    model = make_model(1)
    save(model, tmp_path / "model.tkm")
    with np.load(tmp_path / "model.tkm", allow_pickle=False) as content:
        assert_array_equal(content["model.readout.parts.0.weights"], model.find(Ternary).weights)
        header = json.loads(content["header.json"])
    assert header["format"] == "tinykernel-model"
    assert (header["version"], header["kind"]) == (VERSION, "integer")
    assert header["fingerprint"] == model.fingerprint()


def test_schema_names_every_field() -> None:
    """A field of a part of a model is one of files, whatever its annotation looks like."""
    for name, cls in schema.CLASSES.items():
        fields = {field.name for field in dataclasses.fields(cls)} - {"constant", "coding"}
        assert {field.name for field in cls.FIELDS} == fields, name
        known = {"Stage", "Part", "Labels|Values", *schema.CLASSES, *PLAIN, "label"}
        assert all(field.dimensions or field.dtype in known for field in cls.FIELDS), name


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_cannot_be_saved(tmp_path, suffix) -> None:
    """Unfitted classifiers, parts of models, and parameters that no file can hold are refused."""
    path = tmp_path / f"model.{suffix}"
    model, renamed, extended = make_model(0), fit(), fit()
    renamed.feature_names_in_ = 5
    extended.notes = "mine"
    for obj in [
        TernaryKernelClassifier(),
        model.scaler,
        {"a": 1},
        SimpleNamespace(best_estimator_=fit()),
        fit(random_state=np.random.RandomState(0)),
        renamed,
        extended,
    ]:
        refused(TinykernelError, save, obj, path)
    assert not path.exists()


@pytest.mark.parametrize("suffix", ["tkm", "pkl"])
def test_what_a_file_says_about_its_model(suffix, tmp_path):
    """What was said of a model comes back, and changes neither the model nor its fingerprint."""
    model = make_model(1)
    said = {"label": "gesture", "budget": 8192, "sizes": {"flash": 8000}, "inputs": ["a", "b"]}
    save(model, tmp_path / f"with.{suffix}", said)
    save(model, tmp_path / f"without.{suffix}")
    assert modelfile.about(tmp_path / f"with.{suffix}") == said
    assert modelfile.about(tmp_path / f"without.{suffix}") == {}
    assert load(tmp_path / f"with.{suffix}") == model
    for wrong in ({"a": float("nan")}, {1: "a"}, {"a": object()}, {"a": "\ud800"}):
        refused(ModelError, save, model, tmp_path / f"wrong.{suffix}", wrong)
