"""Training gives the same model whatever the processor: the same data, the same seed, one file."""

import ast
import importlib
import os
import platform
import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import ROOT
from tests.processes import captured
from tinykernel.base.compiled import njit
from tinykernel.base.elementary import cosines, exps, logs, sines
from tinykernel.learn import sums as eights

_CORE = "numpy._core" if int(np.__version__.split(".")[0]) > 1 else "numpy.core"
_NUMPY = importlib.import_module(f"{_CORE}._multiarray_umath")
# What NumPy chooses its functions by: of old releases single features, of later ones levels.
_DISPATCHED = [name for name in _NUMPY.__cpu_dispatch__ if _NUMPY.__cpu_features__[name]]
# A processor without vectors of 256 bits and without fused multiply-add.
_OLD_LIBRARIES = {"OPENBLAS_CORETYPE": "Nehalem", "NPY_DISABLE_CPU_FEATURES": " ".join(_DISPATCHED)}
_OLD_PROCESSOR = {"NUMBA_CPU_NAME": "nehalem", "NUMBA_CPU_FEATURES": "", **_OLD_LIBRARIES}
# What compiled functions may call beside each other: exact, or rounded as IEEE 754 says.
_EXACT = {
    *("range", "slice", "min", "max", "minimum", "maximum", "abs", "int", "int16", "int32"),
    *("int64", "uint8", "uint32", "uint64", "float32", "float64", "sqrt", "floor", "rint"),
    *("empty", "zeros", "empty_like", "zeros_like", "full", "eye", "arange", "diag"),
    *("ascontiguousarray", "astype", "copy", "reshape", "view", "frexp", "ldexp"),
    "LinearGradients",  # a tuple
}
_TRAININGS = """
import sys
import warnings
from hashlib import sha256

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

import tinykernel
from tinykernel import Classifier, NoveltyDetector, Regressor
from tinykernel.learn.signals.normal import anomalies
from tinykernel.learn.smooth import directions
from tinykernel.learn.linear.ridge import WeightedRows

warnings.simplefilter("ignore")
n_jobs, only = int(sys.argv[1]), sys.argv[2]
features = sys.modules[sys.argv[3]].__cpu_features__
left_on = [name for name in sys.argv[4:] if features[name]]
assert not left_on, left_on
X, y = (part[:300] for part in load_digits(return_X_y=True))
cancer = load_breast_cancer(return_X_y=True)
values = [part[:120] for part in load_diabetes(return_X_y=True)]
lines = np.random.default_rng(0).normal(0, 300, (200, 64, 3)).cumsum(axis=1).astype(np.int16)
kinds = (lines[:, -1, 0] > 0).astype(int)
noise = np.random.default_rng(2).integers(-900, 900, (1200, 64)).astype(np.int16)
sounds = np.random.default_rng(1).normal(0, 90, (100, 1024)).cumsum(axis=1).astype(np.int16)
told = {"random_state": 0, "n_jobs": n_jobs, "epochs": 3}
one, none = {"n_components": 64, **told}, {"model": "linear", "linear": 4, **told}
still = {"linear": 4, "random_state": 0, "n_jobs": n_jobs}
moved = {"affine": 0.5, "shift": 1}
trainings = {
    "windows": lambda: Classifier(
        **one | {"layout": "windows", "effort": "quick"}
    ).fit(X, y),
    "chosen": lambda: Classifier(linear=8, **one).fit(*cancer),
    "linear": lambda: Classifier(**none).fit(*cancer),
    "convolutions": lambda: Classifier(
        image_shape=(16, 16),
        n_channels=6,
        augment=moved,
        **{**none, "model": "chains", "epochs": 2},
    ).fit(X.astype(np.uint8).reshape(-1, 8, 8).repeat(2, 1).repeat(2, 2).reshape(-1, 256), y),
    "mixed": lambda: Classifier(
        image_shape=(8, 8),
        n_channels=8,
        augment=moved,
        **{**none, "model": "separable", "epochs": 2},
    ).fit(X.astype(np.uint8), y),
    "signals": lambda: Classifier(
        window_shape=(64, 3), n_kernels=8, augment={"rotate": 0.2}, **still
    ).fit(lines.reshape(200, -1), kinds),
    "many windows": lambda: Classifier(
        window_shape=(64, 1), n_kernels=16, **still
    ).fit(np.tile(lines[:, :, 0], (6, 1)) + noise, np.tile(kinds, 6)),
    "numbers beside": lambda: Classifier(
        window_shape=(60, 1), n_kernels=16, beside=4, **still
    ).fit(np.tile(lines[:, :, 0], (6, 1)) + noise, np.tile(kinds, 6)),
    "values": lambda: Regressor(effort="quick", **one).fit(*values),
    "trees": lambda: Classifier(
        model="trees", budget="2KB", random_state=0
    ).fit(*cancer),
    "perceptron": lambda: Classifier(model="perceptron", n_units=20, **told).fit(X, y),
    "spectrum": lambda: Classifier(
        window_shape=(1024, 1),
        spectrum="64/32/8",
        rate=1000,
        n_kernels=8,
        random_state=0,
        n_jobs=n_jobs,
    ).fit(sounds, sounds[:, -1] > 0),
    "one class": lambda: NoveltyDetector(random_state=0).fit(X[y < 5]),
}
found = {name: fit() for name, fit in trainings.items() if only in (name, "all")}
for name, model in found.items():
    # Losses show the last bits, which a model seldom does.
    losses = getattr(model, "history_", {"loss": np.zeros(0)})["loss"]
    print(name, model.quantize().fingerprint(), losses.tobytes().hex())
inputs = np.random.default_rng(2).normal(size=(160, 6))
bent = np.sin(2 * inputs[:, :1] - inputs[:, 1:2])
for size in (1, 4) if only == "all" else ():
    view, fit, _ = directions(WeightedRows(inputs, bent, np.ones(160), np.arange(160) // size))
    print("smooth", view.tobytes().hex(), fit.values(inputs[:9]).tobytes().hex())
odd = anomalies(lines.reshape(200, -1).astype(float), (64, 3), np.random.default_rng(3))
if only == "all":
    print("anomalies", *(sha256(rows).hexdigest() for rows in odd.values()))
doubtful = np.where(np.arange(569) % 5, cancer[1], 1 - cancer[1])
calibrated = tinykernel.calibrate(found["linear"].quantize(), cancer[0], doubtful)
sure = calibrated.model.decision
print("calibrated", sure.temperature.hex(), sure.table.tobytes().hex(), calibrated.to_dict())
"""


