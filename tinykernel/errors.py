"""The exception for problems that the user can fix."""

from __future__ import annotations


class TinykernelError(ValueError):
    """A problem in what the user gave: one line that says what, where, and what to do.

    The command line prints the message without a traceback and exits with a status other than 0.
    As a `ValueError` it is also what scikit-learn expects of an estimator that refuses its input.

    Examples
    --------
    >>> raise TinykernelError("model.pkl: no such file; train one with 'tinykernel train'")
    Traceback (most recent call last):
        ...
    tinykernel.errors.TinykernelError: model.pkl: no such file; train one with 'tinykernel train'
    """
