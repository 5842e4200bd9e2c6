"""The firmware in a page: Chromium runs it, people drive it, and every answer is Python's."""

import json
import re
import wave
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.codegen.kinds import calibrated, regressor
from tests.firmware.local_models import with_events
from tests.frames import frame_model
from tests.random_fronts import local_model, random_signal_stage
from tests.random_models import one_class, random_model, random_raw
from tests.reporting.browser import browser
from tests.separable import separable_model
from tests.spectra import spectral_model
from tinykernel import report_page, save
from tinykernel.base.resizing import resize
from tinykernel.pieces.frame.spec import Frame

HOSTILE = '</script><img src=x onerror="document.title=1">\u2028'
_SCORES = "[...document.querySelectorAll('.score .n')].map((one) => Number(one.textContent))"


@pytest.fixture(scope="module")
def open_browser(require_tool, tmp_path_factory):
    """Return one browser for all pages."""
    program = require_tool("chromium")
    require_tool("zig")
    with browser(program, tmp_path_factory.mktemp("browser") / "profile") as page:
        yield page


def _write(folder: Path, model, about=None, data=None) -> Path:
    """Write the page of a model."""
    file, page = folder / "model.tkm", folder / "page.html"
    save(model, file, {"target": "cortex-m0plus", **(about or {})})
    html = report_page(file, data=data).to_html()
    assert len(html) < 400 * 1024
    page.write_text(html, encoding="utf-8")
    return page


def _opened(page, folder: Path, model, about=None, data=None) -> None:
    """Open the page of a model; it asks for nothing but itself, and its console is silent."""
    page.open(_write(folder, model, about, data))
    proof = page.text("#chip-proof")
    equal, of = map(int, re.findall(r"\d+", proof)[:2])
    assert equal == of > 0, proof
    assert page.console == []
    addresses = {address.split(",")[0].split(":")[0] for address in page.requests}
    assert addresses <= {"file", "data", "blob"}
    assert page.run("document.title") == "model - tinykernel report"


def _set_row(values: list[float]) -> str:
    """Return a script that types a row into the fields of a table, and reads the scores."""
    return (
        f"(() => {{ const values = {json.dumps(values)};"
        "[...document.querySelectorAll('.field')].forEach((field, i) => {"
        "const input = field.querySelector('input[type=number]') || field.querySelector('select');"
        "input.value = values[i]; input.dispatchEvent(new Event('input')); });"
        f"return {_SCORES}; }})()"
    )


def test_table(open_browser, tmp_path) -> None:
    """Fields of a table give the scores of Python, with texts, gaps and hostile names."""
    model = random_model(5, n_features=4, n_classes=3, raw_dtype="int16")
    names = (HOSTILE, "speed", "kind", "load")
    model = replace(calibrated(lambda: model, "margin"), feature_names=names)
    about = {"coding": {"texts": {"kind": ["red", HOSTILE]}, "gaps": {"speed": -7.0}}}
    _opened(open_browser, tmp_path, model, about)
    rows = random_raw(model, 1, 300)
    rows[:, 2] %= 2
    for row, scores in zip(rows, model.scores(rows), strict=True):
        assert open_browser.run(_set_row(row.tolist())) == scores.tolist()
    open_browser.run("document.querySelector('.gap input').click()")
    rows[-1, 1] = -7
    assert open_browser.run(_SCORES) == model.scores(rows[-1:])[0].tolist()
    assert open_browser.run("document.images.length") == 0
    # The policy refuses a script that is not the page's own.
    title = open_browser.run(
        "(() => { const script = document.createElement('script');"
        "script.textContent = 'document.title = 1'; document.head.append(script);"
        "return document.title; })()"
    )
    assert title.endswith("tinykernel report")
    open_browser.run("new Promise(requestAnimationFrame)")
    assert any("Content Security Policy" in line for line in open_browser.console)


def test_many_inputs(open_browser, tmp_path) -> None:
    """A page of 1000 named inputs is small, folds them, and is proved by 300 rows all the same."""
    model = random_model(7, n_features=1000, n_classes=3, raw_dtype="float32")
    names = tuple(f"{HOSTILE}{i:030}" for i in range(1000))
    _opened(open_browser, tmp_path, replace(model, feature_names=names))
    assert int(open_browser.text("#chip-proof").split()[0]) >= 900
    assert open_browser.run("document.querySelectorAll('.inputs > .field').length") == 64
    assert open_browser.text("#chip summary").startswith("192 more inputs; ")


