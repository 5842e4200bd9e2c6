"""Training of the parts of a read-out, one file each."""
