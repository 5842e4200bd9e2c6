"""The page to hand on: what it says is so, names cannot break it, and a browser shows it."""

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from tests.cli.tools import blobs
from tests.codegen.kinds import calibrated
from tests.random_models import random_model, random_raw
from tinykernel import TernaryKernelClassifier, report_page, save, train
from tinykernel.face.pages.page import ReportPage, coverage_of, reliability_of
from tinykernel.face.rows import about_evaluation
from tinykernel.judge.figures import LabelEvaluation, compare
from tinykernel.judge.ranges import input_ranges

HOSTILE = '<script>alert(1)</script>|`$x_1$`"\n@all'
_EMPTY = {"meta", "br", "link"}


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> ReportPage:
    """Return the page of a small model with hostile names, and of everything that a page shows."""
    X, y = blobs(120, 0)
    names = np.array([HOSTILE, "still", "walk"])
    model = TernaryKernelClassifier(n_components=64, epochs=5, effort="quick", random_state=0)
    file = tmp_path_factory.mktemp("page") / "gesture.tkm"
    model.fit(X[:60], names[y[:60]])
    model.feature_names_in_ = np.array([HOSTILE, *"bcde"], dtype=object)
    about = {
        "data": HOSTILE,
        "target": "cortex-m0plus",
        "budget": 8192,
        "split": "60 training rows, 60 test rows",
        "training_rows": {"rows": 60},
    }
    save(model.quantize(), file, about)
    found = report_page(
        file,
        ("cortex-m0plus", "esp32c3"),
        compiler="none",
        data=(X[60:], names[y[60:]]),
        train=(X[:60], names[y[:60]]),
        groups=np.arange(60) // 6,
        clock="16MHz",
    )
    costs = tuple(replace(cost, instructions=50_000, source="made up") for cost in found.costs)
    return replace(found, costs=costs)


