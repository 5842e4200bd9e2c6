"""Bounds of distances to prototypes, for check_proof.py: see proof_pieces.py."""

import numpy as np

MACRO = "ONE_CLASS"


def outputs(c, n):
    """Return the ends of the distance, and its bounds."""
    level = c.fields("tk_prototypes", 28 - 4 * np.arange(8), 4)
    mean = 16 * level.reshape(c("PROTOTYPES"), -1)[:, : c("FEATURES")] + 8
    far = (np.maximum(127 - mean, mean + 128) ** 2).sum(axis=1).max()
    return (0, far), [("distance", 0, far)]
