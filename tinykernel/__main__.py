"""``python -m tinykernel``: the same as the command ``tinykernel``."""

from __future__ import annotations

from tinykernel.cli import main

if __name__ == "__main__":
    main()