def test_values_and_novelty(open_browser, tmp_path) -> None:
    """A regressor shows values in its unit; a model of one class says whether a row is normal."""
    regression = regressor(random_model(5, n_features=4, n_classes=3, raw_dtype="float32"))
    novelty = one_class(random_model(6, n_features=4, raw_dtype="float32"), 3)
    names = ("load q0.9", "load q0.1", "load q0.5")
    several = replace(regression, answers=replace(regression.answers, names=names))
    open_browser.open(_write(tmp_path, several))
    high, low, middle = open_browser.run(_SCORES)
    assert open_browser.text(".answer output b") == f"{middle:g}"
    assert f"80 % within {low:g} to {high:g}" in open_browser.text(".answer output span")
    for name, model in (("values", regression), ("novelty", novelty)):
        (folder := tmp_path / name).mkdir()
        _opened(open_browser, folder, model)
        rows = random_raw(model, 2, 400)
        rows = rows[np.isfinite(rows).all(axis=1)][:300]
        for row, scores in zip(rows, model.scores(rows), strict=True):
            shown = open_browser.run(_set_row([float(value) for value in row]))
            expected = scores * model.answers.unit if model.is_regressor else scores
            assert shown == pytest.approx(expected.tolist(), rel=1e-4)
        label = open_browser.text(".answer output b")
        assert model.is_regressor or label == model.predict(rows[-1:])[0]


def test_image(open_browser, tmp_path) -> None:
    """A drawn stroke and a picture that is opened are resized and judged as Python does."""
    model = separable_model(1, (8, 9), (6,), (2,), n_classes=3)
    _opened(open_browser, tmp_path, model, {"pictures": {}}, data=_labelled(model, 400))
    assert (
        open_browser.run(
            "JSON.parse(document.getElementById('chip-facts').textContent).vectors.rows"
        )
        == 400
    )
    pixels = np.random.default_rng(0).integers(0, 256, (400, 350, 3), dtype=np.uint8)
    wide, high = open_browser.run(
        "((paper) => [paper.width, paper.height])(document.querySelector('.paper'))"
    )
    pixels = pixels[:high, :wide]  # as large as the paper, so that the browser resizes nothing
    Image.fromarray(pixels).save(file := tmp_path / "noise.png")
    open_browser.choose_file(".file input", file)
    grey = (pixels @ np.array([19595, 38470, 7471]) + 32768 >> 16).astype(np.uint8)[..., None]
    small = resize(lambda top, end: grey[top:end], high, wide, *model.input.shape[:2])
    open_browser.wait(f"{_EYE}.join() === '{','.join(map(str, small.ravel()))}'")
    assert open_browser.run(_SCORES) == model.scores(small.reshape(1, -1))[0].tolist()
    left, top, wide, high = open_browser.run(
        "(() => { const box = document.querySelector('.paper').getBoundingClientRect();"
        "return [box.left, box.top, box.width, box.height]; })()"
    )
    open_browser.run("[...document.querySelectorAll('button')].at(-1).click()")
    open_browser.drag([(left + wide * i / 9, top + high * i / 9) for i in range(2, 8)])
    seen = open_browser.run(_EYE)
    rows = np.array(seen, np.uint8).reshape(1, -1)
    assert (rows > 200).any()
    assert open_browser.run(_SCORES) == model.scores(rows)[0].tolist()
    assert open_browser.console == []


# What the small picture shows: its red channel, which all share.
_EYE = (
    "(() => { const eye = document.querySelector('.eye');"
    "const { data } = eye.getContext('2d').getImageData(0, 0, eye.width, eye.height);"
    "return Array.from(data).filter((_, i) => i % 4 === 0); })()"
)


def _labelled(model, n):
    rows = random_raw(model, 1, n)
    return rows.reshape(n, *model.input.shape), model.predict(rows)


def test_frame_of_a_camera(open_browser, tmp_path) -> None:
    """A picture from a camera reaches the chip in its pixel format, frame by frame."""
    for seed, pixel_format in enumerate(("grey8", "rgb565", "yuyv")):
        model = frame_model(seed, 8, 9)
        frame = replace(model.find(Frame), pixel_format=pixel_format)
        model = replace(model, input=frame.taken, stages=(frame, *model.stages[1:]))
        (folder := tmp_path / pixel_format).mkdir()
        _opened(open_browser, folder, model)
        shape = (frame.height, frame.width, 3)
        pixels = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
        Image.fromarray(pixels).save(file := folder / "frame.png")
        scores = model.scores(frame.encoded(pixels).reshape(1, -1))[0].tolist()
        open_browser.choose_file(".file input", file)
        open_browser.wait(f"{_SCORES}.join() === '{','.join(map(str, scores))}'")
    open_browser.run(
        "[...document.querySelectorAll('button')]"
        ".find((one) => one.textContent === 'Camera').click()"
    )
    open_browser.wait(
        "[...document.querySelectorAll('.tools button')].some((one) => one.textContent === 'Stop')"
    )
    assert open_browser.console == []


