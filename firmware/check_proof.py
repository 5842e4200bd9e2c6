"""Check the proof of a model against its exported C: python check_proof.py FILE NAME.c.

FILE is written by ``tinykernel inspect MODEL --proof FILE``. NAME.h and the headers of the runtime
are in the folder of NAME.c. Every bound and every size of memory is computed again from the macros
and tables of the C. It must equal that of FILE and be within its limits. Both ends of a bound must
be reached by a witness: an input of highest (+) and lowest (-) values. C that a compiler could read
differently is refused. Needs only numpy, and shares no code with the package.
"""

import hashlib
import json
import pathlib
import re
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # python -I leaves it out
from proof_pieces import PARTS, STAGES, machines, memory, outputs, readout, stages
from proof_tools import INT32, need

NUMBER = r"(?:-?(?:0x[0-9a-f]+|0|[1-9]\d*)u?|\(-2147483647 - 1\))"
VALUE = rf"(?:{NUMBER}|-?\d[\d.]*(?:e[+-]\d+)?f|tk_\w+\[(?:i|block)\])"
CHOICE = rf"\(block == TK_BLOCKS - 1u \? {NUMBER} : {NUMBER}\)"
MACRO = rf"#define (TK_[A-Z\d_]+)(?:\(\w+\))? +((?:\(\(u?int32_t\))?(?:{VALUE}|{CHOICE})\)?) *\n\s*"
TABLE = (
    r"TK_TABLE static const TK_FLASH (float|u?int\d+)(?:_t)? (tk_\w+)\[(\d+)\] = "
    r"\{([^{};\"]*)\};\s*"
)
STRUCT = r"TK_TABLE static const TK_FLASH struct (tk_\w+) (tk_\w+) = \{([^;]*)\};\s*"
FILE = (
    r'\s*#include "NAME\.h"\s*'
    r"#if CAPITALS_FINGERPRINT != 0x[0-9a-f]{8}u \|\| CAPITALS_SCRATCH_WORDS != \d+\s*"
    r'#error ""\s*#endif\s*(?:#if CAPITALS_STREAM_SCRATCH_WORDS != \d+\s*#error ""\s*#endif\s*)?'
    r'#if defined\(TK_CONFIG_H\)\s*#error ""\s*#endif\s*'
    r"(?:#if !defined\(TK_FORCE_RADIX\)\s+#define TK_FORCE_RADIX 2\n"
    r'\s*#endif\s*)?#include "tk_config\.h"\s*typedef NAME_input_t tk_(?:raw_t;\s*|'
    r"sample_t;\s*typedef (?P<sensor>u?int\d+_t|tk_sample_t) tk_sensor_t;\s*)"
    r"(?:typedef (?P<raw>uint8|uint16)_t TK_ALIAS tk_raw_t;\s*)?"
    r"typedef int(?P<bits>8|16|32)_t TK_ALIAS tk_quantized_t;\s*"
    rf"(?:{MACRO})+(?:{TABLE})+"
    rf'(?:(?P<headers>(?:#include "tk_\w+\.h"\s*)+)(?:{STRUCT})+[^#]*)?'
    rf'(?P<readout>(?:#include "(?:{"|".join(part.HEADER for part in PARTS)})"\s*)+)'
    r'#include "tk_(?:predict|decide)\.h"\s*#include "tk_check\.h"[^#]*'
)


def contents(path):
    need(path.is_file() and path.stat().st_size < 1 << 24, f"{path}: no file, or above 16 MiB")
    return path.read_text("ascii")


def code_of(path):
    """Return C without comments and with empty strings, so that neither can hide code."""
    text = contents(path)
    need(not re.search(r"[^\n -~]|\\\n|\?\?", text), f"{path}: characters with two meanings")
    parts = r'/\*.*?\*/|("\w+\.h"|"C")|"(?:\\.|[^"\\\n])*"'
    code = re.sub(
        parts, lambda part: part[1] or (" " if part[0][0] == "/" else '""'), text, flags=re.S
    )
    need(not re.search(r"'|//|/\*|%:|_Pragma|__asm", code), f"{path}: what no exported C has")
    return code


def number(text):
    need(re.fullmatch(NUMBER, text), f"{text} is no number")
    return -(2**31) if text[0] == "(" else int(text.rstrip("u"), 0)


def table(kind, size, body):
    """Return the numbers of a table; refuse numbers outside the range of its type."""
    values, limits = [number(text.strip()) for text in body.split(",")], np.iinfo(kind)
    need(len(values) == int(size), "a table has another length")
    need(limits.min <= min(values) and max(values) <= limits.max, "a table leaves its type")
    return np.array(values, dtype=np.int64)


