"""Mutated proofs and C: refused in one line and soon, or the compiler reads what was proved."""

import contextlib
import hashlib
import importlib.util
import io
import json
import re
import subprocess
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tests.firmware.compiling import put_runtime
from tests.firmware.local_models import CONVOLUTIONS, LINEAR, OFFSETS, SIGNALS, SPECTRA
from tests.fuzz.batch import ROOT, Batch
from tests.fuzz.mutate import mutate_bytes, mutate_json
from tests.random_models import make_model, one_class, random_model, tree_model, with_linear
from tinykernel.compile.plan import certificate
from tinykernel.compile.sources import render_sources
from tinykernel.model.integer import IntegerModel

_LONGEST = 20.0
_LINES = (
    "#undef TK_BLOCKS",
    "#define TK_FEATURES 3u",
    "#define TK_BLOCKS (1u, 2u)",
    "#define tk_biases tk_gains",
    " # define TK_LOG2_DIMENSION 60",
    "#if 0",
    "#else",
    "#endif",
    "#pragma pack(1)",
    '#include "m.h"',
    "%:undef TK_BLOCKS",
    '_Pragma("once")',
    "\\",
    "??/",
    "// \\",
    "//",
    "/*",
    "*/",
    '"',
    "'\"'",
    "TK_TABLE static const TK_FLASH int32_t tk_biases[1] = {0};",
    "int tk_biases;",
    "#define tk_levels_0_mix tk_biases",
    "TK_TABLE static const TK_FLASH struct tk_levels tk_levels_0 = {0};",
)


def load_checker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_proof", ROOT / "firmware/check_proof.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def models() -> list[IntegerModel]:
    """Return models whose C has, between them, every kind of table and structure."""
    return [
        with_linear(random_model(5, n_features=70, kept="some"), 5, 4),
        random_model(1, n_features=20, diagonal_kind="int4", permutation="orbit", windows="phases"),
        *(make_model(3, "float32", 16), LINEAR["2 bits, 2 classes"](), SIGNALS["averaged"]()),
        *(SIGNALS["numbers beside"](), SPECTRA["int16"](), OFFSETS["int16"]()),
        *(CONVOLUTIONS["8-bit taps, averaged, hidden layer"](), tree_model(3, n_features=30)),
        one_class(random_model(3, n_features=12), 3),
    ]


def mutated_text(text: str, rng: np.random.Generator) -> str:
    """Return C with lines that came, went, moved or changed."""
    lines = text.split("\n")
    for _ in range(int(rng.integers(1, 4))):
        at, other = (int(rng.integers(len(lines))) for _ in range(2))
        kind = int(rng.integers(6))
        if kind == 0:
            lines.insert(at, _LINES[rng.integers(len(_LINES))])
        elif kind == 1:
            del lines[at]
        elif kind == 2:
            lines.insert(other, lines[at])
        elif kind == 3:
            lines[at] += str(rng.choice(["\\", " \\", "u", ",", "}", " /*", "??/", "0", ";"]))
        elif kind == 4:
            digits = list(re.finditer(r"\d+", lines[at]))
            if digits:
                digit = digits[rng.integers(len(digits))]
                new = str(rng.choice(["0", "1", "4294967295", "-1", "017", "60", "3"]))
                lines[at] = lines[at][: digit.start()] + new + lines[at][digit.end() :]
        else:
            lines[at] = mutate_bytes(lines[at].encode(), b"", rng).decode("latin1")
    return "\n".join(lines)


def compiled(source: Path) -> dict[str, str] | None:
    """Return macros, digests of tables and structures as a compiler reads them, if it does."""
    command = ["gcc", "-std=c99", "-E", "-P", "-dD", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return None
    text = done.stdout
    found = dict(re.findall(r"^#define (TK_\w+)(?:\(\w+\))? *(.*?) *$", text, re.M))
    tables = re.findall(r"static const \w+ (tk_\w+)\[\d+\] = \{([^}]*)\};", text)
    for name, body in tables:
        found[name] = hashlib.sha256(re.sub(r"\s", "", body).encode()).hexdigest()
    structs = re.findall(r"static const struct \w+ (tk_\w+) = \{([^;]*)\};", text)
    found |= {name: re.sub(r"\s", "", body).rstrip(",") for name, body in structs}
    undone = re.findall(r"^#undef (TK_\w+)", text, re.M)
    return {name: value for name, value in found.items() if name not in undone}


def run(batch: Batch, size: int) -> None:
    """Damage `size` proofs or sources."""
    checker = load_checker()
    seeds = [(json.loads(certificate(model)), render_sources(model, "m")) for model in models()]
    with tempfile.TemporaryDirectory() as folder:
        put_runtime(Path(folder))
        for index in range(size):
            rng = np.random.default_rng((batch.seed, index))
            proof, files = seeds[rng.integers(len(seeds))]
            _one(batch, checker, Path(folder), proof, files, rng)


def _one(
    batch: Batch,
    checker: ModuleType,
    folder: Path,
    proof: dict[str, Any],
    files: dict[str, bytes],
    rng: np.random.Generator,
) -> None:
    source, header, text = folder / "m.c", folder / "m.h", files["src/m.c"].decode()
    header.write_bytes(files["include/m.h"])
    changed = mutated_text(text, rng) if rng.random() < 0.6 else text
    source.write_text(changed, encoding="utf-8", errors="surrogatepass")
    if rng.random() < 0.1:
        header.write_text(mutated_text(header.read_text(), rng), encoding="utf-8")
    if changed != text and rng.random() < 0.8:  # the digests of what is there now
        with contextlib.suppress(SystemExit, Exception):
            proof = proof | {"source": checker.Source(source).seen}
    elif rng.random() < 0.8:
        proof = mutate_json(proof, rng)
    data = json.dumps(proof).encode()
    if rng.random() < 0.1:
        data = mutate_bytes(data, data[::-1], rng)
    (folder / "m.json").write_bytes(data)
    batch.counts["proofs"] += 1
    kept, begin, said = data + b"\n" + source.read_bytes(), time.monotonic(), ""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            checker.main(str(folder / "m.json"), str(source))
    except SystemExit as error:
        said = str(error.code)
        if not said.startswith("refused: ") or "\n" in said:
            batch.find("uncaught exceptions", f"said {said!a}", kept, ".txt")
    except Exception as error:
        batch.find("uncaught exceptions", repr(error), kept, ".txt")
    if time.monotonic() - begin > _LONGEST:
        batch.find("crashes", f"{time.monotonic() - begin:.0f} s", kept, ".txt")
    if not said:
        batch.counts["accepted proofs"] += 1
        there = compiled(source)
        if there is not None and any(
            there.get(name) != value for name, value in json.loads(data)["source"].items()
        ):
            batch.find("differences", "the compiler reads another program", kept, ".txt")
