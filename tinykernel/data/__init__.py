"""Data sets from files: `load_data` gives rows to train on, `load_rows` rows for a finished model.

`paths` finds files, `formats` reads each kind of file, `faults` refuses what is no data set,
`partition` splits rows. Every fault is one line that names the file and the place in it.
"""
