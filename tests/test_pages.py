"""Golden pages of Python: what calls with wrong arguments raise, one line each.

``python tests/test_pages.py`` writes what they raise now into `tests/pages`: check the diff.
"""

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import tinykernel
from tests.random_models import random_model
from tinykernel.judge.drift import relative
from tinykernel.papers.classifier import PaperClassifier
from tinykernel.run.limits import parse_limits

PAGES = sorted(Path(__file__).with_name("pages").glob("*.txt"))
PAPER = {"method": PaperClassifier, "sigma": 8.0, "max_iter": 2, "random_state": 0}


def shaped(*shape: int) -> tuple[Any, Any]:
    """Return rows of a shape, and labels of two classes."""
    X = np.random.default_rng(0).integers(0, 200, shape).astype(np.uint8)
    return X, np.arange(shape[0]) % 2


def fit(rows: tuple[Any, Any], options: dict[str, Any], **given: Any) -> None:
    """Train a classifier on rows and labels."""
    usual = {"effort": "quick", "random_state": 0}
    tinykernel.Classifier(**usual | options).fit(*rows, **given)


def raised(page: Path) -> str:
    """Return a page with what its calls raise now."""
    X, y = load_digits(return_X_y=True)
    names = {"rows": (X[:50].astype(np.uint8), y[:50]), "fit": fit, "shaped": shaped, "np": np}
    names |= {"tinykernel": tinykernel, "parse_limits": parse_limits, "relative": relative}
    names |= {"PAPER": PAPER, "model": random_model(1), "zeros": np.zeros((2, 20), np.uint8)}
    lines = list[str]()
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith(">>> "):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with pytest.raises((ValueError, TypeError)) as caught:
                    eval(line.removeprefix(">>> "), dict(names))
            assert "\n" not in str(caught.value), line
            lines += [line, f"{caught.type.__name__}: {caught.value}"]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_wrong_arguments_raise_the_line_of_the_page(page):
    """Sentences stand on these pages alone; other tests assert codes and fields."""
    assert raised(page) == page.read_text(encoding="utf-8")


if __name__ == "__main__":
    for each in PAGES:
        each.write_text(raised(each), encoding="utf-8")
