"""How many instructions an inference takes, and how long that is at a clock."""

import functools
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, islice
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile
from numpy.typing import ArrayLike

from tinykernel.base.errors import ModelError, TargetError, TinykernelError, ToolError
from tinykernel.base.progress import report as say
from tinykernel.base.text import as_json
from tinykernel.compile.sources import generated_inputs
from tinykernel.compile.targets import Target, find_target
from tinykernel.model.integer import IntegerModel
from tinykernel.model.pipelines import as_integer_model
from tinykernel.pieces.beside.spec import as_windows
from tinykernel.pieces.catalogue import PARTS, code_of
from tinykernel.pieces.catalogue import STAGES as KINDS
from tinykernel.run.emulated import Block
from tinykernel.run.estimate import estimate_instructions
from tinykernel.run.footprint import symbols
from tinykernel.run.limits import parse_clock
from tinykernel.run.parity import write_rows
from tinykernel.run.program import MODEL, Program, build_closest, find_platforms

# The runtime has one routine per file, so the file of a function shows its stage. Other functions
# (arithmetic on words, library routines) belong to the stage that calls them.
_STAGE_OF_FILE = {
    header: stage
    for piece in (*KINDS, *PARTS)
    for header, stage in code_of(piece.KIND).headers.items()
}
_STAGE_OF_FILE |= dict.fromkeys(("tk_scores.h", "tk_finish.h"), "scores")
_STAGE_OF_FILE |= {"tk_stage.h": "local", "tk_predict.h": "other"}
#: Stages in the order in which they run, where there are such; "other" is what puts them together.
STAGES = tuple(sorted(dict.fromkeys(_STAGE_OF_FILE.values()), key=lambda stage: stage == "other"))
#: Stages that only some models have.
FIRST_STAGES = tuple(kind.KIND for kind in KINDS if kind.KIND in STAGES and kind.KIND != "scale")


def function_ranges(program: Path) -> dict[str, range]:
    """List the addresses of every function of an ELF file."""
    ranges = {}
    with program.open("rb") as stream:
        elf = ELFFile(stream)
        thumb = elf["e_machine"] == "EM_ARM"
        for symbol in symbols(elf):
            if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_size"]:
                start = symbol["st_value"] & ~1 if thumb else symbol["st_value"]
                ranges[symbol.name] = range(start, start + symbol["st_size"])
    return ranges


def stage_map(program: Path) -> dict[int, str]:
    """Map the byte addresses of an ELF file with debug data (-g) to stages, where they have one."""
    stages: dict[int, str] = {}
    with program.open("rb") as stream:
        elf = ELFFile(stream)
        if not elf.has_dwarf_info():
            return stages
        dwarf = elf.get_dwarf_info()
        for unit in dwarf.iter_CUs():
            lines = dwarf.line_program_for_CU(unit)
            if lines is not None:
                # By the index that entries of the unit use.
                names = [Path(entry.name.decode()).name for entry in lines["file_entry"]]
                names = names if lines["version"] >= 5 else ["", *names]
                _paint(unit.get_top_DIE(), names, dwarf, stages)
    return stages


@functools.lru_cache(maxsize=1)
def _stages_of(program: Path, _changed: int) -> dict[int, str]:
    """Return the map of a program, which is read once for all rows."""
    return stage_map(program)


def _paint(entry: Any, files: list[str], dwarf: Any, stages: dict[int, str]) -> None:
    """Mark the addresses of a function, then those of the functions inlined into it."""
    if entry.tag in ("DW_TAG_subprogram", "DW_TAG_inlined_subroutine"):
        origin = entry
        while "DW_AT_decl_file" not in origin.attributes and (
            "DW_AT_abstract_origin" in origin.attributes
        ):
            origin = origin.get_DIE_from_attribute("DW_AT_abstract_origin")
        number = origin.attributes.get("DW_AT_decl_file")
        name = files[number.value] if number is not None and number.value < len(files) else ""
        stage = _STAGE_OF_FILE.get(name)
        if stage is not None:
            for low, high in _ranges(entry, dwarf):
                stages.update(dict.fromkeys(range(low, high), stage))
    for child in entry.iter_children():
        _paint(child, files, dwarf, stages)


