"""Where data are: a file or folder as it is given, or in the folder TINYKERNEL_DATA.

The command line reads this module before anything heavy.
"""

from __future__ import annotations

import os
from pathlib import Path

from tinykernel.errors import TinykernelError

SOUNDS = (".wav", ".flac", ".ogg")


def find_data(path: str | os.PathLike[str]) -> Path:
    """Find a data file: as it is given or, for a bare file name, in the folder TINYKERNEL_DATA.

    A file that is in neither place is a TinykernelError.
    """
    given = Path(path)
    if given.is_file():
        return given
    if given.is_dir():
        raise TinykernelError(f"{given}: is a folder; give a data file")
    folder = os.environ.get("TINYKERNEL_DATA")
    if folder and given.name == str(given):
        shared = Path(folder) / given
        if shared.is_file():
            return shared
        raise TinykernelError(f"{given}: no such file here or in {folder} (TINYKERNEL_DATA)")
    raise TinykernelError(f"{given}: no such file")


def is_recording(path: str | Path) -> bool:
    """Whether a path can only mean recordings: a folder, a sound."""
    given = Path(path)
    if given.suffix.lower() in SOUNDS or given.is_dir():
        return True
    shared = os.environ.get("TINYKERNEL_DATA")
    alone = not given.exists() and given.name == str(given)
    return bool(shared) and alone and (Path(str(shared)) / given).is_dir()
