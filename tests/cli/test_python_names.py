"""What the command line has, Python has, by the same name."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import typer

import tinykernel
from tinykernel.face import app
from tinykernel.face.settings import SETTINGS
from tinykernel.papers.classifier import PaperClassifier

# Python takes arrays where the command line takes files and says what they hold, and returns where
# it prints.
_FILES = {
    *("data", "model", "output", "label", "missing", "input_type", "test", "seed", "groups"),
    *("as_json", "quiet", "html", "check", "port", "rows", "assignments"),
    *("background", "config", "save_config", "markdown", "also", "noise"),
}
# Names that mean something else in one of the two.
_OTHERWISE = {
    "export": {"project_format": "format"},
    "train": {"lambda": "regularization", "paper_loss": "loss"},
}
_CALLED: dict[str, tuple[Callable[..., Any], ...]] = {
    "train": (
        tinykernel.train,
        tinykernel.Classifier,
        tinykernel.Regressor,
        tinykernel.NoveltyDetector,
        PaperClassifier,
        tinykernel.windows,
        tinykernel.calibrate,
    ),
    "evaluate": (tinykernel.evaluate,),
    "report": (tinykernel.report, tinykernel.report_page),
    "bench": (tinykernel.bench,),
    "verify": (tinykernel.verify,),
    "export": (tinykernel.export,),
}


@pytest.mark.parametrize("command", _CALLED)
def test_names(command) -> None:
    """An option without a parameter of its name is one that only files or printing need."""
    options = {str(option.name) for option in typer.main.get_command(app).commands[command].params}
    parts = {"train": ("data", "train"), "export": ("export",)}.get(command, ())
    options |= {setting.name for setting in SETTINGS.values() if setting.part in parts}
    known = set[str]().union(*(inspect.signature(call).parameters for call in _CALLED[command]))
    renamed = _OTHERWISE.get(command, {})
    assert set(renamed) <= options
    assert set(renamed.values()) <= known
    assert options - known - _FILES - set(renamed) == set()