def _ranges(entry: Any, dwarf: Any) -> Iterator[tuple[int, int]]:
    """List the address ranges of a debug entry."""
    attributes = entry.attributes
    if "DW_AT_high_pc" in attributes:
        low = attributes["DW_AT_low_pc"].value
        high = attributes["DW_AT_high_pc"]
        is_address = high.form == "DW_FORM_addr"
        yield low, high.value if is_address else low + high.value
    elif "DW_AT_ranges" in attributes:
        unit = entry.cu
        base = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
        start = base.value if base is not None else 0
        lists = dwarf.range_lists()
        for row in lists.get_range_list_at_offset(attributes["DW_AT_ranges"].value, cu=unit):
            if hasattr(row, "base_address"):
                start = row.base_address
            else:
                shift = 0 if getattr(row, "is_absolute", False) else start
                yield row.begin_offset + shift, row.end_offset + shift


_HARNESS = (
    *("tk_measured", "tk_measured_push", "run_row", "run_stream", "stack_used", "fill_scratch"),
    *("judge_scores", "judge_far", "main"),
)


# Values of a window of which one is run: many instructions, whose number hardly varies.
_LARGE = 4096


@dataclass(frozen=True)
class StreamCost:
    """Cost of the calls of a stream, in instructions."""

    push_mean: float  # of one sample, over the samples of a hop once the first window is full
    push_worst: int  # of the slowest sample
    decision: int  # of the first call for a window, once a hop
    hop: int  # samples from one decision to the next
    event: int = 0  # from the scores of a decision to an event, once a hop

    @property
    def mean(self) -> float:
        """Instructions a sample, its share of the decision included."""
        return self.push_mean + (self.decision + self.event) / self.hop


