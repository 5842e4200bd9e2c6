"""The memory of a model on a chip, and the worst-case stack of functions, read from programs."""

import bisect
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Symbol, SymbolTableSection

from tinykernel.base.errors import ToolError
from tinykernel.base.files import source_folder, template_engine
from tinykernel.compile.compilers import Toolchain
from tinykernel.compile.plan import pack
from tinykernel.compile.sources import declared_functions, render_sources
from tinykernel.compile.targets import Target, find_target
from tinykernel.model.integer import IntegerModel
from tinykernel.run.decoders import Effect, MachineState, decode
from tinykernel.run.program import MODEL, write_sources


@dataclass
class Function:
    """A function of a linked program."""

    name: str
    start: int  # its addresses, ``end`` excluded.
    end: int
    frame: int = 0  # bytes that it puts on the stack itself.
    # Functions it calls, and functions into which it branches or runs on.
    calls: set[str] = field(default_factory=set)
    jumps: set[str] = field(default_factory=set)
    problem: str = ""  # empty, or why its stack has no bound.


@dataclass(frozen=True)
class StackBound:
    """The worst case and the chain of calls that reaches it."""

    bytes: int
    chain: tuple[str, ...]  # functions from the entry point down.


def _all_symbols(elf: ELFFile) -> Iterator[Symbol]:
    for table in elf.iter_sections():
        if isinstance(table, SymbolTableSection):
            yield from table.iter_symbols()


def symbols(elf: ELFFile) -> Iterator[Symbol]:
    """List the functions and objects that an ELF file defines."""
    for symbol in _all_symbols(elf):
        kind, section = symbol["st_info"]["type"], symbol["st_shndx"]
        if kind == "STT_NOTYPE" and elf["e_machine"] == "EM_AVR":
            # The hand-written routines of its library do not say that they are functions.
            inside = isinstance(section, int) and elf.get_section(section)["sh_flags"] & 4
            if inside and symbol["st_info"]["bind"] == "STB_GLOBAL":
                yield symbol
        elif section != "SHN_UNDEF" and kind in ("STT_FUNC", "STT_OBJECT"):
            yield symbol


class _Program:
    """The constant memory and the function symbols of an ELF file."""

    def __init__(self, elf: ELFFile) -> None:
        self.segments = [
            (segment["p_vaddr"], segment.data())
            for segment in elf.iter_segments()
            if segment["p_type"] == "PT_LOAD" and segment["p_filesz"]
        ]
        self.starts: dict[int, tuple[str, int]] = {}
        self.marks: list[tuple[int, bool]] = []
        thumb = elf["e_machine"] == "EM_ARM"
        code = {i for i, section in enumerate(elf.iter_sections()) if section["sh_flags"] & 4}
        self.ends = [
            section["sh_addr"] + section["sh_size"]
            for i, section in enumerate(elf.iter_sections())
            if i in code
        ]
        for symbol in _all_symbols(elf):
            name = symbol.name
            is_mark = name[:2] in ("$t", "$a", "$d", "$x") and (len(name) == 2 or name[2] in ".r")
            if is_mark and symbol["st_shndx"] in code:  # debugging sections have their own
                self.marks.append((symbol["st_value"], name[1] == "d"))
        self.marks.sort()
        self.mark_addresses = [address for address, _ in self.marks]
        for symbol in symbols(elf):
            if symbol["st_shndx"] in code and symbol["st_info"]["type"] != "STT_OBJECT":
                start = symbol["st_value"] & ~1 if thumb else symbol["st_value"]
                old = self.starts.get(start)
                # Several names may stand for one routine; keep the first in alphabetical order.
                if old is None or symbol.name < old[0]:
                    self.starts[start] = symbol.name, max(symbol["st_size"], old[1] if old else 0)

    def read(self, address: int, size: int) -> bytes | None:
        for base, data in self.segments:
            if base <= address and address + size <= base + len(data):
                return bytes(data[address - base : address - base + size])
        return None


def read_functions(elf: ELFFile, family: str) -> dict[str, Function]:
    """Find the functions of a linked program, their frames and callees, by name."""
    program = _Program(elf)
    addresses = sorted(program.starts)
    functions: dict[str, Function] = {}
    owners: list[Function] = []
    for index, start in enumerate(addresses):
        name, size = program.starts[start]
        # Routines in assembly may state no size: they go on to the next one, or to the end of all.
        following = [*addresses[index + 1 : index + 2], *program.ends]
        limit = min((end for end in following if end > start), default=start)
        end = min(start + size, limit) if size else limit
        function = Function(name, start, end)
        functions[name] = function
        owners.append(function)

    def owner(address: int) -> Function | None:
        position = bisect.bisect_right(addresses, address) - 1
        if position < 0 or address >= owners[position].end:
            return None
        return owners[position]

    for function in owners:
        if family == "avr":
            _follow(function, program, owner)
        else:
            _walk(function, program, family, owner)
    return functions


