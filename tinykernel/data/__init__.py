"""Data sets from files: `load_data` gives rows to train on, `load_rows` rows for a finished model.

`paths` finds files, `load` reads and splits rows, `formats` reads each kind of file, `checks`
refuses what is no data set. Every fault is one line that names the file and the place in it.
"""
