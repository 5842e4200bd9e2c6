"""What a frame costs by the fronts of sound_fronts.py, in C: instructions, cycles, flash, RAM.

python benchmarks/front_costs.py --write docs/results/sounds-ablation.md

puts their table into that page. Cortex-M0 has the instructions of Cortex-M0+.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from _page import page_arguments, print_section
from numpy.typing import NDArray
from peers.building import sections

from tinykernel import resources
from tinykernel.build.program import WARNING_FLAGS, Program, build, find_platforms
from tinykernel.build.simavr import Simavr
from tinykernel.codegen.targets import find_target
from tinykernel.measure.bench import count_calls
from tinykernel.model.stages.spectrum import Spectrum

TITLE = "## Cost of other fronts"
LENGTH, HOP, BANDS = 256, 128, 12
# Whether a front takes the whole frame, and its floor: the gain of the window stands in it.
FRONTS = {
    "transform, 32-bit work array": (LENGTH, 80),
    "Walsh-Hadamard": (LENGTH, 30),
    "octave tree, two bands an octave": (HOP, -10),
}
TARGETS = {"Cortex-M4": "cortex-m4", "Cortex-M0+": "cortex-m0plus", "AVR": "atmega328p"}
_Rows = Sequence[NDArray[np.int16]]


def stage() -> Spectrum:
    """Return a spectrum of as many bands as the tree."""
    edges = np.rint(np.geomspace(2, LENGTH // 2, BANDS + 1)).astype(np.uint16)
    return Spectrum(
        LENGTH, HOP, np.maximum(edges, np.arange(2, BANDS + 3)).astype(np.uint16), 2, 80
    )


def built(folder: Path, target: str, front: int, samples: int, floor: int = 0) -> Program:
    """Build the program of a front; 0 is none."""
    made = stage()
    numbers = {
        "FRONT": front,
        "SAMPLES": samples,
        "FLOOR": f"{floor % 2**32}u",
        "AMPLITUDE": f"{made.amplitude_bits}u",
        "COSINES": ",".join(map(str, made.cosines())),
        "EDGES": ",".join(map(str, made.edges)),
    }
    firmware = resources.folder("firmware") / "tinykernel" / "src"
    return build(
        find_platforms(find_target(target))[0],
        [Path(__file__).with_name("fronts.c")],
        folder,
        include=[firmware],
        flags=[*WARNING_FLAGS, "-Os", "-g", *(f"-D{n}={x}" for n, x in numbers.items())],
    )


def run(program: Program, rows: _Rows) -> NDArray[np.uint8]:
    """Return the levels of rows of samples."""
    folder = program.path.parent
    (folder / "in.bin").write_bytes(b"".join(row.astype("<i2").tobytes() for row in rows))
    program.run()
    return np.fromfile(folder / "out.bin", np.uint8).reshape(-1, BANDS)


def instructions(program: Program, rows: _Rows) -> int:
    """Return the most instructions of a frame."""
    run(program, rows)
    (calls,) = count_calls(program, ["measured"], ["main"])
    return max(call.total() for call in calls)


def cycles(program: Program, rows: _Rows) -> int:
    """Return the cycles of one frame on AVR, its samples read and its levels written."""
    ended = []
    for given in (rows[:1], rows[:2]):
        run(program, given)
        chip = Simavr("atmega328p", program.path)
        chip.run(60.0)
        ended.append(chip.cycles)
    return ended[1] - ended[0]


def section() -> Iterator[str]:
    """Yield the lines of the section."""
    yield TITLE
    yield ""
    yield f"A frame of {LENGTH} samples to {BANDS} levels, every {HOP} samples, in C with -Os:"
    yield "`benchmarks/fronts.c`. The octave tree takes only the samples of a hop. Instructions are"
    yield "those of the slowest of three frames. Flash and RAM are what a front adds to an empty"
    yield "program on Cortex-M0+, samples included. Written by `benchmarks/front_costs.py`."
    yield ""
    yield f"| front | {' | '.join(TARGETS)} | AVR, cycles | flash | RAM |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    rng = np.random.default_rng(0)
    for front, (name, (length, floor)) in enumerate(FRONTS.items(), 1):
        rows = [rng.integers(-8000, 8000, length).astype(np.int16) for _ in range(3)]
        cells = []
        with tempfile.TemporaryDirectory(prefix="tinykernel-") as text:
            folder = Path(text)
            for target in TARGETS.values():
                cells.append(instructions(built(folder, target, front, length, floor), rows))
            cells.append(cycles(built(folder, "atmega328p", front, length, floor), rows))
            cells[-1] -= cycles(built(folder, "atmega328p", 0, length), rows)
            own = sections(built(folder, "cortex-m0plus", front, length, floor).path)
            none = sections(built(folder, "cortex-m0plus", 0, 1).path)
            cells += [a - b for a, b in zip(own, none, strict=True)]
        yield f"| {name} | {' | '.join(f'{cell:,}' for cell in cells)} |"
    yield ""
    yield "The stage keeps the transform, which recognizes more; 32-bit cores have the time."
    yield "On AVR it cannot follow 8 kHz at 16 MHz, where a hop lasts 256,000 cycles: there a tree"
    yield "could be a choice. Its lowest octave comes three hops late."


if __name__ == "__main__":
    given = page_arguments(__doc__, "").parse_args()
    print_section(section(), given.write)