def _effects(
    function: Function, program: _Program, family: str, joins: set[int]
) -> list[tuple[int, Effect]]:
    """Decode a function from its first byte to its last; `joins` are reached from elsewhere too."""
    machine = MachineState(program.read)
    effects: list[tuple[int, Effect]] = []
    targets = set(joins)
    at = function.start
    while at < function.end:
        mark = bisect.bisect_right(program.mark_addresses, at) - 1
        if mark >= 0 and program.marks[mark][1]:  # data among code
            at += 2
            continue
        if at in joins:
            machine.known.clear()
        effect = decode(family, machine, at)
        effects.append((at, effect))
        at += effect.size
        if effect.jump is not None:
            targets.add(effect.jump)
        if effect.call is not None or effect.ends:
            machine.known.clear()
        if effect.ends and family == "xtensa":
            # Padding before a branch target would be read as instructions, out of step.
            at = min((goal for goal in targets if goal >= at), default=function.end)
    return effects


def _walk(
    function: Function, program: _Program, family: str, owner: Callable[[int], Function | None]
) -> None:
    joins: set[int] = set()
    while True:
        effects = _effects(function, program, family, joins)
        branches = {effect.jump for _, effect in effects if effect.jump is not None}
        if branches <= joins:
            break
        joins |= branches  # a branch back may lead to code that was taken for padding
    for _, effect in effects:
        function.frame += effect.grows
        function.problem = function.problem or effect.problem
        for goal, edges in ((effect.call, function.calls), (effect.jump, function.jumps)):
            if goal is not None:
                _connect(function, goal, edges, family, owner)
    at, last = effects[-1] if effects else (function.start, Effect(0, ends=True))
    if not last.ends and at + last.size >= function.end:
        following = owner(function.end)
        if following is not None and following is not function:
            function.jumps.add(following.name)


def _follow(function: Function, program: _Program, owner: Callable[[int], Function | None]) -> None:
    """Walk along the branches: routines of AVR's library share code beyond their ends."""
    machine = MachineState(program.read)
    function.frame = 2  # the return address, which a call puts on the stack
    waiting, seen = [function.start], set()
    while waiting:
        machine.known.clear()
        at = waiting.pop()
        while at not in seen:
            entered = owner(at)
            if entered is not None and entered is not function and at == entered.start:
                function.jumps.add(entered.name)
                break
            seen.add(at)
            effect = decode("avr", machine, at)
            function.frame += effect.grows
            function.problem = function.problem or effect.problem
            if effect.call is not None:
                _connect(function, effect.call, function.calls, "avr", owner)
            if effect.jump is not None:
                waiting.append(effect.jump)
            if effect.ends:
                break
            at += effect.size


def _connect(
    here: Function, goal: int, edges: set[str], family: str, owner: Callable[[int], Function | None]
) -> None:
    """Record a call or a branch to an address."""
    is_call = edges is here.calls
    goal = goal & ~1 if family == "arm" else goal
    callee = owner(goal)
    if is_call and callee is here and goal != here.start:
        return  # in Thumb-1 a far branch within a function has the form of a call
    if callee is not None:
        if callee is not here or is_call:
            edges.add(callee.name)
    elif is_call:
        here.problem = here.problem or f"it calls unknown code at {goal:#x}"


def worst_case_stack(functions: dict[str, Function], roots: Iterable[str]) -> StackBound:
    """Add up the frames along the deepest chain of calls from any of the roots."""
    # Recursion, a call through a pointer and a frame of variable size have no bound and are errors.
    group = _routines(functions)
    done: dict[frozenset[str], StackBound] = {}

    def visit(name: str, above: tuple[str, ...]) -> StackBound:
        members = group[name]
        if members in done:
            return done[members]
        if members & set(above):
            path = " -> ".join([*above, name])
            raise ToolError(f"no stack bound: the code is recursive ({path})")
        for member in sorted(members):
            if functions[member].problem:
                caller = above[-1] if above else "the application"
                raise ToolError(
                    f"no stack bound for {member} (reached from {caller}): "
                    f"{functions[member].problem}"
                )
        called = set().union(*(functions[member].calls for member in members))
        jumped = set().union(*(functions[member].jumps for member in members)) - members
        below = [visit(callee, (*above, name)) for callee in sorted(called | jumped)]
        best = max(below, key=lambda bound: bound.bytes, default=StackBound(0, ()))
        frame = sum(functions[member].frame for member in members)
        done[members] = StackBound(frame + best.bytes, (name, *best.chain))
        return done[members]

    bounds = [visit(root, ()) for root in roots]
    return max(bounds, key=lambda bound: bound.bytes, default=StackBound(0, ()))


