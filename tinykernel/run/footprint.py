"""The memory of a model on a chip, read from a linked program."""

import bisect
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile

from tinykernel.base.files import source_folder, template_engine
from tinykernel.compile.compilers import Toolchain
from tinykernel.compile.plan import pack
from tinykernel.compile.sources import declared_functions, render_sources
from tinykernel.compile.targets import Target, find_target
from tinykernel.model.integer import IntegerModel
from tinykernel.run.program import MODEL, write_sources
from tinykernel.run.stack import StackBound, read_functions, symbols, worst_case_stack

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