def declared(path, kind):
    """Return names and array lengths of the members of a structure of a header of the runtime."""
    # It may stand in one that this header includes.
    others = re.findall(r'^#include "(tk_\w+\.h)"$', contents(path), re.M)
    text = "".join(contents(path.with_name(name)) for name in (path.name, *others))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    bodies = re.findall(rf"^struct {kind} \{{([^{{}}#]*)\}};", text, re.M)
    need(len(bodies) == 1, f"{path} does not declare {kind}")
    return re.findall(r"(\w+)(?:\[(\d+)\])?;", bodies[0])


def members(path, kind, body):
    """Return the members of a structure by name: numbers, lists of numbers, or names of tables."""
    declaration = declared(path, kind)
    value = rf"({NUMBER}|tk_\w+)"
    form = [rf"\{{{','.join([value] * int(n))}\}}" if n else value for _, n in declaration]
    match = re.fullmatch(",".join(form) + ",", re.sub(r"\s", "", body))
    need(match, f"{kind} has other members")
    values = [text if text.startswith("tk_") else number(text) for text in match.groups()]
    return {
        name: [values.pop(0) for _ in range(int(n))] if n else values.pop(0)
        for name, n in declaration
    }


def raw_type(name, header):
    """Return the limits of the raw values, None for floats; refuse other macros in the header."""
    allowed = rf"#define {name.upper()}_.*|#include <stdint\.h>|#(?:if|else|endif).*"
    lines = re.findall(r"^.*#.*$", header, re.M)
    need(all(re.fullmatch(allowed, line) for line in lines), "the header has other macros")
    need(not re.search(r"\btk_|\bTK_", header), "the header speaks of the runtime")
    raw = re.search(rf"typedef (u?int\d+)_t {name}_input_t;", header)
    if not raw:
        return None
    inner = r"^#if(?:(?!^#if).)*?^#endif"
    outer = re.sub(inner, "", header[: raw.start()], flags=re.M | re.S)
    held, guard = re.findall(r"^#(?:if|else|endif).*", outer, re.M), [f"#ifndef {name.upper()}_H"]
    need(held == lines[:1] == guard, "the type of the inputs hangs on a condition")
    return np.iinfo(raw[1])


def memory_of(name, header):
    """Return the sizes of memory in the header: of scratch, and of a stream if there is one."""
    stated = {
        kind: re.findall(rf"^#define {name.upper()}_{kind}_WORDS (\d+)$", header, re.M)
        for kind in ("SCRATCH", "STREAM_SCRATCH", "STATE")
    }
    need(all(len(sizes) < 2 for sizes in stated.values()), "a size of memory stands twice")
    sizes = {kind.lower(): int(sizes[0]) for kind, sizes in stated.items() if sizes}
    bytes_of = dict(re.findall(rf"^#define {name.upper()}_(\w+)_BYTES (\d+)$", header, re.M))
    for kind in ("SCRATCH", "STATE"):
        size = str(4 * sizes.get(kind.lower(), 0))
        need(bytes_of.get(kind, "0") == size, f"words and bytes of {kind.lower()} differ")
    return sizes


