"""Model files: what comes back, the same bytes, and one line for everything else."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import io
import json
import os
import pickle
import pickletools
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from tests.random_models import (
    local_model,
    make_machine,
    make_model,
    models,
    random_quantized,
    random_stage,
)
from tinykernel import modelfile
from tinykernel.errors import TinykernelError
from tinykernel.estimator import TernaryKernelClassifier
from tinykernel.model import IntegerModel, quantize
from tinykernel.model.permutation import Permutation
from tinykernel.modelfile import load, save, schema
from tinykernel.modelfile.container import VERSION, read_container, write_container

OLD = Path(__file__).with_name("modelfiles")
SUFFIXES = ["tkm", "pkl"]
X = np.random.default_rng(0).normal(size=(60, 3))


def fit(labels: Any = ("a", "b"), **parameters: Any) -> TernaryKernelClassifier:
    """Fit a small classifier with given labels."""
    y = np.asarray(labels)[np.digitize(X[:, 0], np.linspace(-1, 1, len(labels) - 1))]
    given = {"n_components": 32, "epochs": 2, "effort": "quick", "random_state": 0}
    return TernaryKernelClassifier(**(given | parameters)).fit(X, y)


@pytest.fixture(scope="module")
def classifier() -> TernaryKernelClassifier:
    """Return one fitted classifier that no test changes."""
    return fit()


def as_file(tmp_path: Path, data: bytes, suffix: str = "tkm") -> Path:
    path = tmp_path / f"model.{suffix}"
    path.write_bytes(data)
    return path


def refusal(path: Path) -> str:
    """Return the one line with which a file is refused."""
    with pytest.raises(TinykernelError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


# ------------------------------------------------------------------------------- what comes back


@given(models())
@settings(max_examples=15, deadline=None)
def test_integer_models_come_back_equal(model: IntegerModel) -> None:
    """An IntegerModel of any kind comes back the same, works, and gives the same bytes again."""
    data = modelfile._to_bytes(model)
    loaded = modelfile._from_bytes(data)
    assert loaded == model
    assert list(map(type, loaded.classes)) == list(map(type, model.classes))
    q = random_quantized(model, 0, 3)
    assert_array_equal(loaded.scores_quantized(q), model.scores_quantized(q))
    assert not loaded.weights.flags.writeable
    assert modelfile._to_bytes(loaded) == data


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("labels", [["a", "bé", "c"], [3, 5], [1.0, 2.0, 7.0], [False, True]])
def test_classifiers_come_back(tmp_path: Path, suffix: str, labels: list[object]) -> None:
    """A fitted classifier comes back with parameters, attributes, labels, predictions, firmware."""
    classifier = fit(labels, class_weight={labels[0]: 2.0}, layout="phases")
    save(classifier, tmp_path / f"model.{suffix}")
    loaded = load(str(tmp_path / f"model.{suffix}"))
    assert loaded.get_params() == classifier.get_params()
    assert loaded.classes_.dtype == classifier.classes_.dtype
    assert_array_equal(loaded.decision_function(X), classifier.decision_function(X))
    assert_array_equal(loaded.predict(X), classifier.predict(X))
    assert loaded.quantize() == classifier.quantize()
    assert vars(loaded).keys() == vars(classifier).keys()
    save(loaded, tmp_path / f"again.{suffix}")
    again = (tmp_path / f"again.{suffix}").read_bytes()
    assert again == (tmp_path / f"model.{suffix}").read_bytes()


def test_feature_names_and_object_labels_come_back(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("kind", ["gaussian", "int4", "sign"])
def test_machines_come_back(kind: str) -> None:
    """A KernelMachine with a stored permutation comes back with every float as it was."""
    stored = Permutation("stored", table=np.arange(32, dtype="u2")[::-1])
    machine = dataclasses.replace(make_machine(0, kind=kind), permutation=stored)
    loaded = modelfile._from_bytes(modelfile._to_bytes(machine))
    assert_array_equal(loaded.row_scale, machine.row_scale)
    assert quantize(loaded) == quantize(machine)


@pytest.mark.parametrize("kind", ["integer", "machine", "classifier"])
def test_files_of_version_1_stay_readable(kind: str) -> None:
    """Files written before the first release load, and hold the model that they held then."""
    older = pytest.warns(UserWarning, match="that are no more: coefficients, cv, ")
    with older if kind == "classifier" else contextlib.nullcontext():
        model = load(OLD / f"{kind}-1.tkm")
    integer = model if kind == "integer" else quantize(model) if kind == "machine" else (
        model.quantize()
    )  # fmt: skip
    assert integer.fingerprint().startswith("0cb5c6c92789bba0")
    if kind == "integer":
        content = (OLD / "integer-1.tkm").read_bytes()
        assert read_container(modelfile._to_bytes(model))[0] == read_container(content)[0]


def test_a_file_states_the_oldest_version_that_can_read_it(
    classifier: TernaryKernelClassifier,
) -> None:
    """A reader of version 1 once called a local stage damage; it must hear of a newer version."""

    def version(model: Any) -> int:
        return int(read_container(modelfile._to_bytes(model))[0]["version"])

    images = local_model(random_stage(1), 1)
    assert [version(model) for model in (make_model(1), classifier, images)] == [1, 1, 2]
    assert version(dataclasses.replace(images, local=None, n_features=images.n_features)) == 2
    assert version(fit(n_components=0, linear=4)) == 2
    known = {key for fields in schema.FIELDS.values() for key in fields}
    assert schema.LATER.keys() <= known
    assert max(schema.LATER.values()) <= VERSION


def test_parameters_of_older_versions_are_named(tmp_path: Path) -> None:
    """A parameter that is no more is not dropped without a word."""
    header, arrays = read_container((OLD / "classifier-1.tkm").read_bytes())
    header["object"]["record"][1]["decay"] = 0.5
    with pytest.warns(UserWarning, match="parameters that are no more: .*decay"):
        load(as_file(tmp_path, write_container(header, arrays)))


def test_numpy_and_zip_open_a_tkm(tmp_path: Path) -> None:
    """A .tkm is an .npz without pickles, whose header can be read in any text editor."""
    model = make_model(1)
    save(model, tmp_path / "model.tkm")
    with np.load(tmp_path / "model.tkm", allow_pickle=False) as content:
        assert_array_equal(content["model.weights"], model.weights)
        header = json.loads(content["header.json"])
    assert header["format"] == "tinykernel-model"
    assert (header["version"], header["kind"]) == (1, "integer")
    assert header["fingerprint"] == model.fingerprint()


def test_schema_names_every_field() -> None:
    """A field that is added to a part of a model must be added to the schema of files, too."""
    for name, cls in schema.CLASSES.items():
        fields = {field.name for field in dataclasses.fields(cls) if field.init}
        assert schema.FIELDS[name].keys() == fields


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_cannot_be_saved(tmp_path: Path, suffix: str) -> None:
    """Unfitted classifiers, parts of models, and parameters that no file can hold are refused."""
    path = tmp_path / f"model.{suffix}"
    model, renamed, extended = make_model(0), fit(), fit()
    renamed.feature_names_in_ = 5
    extended.notes = "mine"
    for obj, message in [
        (TernaryKernelClassifier(), "not fitted"),
        (model.scaler, "part of a model"),
        ({"a": 1}, "a dict is no tinykernel model"),
        (fit(random_state=np.random.RandomState(0)), "random_state is a RandomState"),
        (renamed, "feature_names"),
        (extended, "'notes'"),
    ]:
        with pytest.raises(TinykernelError, match=message):
            save(obj, path)
    assert not path.exists()


# ---------------------------------------------------------------------------------------- pickle


def pickles(obj: object) -> dict[str, bytes]:
    """Pickle in the ways that people use."""
    import cloudpickle
    import joblib

    found = {f"pickle {n}": pickle.dumps(obj, protocol=n) for n in (3, 4, 5)}
    joblib.dump(obj, stream := io.BytesIO())
    found["joblib"] = stream.getvalue()
    return found | {"cloudpickle": cloudpickle.dumps(obj)}


def test_pickles_of_users_hold_one_name_and_load(
    tmp_path: Path, classifier: TernaryKernelClassifier
) -> None:
    """What pickle, joblib and cloudpickle write is one call, which `load` and Python read."""
    for data in pickles(classifier).values():
        assert data.count(b"_from_bytes") == data.count(b"tinykernel.modelfile") == 1
        assert load(as_file(tmp_path, data, "pkl")).quantize() == classifier.quantize()
        assert pickle.loads(data).quantize() == classifier.quantize()


def test_copies_lose_nothing(classifier: TernaryKernelClassifier) -> None:
    """`clone`, `deepcopy` and pickles work, fitted or not, with what no file can hold, too."""
    odd = fit(random_state=np.random.RandomState(3))
    odd.notes = "mine"
    unfitted = TernaryKernelClassifier(random_state=np.random.RandomState(3))
    for model in (classifier, odd, unfitted):
        for made in (copy.deepcopy(model), copy.copy(model), pickle.loads(pickle.dumps(model))):
            assert {*vars(made), "_quantized"} == {*vars(model), "_quantized"}
            assert type(made.random_state) is type(model.random_state)
        assert "machine_" not in vars(clone(model))


def test_grid_search() -> None:
    """Estimators, fitted ones too, can be cloned and searched over."""
    search = GridSearchCV(fit(), {"sigma": [1.0, 2.0]}, cv=2)
    search.fit(X, X[:, 0] > 0)
    assert search.best_estimator_.score(X, X[:, 0] > 0) > 0.6


class Second(TernaryKernelClassifier):
    """Another estimator."""


def test_each_estimator_of_the_table_comes_back_as_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file names its class; a subclass that the table does not name is pickled as it is."""
    made = Second(**fit().get_params()).fit(X, X[:, 0] > 0)
    assert type(copy.deepcopy(made)) is Second
    with pytest.raises(TinykernelError, match="a Second is no tinykernel model"):
        save(made, tmp_path / "model.tkm")
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
def test_calls_do_not_run(tmp_path: Path, place: str, protocol: int) -> None:
    """A call is refused by name before it runs, wherever in the pickle it hides."""
    call = Call(os.system, f"touch {tmp_path / 'witness'}")
    model = modelfile._Pickled(modelfile._to_bytes(make_model(0)))
    hidden: Any = {
        "alone": call,
        "nested": [{"a": (1, [call])}],
        "argument": Call(modelfile._from_bytes, call),
        "beside": [model, call],
    }[place]
    message = refusal(as_file(tmp_path, pickle.dumps(hidden, protocol=protocol), "pkl"))
    assert "refused: it asks for" in message
    assert "system" in message or protocol < 3
    assert not (tmp_path / "witness").exists()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pickle.dumps({"a": 1}), "holds no tinykernel model"),
        (pickle.dumps(modelfile._from_bytes), "holds more than a model"),
        (b"no pickle", "no pickle"),
        (b"", "no pickle"),
        (pickle.dumps([modelfile._Pickled(b"x")], 4), "holds more than a model"),
        (pickle.dumps(modelfile._Pickled(b"x"), 4), "truncated or damaged"),
        (pickle.dumps(modelfile._Pickled(b"x"), 4) + b".", "holds no|truncated"),
        (b"cos\nsystem\n(S'true'\ntR.", "asks for os.system"),
        (b"\x80\x04\x8c\x02o\n\x8c\x02s\x1b\x93.", r"asks for o\\n.s\\x1b"),
        (b"ctinykernel.modelfile\nload\n(S'x.pkl'\ntR.", "older version"),
        (b"\x80\x04\x8c\x15tinykernel.modelfile.np\x8c\x04load\x93.", "refused|older version"),
        (b"\x80\x04(I1\nI2\n\x93.", "hidden name"),
        (b"\x80\x02r\xff\xff\xff\x7f.", "no pickle"),
        (b"\x80\x02NLr\xff\xff\xff\x7f.", "no pickle"),
        (b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7fN.", "holds no tinykernel model"),
        (b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7fN.", "no pickle"),
        (b"\x80\x04" + b"N" * 100_000 + b".", "no pickle"),
    ],
)
def test_other_pickles_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    """What is no model is refused in words; no number in a pickle makes us allocate anything."""
    with pytest.raises(TinykernelError, match=message):
        load(as_file(tmp_path, data, "pkl"))


