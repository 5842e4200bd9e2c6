"""Saving and loading: what comes back, the same bytes, and clear refusals."""

import contextlib
import io
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.model.models import make_machine, make_model, quantized_inputs
from tinykernel.errors import TinykernelError
from tinykernel.estimator import TernaryKernelClassifier
from tinykernel.model import quantize
from tinykernel.model.permutation import Permutation
from tinykernel.storage import load, save
from tinykernel.storage.archive import read_archive, write_archive

SUFFIXES = ["tkm", "pkl"]


@pytest.fixture(scope="module")
def fit() -> Callable[..., TernaryKernelClassifier]:
    """Return a function that fits a small classifier with given labels."""

    def fit_with(labels: Any, **parameters: Any) -> TernaryKernelClassifier:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 3))
        y = np.asarray(labels)[np.digitize(X[:, 0], np.linspace(-1, 1, len(labels) - 1))]
        classifier = TernaryKernelClassifier(
            method="paper", n_components=32, sigma=1.0, regularization=0.01, max_iter=2,
            random_state=0,
        )  # fmt: skip
        return classifier.set_params(**parameters).fit(X, y)

    return fit_with


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("seed", range(6))
def test_integer_models_come_back_equal(tmp_path: Path, suffix: str, seed: int) -> None:
    """An IntegerModel of any raw type, with labels of any type, comes back the same and works."""
    raw_dtype = ["float32", "uint8", "int8", "uint16", "int16", "int32"][seed]
    model = make_model(seed, raw_dtype, 16 if seed % 2 else 8)
    save(model, tmp_path / f"model.{suffix}")
    loaded = load(str(tmp_path / f"model.{suffix}"))
    assert loaded == model
    assert list(map(type, loaded.classes)) == list(map(type, model.classes))
    q = quantized_inputs(model, 0)
    assert_array_equal(loaded.scores_quantized(q), model.scores_quantized(q))
    assert not loaded.weights.flags.writeable


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("labels", [["a", "bé", "c"], [3, 5], [1.0, 2.0, 7.0], [False, True]])
def test_classifiers_come_back(
    tmp_path: Path, fit: Callable[..., TernaryKernelClassifier], suffix: str, labels: list[object]
) -> None:
    """A fitted classifier comes back with parameters, attributes, labels, predictions, firmware."""
    classifier = fit(labels, class_weight={labels[0]: 2.0})
    save(classifier, tmp_path / f"model.{suffix}")
    loaded = load(tmp_path / f"model.{suffix}")
    X = np.random.default_rng(1).normal(size=(40, 3))
    assert loaded.get_params() == classifier.get_params()
    assert loaded.classes_.dtype == classifier.classes_.dtype
    assert loaded.n_features_in_ == 3
    assert_array_equal(loaded.decision_function(X), classifier.decision_function(X))
    assert_array_equal(loaded.predict(X), classifier.predict(X))
    assert loaded.quantize() == classifier.quantize()
    fitted = {name for name in vars(classifier) if name.endswith("_")}
    assert fitted <= set(vars(loaded))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_feature_names_and_object_labels_come_back(
    tmp_path: Path, fit: Callable[..., TernaryKernelClassifier], suffix: str
) -> None:
    """Tables of Python strings, as pandas gives them, are stored without pickled objects."""
    classifier = fit(np.array(["x", "y"], dtype=object))
    classifier.feature_names_in_ = np.array(["one", "two", "three"], dtype=object)
    save(classifier, tmp_path / f"model.{suffix}")
    loaded = load(tmp_path / f"model.{suffix}")
    assert loaded.feature_names_in_.tolist() == ["one", "two", "three"]
    assert loaded.feature_names_in_.dtype == object
    assert loaded.classes_.tolist() == ["x", "y"]
    assert loaded.quantize().feature_names == ("one", "two", "three")
    save(classifier.quantize(), tmp_path / f"integers.{suffix}")
    assert load(tmp_path / f"integers.{suffix}").feature_names == ("one", "two", "three")
    classifier.feature_names_in_ = 5
    with pytest.raises(TinykernelError, match="feature_names"):
        save(classifier, tmp_path / f"model.{suffix}")


