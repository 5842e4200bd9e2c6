"""The proof certificate: its checker knows nothing of the package, and sees every tampering."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from tests.cli.tools import succeeded
from tests.firmware.compiling import put_runtime
from tests.firmware.local_models import ALL
from tests.fuzz.proofs import load_checker
from tests.random_models import one_class, random_model, with_linear
from tests.refusals import SAID
from tests.sessions import ROOT
from tinykernel.compile.plan import certificate
from tinykernel.compile.sources import render_sources
from tinykernel.model.file import save
from tinykernel.model.integer import IntegerModel

pytestmark = pytest.mark.usefixtures("page")

CHECKER = ROOT / "firmware" / "check_proof.py"


class Export(NamedTuple):
    """The proof of a model as the program reads it, and the C beside it."""

    proof: dict[str, Any]
    text: str
    header: str


def export_of(model: IntegerModel) -> Export:
    """Return the proof and the C of a model, called m."""
    files = render_sources(model, "m")
    source, header = (files[path].decode("ascii") for path in ("src/m.c", "include/m.h"))
    return Export(json.loads(certificate(model)), source, header)


class Checker:
    """The program as a module, and a folder for what it reads."""

    def __init__(self, module: ModuleType, folder: Path) -> None:
        self.module, self.folder = module, folder
        put_runtime(folder)

    def accept(self, export: Export) -> None:
        """Check a proof, which raises SystemExit where it is refused."""
        self.write(export)
        self.module.main(str(self.folder / "proof.json"), str(self.folder / "m.c"))

    def refuse(self, export: Export) -> str:
        """Check a proof that must be refused; return what is said."""
        with pytest.raises(SystemExit) as caught:
            self.accept(export)
        message = str(caught.value.code)
        assert message.startswith("refused: ")
        assert "\n" not in message
        SAID.append(message)
        return message

    def write(self, export: Export) -> None:
        (self.folder / "proof.json").write_text(json.dumps(export.proof))
        (self.folder / "m.h").write_text(export.header)
        (self.folder / "m.c").write_text(export.text)

    def forged(self, export: Export, text: str) -> Export:
        """Return a proof with the macros and digests of another text, and that text."""
        self.write(export._replace(text=text))
        seen = self.module.Source(self.folder / "m.c").seen
        return export._replace(proof=export.proof | {"source": seen}, text=text)


@pytest.fixture(scope="module")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Checker:
    """Return the program, to run it without a process each time."""
    return Checker(load_checker(), tmp_path_factory.mktemp("proof"))


@pytest.fixture(scope="module")
def whole() -> Export:
    """Return the proof and the C of a model that has every kind of table."""
    return export_of(with_linear(random_model(5, n_features=70, windows="rows", kept="some"), 5, 4))


def test_checker_stands_alone(checker, whole):
    """It imports numpy and the standard library, and runs where the package is not."""
    files = [CHECKER, *CHECKER.parent.glob("proof_*.py")]
    files += ROOT.glob("tinykernel/pieces/*/bounds.py")
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text()))]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    own = {file.stem for file in files}
    assert names - own == {*("hashlib", "importlib.util", "json", "numpy", "pathlib", "re", "sys")}
    checker.write(whole)
    command = [sys.executable, "-I", str(CHECKER), "proof.json", "m.c"]
    done = subprocess.run(command, cwd=checker.folder, capture_output=True, text=True)
    assert done.stdout.startswith("proved: 23 stages"), done.stderr


def test_wrong_files_are_one_line(whole, checker, tmp_path):
    """Without arguments there is a line of usage; a file that is not what it should be has one."""
    files = {
        "p.json": json.dumps(whole.proof).encode(),
        "m.c": whole.text.encode(),
        "M.c": whole.text.encode(),
        "list.json": b"[]",
        "bytes.json": b"\xff\xfe",
        "empty.c": b"int x;\n",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    done = subprocess.run([sys.executable, "-I", str(CHECKER)], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("usage: ")
    for proof, source, message in (
        ("none.json", "m.c", "none.json: no file"),
        ("p.json", "none.c", "none.c: no file"),
        # Its macros could not be told from its types.
        ("p.json", "M.c", "M.c is no name of a model"),
        ("m.c", "m.c", "what the files say does not fit: JSONDecodeError"),
        ("bytes.json", "m.c", "what the files say does not fit: UnicodeDecodeError"),
        ("list.json", "m.c", "list.json is no proof"),
        ("p.json", "empty.c", "empty.c is no exported C"),
    ):
        with pytest.raises(SystemExit, match=f"refused: .*{message}"):
            checker.module.main(str(tmp_path / proof), str(tmp_path / source))


@pytest.mark.parametrize("table", ["tk_prototypes", "tk_biases"])
def test_a_changed_prototype_or_threshold_is_refused(table, checker):
    """Of one class the distance is bounded by every level; a forged digest does not help."""
    export = export_of(one_class(random_model(3, n_features=12), 3, 1))
    text = change_entry(export.text, table)
    checker.refuse(export._replace(text=text))
    checker.refuse(checker.forged(export, text))


def change_entry(text: str, table: str, place: int = 0) -> str:
    """Change one bit, or one digit, of one entry of a table."""
    begin = re.search(rf" {table}\[\w+\] = {{", text).end() - 1
    entries = list(re.finditer(r"-?\w+", text[begin : text.index("};", begin)]))
    entry = entries[place]
    value = int(entry[0].rstrip("u"), 0)
    new = f"0x{value ^ 1:08x}u" if entry[0].endswith("u") else str(value + 1)
    return text[: begin + entry.start()] + new + text[begin + entry.end() :]


EDITS = {
    "a halving left out": ("TK_HALVE_SECOND +0x\\w+u", "TK_HALVE_SECOND 0x1u"),
    "one more halving": ("TK_HALVE_FIRST +0x\\w+u", "TK_HALVE_FIRST 0x8u"),
    "order of values": (
        "TK_PERMUTATION +0",
        "TK_PERMUTATION 1\n#define TK_ORBIT_MULTIPLIER 5u\n#define TK_ORBIT_INCREMENT 3u",
    ),
}


@pytest.mark.parametrize(
    "edit",
    [*EDITS, "tk_diagonal", "tk_signs", "tk_gains", "tk_biases", "tk_linear", "tk_linear_gains"],
)
def test_arithmetic_finds_what_a_forged_digest_hides(edit, checker, whole):
    """Who changes a shift or an entry and its digest in the proof is caught by the bounds."""
    text = whole.text
    text = re.sub(*EDITS[edit], text, count=1) if edit in EDITS else change_entry(text, edit)
    assert text != whole.text
    assert "is not that of" not in checker.refuse(checker.forged(whole, text))


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("signal, averaged", "tk_kernels_1_codes"),
        ("convolutions, 8-bit taps, averaged, hidden layer", "tk_convolutions_1_codes"),
        ("convolutions, 8-bit taps, averaged, hidden layer", "tk_dense_2_biases"),
    ],
)
def test_kernels_taps_and_units_are_summed_up(name, table, checker):
    """The digest catches every change, and the sums those that move a bound."""
    export, caught = export_of(ALL[name]()), 0
    for place in range(9):
        text = change_entry(export.text, table, place)
        checker.refuse(export._replace(text=text))
        try:
            checker.accept(checker.forged(export, text))
        except SystemExit:
            caught += 1
    # A kernel that is not the largest may change and leave the bounds of all as they are.
    assert caught
    if "kernels" in table:
        top = re.sub(r"\d+u, /\* top", "5u, /* top", export.text)
        checker.refuse(checker.forged(export, top))


def lessen(text: str, pattern: str) -> str:
    """Return a text in which the number after a pattern is less by one, or by four bytes."""

    def less(found: re.Match[str]) -> str:
        return f"{found[1]}{int(found[2]) - (4 if 'BYTES' in found[1] else 1)}"

    return re.sub(rf"({pattern})(\d+)", less, text)


def test_every_bound_and_witness_counts(checker, whole):
    """One bound wider or narrower by one, one sign of a witness: refused."""

    def refused(key: str, place: int, change: dict[str, Any]) -> str:
        items = [*whole.proof[key]]
        items[place] = items[place] | change
        return checker.refuse(whole._replace(proof=whole.proof | {key: items}))

    for i, bound in enumerate(whole.proof["bounds"]):
        for end, step in (("low", -1), ("high", 1)):
            assert bound["stage"] in refused("bounds", i, {end: bound[end] + step})
            assert bound["stage"] in refused("bounds", i, {end: bound[end] - step})
    for i, witness in enumerate(whole.proof["witnesses"]):
        change = {"inputs": witness["inputs"].translate({43: 45, 45: 43})}
        assert witness["stage"] in refused("witnesses", i, change)
    SAID.clear()  # the stages of all are checked above


def test_witnesses_are_required(checker, whole):
    """Without them, without one, with one twice, with one that names another stage: refused."""
    said = whole.proof["witnesses"]
    for wrong in ([], said[1:], said[:-1], [*said, said[-1]], [said[1], said[0], *said[2:]]):
        proof = whole.proof | {"witnesses": wrong}
        checker.refuse(whole._replace(proof=proof))


TRICKS = {
    "redefined macro": (
        '#include "tk_predict.h"',
        "#undef TK_BLOCKS\n#define TK_BLOCKS 1u\n\\g<0>",
    ),
    "redefined in place": ("#define TK_BLOCKS .*", "\\g<0>\n#define TK_BLOCKS 1u"),
    "renamed table": ('#include "tk_config.h"', "\\g<0>\n#define tk_diagonal tk_other"),
    "table in a false condition": ("TK_TABLE [^;]*tk_diagonal[^;]*;", "#if 0\n\\g<0>\n#endif"),
    "table twice": ("TK_TABLE [^;]*tk_diagonal[^;]*;", "\\g<0>\n\\g<0>"),
    "backslash": ("#define TK_BLOCKS .*", "/\\\\\n* \\g<0> *\\\\\n/\n#define TK_BLOCKS 1u"),
    "trigraph": ("#define TK_BLOCKS .*", "// ??/\n\\g<0>"),
    "digraph": ('#include "tk_predict.h"', "%:define TK_BLOCKS 1u\n\\g<0>"),
    "line comment": ("#define TK_BLOCKS .*", "// /*\n\\g<0>\n// */"),
    "comment in a string": ("#define TK_BLOCKS .*", 'char a[] = "/*";\n\\g<0>\nchar b[] = "*/";'),
    "quoted quote": ("#define TK_BLOCKS .*", "int a = '\"';\n\\g<0>\nint b = '\"';"),
    "pragma": ('#include "tk_predict.h"', '_Pragma("pop_macro(\\"TK_BLOCKS\\")")\n\\g<0>'),
    "octal number": ("#define TK_FEATURES .*", "#define TK_FEATURES 070u"),
    "expression": ("#define TK_BLOCKS .*", "#define TK_BLOCKS (2u, 1u)"),
    "another type": ("typedef int8_t TK_ALIAS", "typedef int16_t TK_ALIAS"),
    "number too large": (r"(tk_windows\[\d+\] = \{\s*)\w+", r"\g<1>0x100000000u"),
    "table too long": (r"(tk_biases\[\d+\] = \{\s*)", r"\g<1>0, "),
    "table without an end": (
        "const char ",
        "TK_TABLE static const TK_FLASH int32_t tk_biases[1] = {\n\\g<0>",
    ),
    "string in a table": (r"(tk_biases\[\d+\] = \{\s*)", r'\g<1>"a" '),
    "code between": ("TK_TABLE [^;]*tk_diagonal", "int32_t x;\n\\g<0>"),
}


@pytest.mark.parametrize("trick", TRICKS)
def test_a_program_that_the_compiler_reads_otherwise_is_refused(trick, checker, whole):
    """The compiler would make other macros and tables of it than the checker reads."""
    text = re.sub(*TRICKS[trick], whole.text, count=1)
    assert text != whole.text
    checker.refuse(whole._replace(text=text))


@pytest.mark.parametrize("line", ["#define tk_biases tk_gains", "#undef TK_BLOCKS", "#pragma x"])
def test_a_header_cannot_rename_a_table(line, checker, whole):
    """What NAME.c includes first must speak of the model alone."""
    checker.refuse(whole._replace(header=f"{whole.header}{line}\n"))


@pytest.mark.parametrize(
    "hidden",
    [
        "#if 0\n{0}\n#else\ntypedef int32_t\nm_input_t;\n#endif",
        "#ifdef __cplusplus\n{0}\n#endif\ntypedef int32_t (m_input_t);",
        "#else\n{0}",
    ],
)
def test_the_type_of_samples_must_not_hang_on_a_condition(hidden, checker):
    """A spectrum is bounded for the type that the compiler sees, not for another in the text."""
    export, typedef = export_of(ALL["spectrum, int16"]()), "typedef int16_t m_input_t;"
    header = export.header.replace(typedef, hidden.format(typedef))
    assert header != export.header
    checker.refuse(export._replace(header=header))


def test_a_floor_of_levels_beyond_its_type_is_refused(checker):
    """A level less its floor would leave 32 bits, as the digest of a forged proof would hide."""
    export = export_of(ALL["spectrum, int16"]())
    text = re.sub(r"\d+u?, /\* floor", "2147483648u, /* floor", export.text)
    checker.refuse(checker.forged(export, text))


def test_hostile_sizes_end_in_one_line(checker, whole):
    """Sizes that take forever, numbers that are none, files that do not end: one line each."""
    proof = whole.proof
    for macro, value in (
        *(("LOG2_DIMENSION", "60"), ("LOG2_DIMENSION", "4294967295u"), ("BLOCKS", "4000000000u")),
        *(("FEATURES", "99999999999u"), ("FEATURES", "4000000000u")),
        *(("INPUT_BITS", "4000000000u"), ("LINEAR_BITS", "4000000000u"), ("OUTPUTS", "0u")),
        ("DIAGONAL_BITS", "3"),
    ):
        text = re.sub(rf"#define TK_{macro} .*", f"#define TK_{macro} {value}", whole.text)
        forged = {"source": proof["source"] | {f"TK_{macro}": value}, "witnesses": []}
        message = checker.refuse(whole._replace(proof=proof | forged, text=text))
        assert "MemoryError" not in message, macro
    wrong: list[dict[str, Any]] = [
        *({"witnesses": 3}, {"bounds": {}}, {"source": []}, {"memory": 1}, {"fingerprint": 1})
    ]
    for value in (10**400, -1, 0.5, None, "x", [1]):
        for key in ("row", "inputs"):
            first = proof["witnesses"][0] | {key: value}
            wrong.append({"witnesses": [first, *proof["witnesses"][1:]]})
    for changes in wrong:
        checker.refuse(whole._replace(proof=proof | changes))
    for content in ("[" * 100_000, "1e999", "NaN", "9" * 5000, ""):
        (checker.folder / "p.json").write_text(content)
        with pytest.raises(SystemExit, match="refused: "):
            checker.module.main(str(checker.folder / "p.json"), str(checker.folder / "m.c"))
    with pytest.raises(SystemExit, match="no file"):
        checker.module.main("/dev/zero", str(checker.folder / "m.c"))
    SAID.clear()  # it has words of Python, which each release changes


def test_proof_of_another_model_is_refused(checker, whole):
    """The fingerprint in the C is compared, and a stage must not be left out."""
    other = whole.proof | {"fingerprint": "0" * 64}
    checker.refuse(whole._replace(proof=other))
    short = whole.proof | {"bounds": whole.proof["bounds"][:-1]}
    checker.refuse(whole._replace(proof=short))


def test_inspect_writes_the_proof(checker, tmp_path, capsys):
    """--proof writes the file and says what checks it; an image model of 784 inputs."""
    model = random_model(
        1,
        n_features=784,
        n_blocks=2,
        n_classes=10,
        permutation="orbit",
        diagonal_kind="sign",
        zero_weights=False,
    )
    save(model, tmp_path / "m.tkm")
    result = succeeded("inspect", tmp_path / "m.tkm", "--proof", tmp_path / "m.json")
    assert "check_proof.py" in result.stderr
    checker.accept(export_of(model)._replace(proof=json.loads((tmp_path / "m.json").read_text())))
    assert "26 stages" in capsys.readouterr().out
