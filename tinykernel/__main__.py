"""The command ``tinykernel``, also as ``python -m tinykernel``.

Importing the command line takes a moment, in which Ctrl-C would show a traceback.
"""

import os
import signal
import sys


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] == ["--version"]:  # fast, for scripts
        from tinykernel import __version__

        print(f"tinykernel {__version__}")
        return
    default = signal.default_int_handler
    # A process in the background ignores Ctrl-C, which stays so.
    is_default = signal.getsignal(signal.SIGINT) is default
    if is_default:
        signal.signal(signal.SIGINT, _quit)
    from tinykernel.face import main as run

    if is_default:
        signal.signal(signal.SIGINT, default)
    run()


def _quit(*_: object) -> None:
    """Exit at once: an exception could be swallowed during imports."""
    os.write(sys.stderr.fileno(), b"error: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
