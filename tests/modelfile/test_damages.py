"""Damaged and hostile model files: one line for each, before an object is made of it."""

import io
import json
import os
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.modelfile.files import SUFFIXES, as_file, fit, refusal
from tests.random_models import make_model, random_model
from tests.refusals import SAID, refused
from tinykernel.base.errors import FileError, FormatError, TinykernelError
from tinykernel.model import file as modelfile
from tinykernel.model.file import load, save
from tinykernel.model.records import VERSION, read_container, write_container

pytestmark = pytest.mark.usefixtures("page")


@pytest.mark.parametrize(
    ("kind", "suffix"), [("integer", "tkm"), ("integer", "pkl"), ("classifier", "tkm")]
)
def test_cut_and_flipped_files(tmp_path, classifier, suffix, kind) -> None:
    """A file cut off anywhere, or with any one bit turned, is refused or gives the same model."""
    model = classifier if kind == "classifier" else classifier.quantize()
    save(model, tmp_path / f"model.{suffix}")
    data = (tmp_path / f"model.{suffix}").read_bytes()
    rng = np.random.default_rng(0)
    for length in {0, 1, 10, len(data) - 1, *rng.integers(0, len(data), 20).tolist()}:
        refusal(as_file(tmp_path, data[:length], suffix))
    # Bits of the ends, where the lengths are, and some of the rest.
    ends = [*range(0, 200, 3), *range(len(data) - 120, len(data), 3)]
    for position in [*ends, *rng.integers(0, len(data), 50).tolist()]:
        flipped = bytearray(data)
        flipped[position] ^= 1 << int(rng.integers(8))
        try:
            loaded = load(as_file(tmp_path, bytes(flipped), suffix))
        except TinykernelError:
            continue
        else:
            same = loaded.quantize() if kind == "classifier" else loaded
            assert same == classifier.quantize()
    SAID.clear()  # which byte says what is not promised


@cache
def contents(kind: str) -> bytes:
    """Return a file of each kind of model."""
    return modelfile.to_bytes(fit() if kind == "classifier" else random_model(1))


Change = Callable[[dict[str, Any], dict[str, Any]], object]


def field(name: str, value: Any) -> Change:
    """Set a field of the model in the header."""
    return lambda header, arrays: header["object"]["record"][1].update({name: value})


def part(name: str, key: str, value: Any) -> Change:
    """Set a field of a part of the model in the header."""
    return lambda header, arrays: header["object"]["record"][1][name]["record"][1].update(
        {key: value}
    )


def stage(number: int, key: str, value: Any) -> Change:
    """Set a field of a stage of the model in the header."""

    def change(header, arrays):
        stages = header["object"]["record"][1]["stages"]["tuple"]
        stages[number]["record"][1][key] = value

    return change


def array(name: str, value: Any) -> Change:
    """Set an array."""
    return lambda header, arrays: arrays.update({f"model.{name}": value})


_WRONG = {
    "integer": [
        lambda h, a: h.update(version=VERSION + 1),
        lambda h, a: h.update(version=VERSION - 1),
        lambda h, a: h.update(version="1"),
        lambda h, a: h.update(format="other"),
        lambda h, a: h.update(kind="classifier"),
        lambda h, a: h.update(object={"record": ["os.system", {}]}),
        lambda h, a: h.update(object={"record": ["IntegerModel"]}),
        lambda h, a: h.update(fingerprint="0" * 64),
        lambda h, a: a.pop("model.stages.1.scale"),
        part("input", "channels", True),
        field("decision_scale", {"float": "nan"}),
        part("answers", "classes", {"tuple": [1, "\ud800"]}),
        field("un\nknown", 5),
        field("unknown", 5),
        field("readout", None),
        part("readout", "offset", {"scalar": ["|V8", 1]}),
        field("stages", {"tuple": [{"record": ["Decision", {}]}]}),
        stage(0, "bits", 8.0),
        stage(0, "span", None),
        stage(0, "late", 1),
        stage(1, "permutation", {"record": ["Scale", {}]}),
        stage(1, "halve_first", {"tuple": [1] * 5}),
        stage(1, "phase_shift", 99),
        stage(1, "phase_shift", 3.0),
        stage(1, "diagonal", {"array": "model.stages.1.sign"}),
        array("stages.1.scale", np.full(5, 0.5)),
        array("stages.1.scale", np.ones(5, "u1")),
        array("stages.1.scale", np.ones((32, 1), "u1")),
        array("stages.0.multiplier", np.full(1, np.nan, "f4")),
        array("readout.offset", np.zeros(3, "i4")),
    ],
    "classifier": [
        array("classes_", np.array(["a", "b", "c"])),
        field("machine_", None),
        field("decay", 0.5),
        field("n_features_in_", 5),
        field("feature_names_in_", {"objects": [[-1], ["a"] * 3]}),
        field("__class__", 5),
        field("predict_", {"record": ["Permutation", {}]}),
    ],
}