def _fingerprints(n_jobs: int, only: str, variables: dict[str, str]) -> list[str]:
    environment = {**os.environ, **variables}
    off = variables.get("NPY_DISABLE_CPU_FEATURES", "").split()
    command = [sys.executable, "-c", _TRAININGS, str(n_jobs), only, _NUMPY.__name__, *off]
    done = captured(command, env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="compiles for processors of x86-64")
def test_a_model_is_the_same_on_every_processor() -> None:
    """Without what NumPy and BLAS choose by the processor, every kind of training gives the same.

    So does one, for compiling takes long, without fused multiply-add and wide vectors.
    """
    here = _fingerprints(2, "all", {})
    assert len(here) == 17
    assert _fingerprints(1, "all", _OLD_LIBRARIES) == here
    old = _fingerprints(1, "linear", _OLD_PROCESSOR)
    assert old == [line for line in here if line.startswith(("linear", "calibrated"))]


def test_compiled_functions_round_alike_on_every_processor() -> None:
    """They call each other and what is exact or correctly rounded, and let nothing be regrouped."""
    compiled, used = set(_EXACT), []
    for path in (ROOT / "tinykernel").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"fastmath|parallel=True|\bfma\b|contract\(", text), path
        for node in ast.walk(ast.parse(text)):
            marks = [ast.unparse(mark) for mark in getattr(node, "decorator_list", ())]
            if any(re.search(r"njit|inlined$|^part\(|^intrinsic$", mark) for mark in marks):
                compiled.add(node.name)
                if marks != ["intrinsic"]:
                    used += [part for line in node.body for part in ast.walk(line)]
    assert len(compiled) > 100
    assert not any(isinstance(part, ast.MatMult) for part in used)
    called = {ast.unparse(part.func) for part in used if isinstance(part, ast.Call)}
    assert [name for name in called if name.split(".")[-1] not in compiled] == []


@given(st.lists(st.floats(-700, 700), min_size=1))
def test_elementary_functions_are_exact_to_the_last_bit_but_one(values: list[float]) -> None:
    """exp, log, sin and cos are NumPy's to two units in the last place."""
    x = np.array(values)
    np.testing.assert_array_max_ulp(exps(x), np.exp(x), 2)
    np.testing.assert_array_max_ulp(logs(np.exp(x)), np.log(np.exp(x)), 2)
    np.testing.assert_allclose(cosines(x), np.cos(x), rtol=0, atol=1e-15)
    np.testing.assert_allclose(sines(x), np.sin(x), rtol=0, atol=1e-15)


@njit()
def _dot(x, y):  # type: ignore[no-untyped-def]
    total = eights.zeros()
    for k in range(0, x.size, eights.WIDTH):
        total = eights.add(total, eights.multiply(eights.load(x, k), eights.load(y, k)))
    return eights.total(total)


@given(st.integers(0, 40), st.integers(0, 2**32 - 1))
def test_sums_have_the_order_of_the_docstring(n: int, seed: int) -> None:
    """Bit for bit the sum of eight partial sums, added by halves."""
    x, y = np.random.default_rng(seed).standard_normal((2, 8 * n)).astype(np.float32)
    s = np.zeros(8, dtype=np.float32)
    for k in range(n):
        s += x[8 * k : 8 * k + 8] * y[8 * k : 8 * k + 8]
    s = s[:4] + s[4:]
    s = s[:2] + s[2:]
    assert _dot(x, y) == s[0] + s[1]
