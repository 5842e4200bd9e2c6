"""The proof certificate: its checker knows nothing of the package, and sees every tampering."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.cli.tools import run
from tests.firmware.local_models import ALL
from tests.random_models import make_model, one_class, random_model, tree_model, with_linear
from tests.sessions import ROOT
from tinykernel.codegen.certificate import certificate
from tinykernel.codegen.definitions import declared_members
from tinykernel.codegen.sources import render_single, render_sources
from tinykernel.model import IntegerModel
from tinykernel.model.stages.components import Components
from tinykernel.modelfile import save

OTHERS = {
    "one class": lambda: one_class(random_model(3, n_features=70), 3),
    "one class of 16 bits": lambda: one_class(random_model(4, n_features=9, bits=16), 4, 1),
    "trees": lambda: tree_model(3, n_features=30),
    "trees beside a linear part": lambda: tree_model(4, n_classes=2, leaf_bits=8, linear=True),
    "one class of signals": lambda: one_class(ALL["signal, averaged"](), 5),
}
CHECKER = ROOT / "firmware" / "check_proof.py"
# The checker reads of a header that it holds nothing else: that of any model does.
HEADER = render_sources(random_model(1), "m")["include/m.h"]


@pytest.fixture(scope="module")
def checker() -> ModuleType:
    """Return the program as a module, to run it without a process each time."""
    spec = importlib.util.spec_from_file_location("check_proof", CHECKER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def whole() -> tuple[dict[str, Any], str]:
    """Return the proof and the C of a model that has every kind of table."""
    model = with_linear(random_model(5, n_features=70, windows="rows", kept="some"), 5, 4)
    return _proof_of(model)


def test_the_checker_reads_structures_as_the_runtime_declares_them(checker):
    """The checker shares no code with the package, so its list of members could become another."""
    for kind, members in checker.MEMBERS.items():
        names = re.sub(r"\{\w*?(\w+?)\d.*?\}", r"\1s", members).split()
        assert tuple(names) == declared_members(kind)


def _proof_of(model: IntegerModel) -> tuple[dict[str, Any], str]:
    text = render_sources(model, "m")["src/m.c"].decode("ascii")
    return json.loads(certificate(model)), text


def _check(
    checker: ModuleType, folder: Path, proof: dict[str, Any], text: str, header: bytes = b""
) -> None:
    (folder / "proof.json").write_text(json.dumps(proof))
    _write(folder, text)
    if header:
        (folder / "m.h").write_bytes(header)
    checker.main(str(folder / "proof.json"), str(folder / "m.c"))


def _write(folder: Path, text: str) -> Path:
    (folder / "m.h").write_bytes(HEADER)
    (folder / "m.c").write_text(text)
    return folder / "m.c"


def _forged(checker: ModuleType, folder: Path, proof: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the proof with the macros and digests of another text."""
    return proof | {"source": checker.Source(_write(folder, text)).seen}


def _refused(checker: ModuleType, folder: Path, proof: dict[str, Any], text: str) -> str:
    with pytest.raises(SystemExit) as caught:
        _check(checker, folder, proof, text)
    assert str(caught.value.code).startswith("refused: ")
    return str(caught.value.code)


