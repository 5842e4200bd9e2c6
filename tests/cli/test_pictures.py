"""From a folder of pictures to a model and back."""

import re

import numpy as np
import pytest

from tests.cli.tools import failed, json_of, run, sets, succeeded
from tinykernel.model.file import about

QUICK = (*sets("n_channels=16", "epochs=3", "model=chains"), "--effort", "quick", "--quiet")


@pytest.fixture(scope="module")
def trained(require_tool, tmp_path_factory):
    """A folder with pictures of bars that stand and lie, one of them broken, and a model."""
    require_tool("PIL")
    from PIL import Image

    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    for number in range(48):
        label = ("lie", "stand")[number % 2]
        pixels, at = rng.normal(60, 10, (24, 32, 3)), rng.integers(5, 15)
        bar = (slice(None), slice(at, at + 5)) if number % 2 else (slice(at, at + 5),)
        pixels[bar] += 120
        (folder / "bars" / label).mkdir(parents=True, exist_ok=True)
        picture = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
        picture.save(folder / "bars" / label / f"p{number % 6}_{number}.jpg")
    (folder / "bars" / "lie" / "p0_bad.jpg").write_bytes(b"\xff\xd8\xff")
    succeeded("train", folder / "bars", "--image-shape", "12x12", "-o", folder / "m.tkm", *QUICK)
    return folder


def test_pictures_go_the_whole_way(trained):
    """Other commands resize as the training did; the broken picture is told, and kept out."""
    assert about(trained / "m.tkm")["pictures"] == {}
    found = json_of("evaluate", trained / "m.tkm", trained / "bars")
    assert found["part"] == "test rows (20.8 % held out, stratified, seed 0)"
    assert found["accuracy"] == 1.0
    assert found["notes"] == ["left out: 1 of 49 pictures: p0_bad.jpg (is not a picture)"]
    found = json_of("verify", trained / "m.tkm", trained / "bars")
    assert (found["rows"], found["differences"]) == (10, 0)


def test_images_with_text_labels_have_a_page(trained, tmp_path):
    """A folder of pictures, and an .npz with labels of text, give a page with test images."""
    X = np.random.default_rng(0).integers(0, 256, (20, 12, 12), np.uint8)
    np.savez(tmp_path / "d.npz", X=X, y=np.array(["lie", "stand"] * 10))
    for data in (trained / "bars", tmp_path / "d.npz"):
        page = ("--html", tmp_path / "p.html", "--data", data, "--compiler", "none")
        succeeded("report", trained / "m.tkm", *page, "-q")
        text = (tmp_path / "p.html").read_text()
        assert "data:image/png" in text
        assert "stand" in text


def test_a_size_is_chosen_where_none_is_given(require_tool, tmp_path):
    """Sizes up to that of the pictures compete on training pictures, and a note says so."""
    require_tool("PIL")
    from PIL import Image

    rng = np.random.default_rng(1)
    for number in range(252):
        folder = tmp_path / "dots" / ("dark", "light")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 200, (20, 20)) + 55 * (number % 2)
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{number}.png")
    options = (*sets("n_channels=16", "epochs=1"), "-o", tmp_path / "m.tkm")
    text = run("train", tmp_path / "dots", *options).output
    assert re.search("note: pictures become (16x16|24x24)x1; --image-shape", text)
    assert re.search(
        "note: (16 x 16 chosen over 24 x 24|24 x 24 chosen over 16 x 16) on held", text
    )
    assert json_of("verify", tmp_path / "m.tkm", tmp_path / "dots")["differences"] == 0
    side = 16 if "become 16x16" in text else 24  # which inspect did not show
    assert json_of("inspect", tmp_path / "m.tkm")["shape"] == [side, side]


def test_a_picture_gets_its_label(trained):
    """`predict FILE.jpg` prints the label beside the name of the file."""
    file = trained / "bars" / "stand" / "p1_1.jpg"
    lines = run("predict", trained / "m.tkm", file).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["picture", "label", "lie", "stand"]
    assert [line.split()[1] for line in lines[:2]] == ["p1_1.jpg", "stand"]
    broken = trained / "bars" / "lie" / "p0_bad.jpg"
    failed("predict", trained / "m.tkm", broken, "--quiet")
    other = trained / "other" / "circle" / "0.jpg"
    other.parent.mkdir(parents=True)
    other.write_bytes(file.read_bytes())
    failed("evaluate", trained / "m.tkm", other.parent, "--quiet")
