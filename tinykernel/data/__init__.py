"""Data sets from files: `load_data` gives rows to train on, `load_rows` rows for a finished model.

`load` finds files and splits rows, `formats` reads each kind of file, `checks` refuses what is no
data set. Every fault is one line that names the file and the place in it.
"""

from __future__ import annotations

from tinykernel.data.load import Dataset, Rows, find_data, load_data, load_rows, split_data

__all__ = ["Dataset", "Rows", "find_data", "load_data", "load_rows", "split_data"]
