"""A recording as the sensor of an emulated board, in real time."""

import contextlib
import itertools
import os
import select
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from tinykernel.board.checking import check_model, pushed
from tinykernel.board.emulator import EmulatedBoard, terminal
from tinykernel.board.link import ConnectedBoard, Link
from tinykernel.model import IntegerModel
from tinykernel.model.arrays import raw_values

_LOOK = 0.1  # seconds between looks for somebody who listens


@contextmanager
def streamed(
    board: EmulatedBoard,
    model: IntegerModel,
    blocks: Callable[[], Iterable[NDArray[Any]]],
    rate: float,
) -> Iterator[EmulatedBoard]:
    """Push samples into a board again and again, and print its decisions at a port of its own.

    `blocks` gives the samples from the beginning; they are pushed `rate` a second, as a sensor
    would, from the moment on when somebody opens the port and writes.
    """
    with terminal() as (here, _, port), Link(board.port) as link:
        connected, over = ConnectedBoard(link), threading.Event()
        check_model(connected, model)

        def run() -> None:
            while not over.wait(_LOOK) and not select.select([here], [], [], 0)[0]:
                pass
            connected.ask("stream")
            begun, sent = time.monotonic(), 0
            for X in (block for _ in itertools.count() for block in blocks()):
                for first in range(0, len(X), model.hop):
                    part = raw_values(X[first : first + model.hop], model.raw_dtype)
                    if over.wait(max(0.0, begun + (sent + len(part)) / rate - time.monotonic())):
                        return
                    sent += len(part)
                    for row in pushed(connected, model, part):
                        # Who does not read gets no more than the terminal holds.
                        with contextlib.suppress(BlockingIOError):
                            os.write(here, f"m-results-[{','.join(map(str, row))}]\r\n".encode())

        thread = threading.Thread(target=run, daemon=True)
        os.set_blocking(here, False)
        thread.start()
        try:
            yield replace(board, port=port)
        finally:
            over.set()
            thread.join()
