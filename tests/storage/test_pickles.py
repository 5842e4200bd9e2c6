"""The restricted unpickler: nothing of a hostile pickle runs, and its wish is named."""

import os
import pickle
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.model.models import make_model
from tinykernel.errors import TinykernelError
from tinykernel.model import IntegerModel
from tinykernel.storage import load
from tinykernel.storage.pickles import read_pickle


class _Call:
    """Pickles as a call."""

    def __init__(self, function: Callable[..., Any], *arguments: Any, state: Any = None) -> None:
        self.call = (function, arguments) if state is None else (function, arguments, state)

    def __reduce__(self) -> Any:
        return self.call


def _load(tmp_path: Path, obj: Any, protocol: int = 4) -> Any:
    path = tmp_path / "model.pkl"
    path.write_bytes(obj if isinstance(obj, bytes) else pickle.dumps(obj, protocol=protocol))
    return load(path)


def _with(model: IntegerModel, name: str, value: Any) -> IntegerModel:
    """Put any value into a model, past its checks."""
    object.__setattr__(model, name, value)
    return model


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("place", ["alone", "nested", "field", "array", "state", "private"])
def test_calls_do_not_run(tmp_path: Path, place: str, protocol: int) -> None:
    """A call is refused by name before it runs, wherever in the pickle it hides."""
    witness = tmp_path / "witness"
    call = _Call(os.system, f"touch {witness}")
    hidden: Any = {
        "alone": call,
        "nested": [{"a": (1, [call])}],
        "field": _with(make_model(0), "weights", call),
        "array": _with(make_model(0), "weights", np.array([call], dtype=object)),
        "state": _with(make_model(0), "scaler", _Call(np.dtype, "f8", state=call)),
        "private": _with(make_model(0), "_ranges", call),
    }[place]
    with pytest.raises(TinykernelError, match=r"refused: it asks for \w+\.\w+"):
        _load(tmp_path, hidden, protocol)
    assert not witness.exists()
    if protocol >= 2:
        with pytest.raises(TinykernelError, match=r"asks for posix\.system|asks for nt\.system"):
            _load(tmp_path, hidden, protocol)


@pytest.mark.parametrize(
    ("function", "arguments", "name"),
    [
        (eval, ("1/0",), "builtins.eval"),
        (exec, ("raise SystemExit",), "builtins.exec"),
        (getattr, ("", "join"), "builtins.getattr"),
        (subprocess.Popen, (["true"],), "subprocess.Popen"),
        (np.load, ("x.npy",), "numpy.load"),
        (np.fromfile, ("x",), "fromfile"),
        (np.random.RandomState, (0,), "RandomState"),
        (load, ("x.pkl",), "tinykernel.storage.files.load"),
        (make_model, (0,), "make_model"),
        (np.ndarray, ((10**12,), "f8"), "truncated, damaged"),
    ],
)
def test_functions_are_refused_by_name(
    tmp_path: Path, function: Callable[..., Any], arguments: tuple[Any, ...], name: str
) -> None:
    """What a model does not need is refused: builtins, most of NumPy, functions of our own."""
    with pytest.raises(TinykernelError, match=name):
        _load(tmp_path, _Call(function, *arguments))


@pytest.mark.parametrize(
    "code",
    [
        b"cos\nsystem\n(S'true'\ntR.",
        b"c__builtin__\neval\n(S'1'\ntR.",
        b"cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I1000000000000\ntS'b'\ntR.",
        b"cnumpy\ndtype\n(S'V8'\ntR.",
        b"c_codecs\nencode\n(S'x'\nS'zip'\ntR.",
        b"c__builtin__\nbytes\n(I1000000000000\ntR.",
        b"cnumpy._core.multiarray\n_reconstruct.__globals__\n.",
        b"\x80\x04\x8c\x05numpy\x8c\x0fndarray.__new__\x93.",
        b"\x80\x04\x8c\x1btinykernel.model.integer.np\x8c\x04load\x93.",
    ],
)
def test_hand_written_pickles_are_refused(tmp_path: Path, code: bytes) -> None:
    """Old protocols, dotted names and NumPy's own functions with other arguments get nowhere."""
    with pytest.raises(TinykernelError, match="refused"):
        _load(tmp_path, code)


