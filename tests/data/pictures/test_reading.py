"""Folders of pictures: which files are read, what their names say, what becomes of broken ones."""

import os
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from tests import refusals
from tests.loading import load_data, load_rows
from tinykernel.base.errors import OptionError, TinykernelError
from tinykernel.data.paths import kind_of
from tinykernel.data.pictures import PictureReading, read_pictures, usual_sides

SHAPE = (4, 4, 3)

pytestmark = pytest.mark.usefixtures("page")


@pytest.fixture(scope="module")
def image(require_tool):
    """Return the module that makes pictures."""
    require_tool("PIL")
    from PIL import Image

    return Image


@pytest.fixture
def photos(image, tmp_path):
    """Two classes of four pictures each."""
    rng = np.random.default_rng(0)
    for label, colour in (("cat", (200, 40, 40)), ("dog", (40, 40, 200))):
        (tmp_path / "photos" / label).mkdir(parents=True)
        for number in range(4):
            pixels = np.clip(rng.normal(colour, 9, (12, 16, 3)), 0, 255).astype(np.uint8)
            image.fromarray(pixels).save(tmp_path / "photos" / label / f"{number}.png")
    return tmp_path / "photos"


def read(path, shape=SHAPE, **how):
    """Read pictures to train on."""
    return read_pictures(path, PictureReading(shape, **how), to_train=True).train


def refused(path, **how):
    return refusals.refused(TinykernelError, read, path, **how)