def _labels_of(model, samples) -> list[str]:
    """Return what Python says at each hop: labels, or events of models that tell these."""
    n, hop = model.input.rows, model.hop
    ends = range(n, len(samples) - model.delay + 1, hop)
    scores = model.scores(np.array([samples[end - n : end].ravel() for end in ends]))
    if model.events is None:
        return [str(model.classes[i]) for i in scores.argmax(axis=1)]
    return [str(model.classes[i]) for i in model.events.follow(scores) if i >= 0]


_LIST = (
    "[...document.querySelectorAll('.decisions li')].reverse()"
    ".map((one) => one.textContent.split(': ')[1].split(',')[0])"
)


def test_sound(open_browser, tmp_path) -> None:
    """A WAV file gives the decisions of Python at every hop; the microphone streams, too."""
    model = spectral_model(1)
    _opened(open_browser, tmp_path, model, {"recordings": {"rate": 8000}})
    length = model.input.rows + model.delay + 310 * model.hop
    noise = np.random.default_rng(0).integers(-9000, 9000, length)
    samples = (noise * np.sin(np.arange(length) / 700)).astype("<i2")
    files = {"noise": samples, "short": samples[-model.input.rows // 2 :]}
    for name, part in files.items():
        with wave.open(str(tmp_path / f"{name}.wav"), "wb") as sound:
            sound.setparams((1, 2, 8000, 0, "NONE", ""))
            sound.writeframes(part.tobytes())
    open_browser.choose_file(".file input", tmp_path / "short.wav")
    padded = np.pad(files["short"], (0, model.input.rows + model.delay - len(files["short"])))
    open_browser.wait("document.querySelectorAll('.decisions li').length > 0")
    assert open_browser.run(_LIST)[:1] == _labels_of(model, padded[:, None])
    open_browser.choose_file(".file input", tmp_path / "noise.wav")
    labels = _labels_of(model, samples[:, None])
    assert len(labels) >= 300
    open_browser.wait(f"document.querySelectorAll('.decisions li').length === {len(labels)}")
    assert open_browser.run(_LIST) == labels
    open_browser.run("document.querySelector('.tools button').click()")
    open_browser.wait("document.querySelectorAll('.decisions li').length % 300 > 2")
    assert open_browser.console == []


def test_sensor(open_browser, tmp_path) -> None:
    """A CSV file of a sensor gives the events of Python, whatever the order of its columns."""
    stage = random_signal_stage(13, hop=4, channels=3)
    model = with_events(local_model(stage, 13), pause=0)
    about = {"recordings": {"rate": 200.0, "channels": ["x", "y", HOSTILE]}}
    about["events"] = {"curve": [{"false_alarms_an_hour": 2.0, "missed": 0.5}]}
    _opened(open_browser, tmp_path, model, about)
    assert open_browser.run("document.querySelectorAll('.plot circle').length") == 1
    assert open_browser.run("document.querySelector('.tools select').value") == "m/s²"
    low, high = (np.iinfo(model.raw_dtype).min, np.iinfo(model.raw_dtype).max)
    rng = np.random.default_rng(1)
    samples = rng.integers(low, high, (model.input.rows + 4000, 3), endpoint=True)
    lines = [f"{z},{i / 50},{y},{x}" for i, (x, y, z) in enumerate(samples.tolist())]
    (tmp_path / "run.csv").write_text("\n".join([f'"{HOSTILE}",time,y,x', *lines]), "utf-8")
    (tmp_path / "bad.csv").write_text(f'"{HOSTILE}",time,y,x\n1,0,five,2', "utf-8")
    open_browser.choose_file(".file input", tmp_path / "bad.csv")
    open_browser.wait("document.querySelector('.inputs > p').textContent.includes('is no number')")
    open_browser.choose_file(".file input", tmp_path / "run.csv")
    events = _labels_of(model, samples.astype(model.raw_dtype))
    open_browser.wait(
        "document.querySelector('.inputs > p').textContent.includes('1001 decisions')"
    )
    assert len(events) > 20
    assert open_browser.run(_LIST) == events[-400:]
    # The motion sensor, at rest: 98.0665 m/s² are 10 g.
    open_browser.run("document.querySelector('.tools select').value = 'g'")
    open_browser.run("document.querySelector('.tools button').click()")
    for event in 2 * ["{ x: 98.0665, y: 98.0665, z: 98.0665 }"]:
        open_browser.run(
            "window.dispatchEvent(new DeviceMotionEvent('devicemotion', "
            f"{{ accelerationIncludingGravity: {event} }}));"
            "new Promise((later) => setTimeout(later, 500))"
        )
    still = np.full((1, model.n_inputs), 10, model.raw_dtype)
    assert open_browser.run(_SCORES) == model.scores(still)[0].tolist()
    assert open_browser.console == []