def test_checker_stands_alone(tmp_path, whole):
    """It imports numpy and the standard library, and runs where the package is not."""
    names = [
        name
        for node in ast.walk(ast.parse(CHECKER.read_text()))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [str(node.module)]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    ]
    assert set(names) == {"hashlib", "json", "numpy", "pathlib", "re", "sys"}
    proof, text = whole
    (tmp_path / "p.json").write_text(json.dumps(proof))
    _write(tmp_path, text)
    command = [sys.executable, "-I", str(CHECKER), "p.json", "m.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith("proved: 23 stages"), done.stderr
    (tmp_path / "m.c").write_text(text.replace("TK_PHASE_SHIFT", "TK_PHASES", 1))
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 1


@pytest.mark.parametrize("name", [*ALL, *range(8), "half turns", "levels", "two", *OTHERS])
def test_proofs_of_models_are_accepted(name, checker, tmp_path, capsys):
    """Every layout of tables, local stages and linear parts."""
    more = {
        "half turns": {
            "windows": "half turns",
            "zero_weights": False,
            "kept": "tail",
            "one_scale": True,
            "permutation": "orbit",
            "diagonal_kind": "sign",
        },
        "levels": {
            "windows": "phases",
            "kept": "few",
            "n_blocks": 5,
            "permutation": "stored",
            "diagonal_kind": "int4",
        },
        "two": {"n_classes": 2, "zero_weights": False, "kept": "few", "windows": "constant"},
    }
    if name in ALL:
        model = ALL[name]()
    elif name in OTHERS:
        model = OTHERS[name]()
    elif name in more:
        model = random_model(3, n_features=100, **more[name])
    else:
        model = make_model(int(name), bits=8 if int(name) % 2 else 16)
    proof, text = _proof_of(model)
    files = render_sources(model, "m")
    _check(checker, tmp_path, proof, text, files["include/m.h"])
    assert capsys.readouterr().out.startswith("proved: ")
    single = render_single(files, "m")["single/m.c"].decode("ascii")
    assert "a single source" in _refused(checker, tmp_path, proof, single)


def test_wrong_files_were_tracebacks(whole, tmp_path):
    """Without arguments there is a line of usage; a file that is not what it should be has one."""
    proof, text = whole
    files = {
        "p.json": json.dumps(proof).encode(),
        "m.c": text.encode(),
        "M.c": text.encode(),
        "list.json": b"[]",
        "bytes.json": b"\xff\xfe",
        "empty.c": b"int x;\n",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    for arguments, said in (
        ((), "usage: "),
        (("p.json",), "usage: "),
        (("none.json", "m.c"), "refused: none.json: "),
        (("p.json", "none.c"), "refused: none.c: "),
        # Its macros could not be told from its types.
        (("p.json", "M.c"), "refused: M.c is no name of a model"),
        (("m.c", "m.c"), "refused: what the files say does not fit: JSONDecodeError"),
        (("bytes.json", "m.c"), "refused: what the files say does not fit: UnicodeDecodeError"),
        (("list.json", "m.c"), "refused: list.json is no proof"),
        (("p.json", "empty.c"), "refused: empty.c is no exported C"),
    ):
        command = [sys.executable, "-I", str(CHECKER), *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode != 0
        assert done.stderr.startswith(said)
        assert done.stderr.count("\n") == 1


def test_a_model_of_constant_inputs_was_no_proof(checker, tmp_path):
    """Where no input varies, the checker once failed on rows that it did not have."""
    model = make_model(34, bits=8)
    assert not model.find(Components).sign.any()
    _check(checker, tmp_path, *_proof_of(model))


@pytest.mark.parametrize("table", ["tk_prototypes", "tk_biases"])
def test_a_changed_prototype_or_threshold_is_refused(table, checker, tmp_path):
    """Of one class the distance is bounded by every level; a forged digest does not help."""
    proof, text = _proof_of(one_class(random_model(3, n_features=12), 3, 1))
    forged = _changed(text, table)
    assert f"{table} is not" in _refused(checker, tmp_path, proof, forged)
    forged_proof = _forged(checker, tmp_path, proof, forged)
    assert " is within " in _refused(checker, tmp_path, forged_proof, forged)


def _changed(text: str, table: str, place: int = 0) -> str:
    """Change one bit, or one digit, of one entry of a table."""
    begin = text.index("{", text.index(f" {table}["))
    entries = list(re.finditer(r"-?\w+", text[begin : text.index("};", begin)]))
    entry = entries[place]
    value = int(entry[0].rstrip("u"), 0)
    new = f"0x{value ^ 1:08x}u" if entry[0].endswith("u") else str(value + 1)
    return text[: begin + entry.start()] + new + text[begin + entry.end() :]


TABLES = [
    "tk_signs",
    "tk_diagonal",
    "tk_windows",
    "tk_weights",
    "tk_gains",
    "tk_biases",
    "tk_linear",
    "tk_linear_gains",
    "tk_offsets",
]


@pytest.mark.parametrize("table", TABLES)
def test_one_entry_changed_is_refused(table, checker, whole, tmp_path):
    """One weight, sign, window, factor: the name of the table is said."""
    proof, text = whole
    assert f"{table} is not that of the proof" in _refused(
        checker, tmp_path, proof, _changed(text, table)
    )


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
def test_arithmetic_finds_what_a_forged_digest_hides(edit, checker, whole, tmp_path):
    """Who changes a shift or an entry and its digest in the proof is caught by the bounds."""
    proof, text = whole
    forged = re.sub(*EDITS[edit], text, count=1) if edit in EDITS else _changed(text, edit)
    assert forged != text
    forged_proof = _forged(checker, tmp_path, proof, forged)
    assert "is not that of" not in _refused(checker, tmp_path, forged_proof, forged)


@pytest.mark.parametrize("name", ["image, 28 x 28", "image, 16-bit lanes", "signal, averaged"])
def test_kernels_are_summed_up(name, checker, tmp_path):
    """The digest catches every changed kernel, and the sums those that move a bound."""
    proof, text = _proof_of(ALL[name]())
    caught = 0
    for place in range(6):
        forged = _changed(text, "tk_kernels_1_codes", place)
        assert "tk_kernels_1_codes is not" in _refused(checker, tmp_path, proof, forged)
        forged_proof = _forged(checker, tmp_path, proof, forged)
        try:
            _check(checker, tmp_path, forged_proof, forged)
        except SystemExit:
            caught += 1
    # A kernel that is not the largest may change and leave the bounds of all as they are.
    assert caught
    top = re.sub(r"\d+u, /\* top", "5u, /* top", text)
    forged_proof = _forged(checker, tmp_path, proof, top)
    assert "level" in _refused(checker, tmp_path, forged_proof, top)


@pytest.mark.parametrize("table", ["tk_convolutions_1_codes", "tk_dense_2_biases"])
def test_taps_and_units_are_summed_up(table, checker, tmp_path):
    """The digest catches a changed layer, and the sums one that moves a bound."""
    proof, text = _proof_of(ALL["convolutions, 8-bit taps, averaged, hidden layer"]())
    caught = 0
    for place in range(9):
        forged = _changed(text, table, place)
        assert f"{table} is not" in _refused(checker, tmp_path, proof, forged)
        forged_proof = _forged(checker, tmp_path, proof, forged)
        try:
            _check(checker, tmp_path, forged_proof, forged)
        except SystemExit:
            caught += 1
    assert caught


def test_every_bound_and_witness_counts(checker, whole, tmp_path):
    """One bound wider or narrower by one, one value or sign of a witness: refused."""
    proof, text = whole
    for i, bound in enumerate(proof["bounds"]):
        for end, step in (("low", 1), ("low", -1), ("high", 1), ("high", -1)):
            bounds = [*proof["bounds"]]
            bounds[i] = bound | {end: bound[end] + step}
            message = _refused(checker, tmp_path, proof | {"bounds": bounds}, text)
            assert bound["stage"] in message
    for i, witness in enumerate(proof["witnesses"]):
        witnesses = [*proof["witnesses"]]
        witnesses[i] = witness | {"value": witness["value"] + 1}
        message = _refused(checker, tmp_path, proof | {"witnesses": witnesses}, text)
        assert witness["stage"] in message
        witnesses[i] = witness | {"inputs": witness["inputs"].translate({43: 45, 45: 43})}
        _refused(checker, tmp_path, proof | {"witnesses": witnesses}, text)


def test_witnesses_were_not_required(checker, whole, tmp_path):
    """Without them, without one, with one twice, with one that names another stage: refused."""
    proof, text = whole
    said = proof["witnesses"]
    for wrong in ([], said[1:], said[:-1], [*said, said[-1]], [said[1], said[0], *said[2:]]):
        message = _refused(checker, tmp_path, proof | {"witnesses": wrong}, text)
        assert "witness" in message


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
def test_the_compiler_read_another_program(trick, checker, whole, tmp_path):
    """The checker once read a text of which the compiler made other macros and tables."""
    proof, text = whole
    forged = re.sub(*TRICKS[trick], text, count=1)
    assert forged != text
    _refused(checker, tmp_path, proof, forged)


@pytest.mark.parametrize("line", ["#define tk_biases tk_gains", "#undef TK_BLOCKS", "#pragma x"])
def test_the_header_could_rename_a_table(line, checker, whole, tmp_path, monkeypatch):
    """What NAME.c includes first must speak of the model alone."""
    monkeypatch.setattr(sys.modules[__name__], "HEADER", HEADER + f"{line}\n".encode())
    assert "the header" in _refused(checker, tmp_path, *whole)


@pytest.mark.parametrize(
    "hidden",
    [
        "#if 0\n{0}\n#else\ntypedef int32_t\nm_input_t;\n#endif",
        "#ifdef __cplusplus\n{0}\n#endif\ntypedef int32_t (m_input_t);",
        "#else\n{0}",
    ],
)
def test_the_type_of_samples_stood_in_a_false_condition(hidden, checker, tmp_path):
    """A spectrum is bounded for the type that the compiler sees, not for another in the text."""
    model = ALL["spectrum, int16"]()
    header, typedef = render_sources(model, "m")["include/m.h"], "typedef int16_t m_input_t;"
    forged = header.decode().replace(typedef, hidden.format(typedef)).encode()
    assert forged != header
    with pytest.raises(SystemExit, match="hangs on a condition"):
        _check(checker, tmp_path, *_proof_of(model), forged)


def test_a_floor_of_levels_beyond_its_type_was_proved(checker, tmp_path):
    """A level less its floor would leave 32 bits, as the digest of a forged proof would hide."""
    proof, text = _proof_of(ALL["spectrum, int16"]())
    forged = re.sub(r"\d+u?, /\* floor", "2147483648u, /* floor", text)
    forged_proof = _forged(checker, tmp_path, proof, forged)
    assert "a floor of other bits" in _refused(checker, tmp_path, forged_proof, forged)


def test_hostile_sizes_never_ended(checker, whole, tmp_path):
    """Sizes that take forever, numbers that are none, files that do not end: one line each."""
    proof, text = whole
    for macro, value in (
        ("LOG2_DIMENSION", "60"),
        ("LOG2_DIMENSION", "4294967295u"),
        ("BLOCKS", "4000000000u"),
        ("FEATURES", "99999999999u"),
        ("FEATURES", "4000000000u"),
        ("INPUT_BITS", "4000000000u"),
        ("LINEAR_BITS", "4000000000u"),
        ("OUTPUTS", "0u"),
        ("DIAGONAL_BITS", "3"),
    ):
        forged = re.sub(rf"#define TK_{macro} .*", f"#define TK_{macro} {value}", text)
        message = _refused(
            checker,
            tmp_path,
            proof | {"source": proof["source"] | {f"TK_{macro}": value}, "witnesses": []},
            forged,
        )
        assert "MemoryError" not in message, macro
    for changes in ({"witnesses": 3}, {"bounds": {}}, {"source": []}, {"fingerprint": 1}):
        _refused(checker, tmp_path, proof | changes, text)
    for value in (10**400, -1, 0.5, None, "x", [1]):
        for key in ("row", "value", "inputs"):
            wrong = [proof["witnesses"][0] | {key: value}, *proof["witnesses"][1:]]
            _refused(checker, tmp_path, proof | {"witnesses": wrong}, text)
    for content in ("[" * 100_000, "1e999", "NaN", "9" * 5000, ""):
        (tmp_path / "p.json").write_text(content)
        with pytest.raises(SystemExit, match="refused: "):
            checker.main(str(tmp_path / "p.json"), str(tmp_path / "m.c"))
    with pytest.raises(SystemExit, match="no file"):
        checker.main("/dev/zero", str(tmp_path / "m.c"))


def test_proof_of_another_model_is_refused(checker, whole, tmp_path):
    """The fingerprint in the C is compared, and a stage must not be left out."""
    proof, text = whole
    other = proof | {"fingerprint": "0" * 64}
    assert "another model" in _refused(checker, tmp_path, other, text)
    short = proof | {"bounds": proof["bounds"][:-1]}
    assert "stages are missing" in _refused(checker, tmp_path, short, text)


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
    result = run("inspect", tmp_path / "m.tkm", "--proof", tmp_path / "m.json")
    assert result.exit_code == 0, result.output
    assert "check_proof.py" in result.stderr
    _write(tmp_path, render_sources(model, "m")["src/m.c"].decode())
    checker.main(str(tmp_path / "m.json"), str(tmp_path / "m.c"))
    assert "26 stages" in capsys.readouterr().out
