"""Which stage of an inference each instruction of a program belongs to, from its debug data."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from tinykernel.codegen.pack import code_of
from tinykernel.measure.stack import symbols
from tinykernel.model.readouts import PARTS
from tinykernel.model.stages import STAGES as KINDS

# The runtime has one routine per file, so the file of a function shows its stage. Other functions
# (arithmetic on words, library routines) belong to the stage that calls them.
_STAGE_OF_FILE = {
    header: stage
    for piece in (*KINDS, *PARTS)
    for header, stage in code_of(piece.KIND).headers.items()
} | {"tk_stage.h": "local", "tk_scores.h": "scores", "tk_predict.h": "other"}
#: Stages in the order in which they run, where there are such; "other" is what puts them together.
STAGES = tuple(dict.fromkeys(_STAGE_OF_FILE.values()))
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
