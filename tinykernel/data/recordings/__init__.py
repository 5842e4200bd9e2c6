"""Recordings to windows: `reading` leads; `files`, `tracks` and `cutting` do the steps."""

from tinykernel.data.recordings.cutting import Stretch, Windows, window_starts
from tinykernel.data.recordings.reading import windows

__all__ = ["Stretch", "Windows", "window_starts", "windows"]
