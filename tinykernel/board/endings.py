"""What ends a command that waits for a board."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ending_as_ctrl_c() -> Iterator[None]:
    """Let SIGTERM and a closed terminal end a command as Ctrl-C does, and Ctrl-C one behind &."""
    # A shell lets a command that it starts with & ignore Ctrl-C.
    known = (getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP"))
    endings = [ending for ending in known if ending is not None]
    before = [signal.signal(ending, signal.default_int_handler) for ending in endings]
    try:
        yield
    finally:
        for ending, handler in zip(endings, before, strict=True):
            signal.signal(ending, signal.SIG_DFL if handler is None else handler)
