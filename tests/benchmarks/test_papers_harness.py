"""What the benchmarks of the papers are built from: data, splits, resuming, pages."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import check_grad

from benchmarks.papers.harness import Bench
from benchmarks.papers.linear import fit_linear


def bench_in(folder: Path, **options: Any) -> Bench:
    """Return a run without data."""
    bench = Bench(folder, folder, quick=False, **options)
    bench.open("000")
    return bench


def test_an_interrupted_run_goes_on(tmp_path) -> None:
    """What was measured before is read again, not measured; --fresh measures it again."""
    calls = []

    def measure(value: float) -> float:
        calls.append(value)
        return value

    bench = bench_in(tmp_path)
    assert bench.measure("a", lambda: measure(1.5)) == 1.5
    with pytest.raises(KeyboardInterrupt):
        bench.measure("b", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    resumed = bench_in(tmp_path)
    assert resumed.measure("a", lambda: measure(2.5)) == 1.5
    assert resumed.measure("b", lambda: measure(3.5)) == 3.5
    assert calls == [1.5, 3.5]
    assert bench_in(tmp_path, fresh=True).measure("a", lambda: measure(4.5)) == 4.5
    stored = json.loads((tmp_path / "numbers" / "000.json").read_text(encoding="utf-8"))
    assert stored["a"]["value"] == 4.5
    assert stored["a"]["seconds"] >= 0


@pytest.mark.parametrize("official", [True, False])
def test_loading_a_file(tmp_path, official) -> None:
    """The official split is kept where there is one; otherwise a share of the rows trains."""
    X, y = np.random.default_rng(0).normal(size=(50, 3)), np.arange(50) % 2
    parts: dict[str, Any] = {"X": X, "y": y}
    if official:
        parts = {"X_train": X[:30], "y_train": y[:30], "X_test": X[30:], "y_test": y[30:]}
    np.savez(tmp_path / "name.npz", **parts)
    data = bench_in(tmp_path).load("name", 0.8)
    assert (data.y.size, data.y_test.size) == ((30, 20) if official else (40, 10))
    assert data.split == ("official, 30/20" if official else "random, stratified, seed 0, 40/10")
    assert data.X.min() == -1
    assert data.X.max() == 1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_linear_machine_is_at_the_optimum(n_classes) -> None:
    """The gradient of the printed objective vanishes where the fit ends; int8 is float32."""
    rng = np.random.default_rng(n_classes)
    Z = rng.choice(np.array([-1, 1], dtype=np.int8), (120, 7))
    codes = (Z[:, 0] + Z[:, 1] * (rng.random(120) > 0.2) > 0).astype(int)
    codes += (n_classes > 2) * (Z[:, 2] > 0)
    fitted = fit_linear(Z, codes, n_classes, 0.1, max_iter=500)
    as_floats = fit_linear(Z.astype(np.float32), codes, n_classes, 0.1, max_iter=500)
    np.testing.assert_array_equal(fitted.weights, as_floats.weights)
    own = codes if n_classes == 2 else codes == 1
    output = 0 if n_classes == 2 else 1

    def objective(flat: np.ndarray) -> float:
        short = np.maximum(1 - (2.0 * own - 1) * (Z @ flat[:-1] + flat[-1]), 0)
        return float(np.mean(short**2) + 0.1 * np.sum(flat[:-1] ** 2))

    flat = np.append(fitted.weights[:, output], fitted.offset[output]).astype(np.float64)
    assert check_grad(objective, np.zeros_like, flat) < 5e-3
    share = np.mean(fitted.codes(Z) == codes)
    assert share > 0.7