@dataclass(frozen=True)
class BenchResult:
    """Cost of one inference from raw inputs."""

    target: str
    # Executed by one call of the predict function, the most of all rows that were run.
    instructions: int
    # The same by stage: spectrum, local, scale, transform, windows, scores, other.
    stages: dict[str, int]
    components: int  # of the model, for figures a component
    compiler: str  # how they were counted
    emulator: str
    core: str
    # Whether every instruction was counted. Unicorn omits some in conditional (IT) blocks.
    exact: bool
    cycles_per_instruction: tuple[float, float]  # assumed for times; not measured
    clock: float | None = None  # hertz
    note: str = ""  # how the emulated core differs from the target
    fewest: int = 0  # instructions of the fastest row
    rows: int = 0  # that ran
    stream: StreamCost | None = None  # None for models without a stream
    rate: float | None = None  # samples a second of the stream

    @property
    def load(self) -> tuple[float, float] | None:
        """Share of the processor that a stream takes, from and to; None without clock and rate."""
        if self.stream is None or self.rate is None or self.clock is None:
            return None
        low, high = self.cycles_per_instruction
        a_second = self.stream.mean * self.rate / self.clock
        return a_second * low, a_second * high

    @property
    def spread(self) -> float:
        """Spread of the rows, as a share of the most instructions."""
        return (self.instructions - self.fewest) / self.instructions

    @property
    def seconds(self) -> tuple[float, float] | None:
        """Time of one inference, from and to; None without a clock."""
        if self.clock is None:
            return None
        low, high = self.cycles_per_instruction
        return self.instructions * low / self.clock, self.instructions * high / self.clock

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON types."""
        each = round(self.instructions / self.components, 2) if self.components else None
        instead = {"fewest_instructions": self.fewest, "instructions_per_component": each}
        names = (
            *("target", "instructions", "fewest_instructions", "rows", "stages", "components"),
            *("instructions_per_component", "compiler", "emulator", "core", "exact"),
            *("cycles_per_instruction", "clock", "seconds", "note", "stream", "load"),
        )
        return as_json(self, names, instead)


def bench(
    model: object,
    target: str | Target = "cortex-m4",
    *,
    clock: str | float | None = None,
    rate: float | None = None,
    X: ArrayLike | None = None,
    back_end: str = "auto",
    function: str = "predict",
) -> BenchResult:
    """Count the instructions of one inference.

    An emulator counts them one by one, so the figure does not depend on this computer.

    Parameters
    ----------
    model : IntegerModel or fitted classifier
    target : str or Target, default="cortex-m4"
        A microcontroller.
    clock : str or float, optional
        Frequency for a time, e.g. ``"80MHz"``.
    rate : float, optional
        Samples a second of a stream, for its share of the processor at `clock`.
    X : array-like, shape (n_rows, n_features), optional
        Raw inputs, at most the first three are run, or one of more than 4096 values; by default
        generated rows.
    back_end : {"auto", "qemu", "unicorn"}, default="auto"
    function : str, default="predict"
        The function that is counted; of a calibrated model also "decide", "confidence", "is_novel",
        and with prototypes "decide_novelty".

    Returns
    -------
    BenchResult

    Raises
    ------
    TinykernelError
        If the target is the host, a compiler or an emulator is missing, or a program fails.
    """
    row = find_target(target)
    hertz = None if clock is None else parse_clock(clock)
    if row.family == "host":
        raise TargetError(
            "target host: instructions are counted on microcontrollers; choose one, e.g. cortex-m4"
        )
    integer_model = as_integer_model(model)
    rows = generated_inputs(integer_model, 5)[2:] if X is None else integer_model.as_raw(X)
    with tempfile.TemporaryDirectory(prefix="tinykernel-") as folder:
        n_rows = min(1 if integer_model.n_inputs > _LARGE else 3, len(rows))
        steps = n_rows + bool(integer_model.hop)
        say(f"building for {row.name}", 0, None)
        platforms, flags = find_platforms(row, back_end), ["-Os"]
        if integer_model.decision is None and function == "predict":
            flags.append("-DONE_CALL=1")
        program = build_closest(integer_model, platforms, Path(folder), flags)
        counts = []
        for index in range(n_rows):
            say(f"counting instructions of {row.name}", index, steps, "a row")
            write_rows(program, integer_model, {"raw": rows[index : index + 1]})
            counts.append(_count(program, function))
        if integer_model.hop:
            say(f"counting instructions of {row.name}", n_rows, steps, "a stream")
        stream = _stream_cost(program, integer_model)
    worst = max(counts, key=lambda count: sum(count.values()))
    platform = program.platform
    return BenchResult(
        target=row.name,
        instructions=sum(worst.values()),
        stages=worst,
        components=sum(piece.facts().get("components", 0) for piece in integer_model.pieces),
        compiler=platform.chain.title,
        emulator=platform.emulator,
        core=platform.core,
        exact=platform.back_end == "qemu" or row.family != "arm",
        cycles_per_instruction=row.cycles,
        clock=hertz,
        note=platform.note,
        stream=stream,
        fewest=min(sum(count.values()) for count in counts),
        rows=len(counts),
        rate=rate,
    )


def _stream_cost(program: Program, model: IntegerModel) -> StreamCost | None:
    """Push a window and a hop of samples, and count what each call takes."""
    if not model.hop:
        return None
    windows = as_windows(generated_inputs(model, 3)[1:], model.input)
    rows = windows.reshape(-1, windows.shape[2])
    n_samples = model.input.rows + model.hop
    write_rows(program, model, {"stream": rows[:n_samples]})
    # A window that is counted as a whole is counted by the first call, and kept for the second.
    functions = ("push", "stream_predict", "stream_scores", "event_scores")
    names = [f"{MODEL}_{name}" for name in functions]
    pushes, decisions, scores, events = (
        [call.total() for call in calls] for calls in count_calls(program, names, _HARNESS)
    )
    if len(pushes) != n_samples + model.delay or len(decisions) != 2:
        raise ToolError("the emulator's trace does not show every call of the stream")
    steady = pushes[-model.hop :]
    mean, event = round(sum(steady) / len(steady), 1), max(events, default=0)
    return StreamCost(mean, max(pushes), max(decisions + scores), model.hop, event)


def _count(program: Program, function: str) -> dict[str, int]:
    """Run a program and count the instructions of the first call of a function, by stage."""
    if f"{MODEL}_{function}" not in function_ranges(program.path):
        raise ModelError(f"bench: the model has no function {function}")
    (calls,) = count_calls(program, [f"{MODEL}_{function}"], _HARNESS)
    if not calls:
        raise ToolError("the emulator's trace shows no inference")
    return {name: calls[0][name] for name in STAGES if calls[0][name] or name not in FIRST_STAGES}


def count_calls(
    program: Program, names: Sequence[str], harness: Sequence[str]
) -> list[list[Counter[str]]]:
    """Run a program on its board and count the instructions of every call of some functions."""
    # Calls include their callees; functions of the harness end a call. Returned are the calls of
    # each name in the order of time, each by stage as far as debugging data state it.
    functions = function_ranges(program.path)
    stages = _stages_of(program.path, program.path.stat().st_mtime_ns)
    outside = frozenset[int]().union(*(functions[name] for name in harness if name in functions))
    calls: list[list[Counter[str]]] = [[] for _ in names]
    pairs = zip(names, calls, strict=True)
    begins = {functions[name].start: of_name for name, of_name in pairs if name in functions}
    # A block, kept so that its identity stays its own, and its instructions by stage, in order.
    costs: dict[tuple[int, str], tuple[Block, list[tuple[str, int]]]] = {}
    inside: Counter[str] | None = None
    # A call begins, and returns, at the first instruction of a block.
    for block in program.trace():
        if inside is None and block[0] in begins:
            inside, stage = Counter(), "other"
            begins[block[0]].append(inside)
        elif block[0] in outside:
            inside = None
        if inside is not None:
            cost = costs.get((id(block), stage))
            if cost is None:
                each = accumulate(block, lambda now, at: stages.get(at, now), initial=stage)
                runs = groupby(islice(each, 1, None))
                cost = block, [(name, len(list(same))) for name, same in runs]
                costs[id(block), stage] = cost
            for now, count in cost[1]:
                inside[now] += count
                stage = now
    return calls


_CLOCKS = "16MHz,48MHz,160MHz"  # by default


@dataclass(frozen=True)
class Cost:
    """Instructions of one inference on a target."""

    target: str
    instructions: int | None  # None where they could be neither counted nor estimated.
    stages: dict[str, int]  # empty unless an emulator counted them.
    cycles: tuple[float, float]  # assumed cycles per instruction, from and to.
    source: str  # how they were counted, or why they were not.
    stream: StreamCost | None = None  # of the calls of a stream, where they were counted.

    def seconds(self, clock: float) -> tuple[float, float] | None:
        """Return the time at a clock in hertz, from and to; None where nothing was counted."""
        if self.instructions is None:
            return None
        low, high = (cycles * self.instructions / clock for cycles in self.cycles)
        return low, high


def cost_on(model: IntegerModel, target: str, *, counted: bool = True) -> Cost:
    """Count the instructions of a model on a target, or estimate them, and say which and why."""
    row, why = find_target(target), "no compiler was to be used"
    if counted:
        try:
            result = bench(model, row)
        except TinykernelError as error:
            why = str(error)
        else:
            source = f"counted with {result.emulator}, {result.core}, code of {result.compiler}"
            source += f"; {result.note}" if result.note else ""
            stages = dict(result.stages)
            return Cost(row.name, result.instructions, stages, row.cycles, source, result.stream)
    try:
        instructions = estimate_instructions(model, row)
    except TinykernelError as error:
        return Cost(row.name, None, {}, row.cycles, f"not counted: {why}; not estimated: {error}")
    return Cost(row.name, instructions, {}, row.cycles, f"estimated, not counted: {why}")


def parse_clocks(text: str | float | None) -> tuple[float, ...]:
    """Read clocks separated by commas."""
    if isinstance(text, int | float):
        return (parse_clock(text),)
    return tuple(dict.fromkeys(parse_clock(part) for part in (text or _CLOCKS).split(",")))