def test_classes_cannot_be_changed_through_a_pickle(tmp_path: Path) -> None:
    """A state given to a class, not to an object, does not reach the real class."""
    code = b"ctinykernel.model.integer\nIntegerModel\n(N(S'predict'\nI5\ndtb."
    before = IntegerModel.predict
    with pytest.raises(TinykernelError):
        _load(tmp_path, code)
    assert IntegerModel.predict is before


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ({"a": 1}, "holds a dict"),
        (np.zeros(3), "holds a ndarray"),
        (b"no pickle", "no pickle"),
        (_with(make_model(0), "weights", {1, 2}), "weights is a set"),
        (_with(make_model(0), "weights", b"bytes"), "weights is a bytes"),
        (_with(make_model(0), "weights", make_model(0)), "not an array"),
        (_with(make_model(0), "weights", np.array(["a"], dtype=object)), "not an array"),
        (_with(make_model(0), "width", np.zeros(3)), "width has shape"),
        (_with(make_model(0), "scaler", 1), "not an InputScaler"),
        (make_model(0).scaler, "only a part"),
        (make_model(0).ranges()[0], "only a part"),
    ],
)
def test_harmless_pickles_that_are_no_models(tmp_path: Path, obj: Any, message: str) -> None:
    """What is no model is refused in words; fields go through the checks of the constructor."""
    with pytest.raises(TinykernelError, match=message) as caught:
        _load(tmp_path, obj)
    assert "\n" not in str(caught.value)


def test_values_that_hold_themselves(tmp_path: Path) -> None:
    """Circular values end in a refusal, not in an endless loop."""
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(TinykernelError):
        _load(tmp_path, _with(make_model(0), "classes", (ring, 1)))
    model = make_model(0)
    with pytest.raises(TinykernelError, match="part of a model holds a model"):
        _load(tmp_path, _with(model, "weights", model))
    doubled: Any = 1
    for _ in range(200):
        doubled = [doubled, doubled]
    with pytest.raises(TinykernelError):
        _load(tmp_path, _with(make_model(0), "classes", (doubled, 1)))


def test_both_spellings_of_numpy_load(tmp_path: Path) -> None:
    """Pickles of NumPy 1 name numpy.core, those of NumPy 2 numpy._core."""
    model = make_model(1)
    data = pickle.dumps(model, protocol=2)
    other = data.replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    assert other != data
    assert _load(tmp_path, data) == _load(tmp_path, other) == model


class _ArrayOfPointers:
    """Pickles as an array of one object whose dtype claims to hold plain bytes."""

    def __init__(self, state: tuple[Any, ...]) -> None:
        self.dtype_state = state

    def __reduce__(self) -> Any:
        # The state of an array is the version, the shape, the dtype, the order and the content.
        dtype = _Call(np.dtype, "O8", False, True, state=self.dtype_state)
        start = np._core.multiarray._reconstruct  # type: ignore[attr-defined]
        return start, (np.ndarray, (0,), b"b"), (1, (1,), dtype, False, b"\x41" * 8)


def test_bytes_of_a_pickle_never_become_pointers(tmp_path: Path) -> None:
    """A dtype of objects without the flags of one made NumPy follow bytes of the file: a crash."""
    for state in (
        (3, "|", None, None, None, -1, -1, 0),
        (3, "|", None, ("a",), {"a": (np.dtype("O"), 0)}, 8, 1, 0),
    ):
        hostile = _with(make_model(0), "weights", _ArrayOfPointers(state))
        with pytest.raises(TinykernelError):
            _load(tmp_path, hostile)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=">i4").reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array(["é", "ab"]),
        np.array(["x", None, 1], dtype=object),
        np.zeros((0, 3)),
        np.array(True),
    ],
)
def test_arrays_come_back_at_any_depth(array: np.ndarray, protocol: int) -> None:
    """Every kind of array is the same after pickling, also inside lists, tuples and dicts."""
    model = _with(make_model(0), "weights", {"a": [(array, array)]})
    fields = read_pickle(pickle.dumps(model, protocol=protocol)).fields
    first, second = fields["weights"]["a"][0]
    assert type(first) is np.ndarray
    assert first.dtype == array.dtype
    np.testing.assert_array_equal(first, array)
    np.testing.assert_array_equal(second, array)