def test_pickles_of_older_versions_say_what_to_do() -> None:
    """A .pkl of records, as versions before wrote them, is told apart from a hostile one."""
    assert "made by an older version" in refusal(OLD / "classifier-1.pkl")


# --------------------------------------------------------------------------------------- damages


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("kind", ["integer", "classifier"])
def test_cut_and_flipped_files(
    tmp_path: Path, classifier: TernaryKernelClassifier, suffix: str, kind: str
) -> None:
    """A file cut off anywhere, or with any one bit turned, is refused or gives the same model."""
    model = classifier if kind == "classifier" else classifier.quantize()
    save(model, tmp_path / f"model.{suffix}")
    data = (tmp_path / f"model.{suffix}").read_bytes()
    rng = np.random.default_rng(0)
    for length in {0, 1, 10, len(data) - 1, *rng.integers(0, len(data), 100).tolist()}:
        refusal(as_file(tmp_path, data[:length], suffix))
    # Every bit of the ends, where the lengths are, and some of the rest.
    ends = [*range(200), *range(len(data) - 120, len(data))]
    for position in [*ends, *rng.integers(0, len(data), 200).tolist()]:
        flipped = bytearray(data)
        flipped[position] ^= 1 << int(rng.integers(8))
        try:
            loaded = load(as_file(tmp_path, bytes(flipped), suffix))
        except TinykernelError:
            continue
        else:
            same = loaded.quantize() if kind == "classifier" else loaded
            assert same == classifier.quantize()