def _zeros(n):
    """Compress n zeros."""
    packer = zlib.compressobj()
    return b"".join(packer.compress(bytes(10**6)) for _ in range(n // 10**6)) + packer.flush()


def png(width, height, body=b"", *more):
    """Make a .png that claims a size, with more chunks."""

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    texts = b"".join(chunk(*each) for each in more)
    data = texts + chunk(b"IDAT", zlib.compress(body)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + data


def test_the_folder_is_the_label(photos):
    """Labels are the names of folders, in the order of the files, and test rows are held out."""
    part = read(photos)
    assert part.y.tolist() == ["cat"] * 4 + ["dog"] * 4
    assert part.X.shape == (8, *SHAPE)
    assert part.names[5] == "dog/1.png"
    assert kind_of(photos) == "pictures"
    data = load_data(photos, pictures=PictureReading(SHAPE), test_size=0.25)
    assert data.split == "6 training rows, 2 test rows (25 % held out, stratified, seed 0)"
    assert data.X_train.shape == (6, 48)
    assert data.shape == SHAPE


def test_names_say_label_and_group(image, tmp_path):
    """--name takes label and group from file names, and whole groups are held out."""
    for number in range(12):
        name = f"{'ab'[number % 2]}_p{number // 4}_{number}.png"
        image.new("L", (8, 8), number).save(tmp_path / name)
    how = PictureReading((4, 4), name="{label}_{person}_{n}")
    data = load_data(tmp_path, pictures=how, test_size=0.34)
    assert sorted(set(data.y_train.tolist())) == ["a", "b"]
    assert set(data.group_train.tolist()).isdisjoint(data.group_test.tolist())
    refused(tmp_path, name="{label}-{person}-{n}")
    with pytest.raises(OptionError):
        PictureReading(groups="person")


def test_train_and_test_folders_are_the_parts(photos, tmp_path):
    """The split of the folder is taken, what lies beside is told, and models see the test part."""
    (tmp_path / "all").mkdir()
    photos.rename(tmp_path / "all" / "train")
    for other in ("test", "extra"):
        (tmp_path / "all" / other / "dog").mkdir(parents=True)
        (tmp_path / "all" / other / "dog" / "9.png").write_bytes(
            (tmp_path / "all" / "train" / "dog" / "0.png").read_bytes()
        )
    data = load_data(tmp_path / "all", pictures=PictureReading(SHAPE))
    assert data.split == "8 training rows, 1 test row (as the file splits them)"
    beside = "not used: 1 picture, such as 9.png, beside the folders of training and test"
    assert data.notes == (beside,)
    rows = load_rows(tmp_path / "all", pictures=PictureReading(SHAPE), classes=["cat", "dog"])
    assert (rows.part, rows.names, rows.y.tolist()) == (
        "the test part",
        ("test/dog/9.png",),
        ["dog"],
    )


def test_pictures_that_lose_content_are_told(image, photos):
    """Formats that are not read and dark 16-bit greys are told; val is the test part."""
    (photos / "dog" / "9.heic").write_bytes(b"0")
    dark = np.random.default_rng(0).integers(2700, 3100, (2, 6, 8, 8), dtype=np.uint16)
    for part, pixels in zip(("train", "val"), dark, strict=True):
        for number, each in enumerate(pixels):
            file = photos.parent / "deep" / part / "ab"[number % 2] / f"{number}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            image.fromarray(each).save(file)
    assert load_data(photos, pictures=PictureReading(SHAPE)).notes == (
        "not read: 1 picture, such as 9.heic; convert them to .jpg",
    )
    data = load_data(photos.parent / "deep", pictures=PictureReading((8, 8)))
    assert data.split == "6 training rows, 6 test rows (as the file splits them)"
    assert data.notes == (
        "only 3 levels are left of 16-bit pictures, which lose their lower 8 bits; scale them, "
        "or give an array",
    )


def test_labels_that_are_no_classes_are_none(photos):
    """A picture from any folder is predicted, whatever the name of the folder."""
    rows = load_rows(photos, pictures=PictureReading(SHAPE), classes=["left", "right"])
    assert rows.y is None
    one = load_rows(photos / "cat" / "0.png", pictures=PictureReading(SHAPE), classes=["cat", "x"])
    assert (one.X.shape, one.y, one.names) == ((1, 48), None, ("0.png",))


def test_every_mode_becomes_grey_or_colour(image, tmp_path):
    """Palette, alpha, 1 bit, 16 bits and CMYK give the pixels that a viewer shows."""
    red = image.new("RGB", (4, 4), (255, 0, 0))
    expected = {
        "palette": (red.convert("P"), [255, 0, 0]),
        "alpha": (image.new("RGBA", (4, 4), (0, 0, 0, 0)), [255, 255, 255]),
        "grey_alpha": (image.new("LA", (4, 4), (10, 255)), [10, 10, 10]),
        "bits": (image.new("1", (4, 4), 1), [255, 255, 255]),
        "deep": (image.fromarray(np.full((4, 4), 0x8142, np.uint16)), [0x81] * 3),
        "red": (red, [255, 0, 0]),
    }
    for name, (picture, _) in expected.items():
        picture.save(tmp_path / f"{name}.png")
    part = read(tmp_path, (1, 1, 3), name="{label}")
    found = dict(zip(part.y.tolist(), part.X.reshape(-1, 3).tolist(), strict=True))
    assert found == {name: pixel for name, (_, pixel) in expected.items()}
    grey = read(tmp_path / "red.png", (1, 1))
    assert grey.X.ravel().tolist() == [(19595 * 255 + 32768) >> 16]


def test_pictures_are_turned_as_exif_says(image, tmp_path):
    """A phone stores a portrait lying down: orientation 6 turns it by a quarter clockwise."""
    pixels = np.zeros((2, 4, 3), np.uint8)
    pixels[:, :2] = 255  # the left half is white
    exif = image.Exif()
    exif[0x0112] = 6
    image.fromarray(pixels).save(tmp_path / "a.png", exif=exif)
    assert read(tmp_path / "a.png", (2, 1)).X.ravel().tolist() == [255, 0]


def test_without_a_shape_grey_pictures_stay_grey(image, tmp_path):
    """The channels are those of the pictures, and a line says what they become."""
    for name in ("a_1", "b_2"):
        image.new("L", (8, 8)).save(tmp_path / f"{name}.png")
    part = read(tmp_path, None, name="{label}_{n}")
    assert part.X.shape == (2, 32, 32, 1)
    assert part.notes == ("pictures become 32x32x1; --image-shape chooses another size",)


@pytest.fixture
def hostile(photos, image):
    """The folder with one file of each kind that must not end a training."""
    cat = photos / "cat"
    (cat / "a_empty.jpg").write_bytes(b"")
    (cat / "b_text.jpg").write_text("no picture")
    whole = (cat / "0.png").read_bytes()
    (cat / "c_short.png").write_bytes(whole[: len(whole) // 2])
    (cat / "d_large.png").write_bytes(png(20_000, 20_000))
    (cat / "e_bomb.png").write_bytes(png(2**31 - 1, 2**31 - 1))
    frames = [image.new("L", (8, 8), number) for number in (0, 99, 255)]
    frames[0].save(cat / "f_film.gif", save_all=True, append_images=frames[1:])
    (cat / "g_circle.jpg").symlink_to(cat / "g_circle.jpg")
    os.mkfifo(cat / "h_pipe.jpg")
    (cat / "i_wide.png").write_bytes(png(8, 8, b"\0" * 3))
    return photos


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes and links")
@pytest.mark.filterwarnings("error")
def test_broken_pictures_are_counted_and_named(hostile):
    """Nine kinds of broken files are left out in one line."""
    part = read(hostile)
    assert part.names == tuple(f"{label}/{n}.png" for label in ("cat", "dog") for n in range(4))
    assert part.notes == (
        "left out: 9 of 17 pictures: a_empty.jpg (has 0 bytes), b_text.jpg (is not a picture), "
        "c_short.png (is cut short) and 6 more",
    )


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes and links")
@pytest.mark.parametrize(
    "name",
    [
        *("a_empty.jpg", "b_text.jpg", "c_short.png", "d_large.png", "e_bomb.png", "f_film.gif"),
        *("g_circle.jpg", "h_pipe.jpg", "i_wide.png", "j_claims.ppm", "k_texts.png"),
        *("l_folder.jpg", "m_programs.png", "n_decoder.jp2", "n_decoder.webp"),
    ],
)
def test_a_hostile_picture_is_one_line(hostile, image, monkeypatch, name):
    """Each has its own line; what is too large for its decoder is not decoded."""
    file = hostile / "cat" / name
    if name == "j_claims.ppm":
        file.write_bytes(b"P6 7000 7000 255\n" + b"\0" * 100)
    if name == "k_texts.png":  # 64 MB of a comment are allowed
        file.write_bytes(png(8, 8, b"\0" * 200, (b"zTXt", b"a\0\0" + _zeros(10**8))))
    if name == "l_folder.jpg":
        file.mkdir()
    if name == "m_programs.png":
        file.write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n")
    if name.startswith("n_"):
        image.new("RGB", (5200, 5000)).save(file)
    if name[0] in "den":
        monkeypatch.setattr("PIL.ImageFile.ImageFile.load", None)
    refused(file)


def test_a_link_back_to_its_folder_is_not_followed(photos):
    """Links in a circle are no endless walk."""
    before = len(read_pictures(photos, PictureReading(), to_train=True).any_part.X)
    (photos / "cat" / "again").symlink_to(photos)
    assert len(read_pictures(photos, PictureReading(), to_train=True).any_part.X) == before


def test_pictures_without_pillow(photos, monkeypatch):
    """Where Pillow is missing the message says what to install."""
    monkeypatch.setitem(sys.modules, "PIL", None)
    refused(photos)


def test_a_folder_of_recordings_is_none_of_pictures(tmp_path):
    """A drawing beside recordings does not make a folder one of pictures."""
    for name in ("a.csv", "b.csv", "a.png"):
        (tmp_path / name).touch()
    assert kind_of(tmp_path) == "recordings"
    assert kind_of(Path("x.JPG")) == "pictures"


def test_sizes_end_at_the_pictures(image, tmp_path, monkeypatch):
    """No size is much larger than most pictures, nor are many pictures read in a large one."""
    for number, side in enumerate((8, 28, 40)):
        image.new("L", (side + 50, side)).save(tmp_path / f"{number}.png")
    assert usual_sides(tmp_path) == [16, 24, 32]
    assert usual_sides(tmp_path / "0.png") == [16]
    assert usual_sides(tmp_path / "2.png") == [16, 24, 32, 48]
    monkeypatch.setattr("tinykernel.data.pictures._MOST_BYTES", 3 * 3 * 24 * 24)
    assert usual_sides(tmp_path) == [16, 24]