@pytest.mark.parametrize(
    ("kind", "change"), [(kind, change) for kind in _WRONG for change in _WRONG[kind]]
)
def test_wrong_content_is_refused(tmp_path, kind, change) -> None:
    """A well-formed file with wrong content is refused before an object is made of it."""
    header, arrays = read_container(contents(kind))
    change(header, arrays)
    refusal(as_file(tmp_path, write_container(header, arrays)))


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


def test_zip_members_that_share_their_bytes(tmp_path) -> None:
    """Overlapping members made a small file take gigabytes."""
    refusal(as_file(tmp_path, overlapping()))


@pytest.mark.parametrize(
    "data",
    [
        zipped([("a.npy", b"")]),
        zipped([("header.json", bytes(10**6))], zipfile.ZIP_DEFLATED),
        zipped([("header.json", b"[" * 100_000)]),
        zipped([("header.json", b'{"format": NaN}')]),
        zipped([("header.json", b"1" * 10_000)]),
        zipped([("header.json", b"{}")] * 2),
        zipped([(f"{i}.npy", b"") for i in range(5000)]),
        b"front" + zipped([("header.json", b"{}")]),
        b"PK\5\6" + bytes(18),
    ],
)
def test_other_archives_are_refused(tmp_path, data) -> None:
    """What is compressed, doubled, shifted or endless is not ours."""
    refusal(as_file(tmp_path, data))


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
def test_array_headers_are_not_believed(tmp_path, header) -> None:
    """A header that announces a huge array, objects, or that does not end, is damage."""
    raw = header.encode().ljust(117) + b"\n"
    path = tmp_path / "model.tkm"
    save(make_model(4), path)
    with zipfile.ZipFile(path, "a") as archive:
        member = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(raw)) + raw + bytes(8)
        archive.writestr("model.a.npy", member)
    refusal(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_only_regular_files_of_a_limited_size_are_read(tmp_path, suffix) -> None:
    """A pipe would block for ever, and a sparse file of 3 GB would fill the memory."""
    path = tmp_path / f"model.{suffix}"
    os.mkfifo(path)
    refusal(path)
    path.unlink()
    path.mkdir()
    refusal(path)
    path.rmdir()
    with path.open("wb") as stream:
        stream.truncate(3 << 30)
    refusal(path)


def test_paths_that_do_not_work(tmp_path) -> None:
    """Missing files, folders and unknown suffixes give one line; nothing is left behind."""
    refusal(tmp_path / "none.tkm")
    for function in (lambda p: save(make_model(0), p), load):
        refused(FileError, function, tmp_path / "model.joblib")
    refused(FileError, save, make_model(0), tmp_path / "none" / "model.tkm")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("said", ['["a"]', '{"a": 1e999}', '{"a": "\\ud800"}', "[" * 99 + "]" * 99])
def test_damaged_words_about_a_model(said, tmp_path):
    """What cannot be printed, is endless or is no dict is refused, as all that is damaged."""
    header, arrays = read_container(contents("integer"))
    header["about"] = json.loads(said)
    (tmp_path / "m.tkm").write_bytes(write_container(header, arrays))
    refused(FormatError, modelfile.about, tmp_path / "m.tkm")