class _Tags(HTMLParser):
    """Collects tags, and fails where tags do not nest."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in _EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _EMPTY:
            assert self.open.pop() == tag


def test_html(page) -> None:
    """The page stands alone, nests, has no script whatever names say, and is the same again."""
    text = page.to_html()
    (parser := _Tags()).feed(text)
    assert parser.open == []
    assert "script" not in parser.tags
    assert re.findall(r'(?:src|href)="([^"]*)', text) == ["data:,"]
    assert page.to_html() == text


def test_figures(page) -> None:
    """The page has the figures of the objects; a verdict names its chip."""
    judged, memory = page.judged, page.memory[0]
    low, high = (50_000 * cycles / 16e6 for cycles in page.costs[0].cycles)
    said = [
        f"{100 * judged.accuracy:.2f} %",
        f"{100 * judged.interval[0]:.2f} to",
        "60 rows",
        "10 groups",
        f"It fits the STM32L053R8 (target cortex-m0plus): {memory.flash / 1024:.1f}",
        "ESP32-C3",
        "8.0 KB",
        f"{1e3 * low:.3g} to {1e3 * high:.3g} ms",
        "50000",
        page.model.fingerprint(),
        "60 training rows",
        *(str(one.high) for one in page.model.ranges()),
    ]
    text = page.to_html()
    assert [figure for figure in said if figure not in text] == []


def test_what_is_not_known_is_left_out() -> None:
    """Without data, file and emulator nothing is claimed; too small a chip is named."""
    large = random_model(1, n_features=2048, n_classes=2, diagonal_kind="sign")
    page = report_page(large, "cortex-m0plus", compiler="none")
    assert not page.fits
    text = page.to_html()
    assert "accuracy" not in text
    assert "(estimate)" in text
    assert page._repr_html_().startswith("<iframe srcdoc=")


def test_a_page_shows_what_the_model_file_keeps(page, tmp_path) -> None:
    """Without rows the figures of training stand there; what is no record is left out."""
    kept, file = page.judged.to_record(), tmp_path / "model.tkm"
    assert LabelEvaluation.of_record(json.loads(json.dumps(kept))).to_record() == kept
    save(page.model, file, {"evaluation": kept})
    text = report_page(file, "cortex-m0plus", compiler="none").to_html()
    assert f"{100 * page.judged.accuracy:.2f} %" in text
    huge = (2**62 * np.eye(3, dtype=np.int64)).tolist()
    wrong = [{"confusion": [[-1]]}, {"confusion": huge}, {"baselines": {"tree": 3}}]
    for damaged in (None, [], *({**kept, **one} for one in wrong)):
        save(page.model, file, {"evaluation": damaged})
        assert (
            "Evaluate it with: tinykernel report MODEL --html FILE --data DATA"
            in report_page(file, (), compiler="none").to_html()
        )


def test_a_page_of_1500_classes_stays_small() -> None:
    """A model file keeps no table of classes by classes where there are very many."""
    for n in (200, 201):
        assert bool(about_evaluation(compare(np.arange(n), np.arange(n)))) == (n == 200)


def test_confidence_is_compared_with_what_is_right() -> None:
    """Each dot is a tenth of the rows, in the order of confidence; without confidences is none."""
    model = calibrated(lambda: random_model(5, n_features=4, n_classes=3), "margin")
    X = random_raw(model, 1, 400)
    y = model.predict(X)
    y[::4] = -1
    curve = reliability_of(model, X, y)
    assert curve is not None
    assert len(curve.points) == 10
    assert np.mean([right for _, right in curve.points]) == pytest.approx(0.75)
    confidences = [confidence for confidence, _ in curve.points]
    assert confidences == sorted(confidences)
    assert reliability_of(replace(model, decision=None), X, y) is None


def test_coverage() -> None:
    """Each point of the curve is what one would count by hand, ties answered together."""
    model = random_model(3, n_features=6, n_classes=3)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6)).astype(model.raw_dtype)
    y = np.array(model.classes)[rng.integers(0, 3, 80)]
    found = coverage_of(model, X, y, (1.0, 0.9, 0.25))
    scores, wrong = np.sort(model.scores(X).astype(int), axis=1), model.predict(X) != y
    margins = scores[:, -1] - scores[:, -2]
    assert all(each[1] >= least for each, least in zip(found, (1.0, 0.9, 0.25), strict=True))
    for margin, share, error in found:
        given = margins >= margin
        assert share == pytest.approx(given.mean())
        assert error == pytest.approx(wrong[given].mean())


def test_input_ranges() -> None:
    """The ends of a range are the ends of what the scaler tells apart."""
    model = random_model(5, n_features=4, raw_dtype="float32")
    half = 2 ** (model.scaler.bits - 1)
    for i, one in enumerate(input_ranges(model)):
        if one.low is not None:
            row = np.zeros((2, 4), dtype=np.float32)
            row[:, i] = [one.low, one.high]
            assert model.quantize_inputs(row)[:, i].tolist() == [-half, half - 1]
    joined = input_ranges(random_model(5, n_features=4, raw_dtype="int16"))
    assert sum(1 if " to " not in one.name else 2 for one in joined) <= 4


def test_pictures_of_what_is_wrong_and_unsure() -> None:
    """A page of images shows test images as any program reads PNG: the model's own pixels."""
    X = load_digits().images.astype(np.uint8)
    y = np.char.add("digit ", load_digits().target.astype(str))  # text labels ended the page
    result = train(X[:400], y[:400], budget="2KB", image_shape=(8, 8), effort="quick")
    page = report_page(result.model, compiler="none", data=(X[400:], y[400:]))
    first = page.gallery.wrong[0]  # type: ignore[union-attr]
    assert first.answer != first.label
    shown = np.asarray(Image.open(BytesIO(base64.b64decode(first.address.split(",")[1]))))
    assert (np.abs(X[400:] * 255.0 / 16 - shown).max(axis=(1, 2)) <= 1).any()
    assert page.to_html().count("<img") > 18