def _routines(functions: dict[str, Function]) -> dict[str, frozenset[str]]:
    """Group functions that branch into one another: hand-written routines with several names."""
    # A branch back and forth inside such a routine is a loop, not recursion.
    reach: dict[str, set[str]] = {}
    for name in functions:
        reached: set[str] = set()
        waiting = [name]
        while waiting:
            for following in functions[waiting.pop()].jumps - reached:
                reached.add(following)
                waiting.append(following)
        reach[name] = reached
    rings = ((name, {other for other in reach[name] if name in reach[other]}) for name in functions)
    return {name: frozenset({name} | ring) for name, ring in rings}


#: Parts of flash in the order of a report.
FLASH_PARTS = ("weights", "kernels", "transform", "windows", "scaler", "code", "library")


@dataclass(frozen=True)
class Footprint:
    """Bytes that a model adds to an empty program."""

    parts: dict[str, int]  # flash by `FLASH_PARTS`.
    static: int  # initialised and zeroed static data.
    scratch: int  # the buffer that the application lends.
    stack: int  # worst case of all functions of the header.
    chain: tuple[str, ...]  # the deepest chain of calls.
    compiler: str  # name and version.
    notes: tuple[str, ...] = ()  # what the figures do not show.

    @property
    def flash(self) -> int:
        """All parts together."""
        return sum(self.parts.values())


def measure_footprint(
    model: IntegerModel, target: str | Target, toolchain: Toolchain, entries: Sequence[str] = ()
) -> Footprint:
    """Build a program with the model and one without it, and compare the two."""
    # `entries` are the functions that it calls, by default those of `_entries`. The stack is that
    # of all functions of the header.
    row = find_target(target)
    names = entries or _entries(model)
    script, program = size_script(row), template_engine().get_template("model/size.c.j2")
    with tempfile.TemporaryDirectory(prefix="tinykernel-") as name:
        folder = Path(name)
        files = render_sources(model, MODEL)
        include = write_sources(folder, files)
        code = folder / "model.o"
        toolchain.compile(folder / "src" / f"{MODEL}.c", code, include=include)
        linked = {}
        for kind, value in (("empty", "0"), ("full", _call(model, names))):
            source = folder / f"{kind}.c"
            text = program.render(name=MODEL, NAME=MODEL.upper(), value=value)
            source.write_text(text, encoding="utf-8")
            toolchain.compile(source, folder / f"{kind}.o", include=include)
            linked[kind] = folder / f"{kind}.elf"
            toolchain.link([folder / f"{kind}.o", code], linked[kind], script=script)
        part_of = {table.name: table.part for table in pack(model).tables}
        parts, static, scratch = _compare(linked["empty"], linked["full"], code, part_of)
        objects = [folder / "empty.o", code]
        declared = declared_functions(files[f"include/{MODEL}.h"], MODEL)
        bounds = stack_bounds(objects, declared, row, toolchain, folder / "all.elf")
    bound = max(bounds.values(), key=lambda bound: bound.bytes)
    tables = sum(parts[part] for part in flash_parts(model) if part not in ("code", "library"))
    return Footprint(
        parts={part: parts[part] for part in flash_parts(model)},
        static=static + (tables if row.tables_in_ram else 0),
        scratch=scratch,
        stack=bound.bytes,
        chain=bound.chain,
        compiler=toolchain.title,
        notes=row.notes,
    )


def stack_bounds(
    objects: Sequence[Path], names: Sequence[str], target: Target, toolchain: Toolchain, elf: Path
) -> dict[str, StackBound]:
    """Link objects to a program that keeps these functions, and bound the stack of each."""
    roots = [f"-Wl,-u,{name}" for name in names]
    toolchain.link(objects, elf, script=size_script(target), flags=roots)
    with elf.open("rb") as stream:
        functions = read_functions(ELFFile(stream), target.family)
    return {name: worst_case_stack(functions, [name]) for name in names}


