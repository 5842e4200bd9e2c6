"""What one batch has found, and how a single step is watched."""

import json
import resource
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tinykernel.base.errors import TinykernelError

ROOT = Path(__file__).resolve().parents[2]
_FINDINGS = ROOT / "fuzz-findings"
_ADDRESS_SPACE = 8 << 30


def limit_memory() -> None:
    """Turn a request for gigabytes into a MemoryError. The sanitizers' programs get no limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, hard))


def no_limit() -> None:
    """Take the limit away: an address sanitizer reserves terabytes of addresses."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


class Batch:
    """Counts, and a note for everything that must not be."""

    def __init__(self, part: str, seed: int) -> None:
        self.part, self.seed = part, seed
        self.counts: Counter[str] = Counter()
        self.notes: list[str] = []
        self.memory, self.seconds = 0, 0.0

    def find(self, kind: str, note: str, data: bytes | None = None, suffix: str = "") -> None:
        """Note a finding; its file is kept."""
        self.counts[kind] += 1
        if data is not None:
            _FINDINGS.mkdir(exist_ok=True)
            file = _FINDINGS / f"{self.part}-{self.seed}-{self.counts[kind]}{suffix}"
            file.write_bytes(data)
            note = f"{file.relative_to(ROOT)}: {note}"
        self.notes.append(f"{kind}, batch {self.part} {self.seed}: {note}")

    def load(self, function: Callable[[], Any], data: bytes | None = None, suffix: str = "") -> Any:
        """Call a reader: it returns something, or refuses in one line; all else is a finding."""
        before, begin = _peak(), time.perf_counter()
        result = None
        try:
            result = function()
        except TinykernelError as error:
            if "\n" in str(error):  # the command line escapes what a terminal must not see
                self.find("uncaught exceptions", f"message {str(error)!a}", data, suffix)
        except Exception:
            self.find("uncaught exceptions", traceback.format_exc(limit=-4), data, suffix)
        self.seconds = max(self.seconds, time.perf_counter() - begin)
        self.memory = max(self.memory, _peak() - before)
        return result

    def to_json(self) -> str:
        return json.dumps(
            {
                "counts": self.counts,
                "notes": self.notes,
                "memory": self.memory,
                "seconds": self.seconds,
            }
        )


def _peak() -> int:
    """Return the most memory that this process ever had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
