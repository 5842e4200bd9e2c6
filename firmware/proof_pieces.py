"""Bounds and memory of an exported model, piece by piece: see check_proof.py.

Each folder of a piece has its own in ``bounds.py``. A stage has a structure, `STRUCT`, that its
`HEADER` declares, and what it `TAKES` and `GIVES`. Its `bounds` yields name, lowest, highest and
limits of values; `memory` returns scratch that the machine can reuse (``first``), other scratch
(``scratch``), and state of a stream (``state``), part of which whole windows do not need
(``stream``). With `READS_WORDS` its input takes whole words of 32 values.

Other pieces have a `MACRO` that is not 0 where a model has them. The `outputs` of a part are the
ends of what it adds to scores, and name, lowest and highest of values. What lies between the scale
and a part yields its bounds by `witnessed`, and has `scratch`.
"""

import importlib.util
import pathlib

import numpy as np
from proof_tools import blocks_of, need


def pieces():
    """Return the checkers of all pieces, by the name of their folder."""
    root, found = pathlib.Path(__file__).resolve().parent.parent, {}
    # In the package, or beside it in the repository.
    for path in sorted([*root.glob("pieces/*/bounds.py"), *root.glob("*/pieces/*/bounds.py")]):
        name = path.parent.name
        if name.islower():
            spec = importlib.util.spec_from_file_location(f"bounds_of_{name}", path)
            found[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(found[name])
            vars(found[name]).setdefault("STRUCT", f"tk_{name}")
            vars(found[name]).setdefault("HEADER", f"tk_{name}.h")
    return found


PIECES = pieces()
#: By the structure.
STAGES = {piece.STRUCT: piece for piece in PIECES.values() if hasattr(piece, "memory")}
#: In the order of their headers: those that may join another part come last.
PARTS = sorted(
    (piece for piece in PIECES.values() if hasattr(piece, "outputs")),
    key=lambda piece: hasattr(piece, "JOINS"),
)


def machines(c):
    """Return what a model has between the scale and the parts."""
    return [piece for piece in PIECES.values() if hasattr(piece, "witnessed") and c(piece.MACRO)]


def readout(c):
    """Return the parts that a model has, in the order of their headers."""
    return [part for part in PARTS if c(part.MACRO)]


def stages(c):
    """Yield name, lowest, highest and limits of the values of all stages before the machine."""
    port, before = "samples", None
    for kind, k in c.chain:
        stage = STAGES[kind]
        need(port in stage.TAKES, f"{kind} stands behind {port}")
        yield from stage.bounds(c, k, before)
        port, before = stage.GIVES, k
    need(port in ("counts", "maps", "units"), "stages are missing")


def outputs(c):
    """Yield name, lowest and highest of the parts of the scores, and of scores."""
    n = c("OUTPUTS")
    low = high = c.table["tk_biases"].reshape(n)
    macros = [name.removeprefix("TK_") for name in c.text]
    for part in sorted(readout(c), key=lambda part: macros.index(part.MACRO)):
        ends, bounds = part.outputs(c, n)
        low, high = low + ends[0], high + ends[1]
        yield from bounds
    if n == 1:
        low, high = np.minimum(low, -high), np.maximum(high, -low)
    yield "score", low, high
    yield from curve(c)


def curve(c):
    """Yield the ends of powers or squares; refuse another table of powers."""
    if "TK_CURVE_BITS" not in c.text:
        return
    bits, most = c("CURVE_BITS"), (1 << 31) - 1
    if c("CURVE_SQUARE"):
        need(bits < 63, "squares of other bits")
        yield "square", -most, most
        return
    powers = np.rint(2**15 * 2 ** (np.arange(65) / 64)).astype(np.int64) - 2**15
    need(0 < bits < 32, "powers of other bits")
    need(np.array_equal(c.table["tk_powers"], powers), "another table of powers")
    yield "power", 0, most


def events(c):
    """Return the words of state for events; refuse thresholds that no sum can reach."""
    if "TK_EVENT_SHIFT" not in c.text:
        return 0
    shift, least = c("EVENT_SHIFT"), c.table["tk_event_thresholds"]
    need(shift < 16 and c("EVENT_PAUSE") < 1 << 16, "sums of events remember or wait too long")
    need(len(least) == c("CLASSES") and least.max() > 0, "thresholds of other classes")
    need(c("EVENT_BACKGROUND") == (least.min() == 0), "another background of events")
    # s - (s >> shift) does not fall as s rises, so this is the largest sum.
    most = (1 << 31) - 1 >> shift
    need(least.max() <= most << shift, "a sum of events cannot reach its threshold")
    return 1 + c("CLASSES")


def memory(c):
    """Return the words of scratch and, for a stream, those of its scratch and its state."""
    needs = [STAGES[kind].memory(c, k) for kind, k in c.chain]
    for need_of, (kind, k) in zip(needs, c.chain[1:], strict=False):
        if hasattr(STAGES[kind], "READS_WORDS"):
            need_of["scratch"] = 8 * blocks_of(k["values"], 32)
    kinds = "first", "state", "stream"
    total = {kind: sum(need_of.get(kind, 0) for need_of in needs) for kind in kinds}
    scratch = [need_of.get("scratch", 0) for need_of in needs]
    machine = blocks_of(c("FEATURES") * c("INPUT_BITS"), 32)
    for piece in machines(c):
        machine = piece.scratch(c)
    first = max(machine, total["first"])
    need(first == c("FIRST_WORDS"), f"TK_FIRST_WORDS is not {first}")
    dots = c("OUTPUTS") if len(readout(c)) > 1 else 0
    # Counts of signals are ordered and joined in the same memory.
    stages = max(scratch) if c("STAGES") == 2 else sum(scratch)
    stream = first + dots + c("CLASSES") + stages
    sizes = {"scratch": stream + total["state"] - total["stream"]}
    if c.streams:
        sizes["stream_scratch"] = stream
    if c.streams and c("STAGES") > 1:
        sizes["state"] = total["state"] + events(c)
    return sizes
