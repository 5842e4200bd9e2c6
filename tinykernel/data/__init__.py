"""Data sets from files: `load_data` for training, `load_rows` for a finished model.

`paths` finds files, `formats` reads each kind of file, `faults` checks the data, `partition` splits
rows. Every fault is one line that names the file and the place in it.
"""
