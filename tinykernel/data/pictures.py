"""Folders of pictures: found, decoded by Pillow, brought to the input shape of a model."""

from __future__ import annotations

import contextlib
import os
import stat
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import DataError, FileError, OptionError, ToolError
from tinykernel.base.progress import report as say
from tinykernel.base.resizing import resize
from tinykernel.base.text import count
from tinykernel.data.delimited import text_labels
from tinykernel.data.labels import NamePattern
from tinykernel.data.paths import PICTURES, TEST, TRAIN, data_folder, files_with, find_data
from tinykernel.data.tables import FilePart, Parts

#: Most pixels of a picture: turning it takes eight bytes a pixel; decoders of two formats 16 to 24.
MOST_PIXELS = 50_000_000
_LARGE_DECODERS = ("JPEG2000", "WEBP")
_TOO_MANY = "has more than {} million pixels"
# Other readers of Pillow start programs, or take vector graphics.
_FORMATS = ("JPEG", "PNG", "BMP", "WEBP", "GIF", "TIFF", "PPM", "JPEG2000", "AVIF")
_GREY = ("1", "L", "LA", "I;16", "I;16B", "I;16L", "I;16N")


class BrokenPictureError(Exception):
    """A picture that cannot be used; the message says why."""


def pillow() -> Any:
    """Import Pillow; TinykernelError if it is missing."""
    try:
        from PIL import Image
    except ImportError:
        raise ToolError(
            "pictures need Pillow; install it: pip install 'tinykernel-mcu[images]'"
        ) from None
    return Image


def _mode(file: Path) -> str:
    """Return Pillow's mode of a picture; of a broken one that of grey."""
    try:
        with _opened(file) as image:
            return str(image.mode)
    except BrokenPictureError:
        return _GREY[0]


def decoded(file: Path, rows: int, columns: int, channels: int) -> NDArray[np.uint8]:
    """Return a picture, cropped and resized, uint8 (rows, columns, channels).

    It is turned by its EXIF orientation. Transparency becomes white, 16-bit greys lose their lower
    8 bits, and colours become grey (1 channel) before resizing by ``(19595 R + 38470 G + 7471 B +
    32768) >> 16`` (Pillow; ITU-R BT.601).
    """
    from PIL import ImageOps

    mode = "L" if channels == 1 else "RGB"
    try:
        with _opened(file) as image:
            image.load()
            ImageOps.exif_transpose(image, in_place=True)  # in half the memory
            width, height = image.size

            def rows_of(top: int, end: int) -> NDArray[np.uint8]:
                part = np.asarray(_plain(image.crop((0, top, width, end)), mode))
                return part.reshape(end - top, width, channels)

            return resize(rows_of, height, width, rows, columns)
    except Exception as error:  # Pillow raises any exception for damaged bytes
        raise _broken(error) from None


