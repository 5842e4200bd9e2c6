"""Folders of pictures: `reading` leads; `decoding` and `resizing` do the steps."""

from __future__ import annotations

from tinykernel.data.pictures.reading import PictureReading, read_pictures

__all__ = ["PictureReading", "read_pictures"]