HOSTILE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["array", "tuple", "dict", "float", "scalar", "objects", "record"]),
            inner | st.sampled_from([["<f8", 1.0], [[2], ["a", "b"]], ["Permutation", {}]]),
            max_size=2,
        )
    ),
    max_leaves=6,
)
PATHS = st.lists(st.integers(0, 30), min_size=1, max_size=7)


@pytest.mark.filterwarnings("ignore:trained by an older version")
@given(PATHS, HOSTILE, st.sampled_from(["integer", "classifier", "machine"]))
@settings(max_examples=100, deadline=None)
def test_any_header_gives_one_line(path: list[int], value: Any, kind: str) -> None:
    """Whatever stands in a well-formed header, the reader raises TinykernelError or nothing."""
    header, arrays = read_container((OLD / f"{kind}-1.tkm").read_bytes())
    place: Any = header
    for step in path:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = keys[step % len(keys)]
        if not isinstance(place[key], (dict, list)) or not place[key] or step == path[-1]:
            place[key] = value
            break
        place = place[key]
    with contextlib.suppress(TinykernelError):
        modelfile._from_bytes(write_container(header, arrays))


Change = Callable[[dict[str, Any], dict[str, Any]], object]


def field(name: str, value: Any) -> Change:
    """Set a field of the model in the header."""
    return lambda header, arrays: header["object"]["record"][1].update({name: value})