@pytest.mark.parametrize("kind", ["gaussian", "int4", "sign"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_machines_come_back(tmp_path: Path, suffix: str, kind: str) -> None:
    """A KernelMachine with a stored permutation comes back with every float as it was."""
    machine = make_machine(0, kind=kind)
    object.__setattr__(
        machine, "permutation", Permutation("stored", table=np.arange(32, dtype="u2")[::-1])
    )
    save(machine, tmp_path / f"model.{suffix}")
    loaded = load(tmp_path / f"model.{suffix}")
    assert_array_equal(loaded.row_scale, machine.row_scale)
    assert quantize(loaded) == quantize(machine)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_bytes_are_the_same_each_time(
    tmp_path: Path, fit: Callable[..., TernaryKernelClassifier], suffix: str
) -> None:
    """Saving twice, and saving what was loaded, gives the same bytes."""
    contents = []
    classifier = fit(["a", "b"])
    for name in ("first", "second", "third"):
        save(classifier, tmp_path / f"{name}.{suffix}")
        contents.append((tmp_path / f"{name}.{suffix}").read_bytes())
        classifier.quantize()
        if suffix == "tkm":
            classifier = load(tmp_path / f"{name}.{suffix}")
    assert contents[0] == contents[1] == contents[2]


def test_numpy_and_zip_open_a_tkm(tmp_path: Path) -> None:
    """A .tkm is an .npz without pickles, whose header can be read in any text editor."""
    model = make_model(1)
    save(model, tmp_path / "model.tkm")
    with np.load(tmp_path / "model.tkm", allow_pickle=False) as content:
        assert_array_equal(content["model.weights"], model.weights)
        header = json.loads(content["header.json"])
    assert header["format"] == "tinykernel-model"
    assert header["version"] == 1
    assert header["kind"] == "integer"
    assert header["fingerprint"] == model.fingerprint()


def _rewrite(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """Change header and arrays of a .tkm file, keeping it well-formed."""
    header, arrays = read_archive(path.read_bytes())
    change(header, arrays)
    path.write_bytes(write_archive(header, arrays))


def _fields(header: dict[str, Any]) -> Any:
    return header["object"]["record"][1]


def _machine_fields(header: dict[str, Any]) -> Any:
    return _fields(header)["machine_"]["record"][1]


def _set(container: Callable[[dict[str, Any]], Any], key: str, value: Any) -> Callable[..., None]:
    return lambda header, arrays: container(header).__setitem__(key, value)


def _flip_weight(header: dict[str, Any], arrays: dict[str, Any]) -> None:
    array = arrays["model.weights"].copy()
    array[0, 0] = 1 - abs(array[0, 0])
    arrays["model.weights"] = array


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set(lambda h: h, "version", 2), "newer tinykernel.*upgrade"),
        (_set(lambda h: h, "version", "1"), "states no version"),
        (_set(lambda h: h, "format", "other"), "not a tinykernel model"),
        (_set(lambda h: h, "kind", "classifier"), "header is damaged"),
        (_set(lambda h: h, "object", {"record": ["os.system", {}]}), "header is damaged"),
        (_set(lambda h: h, "object", {"array": "missing"}), "header is damaged"),
        (_set(lambda h: h, "object", 5), "header is damaged"),
        (_set(_fields, "phase_shift", 99), "phase_shift is 99"),
        (_set(_fields, "halve_second", {"tuple": [False] * 5}), "halve_second|can reach"),
        (_set(_fields, "halve_second", 5), "damaged IntegerModel"),
        (_set(_fields, "unknown", 5), "damaged IntegerModel"),
        (_set(_fields, "scaler", None), "not an InputScaler"),
        (_flip_weight, "fingerprint differs"),
        (lambda h, a: a.pop("model.scale"), "header is damaged"),
        (lambda h, a: a.update({"model.scale": a["model.scale"][1:]}), "scale has shape"),
    ],
)
def test_wrong_content_of_a_tkm_is_refused(
    tmp_path: Path, change: Callable[..., None], message: str
) -> None:
    """A well-formed file with wrong content is refused with one line that names the file."""
    path = tmp_path / "model.tkm"
    save(make_model(3), path)
    _rewrite(path, change)
    with pytest.raises(TinykernelError, match=message) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, a: a.update({"model.machine_.start": np.zeros(3)}), "start is no float64 array"),
        (lambda h, a: a.update({"model.machine_.width": np.full((1, 32), np.nan)}), "width holds"),
        (lambda h, a: a.update({"model.machine_.weights": np.zeros(3, "i1")}), "2 dimensions"),
        (lambda h, a: a.update({"model.machine_.sign": np.zeros(3, "i1")}), "sign holds"),
        (_set(_machine_fields, "raw_dtype", "int64"), "raw_dtype holds"),
        (_set(_machine_fields, "classes", {"tuple": ["a"]}), "classes holds"),
        (_set(_machine_fields, "permutation", 1), "permutation holds"),
        (_set(_fields, "machine_", None), "no fitted machine"),
        (_set(lambda h: h, "fingerprint", "0" * 64), "fingerprint differs"),
    ],
)
def test_wrong_classifiers_are_refused(
    tmp_path: Path,
    fit: Callable[..., TernaryKernelClassifier],
    change: Callable[..., None],
    message: str,
) -> None:
    """The machine of a classifier is checked field by field, and against the fingerprint."""
    path = tmp_path / "model.tkm"
    save(fit(["a", "b"]), path)
    _rewrite(path, change)
    with pytest.raises(TinykernelError, match=message):
        load(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_truncated_files_are_refused(tmp_path: Path, suffix: str) -> None:
    """A file cut off anywhere, empty, or with a flipped bit gives one line or still loads."""
    path = tmp_path / f"model.{suffix}"
    save(make_model(4), path)
    data = path.read_bytes()
    for length in [0, 1, 10, 100, len(data) // 2, len(data) - 30, len(data) - 1]:
        path.write_bytes(data[:length])
        with pytest.raises(TinykernelError, match=r"truncated|damaged"):
            load(path)
    rng = np.random.default_rng(0)
    for position in rng.integers(0, len(data), 100):
        flipped = bytearray(data)
        flipped[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        with contextlib.suppress(TinykernelError):
            load(path)


def test_other_archives_are_refused(tmp_path: Path) -> None:
    """An .npz of something else, a compressed archive and an array of objects are not ours."""
    path = tmp_path / "model.tkm"
    with path.open("wb") as stream:
        np.savez(stream, a=np.zeros(3))
    with pytest.raises(TinykernelError, match="not a tinykernel model"):
        load(path)
    with path.open("wb") as stream:
        np.savez_compressed(stream, a=np.zeros(10**6))
    with pytest.raises(TinykernelError, match="damaged"):
        load(path)
    save(make_model(4), path)
    with zipfile.ZipFile(path, "a") as archive:
        member = io.BytesIO()
        np.save(member, np.array([{}]), allow_pickle=True)
        archive.writestr("model.evil.npy", member.getvalue())
    with pytest.raises(TinykernelError, match="an array in it is damaged"):
        load(path)


def test_array_headers_that_claim_too_much_are_refused(tmp_path: Path) -> None:
    """A header that announces a huge array does not make us reserve the memory for it."""
    path = tmp_path / "model.tkm"
    save(make_model(4), path)
    with zipfile.ZipFile(path, "a") as archive:
        member = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            member, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**9)}
        )
        archive.writestr("model.big.npy", member.getvalue())
    with pytest.raises(TinykernelError, match="an array in it is damaged"):
        load(path)


