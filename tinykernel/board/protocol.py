"""The commands that a board answers, those of MLPerf Tiny and more; docs/board.md lists all."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

from tinykernel.board.link import Link
from tinykernel.errors import TinykernelError

#: Bytes a command.
MOST_BYTES = 31
_ANSWER = 30.0  # seconds that an answer may take, and the self-test after a reset
_MOST_LINES = 1000  # of an answer
_RESULTS = re.compile(r"m-results-\[(-?\d+(?:,-?\d+)*)\]")


def scores_of(line: str) -> list[int] | None:
    """Return the scores of a line ``m-results-[-3,12]``, None of any other line."""
    match = _RESULTS.fullmatch(line)
    return None if match is None else [int(text) for text in match[1].split(",")]


class Board:
    """A board that answers on a link; it is first brought to listen, whatever it does.

    `program` are the first words of its profile, "tinykernel 0.1.0", `target` that of the export,
    empty where the program is not one of tinykernel, `model` the begin of the fingerprint.
    """

    def __init__(self, link: Link) -> None:
        self.link = link
        self._greet()
        self.name, profile = self._text(self.ask("name"), "m-name-dut-"), self.ask("profile")
        parts = self._text(profile, "m-profile-").split()
        self.program, self.target = " ".join(parts[:2]), parts[2] if len(parts) > 2 else ""
        self.model = self._text(profile, "m-model-")

    def _greet(self) -> None:
        """End the command that an earlier connection may have begun, and wait for the answer."""
        limit = time.monotonic() + _ANSWER
        while time.monotonic() < limit:
            self.link.write("%")
            for line in self._lines(1.0):
                if line == "m-ready":
                    self.link.drain()
                    return
        raise self._error(
            f"no answer in {_ANSWER:.0f} seconds at {self.link.baud} baud; is the program of an "
            "export on the board, and no other one at the port?"
        )

    def _error(self, problem: str) -> TinykernelError:
        return TinykernelError(f"{self.link.port}: {problem}")

    def _lines(self, seconds: float) -> Iterator[str]:
        """Yield the lines that come within a time, however many they are."""
        limit = time.monotonic() + seconds
        while (left := limit - time.monotonic()) > 0:
            line = self.link.line(left)
            if line is not None:
                yield line

    def ask(self, command: str) -> list[str]:
        """Send a command and return the lines of its answer, without ``m-ready``."""
        self.link.write(f"{command}%")
        lines, word = list[str](), command.split()[0]
        for line in self._lines(_ANSWER):
            if line == "m-ready":
                break
            if len(lines) == _MOST_LINES:
                raise self._error(
                    f"{_MOST_LINES} lines without an end answer {word!r}; does another program "
                    "print there?"
                )
            lines.append(line)
        else:
            raise self._error(
                f"no answer to {word!r} in {_ANSWER:.0f} seconds; was the board reset?"
            )
        for line in lines:
            if line.startswith("e-["):
                raise self._error(f"the board refuses {word!r}: {line[3:-1]}")
        return lines

    def send(self, data: bytes) -> list[str]:
        """Load bytes, a few a command; return what the board answers."""
        lines = []
        for at in range(0, len(data), MOST_BYTES):
            lines += self.ask(f"db {data[at : at + MOST_BYTES].hex()}")
        return lines

    def load(self, row: bytes) -> None:
        """Load one input: its values as they lie in the memory of the board."""
        self.ask(f"db load {len(row)}")
        if "m-load-done" not in self.send(row):
            raise self._error("the board lost bytes of an input")

    def infer(self, times: int) -> tuple[list[int], float]:
        """Run what is loaded some times; return the scores, and the microseconds of once."""
        lines = self.ask(f"infer {times} 0")
        laps = [int(line[9:]) for line in lines if re.fullmatch(r"m-lap-us-\d+", line)]
        if len(laps) != 2:
            raise self._error("an answer without two time stamps")
        elapsed = (laps[1] - laps[0]) % 2**32
        return self.scores(lines)[0], elapsed / times

    def scores(self, lines: list[str]) -> list[list[int]]:
        """Return the scores of each decision in an answer; at least one."""
        scores = [row for row in map(scores_of, lines) if row is not None]
        if not scores:
            raise self._error("an answer without scores")
        return scores

    def number(self, command: str) -> int:
        """Return what ``cycles`` or ``stack`` answers."""
        for line in self.ask(command):
            if re.fullmatch(rf"m-{command}-\d+", line):
                return int(line.rpartition("-")[2])
        raise self._error(f"{command!r} was answered by no number")

    def _text(self, lines: list[str], begin: str) -> str:
        """Return what stands in the brackets of a line."""
        for line in lines:
            if line.startswith(f"{begin}[") and line.endswith("]"):
                return line[len(begin) + 1 : -1]
        raise self._error(f"an answer without {begin}[...]: another program answers there")