def part(name: str, key: str, value: Any) -> Change:
    """Set a field of a part of the model in the header."""
    return lambda header, arrays: header["object"]["record"][1][name]["record"][1].update(
        {key: value}
    )


def array(name: str, value: Any) -> Change:
    """Set an array."""
    return lambda header, arrays: arrays.update({f"model.{name}": value})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, a: h.update(version=VERSION + 1), "upgrade tinykernel"),
        (lambda h, a: h.update(version="1"), "states no version"),
        (lambda h, a: h.update(format="other"), "not a tinykernel model"),
        (lambda h, a: h.update(kind="classifier"), "header is damaged"),
        (lambda h, a: h.update(object={"record": ["os.system", {}]}), "header is damaged"),
        (lambda h, a: h.update(object={"record": ["IntegerModel"]}), "header is damaged"),
        (lambda h, a: h.update(fingerprint="0" * 64), "fingerprint differs"),
        (lambda h, a: a.pop("model.scale"), "header is damaged"),
        (field("phase_shift", 99), "phase_shift is 99"),
        (field("phase_shift", 3.0), "phase_shift is no int"),
        (field("n_features", True), "n_features is no int"),
        (part("permutation", "multiplier", 5.0), "multiplier is no int"),
        (part("scaler", "bits", 8.0), "bits is no int"),
        (field("halve_second", {"tuple": [0] * 5}), "halve_second is no bool"),
        (field("decision_scale", {"float": "nan"}), "decision_scale is no float"),
        (field("classes", {"tuple": [1, "\ud800"]}), "header is damaged"),
        (field("un\nknown", 5), r"'un\nknown' is unknown"),
        (field("unknown", 5), "'unknown' is unknown"),
        (field("scaler", None), "scaler is no InputScaler"),
        (field("weights", {"scalar": ["|V8", 1]}), "header is damaged"),
        (array("weights", np.ones((3, 32))), "weights is no int8 array"),
        (array("scale", np.ones(5, "u1")), "scale has shape"),
        (array("scale", np.ones((32, 1), "u1")), "scale has shape"),
        (array("scaler.offset", np.full(3, np.nan, "f4")), "offset holds NaN"),
        (array("weights", np.zeros((3, 32), "i1")), "fingerprint differs"),
    ],
)
def test_wrong_content_is_refused(tmp_path: Path, change: Change, message: str) -> None:
    """A well-formed file with wrong content is refused before an object is made of it."""
    header, arrays = read_container((OLD / "integer-1.tkm").read_bytes())
    change(header, arrays)
    path = as_file(tmp_path, write_container(header, arrays))
    assert message in refusal(path)


