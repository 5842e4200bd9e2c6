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
from tests.refusals import refused
from tinykernel.base.errors import FileError, FormatError, TinykernelError
from tinykernel.model import file as modelfile
from tinykernel.model.file import load, save
from tinykernel.model.records import VERSION, read_container, write_container


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
        (lambda h, a: h.update(version=VERSION + 1), "upgrade tinykernel"),
        (lambda h, a: h.update(version=VERSION - 1), "train the model again"),
        (lambda h, a: h.update(version="1"), "states no version"),
        (lambda h, a: h.update(format="other"), "not a tinykernel model"),
        (lambda h, a: h.update(kind="classifier"), "header is damaged"),
        (lambda h, a: h.update(object={"record": ["os.system", {}]}), "header is damaged"),
        (lambda h, a: h.update(object={"record": ["IntegerModel"]}), "header is damaged"),
        (lambda h, a: h.update(fingerprint="0" * 64), "fingerprint differs"),
        (lambda h, a: a.pop("model.stages.1.scale"), "header is damaged"),
        (part("input", "channels", True), "channels is not an integer"),
        (field("decision_scale", {"float": "nan"}), "decision_scale is not a finite number"),
        (part("answers", "classes", {"tuple": [1, "\ud800"]}), "header is damaged"),
        (field("un\nknown", 5), r"'un\nknown' is unknown"),
        (field("unknown", 5), "'unknown' is unknown"),
        (field("readout", None), "readout is no Readout"),
        (part("readout", "offset", {"scalar": ["|V8", 1]}), "header is damaged"),
        (field("stages", {"tuple": [{"record": ["Decision", {}]}]}), "'stages' is a 'Decision'"),
        (stage(0, "bits", 8.0), "bits is not an integer"),
        (stage(0, "span", None), "need the span"),
        (stage(0, "late", 1), "damaged Scale: 'late' is unknown"),
        (stage(1, "permutation", {"record": ["Scale", {}]}), "'permutation' is a 'Scale'"),
        (stage(1, "halve_first", {"tuple": [1] * 5}), "halve_first is not a bool"),
        (stage(1, "phase_shift", 99), "phase_shift is 99"),
        (stage(1, "phase_shift", 3.0), "phase_shift is not an integer"),
        (stage(1, "diagonal", {"array": "model.stages.1.sign"}), "diagonal has shape"),
        (array("stages.1.scale", np.full(5, 0.5)), "is not a finite uint8"),
        (array("stages.1.scale", np.ones(5, "u1")), "start has shape (64,), expected (5)"),
        (array("stages.1.scale", np.ones((32, 1), "u1")), "scale has shape"),
        (array("stages.0.multiplier", np.full(1, np.nan, "f4")), "multiplier holds a value"),
        (array("readout.offset", np.zeros(3, "i4")), "fingerprint differs"),
    ],
    "classifier": [
        (array("classes_", np.array(["a", "b", "c"])), "classes_ does not go"),
        (field("machine_", None), "no fitted machine"),
        (field("decay", 0.5), "unknown parameter 'decay'"),
        (field("n_features_in_", 5), "n_features_in_ does not go"),
        (field("feature_names_in_", {"objects": [[-1], ["a"] * 3]}), "header is damaged"),
        (field("__class__", 5), "holds '__class__'"),
        (field("predict_", {"record": ["Permutation", {}]}), "'predict_' is a 'Permutation'"),
    ],
}


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [(kind, *case) for kind, cases in _WRONG.items() for case in cases],
)
def test_wrong_content_is_refused(tmp_path, kind, change, message) -> None:
    """A well-formed file with wrong content is refused before an object is made of it."""
    header, arrays = read_container(contents(kind))
    change(header, arrays)
    line = refusal(as_file(tmp_path, write_container(header, arrays)))
    assert any(text in line for text in message.split("|"))


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
        (b"front" + zipped([("header.json", b"{}")]), "not a tinykernel model"),
        (b"PK\5\6" + bytes(18), "not a tinykernel model"),
    ],
)
def test_other_archives_are_refused(tmp_path, data, message) -> None:
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
def test_array_headers_are_not_believed(tmp_path, header) -> None:
    """A header that announces a huge array, objects, or that does not end, is damage."""
    raw = header.encode().ljust(117) + b"\n"
    path = tmp_path / "model.tkm"
    save(make_model(4), path)
    with zipfile.ZipFile(path, "a") as archive:
        member = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(raw)) + raw + bytes(8)
        archive.writestr("model.a.npy", member)
    assert "an array in it is damaged" in refusal(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_only_regular_files_of_a_limited_size_are_read(tmp_path, suffix) -> None:
    """A pipe would block for ever, and a sparse file of 3 GB would fill the memory."""
    path = tmp_path / f"model.{suffix}"
    os.mkfifo(path)
    assert "not a regular file" in refusal(path)
    path.unlink()
    path.mkdir()
    assert "not a regular file" in refusal(path)
    path.rmdir()
    with path.open("wb") as stream:
        stream.truncate(3 << 30)
    assert "longer than 64 MiB" in refusal(path)


def test_paths_that_do_not_work(tmp_path) -> None:
    """Missing files, folders and unknown suffixes give one line; nothing is left behind."""
    assert "no such file" in refusal(tmp_path / "none.tkm")
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
