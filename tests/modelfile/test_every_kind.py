"""Model files of every kind that earlier versions wrote: they load, and answer as they did."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.modelfile.every_kind import answers
from tests.modelfile.files import OLD
from tinykernel.model import as_integer_model
from tinykernel.modelfile import load, save


def _files() -> list[tuple[str, str]]:
    """Return each archive and the names of its models."""
    found = []
    for path in sorted(OLD.glob("every-kind-*.zip")):
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith(".tkm")]
        found += [(path.name, name.removesuffix(".tkm")) for name in names]
    return found


@pytest.mark.parametrize(("archive", "kind"), _files())
def test_files_of_every_kind_answer_as_when_they_were_written(
    archive: str, kind: str, tmp_path: Path
) -> None:
    """A file of any kind gives the same scores bit for bit, and so does it when saved again."""
    with zipfile.ZipFile(OLD / archive) as members:
        members.extract(f"{kind}.tkm", tmp_path)
        with members.open(f"{kind}.npz") as stream, np.load(stream) as known:
            then = dict(known)
    rows = then.pop("rows")
    loaded = load(tmp_path / f"{kind}.tkm")
    save(loaded, tmp_path / "again.tkm")
    for model in map(as_integer_model, (loaded, load(tmp_path / "again.tkm"))):
        now = answers(model, rows)
        assert now.keys() == then.keys()
        for name, found in now.items():
            assert_array_equal(found, then[name], err_msg=name)