@pytest.mark.filterwarnings("ignore:trained by an older version")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (array("machine_.start", np.zeros((1, 3))), "start has shape"),
        (array("machine_.width", np.full((1, 32), np.nan)), "width holds NaN"),
        (array("machine_.sign", np.zeros(4, "i1")), "sign holds"),
        (array("machine_.output_scale", np.full(3, 1e308)), "quantized|fingerprint"),
        (array("classes_", np.array(["a", "b", "c"])), "classes_ does not go"),
        (part("machine_", "raw_dtype", "int64"), "raw_dtype holds"),
        (part("machine_", "classes", {"tuple": ["a"]}), "has shape"),
        (part("machine_", "permutation", 1), "permutation is no Permutation"),
        (part("machine_", "input_bits", 8.0), "input_bits is no int"),
        (field("machine_", None), "no fitted machine"),
        (field("n_features_in_", 5), "n_features_in_ does not go"),
        (field("feature_names_in_", {"objects": [[-1], ["a"] * 4]}), "header is damaged"),
        (field("__class__", 5), "holds '__class__'"),
        (field("predict_", {"record": ["Permutation", {}]}), "'predict_' is a 'Permutation'"),
    ],
)
def test_wrong_classifiers_are_refused(tmp_path: Path, change: Change, message: str) -> None:
    """The machine of a classifier is checked field by field, and the attributes against it."""
    header, arrays = read_container((OLD / "classifier-1.tkm").read_bytes())
    change(header, arrays)
    path = as_file(tmp_path, write_container(header, arrays))
    found = refusal(path)
    assert any(text in found for text in message.split("|"))


# ----------------------------------------------------------------------------------- the container


def zipped(members: list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> bytes:
    """Make a zip as another program would."""
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", method) as archive:
        warnings.simplefilter("ignore", UserWarning)  # for two members of one name
        for name, data in members:
            archive.writestr(name, data)
    return stream.getvalue()


def overlapping(count: int = 2000, size: int = 1 << 20) -> bytes:
    """Make a zip in which many names share one member of a megabyte."""
    content = bytes(size)
    crc = zlib.crc32(content)
    local = struct.pack("<4sHHHIIIIHH", b"PK\3\4", 20, 0, 0, 0, crc, size, size, 1, 0) + b"a"
    entries = b"".join(
        struct.pack("<4s4H4I5H2I", b"PK\1\2", 20, 20, 0, 0, 0, crc, size, size, 1, 0, 0, 0, 0, 0, 0)
        + b"a"
        for _ in range(count)
    )
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, len(entries), len(local) + size, 0)
    return local + content + entries + end


def test_zip_members_that_share_their_bytes(tmp_path: Path) -> None:
    """Overlapping members made a small file take gigabytes."""
    assert "damaged" in refusal(as_file(tmp_path, overlapping()))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (zipped([("a.npy", b"")]), "not a tinykernel model"),
        (zipped([("header.json", bytes(10**6))], zipfile.ZIP_DEFLATED), "damaged"),
        (zipped([("header.json", b"[" * 100_000)]), "header is damaged"),
        (zipped([("header.json", b'{"format": NaN}')]), "header is damaged"),
        (zipped([("header.json", b"1" * 10_000)]), "header is damaged"),
        (zipped([("header.json", b"{}")] * 2), "damaged"),
        (zipped([(f"{i}.npy", b"") for i in range(5000)]), "damaged"),
        (b"front" + zipped([("header.json", b"{}")]), "damaged"),
        (b"PK\5\6" + bytes(18), "not a tinykernel model"),
    ],
)
def test_other_archives_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    """What is compressed, doubled, shifted or endless is not ours."""
    assert message in refusal(as_file(tmp_path, data))


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000000000), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<U999999999', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3,",
        "{'descr': '<f8', 'fortran_order': False, 'shape': " + "(" * 60,
        "{'descr': '<f8', 'fortran_order': True, 'shape': (1, 1), }",
        "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
    ],
)
def test_array_headers_are_not_believed(tmp_path: Path, header: str) -> None:
    """A header that announces a huge array, objects, or that does not end, is damage."""
    raw = header.encode().ljust(117) + b"\n"
    path = tmp_path / "model.tkm"
    save(make_model(4), path)
    with zipfile.ZipFile(path, "a") as archive:
        member = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(raw)) + raw + bytes(8)
        archive.writestr("model.a.npy", member)
    assert "an array in it is damaged" in refusal(path)