def size_script(target: Target) -> Path:
    """Return the linker script for measuring a program of a target."""
    boards = source_folder("firmware") / "boards"
    special = boards / target.family / "size.ld"
    return special if special.exists() else boards / "size.ld"


def flash_parts(model: IntegerModel) -> tuple[str, ...]:
    """Return the parts of flash that a model has, in the order of a report."""
    if model.decision is None and model.events is None:
        return FLASH_PARTS
    return (*FLASH_PARTS[:-2], "decision", *FLASH_PARTS[-2:])


def _entries(model: IntegerModel) -> tuple[str, ...]:
    """Return the functions that an application of the model calls."""
    events = () if model.events is None else ("event",)
    if model.decision is None:
        return ("predict", *events)
    if model.decision.n_prototypes:
        return ("decide_novelty", "confidence", *events)
    novelty = () if model.decision.novelty_threshold is None else ("is_novel",)
    return ("decide", "confidence", *novelty, *events)


_CALLS = {
    "predict": f"{MODEL}_predict(input, scratch)",
    "event": f"{MODEL}_event(({MODEL}_state_t *)(void *)scratch, scratch)",
    "decide": f"{MODEL}_decide(input, scratch, &margin)",
    "confidence": f"{MODEL}_confidence((const int32_t *)scratch)",
    "is_novel": f"{MODEL}_is_novel((const int32_t *)scratch)",
    "decide_novelty": f"{MODEL}_decide_novelty(input, scratch, &margin, (int32_t *)scratch)",
}


def _call(model: IntegerModel, names: Sequence[str]) -> str:
    """Return the expression that calls functions; it is linked and never run."""
    if model.is_regressor:
        calls = f"({MODEL}_predict(input, scratch, (int32_t *)scratch), 0)"
    else:
        calls = " + ".join(_CALLS[name] for name in names)
    return calls.replace("(input,", "(input, input,") if model.n_numbers else calls


def _compare(
    empty: Path, full: Path, code: Path, part_of: dict[str, str]
) -> tuple[dict[str, int], int, int]:
    """Take the sizes of one ELF file from another: parts of flash, static data, scratch."""
    with empty.open("rb") as stream:
        empty_flash, empty_static = _section_sizes(ELFFile(stream))
    with code.open("rb") as stream:
        of_model = {symbol.name for symbol in symbols(ELFFile(stream))}
    with full.open("rb") as stream:
        elf = ELFFile(stream)
        flash, static = _section_sizes(elf)
        parts = _sort_symbols(elf, of_model, part_of)
        scratch = next(s["st_size"] for s in symbols(elf) if s.name == "scratch")
    parts["code"] = flash - empty_flash - sum(parts.values())
    return parts, static - empty_static, scratch


def _section_sizes(elf: ELFFile) -> tuple[int, int]:
    """Add up what lies in flash and what lies in RAM at run time."""
    flash = static = 0
    for section in elf.iter_sections():
        allocated, writable = section["sh_flags"] & 2, section["sh_flags"] & 1
        if not allocated:
            continue
        if section["sh_type"] != "SHT_NOBITS":
            flash += section["sh_size"]
        if writable:
            static += section["sh_size"]
    return flash, static


def _sort_symbols(elf: ELFFile, of_model: set[str], part_of: dict[str, str]) -> dict[str, int]:
    """Add up the tables by part, and what comes from libraries; code is what remains."""
    parts = dict.fromkeys((*FLASH_PARTS, "decision"), 0)
    library: list[tuple[int, int]] = []
    constant = [not section["sh_flags"] & 1 for section in elf.iter_sections()]
    starts = sorted({symbol["st_value"] & ~1 for symbol in symbols(elf)})
    for symbol in symbols(elf):
        name, size, index = symbol.name, symbol["st_size"], symbol["st_shndx"]
        if name in part_of:
            parts[part_of[name]] += size
        elif name not in of_model and name != "main" and isinstance(index, int) and constant[index]:
            start = symbol["st_value"] & ~1
            # Hand-written routines may state no size: they end where the next one begins.
            following = starts[bisect.bisect_right(starts, start) :][:1] or [start]
            library.append((start, start + size if size else following[0]))
    end = 0
    for start, stop in sorted(library):  # routines with several names count once
        parts["library"] += max(0, stop - max(start, end))
        end = max(end, stop)
    return parts
