"""What the checkers of all pieces share: see check_proof.py."""

import sys

import numpy as np

INT32 = (-(2**31) + 1, 2**31 - 1)
ENDS = (np.minimum, np.maximum)


def need(holds, what):
    if not holds:
        shown = "".join(x if " " <= x <= "~" else " " for x in str(what))
        sys.exit(f"refused: {' '.join(shown.split())[:400]}")


def blocks_of(size, per_word):
    """Return the words that `size` values take, with `per_word` of them in a word."""
    return -(-int(size) // per_word)


def counts(c, n):
    """Return the words that n counts take."""
    return blocks_of(n, 4 if c.most_count < 256 else 2)


def samples(c, n):
    """Return the words that n raw values take."""
    return blocks_of(n, 1 if c.raw is None else 32 // c.raw.bits)