# ----------------------------------------------------------------------------------------- paths


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_only_regular_files_of_a_limited_size_are_read(tmp_path: Path, suffix: str) -> None:
    """A pipe would block for ever, and a sparse file of 3 GB would fill the memory."""
    path = tmp_path / f"model.{suffix}"
    os.mkfifo(path)
    assert "no regular file" in refusal(path)
    path.unlink()
    path.mkdir()
    assert "no regular file" in refusal(path)
    path.rmdir()
    with path.open("wb") as stream:
        stream.truncate(3 << 30)
    assert "longer than 64 MiB" in refusal(path)


def test_paths_that_do_not_work(tmp_path: Path) -> None:
    """Missing files, folders and unknown suffixes give one line; nothing is left behind."""
    assert "no such file" in refusal(tmp_path / "none.tkm")
    for function in (lambda p: save(make_model(0), p), load):
        with pytest.raises(TinykernelError, match=r"ends in \.tkm or \.pkl"):
            function(tmp_path / "model.joblib")
    with pytest.raises(TinykernelError, match="cannot be written"):
        save(make_model(0), tmp_path / "none" / "model.tkm")
    assert list(tmp_path.iterdir()) == []


def test_the_pickle_of_a_model_is_as_documented() -> None:
    """The reader compares opcodes: those of this Python must be among those it knows."""
    data = pickle.dumps(modelfile._Pickled(b"x"), protocol=4)
    names = [opcode.name for opcode, _, _ in pickletools.genops(data)]
    assert [name for name in names if name not in ("PROTO", "FRAME", "MEMOIZE")] == [
        "SHORT_BINUNICODE", "SHORT_BINUNICODE", "STACK_GLOBAL", "SHORT_BINBYTES", "TUPLE1",
        "REDUCE", "STOP",
    ]  # fmt: skip


@pytest.mark.parametrize("suffix", ["tkm", "pkl"])
def test_what_a_file_says_about_its_model(suffix, tmp_path):
    """What was said of a model comes back, and changes neither the model nor its fingerprint."""
    model = load(OLD / "integer-1.tkm")
    said = {"label": "gesture", "budget": 8192, "sizes": {"flash": 8000}, "inputs": ["a", "b"]}
    save(model, tmp_path / f"with.{suffix}", said)
    save(model, tmp_path / f"without.{suffix}")
    assert modelfile.about(tmp_path / f"with.{suffix}") == said
    assert modelfile.about(tmp_path / f"without.{suffix}") == {}
    assert load(tmp_path / f"with.{suffix}") == model
    for wrong in ({"a": float("nan")}, {1: "a"}, {"a": object()}, {"a": "\ud800"}):
        with pytest.raises(TinykernelError, match="about"):
            save(model, tmp_path / f"wrong.{suffix}", wrong)


@pytest.mark.parametrize("said", ['["a"]', '{"a": 1e999}', '{"a": "\\ud800"}', "[" * 99 + "]" * 99])
def test_damaged_words_about_a_model(said, tmp_path):
    """What cannot be printed, is endless or is no dict is refused, as all that is damaged."""
    header, arrays = read_container((OLD / "integer-1.tkm").read_bytes())
    header["about"] = json.loads(said)
    (tmp_path / "m.tkm").write_bytes(write_container(header, arrays))
    with pytest.raises(TinykernelError, match="damaged"):
        modelfile.about(tmp_path / "m.tkm")
