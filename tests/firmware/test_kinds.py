"""Every kind of model on every core and on this computer, in all variants, against Python."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.codegen.kinds import EVERY
from tests.firmware.compiling import compile_export
from tests.firmware.image import differences, with_extremes
from tests.firmware.local_models import ALL
from tests.firmware.test_host import SANITISERS
from tests.random_models import TABLES, random_model, random_raw
from tinykernel.compile.plan import pack
from tinykernel.compile.projects import export
from tinykernel.compile.sources import generated_inputs
from tinykernel.compile.targets import find_target
from tinykernel.run.emulated import machines_for
from tinykernel.run.parity import entry_rows, expected_values, verify
from tinykernel.run.program import Platform, find_toolchain

CORES = ("cortex-m0", "cortex-m3", "cortex-m33", "esp32c3", "cortex-m4")
# Between them every format, and every special case of a kernel that differs between cores.
FORMATS: dict[str, dict[str, Any]] = {
    "int8 diagonal": {"n_features": 100, "n_blocks": 3, "n_classes": 10, "phase_shift": 12},
    "sign diagonal": {
        "n_features": 61,
        "diagonal_kind": "sign",
        "permutation": "orbit",
        "one_scale": True,
        "n_classes": 2,
        "zero_weights": False,
        "raw_dtype": "float32",
        "phase_shift": 17,
    },
    "int16 inputs": {
        "n_features": 40,
        "bits": 16,
        "raw_dtype": "int32",
        "permutation": "orbit",
        "kept": "few",
        "phase_shift": 3,
        "n_classes": 26,
    },
    "compact": TABLES["compact"] | {"n_classes": 10},
    "phases": TABLES["phases"],
    "starts of four bits": TABLES["starts of four bits"],
    "packed weights": TABLES["starts and widths in a byte"] | {"n_classes": 10, "n_blocks": 5},
    "tail dropped": {
        "n_features": 300,
        "kept": "tail",
        "raw_dtype": "int16",
        "shared_scaler": True,
        "phase_shift": 16,
    },
}
EDGES: dict[str, dict[str, Any]] = {
    **TABLES,
    "d = 32": {"n_features": 32, "raw_dtype": "int8", "diagonal_kind": "sign"},
    "100 classes": {"n_features": 33, "n_classes": 100, "kept": "few"},
    "compact, few rows": TABLES["compact"] | {"n_features": 120, "kept": "few", "n_blocks": 6},
    "compact, two classes": TABLES["compact"] | {"kept": "some", "n_classes": 2},
    "orbit": {
        "n_features": 63,
        "bits": 16,
        "raw_dtype": "uint16",
        "permutation": "orbit",
        "one_scale": True,
        "n_blocks": 4,
        "phase_shift": 31,
    },
    "d = 2048, shared scaler": {
        "n_features": 1500,
        "n_blocks": 1,
        "shared_scaler": True,
        "raw_dtype": "int16",
        "phase_shift": 0,
    },
}
# Whatever the table of windows leaves out, and whichever byte of a product counts, in assembly.
_WINDOWS = [
    *(("phases", False, 0), ("one width", False, 8), ("two starts", False, 15)),
    *(("half turns", False, 16), ("constant", False, 24), ("phases", True, 31)),
    *(("one width", True, 24), ("two starts", True, 16), ("half turns", True, 15)),
    *(("constant", True, 8), ("rows", False, 31), ("rows", True, 0)),
]
_BY_WINDOW = {
    f"windows: {windows}, {one_scale}, {shift}": random_model(
        9, n_features=40, kept="tail", windows=windows, one_scale=one_scale, phase_shift=shift
    )
    for windows, one_scale, shift in _WINDOWS
}


def _family(kind: str) -> str:
    """Return the first word of a kind, without that for floats."""
    return kind.removeprefix("float ").split()[0].rstrip(",")


# Of the kinds zig builds one of three for a core, and GCC shares out the others among the cores.
_BY_ZIG, _BY_GCC = [*EVERY][::3], [kind for n, kind in enumerate(EVERY) if n % 3]


@pytest.mark.parametrize("target", [pytest.param("host", marks=pytest.mark.sharp), "cortex-m4"])
@pytest.mark.parametrize("family", sorted(set(map(_family, _BY_ZIG))))
def test_every_kind_of_model_by_zig(require_tool, tmp_path: Path, family: str, target: str) -> None:
    """What anybody can install builds each kind of model, and its scores are those of Python."""
    require_tool("ziglang")
    require_tool("unicorn")
    machines = [None] if target == "host" else machines_for(find_target(target))
    back_end = "" if target == "host" else "unicorn"
    platform = Platform(find_toolchain(target, "zig"), machines[-1], back_end)
    kinds = EVERY if target == "host" else _BY_ZIG
    models = {kind: EVERY[kind]() for kind in kinds if _family(kind) == family}
    assert differences(models, platform, tmp_path, ["-Os"]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("core", CORES)
def test_every_kind_of_model_on_every_core(
    require_platforms: Callable[[str], Any], tmp_path: Path, core: str
) -> None:
    """Each core gives the scores of Python, and takes no more stack than any kind may."""
    models = {kind: EVERY[kind]() for kind in _BY_GCC[CORES.index(core) :: len(CORES)]}
    if core != "cortex-m33":  # which takes the lines of a Cortex-M4
        models |= {kind: random_model(7, **options) for kind, options in FORMATS.items()}
    models |= _BY_WINDOW if core in ("cortex-m0", "cortex-m4") else {}
    # The last platform has the most memory.
    assert differences(models, require_platforms(core)[-1], tmp_path, ["-Os"]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("core", ["cortex-m0", "cortex-m4"])
@pytest.mark.parametrize(
    "flags",
    [
        *(("-Os", "-DTK_FORCE_PORTABLE=1"), ("-O1", "-DTK_FORCE_RADIX=2")),
        *(("-O2", "-DTK_FORCE_RADIX=4"), ("-O3", "-DTK_FORCE_RADIX=8"), ("-O0",)),
    ],
    ids=str,
)
def test_variants_compute_the_same(require_platforms, tmp_path, core, flags):
    """Forcing a variant of the kernels changes the speed and no bit."""
    kinds = ("convolutions, 4-bit taps", "signal, averaged")
    models = {kind: ALL[kind]() for kind in kinds}
    models["table"] = random_model(8, n_features=100, n_classes=5, phase_shift=11)
    assert differences(models, require_platforms(core)[-1], tmp_path, flags, stack=False) == {}


@pytest.mark.slow
def test_every_kind_of_model_under_sanitisers(require_platforms, tmp_path: Path) -> None:
    """No overflow and no access out of bounds, of tables at their limits, windows and streams.

    Levels that are all 0 or at the top reach the ends of a lane and do not leave it.
    """
    models = {kind: random_model(5, **options) for kind, options in EDGES.items()}
    rows = {kind: random_raw(model, 2, 40) for kind, model in models.items()}
    for kind, make in ALL.items():
        models[kind] = model = make()
        rows[kind] = with_extremes(model, 12)
    assert differences(models, require_platforms("host")[0], tmp_path, SANITISERS, rows) == {}


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        *((kind, "esp8266") for kind in FORMATS),
        # A scratch of 2 KB would leave no RAM for a stack there.
        *((kind, "atmega328p") for kind in FORMATS if kind != "tail dropped"),
    ],
)
def test_every_format_by_itself(require_platforms, kind: str, target: str) -> None:
    """Emulators of these cores take a model at a time.

    The int of an AVR has 16 bits, and its tables have an address space of their own.
    """
    require_platforms(target)
    model = random_model(7, **FORMATS[kind])
    assert verify(model, with_extremes(model), target=target).first_difference is None


@pytest.mark.sharp
@pytest.mark.parametrize(
    "kind", ["signal, averaged", "spectrum, numbers beside", "offset, numbers beside"]
)
def test_self_test_streams(require_compiler, tmp_path: Path, kind: str) -> None:
    """The program of an export streams its vectors, and prints PASS and the decisions."""
    model = ALL[kind]()
    export(model, "host", tmp_path / "project", name="gesture")
    program = compile_export(require_compiler("host"), tmp_path / "project")
    text = subprocess.run([program], capture_output=True, text=True).stdout
    rows = entry_rows(model, generated_inputs(model))
    labels = expected_values(model, rows)["stream"][:, -1]
    assert "PASS: 8 vectors" in text
    assert f"DECISIONS: {' '.join(str(label) for label in labels)}\n" in text


def test_scratch_of_whole_windows_holds_no_samples_of_a_stream() -> None:
    """The samples that a stream keeps are no part of it, of numbers beside either."""
    for kind in ("offset, int16", "offset, numbers beside", "spectrum, int16"):
        model = ALL[kind]()
        stages = {stage.KIND: stage for stage in model.stages}
        kept = 4 + stages["spectrum"].length // 2 if "spectrum" in stages else model.input.size // 2
        packed = pack(model)
        assert packed.scratch_words == packed.stream_words + packed.state_words - kept
