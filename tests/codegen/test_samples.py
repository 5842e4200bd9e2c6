"""Each piece comes with samples, which serve the tests of all."""

import pytest

from tests.codegen.test_certificate import Checker, export_of
from tests.fuzz.proofs import load_checker
from tests.random_fronts import model_of
from tinykernel import load, save
from tinykernel.pieces.catalogue import FOLDERS, samples_of


@pytest.mark.parametrize("kind", FOLDERS)
def test_samples_of_a_piece_make_models(kind, tmp_path, capsys) -> None:
    """A sample has its piece; the proof of its model holds, and a file gives it back."""
    checker, found = Checker(load_checker(), tmp_path), samples_of(kind, 1)
    assert found
    for sample in found:
        model = model_of(sample, 2)
        assert kind in {piece.KIND for piece in model.pieces}
        checker.accept(export_of(model))
        save(model, tmp_path / "m.tkm")
        assert load(tmp_path / "m.tkm") == model
