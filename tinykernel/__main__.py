"""The command ``tinykernel``, also as ``python -m tinykernel``.

Importing the command line takes some tenths of a second, in which Ctrl-C would show a traceback.
"""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] == ["--version"]:  # a question of scripts, which the rest would slow down
        from tinykernel import __version__

        print(f"tinykernel {__version__}")
        return
    usual = signal.default_int_handler
    # In the background Ctrl-C is ignored, and stays so.
    is_usual = signal.getsignal(signal.SIGINT) is usual
    if is_usual:
        signal.signal(signal.SIGINT, _quit)
    from tinykernel.cli import main as run

    if is_usual:
        signal.signal(signal.SIGINT, usual)
    run()


def _quit(*_: object) -> None:
    """End at once: an exception could be lost in what imports call."""
    os.write(sys.stderr.fileno(), b"error: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