class Source:
    """Macros (text) and tables (integers) of a C file, with functions that decode them."""

    def __init__(self, path):
        need(re.fullmatch(r"[a-z][a-z\d_]*", path.stem), f"{path} is no name of a model")
        header = code_of(path.with_suffix(".h"))
        self.raw, self.memory = raw_type(path.stem, header), memory_of(path.stem, header)
        self.streams = "stream_scratch" in self.memory
        form = FILE.replace("NAME", path.stem).replace("CAPITALS", path.stem.upper())
        source = re.fullmatch(form, code_of(path))
        need(source, f"{path} has lines that are in no exported C")
        # Before this header stands at most the radix of small code, which changes no value.
        body = source[0].partition('#include "tk_config.h"')[2]
        macros, tables, structs = (re.findall(p, body) for p in (MACRO, TABLE, STRUCT))
        keywords = re.findall(r"\b(?:TK_TABLE|static)\b", source[0])
        need(len(keywords) == 2 * len(tables + structs), "a table is no exported one")
        names = [name for name, _ in macros] + [name for _, name, *_ in (*tables, *structs)]
        need(len(set(names)) == len(names), "a name stands twice")
        self.text, self.folder = dict(macros), path.parent
        need(source["bits"] == self.text.get("TK_INPUT_BITS"), "quantized inputs of another type")
        self.sensor = source["sensor"]
        self.most_count = np.iinfo(source["raw"] or "uint8").max
        self.seen, self.table, self.kind = dict(self.text), {}, {}
        headers = re.findall(r'"(tk_\w+\.h)"', source["headers"] or "")
        of_structs = [(STAGES[kind].HEADER, kind, body) for kind, _, body in structs]
        need(headers == [*dict.fromkeys(row[0] for row in of_structs)], "headers of other stages")
        headers = re.findall(r'"(tk_\w+\.h)"', source["readout"])
        need(headers == [part.HEADER for part in readout(self)], "headers of other parts")
        self.chain = [
            (kind, members(path.with_name(header), kind, body)) for header, kind, body in of_structs
        ]
        for _, name, body in structs:
            self.seen[name] = re.sub(r"\s", "", body).rstrip(",")
        for kind, name, size, body in tables:
            self.kind[name] = kind
            self.seen[name] = hashlib.sha256(re.sub(r"\s", "", body).encode()).hexdigest()
            if kind != "float":
                self.table[name] = table(kind, size, body)

    def __call__(self, name, default="0"):
        value = number(self.text.get("TK_" + name, default))
        need(0 <= value < 1 << 32, f"TK_{name} is {value}")
        return value

    def declared(self, header, name):
        """Return a number that a header of the runtime defines."""
        found = re.findall(rf"^#define {name} (\d+)u$", contents(self.folder / header), re.M)
        need(len(found) == 1, f"{header} does not define {name} once")
        return int(found[0])

    def of_block(self, name, block):
        """Return the value of a macro for a block: from a table, a literal or a conditional."""
        text = self.text[f"TK_{name}"]
        stored = re.search(r"(tk_\w+)\[block\]", text)
        if stored:
            return int(self.table[stored[1]][block])
        values = re.findall(r"(\d+)u(?=\)| :)", text)
        return int(values[0] if block == self("BLOCKS") - 1 else values[-1])

    def fields(self, name, places, bits):
        """Return the fields of words: signs if of one bit, else numbers in two's complement."""
        need(0 < bits <= 32, f"{name} has fields of {bits} bits")
        codes = (self.table[name][:, None] >> np.array(places) & (1 << bits) - 1).ravel()
        return 1 - 2 * codes if bits == 1 else (codes ^ 1 << bits - 1) - (1 << bits - 1)


def check(proof_path, path):
    proof = json.loads(contents(proof_path))
    head = isinstance(proof, dict) and (proof.get("format"), proof.get("version"))
    need(head == ("tinykernel-proof", 3), f"{proof_path} is no proof of version 3")
    need("\n#define TK_FORMAT " in contents(path), f"{path} is no exported C of a model")
    need('\n#include "tk_config.h"' in contents(path), "a single source: take --format library")
    need(f"from model {proof['fingerprint'][:8]};" in contents(path), "the C is of another model")
    c = Source(path)
    for name in proof["source"] | c.seen:
        need(proof["source"].get(name) == c.seen.get(name), f"{name} is not that of the proof")
    d = 1 << min(c("LOG2_DIMENSION"), 20)
    known = c("INPUT_BITS") in (8, 16, 32)
    need(known and c("BLOCKS") * d <= 1 << 19, "too large to be proved here")
    need(not c("BLOCKS") or c("FEATURES") <= d, "more inputs than the transform has rows")
    needed = memory(c)
    need(c.memory == needed, f"memory of {c.memory} words, where the tables need {needed}")
    need(proof["memory"] == needed, f"memory is {needed}, not {proof['memory']}")
    half = 1 << c("INPUT_BITS") - 1
    bounds = [*stages(c)] if c("STAGES") else []
    bounds.append(("quantized input", -half, half - 1, (-half, half - 1)))
    for piece in machines(c):
        bounds += piece.witnessed(c, proof["witnesses"])
    bounds += [(*bound, INT32) for bound in outputs(c)]
    names = [bound[0] for bound in bounds]
    need([b["stage"] for b in proof["bounds"]] == names, "stages are missing")
    for b, (stage, low, high, limits) in zip(proof["bounds"], bounds, strict=True):
        ends = int(np.min(low)), int(np.max(high))
        need((b["low"], b["high"]) == ends, f"{stage} is within {ends}, not {b['low'], b['high']}")
        need(limits[0] <= ends[0] and ends[1] <= limits[1], f"{stage} leaves {limits}")
    n_witnesses = len(proof["witnesses"])
    print(f"proved: {len(bounds)} stages of {path} within their limits, {n_witnesses} witnesses")


def main(*paths):
    """Check two files; any other error is a refusal, too."""
    try:
        with np.errstate(all="raise"):
            check(*map(pathlib.Path, paths))
    except Exception as error:
        need(False, f"what the files say does not fit: {type(error).__name__}: {error}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python check_proof.py FILE NAME.c")
    main(*sys.argv[1:])