def _opened(file: Path) -> Any:
    """Open a picture; only its header is read."""
    Image = pillow()
    try:
        status = os.stat(file)
        if not stat.S_ISREG(status.st_mode):
            raise BrokenPictureError("is not a file")
        if not status.st_size:
            raise BrokenPictureError("has 0 bytes")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sizes, which are checked below, and of metadata
            image = Image.open(file, formats=_FORMATS)
        width, height = image.size
        frames = 1 if image.format == "MPO" else getattr(image, "n_frames", 1)
        problem = ""
        most = MOST_PIXELS // (2 if image.format in _LARGE_DECODERS else 1)
        if width * height > most:
            problem = _TOO_MANY.format(most // 10**6)
        elif frames > 1:
            problem = f"is animated, or has several pages ({frames})"
        elif image.mode in ("I", "F"):
            problem = "has 32 bits per pixel"
        if problem:
            image.close()
            raise BrokenPictureError(problem)
        return image
    except Image.DecompressionBombError:
        raise BrokenPictureError(_TOO_MANY.format(MOST_PIXELS // 10**6)) from None
    except Image.UnidentifiedImageError:
        raise BrokenPictureError("is not a picture") from None
    except Exception as error:  # Pillow raises any exception for damaged bytes
        raise _broken(error) from None


def _broken(error: Exception) -> BrokenPictureError:
    """Return an error that says briefly what is wrong with a file."""
    if isinstance(error, BrokenPictureError):
        return error
    if isinstance(error, OSError) and error.strerror:
        return BrokenPictureError(f"cannot be read ({error.strerror})")
    if "truncated" in str(error).lower():
        return BrokenPictureError("is cut short")
    return BrokenPictureError("is damaged")


def _plain(image: Any, mode: str) -> Any:
    Image = pillow()
    if image.mode.startswith("I;16"):
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, (255, 255, 255, 255))
        image = Image.alpha_composite(white, image)
    if image.mode not in ("1", "L", "RGB"):
        image = image.convert("RGB")
    return image.convert(mode)


_HELD = ("val", "valid", "validation")
_UNREAD = (".heic", ".heif", ".jxl", ".dng", ".svg")


@dataclass(frozen=True)
class PictureFiles:
    """Pictures in the order of their names."""

    source: Path  # the file or folder
    train: list[Path]  # all pictures, or those below the folder ``train``
    test: list[Path]
    notes: tuple[str, ...] = ()  # on pictures that are not used


def find_pictures(path: str | os.PathLike[str]) -> PictureFiles:
    """Find the pictures of a file, or of a folder and below it, except hidden ones."""
    folder = data_folder(path)
    if folder is None:
        file = find_data(path)
        return PictureFiles(file, [file], [])
    files = files_with(folder, PICTURES)
    if not files:
        raise FileError(f"{folder}: holds no pictures ({', '.join(PICTURES)})")
    unread = files_with(folder, _UNREAD)
    notes = [f"not read: {_pictures(unread)}; convert them to .jpg"] if unread else []
    parts = [file.relative_to(folder).parts[0].lower() for file in files]
    test_parts = TEST if set(parts) & set(TEST) else _HELD
    train = [file for file, part in zip(files, parts, strict=True) if part in TRAIN]
    test = [file for file, part in zip(files, parts, strict=True) if part in test_parts]
    if not train or not test:
        return PictureFiles(folder, files, [], tuple(notes))
    rest = sorted({*files} - {*train, *test})
    if rest:
        notes.append(f"not used: {_pictures(rest)}, beside the folders of training and test")
    return PictureFiles(folder, train, test, tuple(notes))


def _pictures(files: Sequence[Path]) -> str:
    return f"{count(len(files), 'picture')}, such as {files[0].name}"


def labels_of(
    files: Sequence[Path], pattern: NamePattern | None, *, needed: bool
) -> tuple[list[str] | None, list[str] | None]:
    """Return a label, by default of the folder, and a group each; None where names have none."""
    if pattern is None and needed:
        _refuse_strays(files)
    if pattern is None:
        return [_folder_of(file) for file in files], None
    if not needed and not any(map(pattern.find, files)):
        return None, None
    known = [pattern.find(file, needed=True) or (None, None) for file in files]
    labels = [label or _folder_of(file) for file, (label, _) in zip(files, known, strict=True)]
    return labels, [group for _, group in known if group is not None] or None


def _folder_of(file: Path) -> str:
    return Path(os.path.abspath(file)).parent.name


def _refuse_strays(files: Sequence[Path]) -> None:
    """Refuse pictures beside the folders of classes: they would become a class, too."""
    folders = {file.parent for file in files}
    above = {folder for inner in folders for folder in inner.parents}
    stray = next((file for file in files if file.parent in above), None)
    if stray is not None:
        raise DataError(
            f"{stray}: is not in the folder of a class; move it, or give the place of the label "
            "with --name"
        )


# Default side, and pictures that are looked at for sizes and colours.
_SIDE, _LOOKED_AT = 32, 100
# Sides of squares among which `train` chooses.
_SIDES = (16, 24, 32, 48)
_MOST_BYTES = 2**28  # of pictures of which the size is not yet chosen
_NAMED = 3
_FEW_LEVELS = 64  # of 256


class Camera(Protocol):
    """What turns pictures into the bytes of a frame."""

    @property
    def frame(self) -> tuple[int, int, int]:
        """Rows, columns and bytes of a pixel."""

    def encoded(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Encode red, green and blue (rows, columns, 3) as bytes of a frame."""


@dataclass(frozen=True)
class PictureReading:
    """How pictures are read; without a shape they become squares."""

    shape: tuple[int, ...] | None = None  # rows, columns, and channels: 1, grey, or 3
    name: str | None = None  # see `NamePattern`; else the label is the name of the folder
    label: str | None = None  # fields of `name`
    groups: str | None = None
    camera: Camera | None = None  # arrays then hold the bytes of its frames
    side: int = _SIDE  # pixels, without a shape

    def __post_init__(self) -> None:
        """Check the fields."""
        if self.name is None and (self.label or self.groups):
            option = "--label" if self.label else "--groups"
            raise OptionError(
                f"{option}: pictures have no columns; give its place in their names, as in "
                "--name '{label}_{person}_*'"
            )
        if self.camera is not None and self.shape is None:
            raise OptionError("frame: needs {image_shape} to resize to", image_shape=(32, 32, 3))
        if self.shape is not None and self.channels not in (1, 3):
            raise OptionError(
                f"image_shape: {self.channels} channels; give 1 (grey) or 3, as {{image_shape}}",
                image_shape=(32, 32, 3),
            )

    @property
    def channels(self) -> int:
        """Channels of the shape."""
        assert self.shape is not None
        return self.shape[2] if len(self.shape) == 3 else 1

    @property
    def remembered(self) -> dict[str, Any]:
        """Settings for the model file, as JSON types."""
        left_out = ("shape", "side", "camera")
        return {k: v for k, v in vars(self).items() if k not in left_out and v is not None}


def read_pictures(path: str | os.PathLike[str], how: PictureReading, *, to_train: bool) -> Parts:
    """Read a picture, or a folder of pictures, which may have the parts train and test."""
    # X is uint8 (n, rows, columns, channels), of frames (n, height, width, bytes). Without
    # `to_train` labels are optional, and only the test part is read, where there is one.
    pillow()
    files = find_pictures(path)
    notes = files.notes
    if how.shape is None:
        channels = 3 if any(_mode(file) not in _GREY for file in _looked_at(files)) else 1
        how = replace(how, shape=(how.side, how.side, channels))
        size = "x".join(map(str, how.shape or ()))
        notes = (*notes, f"pictures become {size}; --image-shape chooses another size")
    pattern = None if how.name is None else NamePattern(how.name, how.label, how.groups)
    test = _part(files.source, files.test, how, pattern, to_train) if files.test else None
    if test is not None and not to_train:
        return Parts(None, replace(test, notes=(*notes, *test.notes)))
    train = _part(files.source, files.train, how, pattern, to_train)
    levels = 1 + int(np.ptp(train.X))
    if levels < _FEW_LEVELS and any(_mode(file).startswith("I;16") for file in _looked_at(files)):
        few = f"only {levels} levels are left of 16-bit pictures, which lose their lower 8 bits"
        notes = (*notes, f"{few}; scale them, or give an array")
    notes = (*notes, *train.notes, *(() if test is None else test.notes))
    return Parts(replace(train, notes=notes), test)


def _looked_at(files: PictureFiles) -> list[Path]:
    return files.train[:: max(1, len(files.train) // _LOOKED_AT)]


def usual_sides(path: str | os.PathLike[str]) -> list[int]:
    """Return sides of squares that pictures may become: up to the shorter side of most of them."""
    files, shorter = find_pictures(path), list[int]()
    for file in _looked_at(files):
        with contextlib.suppress(BrokenPictureError), _opened(file) as image:
            shorter.append(min(image.size))
    most = float(np.median(shorter)) if shorter else _SIDE
    sides = [side for side in _SIDES[1:] if 3 * side * side <= _MOST_BYTES / len(files.train)]
    return [_SIDES[0], *(side for i, side in enumerate(sides) if _SIDES[i] < most)]


def _part(
    source: Path,
    files: Sequence[Path],
    how: PictureReading,
    pattern: NamePattern | None,
    labels_needed: bool,
) -> FilePart:
    labels, groups = labels_of(files, pattern, needed=labels_needed)
    if not labels_needed and source.is_file():
        labels = None  # the folder of a single picture is not its label
    camera = how.camera
    assert how.shape is not None
    shape = (*how.shape[:2], how.channels) if camera is None else camera.frame
    X = np.empty((len(files), *shape), np.uint8)
    readable, broken = list[int](), list[str]()
    for i, file in enumerate(files):
        say("reading", i, len(files), file.name)
        try:
            if camera is None:
                X[len(readable)] = decoded(file, *shape)
            else:
                X[len(readable)] = camera.encoded(decoded(file, shape[0], shape[1], 3))
        except BrokenPictureError as error:
            if len(files) == 1:
                raise DataError(f"{file}: {error}") from None
            broken.append(f"{file.name} ({error})")
        else:
            readable.append(i)
    if not readable:
        raise DataError(f"{source}: none of {len(files)} pictures can be read: {broken[0]}")
    base = source if source.is_dir() else source.parent
    names = [files[i].relative_to(base).as_posix() for i in readable]
    return FilePart(
        source,
        "",
        X[: len(readable)],
        None if labels is None else text_labels([labels[i] for i in readable]),
        None if groups is None else np.array([groups[i] for i in readable]),
        names=tuple(names),
        notes=_left_out(broken, len(files)),
    )


def _left_out(broken: Sequence[str], n: int) -> tuple[str, ...]:
    """Return a note on the pictures that cannot be read."""
    if not broken:
        return ()
    more = f" and {len(broken) - _NAMED} more" if len(broken) > _NAMED else ""
    return (f"left out: {len(broken)} of {n} pictures: {', '.join(broken[:_NAMED])}{more}",)