@pytest.mark.parametrize("shape", ["(3,", "(" * 60])
def test_array_headers_that_do_not_end_are_refused(tmp_path: Path, shape: str) -> None:
    """NumPy's parser raises a TokenError for a bracket that stays open, which is no ValueError."""
    path = tmp_path / "model.tkm"
    save(make_model(4), path)
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}".encode().ljust(117)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("model.a.npy", b"\x93NUMPY\x01\x00\x76\x00" + header + b"\n")
    with pytest.raises(TinykernelError, match="an array in it is damaged"):
        load(path)


def test_paths_that_do_not_work(tmp_path: Path) -> None:
    """Missing files, folders and unknown suffixes give one line; nothing is left behind."""
    with pytest.raises(TinykernelError, match="no such file"):
        load(tmp_path / "none.tkm")
    (tmp_path / "folder.pkl").mkdir()
    with pytest.raises(TinykernelError, match="cannot be read"):
        load(tmp_path / "folder.pkl")
    for function in (lambda p: save(make_model(0), p), load):
        with pytest.raises(TinykernelError, match=r"ends in \.tkm or \.pkl"):
            function(tmp_path / "model.joblib")
    with pytest.raises(TinykernelError, match="cannot be written"):
        save(make_model(0), tmp_path / "none" / "model.tkm")
    assert [p.name for p in tmp_path.iterdir()] == ["folder.pkl"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_cannot_be_saved(
    tmp_path: Path, fit: Callable[..., TernaryKernelClassifier], suffix: str
) -> None:
    """Unfitted classifiers, parts of models, and parameters that no file can hold are refused."""
    path = tmp_path / f"model.{suffix}"
    model = make_model(0)
    for obj, message in [
        (TernaryKernelClassifier(), "not fitted"),
        (model.scaler, "part of a model"),
        ({"a": 1}, "a dict is no tinykernel model"),
        (fit(["a", "b"], random_state=np.random.RandomState(0)), "random_state|numpy.random"),
    ]:
        with pytest.raises(TinykernelError, match=message):
            save(obj, path)
    assert not path.exists()


def test_models_that_users_pickled_themselves_load(
    tmp_path: Path, fit: Callable[..., TernaryKernelClassifier]
) -> None:
    """`pickle.dump` with any protocol from 2 on gives a file that `load` reads."""
    classifier = fit(["a", "b"])
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        (tmp_path / "model.pkl").write_bytes(pickle.dumps(classifier, protocol=protocol))
        assert load(tmp_path / "model.pkl").quantize() == classifier.quantize()
    # And what `save` writes is an ordinary pickle.
    save(classifier, tmp_path / "model.pkl")
    assert pickle.loads((tmp_path / "model.pkl").read_bytes()).quantize() == classifier.quantize()
