"""Write docs/results/verification.md: what was checked, on what, how often, with what result.

Runs the proofs, and a share of the fuzzing if asked; --fuzz-log takes the output of
a `make fuzz` that was run before. Needs a checkout: random models are those of the tests.
"""

import argparse
import contextlib
import importlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "firmware")]

from tests.firmware.local_models import ALL  # noqa: E402
from tests.random_models import make_model, random_model  # noqa: E402
from tinykernel.compile.plan import certificate  # noqa: E402
from tinykernel.compile.sources import render_sources  # noqa: E402
from tinykernel.model.file import load  # noqa: E402
from tinykernel.model.integer import IntegerModel  # noqa: E402
from tinykernel.model.pipelines import as_integer_model  # noqa: E402

CHECKER = ROOT / "firmware" / "check_proof.py"
PAGE = ROOT / "docs" / "results" / "verification.md"
BEGIN, END = "<!-- figures of benchmarks/verification.py -->", "<!-- end of figures -->"


def run(arguments: list[object]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def prove(model: IntegerModel, folder: Path) -> tuple[bool, float, float]:
    """Say whether a proof is accepted, the processor seconds that took, and writing it."""
    begin = time.process_time()
    (folder / "p.json").write_bytes(certificate(model))
    written = time.process_time() - begin
    files = render_sources(model, "m")
    for path, data in files.items():
        (folder / Path(path).name).write_bytes(data)
    before = os.times()
    done = run([CHECKER, folder / "p.json", folder / "m.c"])
    after = os.times()
    used = after.children_user + after.children_system
    return done.returncode == 0, used - before.children_user - before.children_system, written


def tamper(folder: Path, rng: np.random.Generator) -> bool:
    """Change one digit in one table of the C, and say whether the checker refuses it."""
    text = (folder / "m.c").read_text()
    digits = [match.start() for match in re.finditer(r"(?<=[\s-])[1-8](?=,)|[0-9a-f](?=u,)", text)]
    if not digits:
        return True
    at = int(rng.choice(digits))
    (folder / "m.c").write_text(text[:at] + ("1" if text[at] != "1" else "2") + text[at + 1 :])
    return run([CHECKER, folder / "p.json", folder / "m.c"]).returncode == 1


def changed(folder: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Change every macro, an entry of every table and every bound; count changes and refusals."""
    check = importlib.import_module("check_proof").main
    text, proof = (folder / "m.c").read_text(), json.loads((folder / "p.json").read_text())
    done, refused = Counter[str](), Counter[str]()

    def attempt(kind: str, source: str, said: dict[str, Any]) -> None:
        (folder / "m.c").write_text(source)
        (folder / "p.json").write_text(json.dumps(said))
        done[kind] += 1
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                check(folder / "p.json", folder / "m.c")
        except SystemExit:
            refused[kind] += 1

    begin = text.index("#define TK_FORMAT ")
    macro = re.compile(r"^#define TK_\w+(?:\(\w+\))? +\(?-?(\d+)", re.M)
    for found in macro.finditer(text, begin, text.index("TK_TABLE", begin)):
        value = str(int(found[1]) + 1)
        attempt("macros", text[: found.start(1)] + value + text[found.end(1) :], proof)
    for table in re.finditer(r"TK_FLASH \w+ tk_\w+\[\d+\] = \{(.*?)\};", text, re.S):
        entries = [*re.finditer(r"\b(?:0x[0-9a-f]+|\d+)", table[1])]
        entry = entries[len(entries) // 2]
        at, end = (table.start(1) + place for place in entry.span())
        attempt("table entries", text[:at] + str(int(entry[0], 0) ^ 1) + text[end:], proof)
    for i, bound in enumerate(proof["bounds"]):
        for end in ("low", "high"):
            bounds = [*proof["bounds"]]
            bounds[i] = bound | {end: bound[end] + 1}
            attempt("bounds", text, proof | {"bounds": bounds})
    return done, refused


def proofs_of(kind: str, model: IntegerModel, folder: Path) -> list[tuple[str, str, str]]:
    """Prove one model, and change what there is to change."""
    ok, used, written = prove(model, folder)
    done, refused = changed(folder)
    verdict = "accepted" if ok else "REFUSED"
    spent = f"{verdict}, {used:.1f} s of one processor; {written:.1f} s to write it"
    changes = "one number changed: " + ", ".join(f"{n} {name}" for name, n in done.items())
    found = f"{sum(refused.values())} of {sum(done.values())} refused"
    return [("time of `check_proof.py`", kind, spent), (changes, kind, found)]


def proofs(n: int, files: list[Path]) -> list[tuple[str, str, str]]:
    models = [make_model(seed, bits=8 + 8 * (seed % 2)) for seed in range(n)]
    rng, accepted, refused = np.random.default_rng(0), 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, model in enumerate(models, 1):
            accepted += prove(model, folder)[0]
            refused += tamper(folder, rng)
            print(f"[{number}/{len(models)}] proofs", flush=True)
        shape = {"n_features": 784, "n_blocks": 8, "n_classes": 10, "permutation": "orbit"}
        large = {
            "784 inputs, 8 blocks of 1,024 rows": random_model(1, **shape),
            "an image of 28 x 28": ALL["convolutions, 4-bit taps"](),
        }
        for file in files:
            title = f"`{file.stem}`, a model of {file.stat().st_size:,} bytes"
            large[title] = as_integer_model(load(file))
        rows = []
        for kind, model in large.items():
            rows += proofs_of(kind, model, folder)
            print(rows[-1], flush=True)
    what, n = "`check_proof.py` accepts the proof of the C", len(models)
    return [
        (what, f"{n} random models", f"{accepted} accepted"),
        ("one digit of one table changed", f"the same {n}", f"{refused} refused"),
        *rows,
    ]


def fuzz(scale: float | None, log: str | None) -> list[tuple[str, str, str]]:
    if log is None:
        said = run(["-m", "tests.fuzz", "--scale", scale]).stdout.splitlines()[-1]
        what = f"`make fuzz FUZZ_SCALE={scale:g}`"
    else:
        lines = Path(log).read_text(encoding="utf-8").splitlines()
        said, what = next(line for line in lines[::-1] if " kernel inputs; " in line), "`make fuzz`"
    counts = said.split("; ")
    names = ("crashes", "uncaught", "sanitizer", "differences", "largest", "longest")
    found = [part for part in counts if any(name in part for name in names)]
    return [(what, ", ".join(part for part in counts if part not in found), ", ".join(found))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    repeated = {"action": "append", "default": [], "metavar": "FILE"}
    parser.add_argument("--fuzz-scale", type=float, help="share of a make fuzz to run, or none")
    parser.add_argument("--fuzz-log", **repeated, help="output of a make fuzz; repeat it")
    parser.add_argument("--models", type=int, default=50, help="random models to prove")
    parser.add_argument("--model", type=Path, **repeated, help="prove a trained model; repeat it")
    given = parser.parse_args()
    rows = [
        *proofs(given.models, given.model),
        *(fuzz(given.fuzz_scale, None) if given.fuzz_scale else []),
        *(row for log in given.fuzz_log for row in fuzz(None, log)),
    ]
    table = "\n".join(
        ["| what | on what | result |", "|---|---|---|"]
        + [f"| {' | '.join(row)} |" for row in rows]
    )
    print(table)
    text = PAGE.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
