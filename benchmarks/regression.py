"""Values at 8 KB: RMSE of a regressor beside an RBF SVR, an int8 perceptron and ridge regression.

Run with ``python benchmarks/regression.py [--sets friedman1,wear] [--seeds 1] [--write FILE]``;
nothing is downloaded. ``--effort`` and ``--epochs`` are those of the trainer. The SVR and the
penalty of the perceptron are tuned on parts of the training rows. The perceptron may use all 8192
bytes for int8 weights: its code is not counted, which is in its favour; the SVR has no limit. Sets
are split anew for each seed, and figures are means over the seeds.

What is generated: ``housing`` imitates the California data (skewed inputs, a place on a map, a
capped value). ``wear`` are the hours that 60 simulated bearings have left, from eight numbers of a
window of vibration (256 samples); whole bearings are held out, also where something is chosen.
It is a model of a machine, not a machine.
"""

import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from _environment import describe_machine
from _page import page_arguments, print_page, rendered
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, GroupKFold, train_test_split
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from tinykernel import train

BUDGET = 8192
SETS = ("diabetes", "friedman1", "friedman2", "friedman3", "housing", "wear")
_NOISE = {"friedman1": 1.0, "friedman2": 100.0, "friedman3": 0.1}
_ROWS = 2000


def housing(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw districts: income, age, rooms, people, and a place."""
    income, age = rng.lognormal(1.2, 0.45, _ROWS), rng.uniform(1, 52, _ROWS)
    rooms, people = rng.lognormal(1.65, 0.25, _ROWS), rng.lognormal(1.0, 0.3, _ROWS)
    north, east = rng.uniform(32.5, 42, _ROWS), rng.uniform(-124, -114, _ROWS)
    coast = np.abs(east + 124 - 0.9 * (42 - north))
    value = 0.45 * income + 0.15 * rooms / people + 0.006 * age + 2 * np.exp(-coast)
    value = np.minimum(value * rng.lognormal(0, 0.15, _ROWS), 5.0)
    return np.stack([income, age, rooms, people, north, east], axis=1), value


def wear(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw windows of vibration of 60 bearings, their hours left, and which bearing each is of."""
    X, y, bearing = [], [], []
    t = np.arange(256) / 2560
    for number in range(60):
        life, gain, speed = rng.uniform(200, 600), rng.uniform(0.8, 1.25), rng.uniform(24, 26)
        for hour in rng.uniform(0, life, 34):
            share = hour / life
            fault = 2.5 * share**4
            signal = gain * (np.sin(2 * np.pi * speed * t + rng.uniform(0, 6.3)) + 0.3 * share)
            hits = np.sin(2 * np.pi * 640 * t) * np.exp(-60 * np.mod(t, 1 / (3.6 * speed)))
            signal = signal + fault * hits + rng.normal(0, 0.25 + 0.5 * share, t.size)
            spectrum = np.square(np.abs(np.fft.rfft(signal)))
            bands = [np.log(part.sum()) for part in np.array_split(spectrum[1:], 5)]
            centred = signal - signal.mean()
            rms = np.sqrt(np.mean(np.square(centred)))
            shape = [rms, np.abs(centred).max() / rms, np.mean(centred**4) / rms**4]
            X.append([*shape, *bands])
            y.append(min(life - hour, 300.0))
            bearing.append(number)
    return np.array(X), np.array(y), np.array(bearing)


def split(name: str, seed: int) -> tuple[Any, Any, Any, Any, Any]:
    """Return rows to train and to test, their values, and which training rows belong together."""
    rng = np.random.default_rng(seed)
    if name == "wear":
        X, y, bearing = wear(rng)
        held = np.isin(bearing, rng.permutation(60)[:20])
        X = X.astype(np.float32)
        return X[~held], X[held], y[~held], y[held], bearing[~held]
    if name == "housing":
        X, y = housing(rng)
    elif name == "diabetes":
        X, y = datasets.load_diabetes(return_X_y=True)
    else:
        make = getattr(datasets, f"make_{name}")
        X, y = make(_ROWS, noise=_NOISE[name], random_state=seed)
    return (*train_test_split(X.astype(np.float32), y, test_size=0.5, random_state=seed), None)


def rmse(values: np.ndarray, true: np.ndarray) -> float:
    """Return the root of the mean squared error."""
    return float(np.sqrt(np.mean(np.square(values - true))))


def folds(n: int, groups: np.ndarray | None) -> Any:
    """Return how rows are parted to tune on them: whole groups stay together."""
    return n if groups is None else GroupKFold(n)


def svr(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """Return what an RBF SVR predicts, tuned on the training rows."""
    n, spread = X.shape[1], y.std()
    grid = {
        "svr__C": [1, 10, 100],
        "svr__gamma": [0.1 / n, 0.3 / n, 1 / n, 3 / n],
        "svr__epsilon": [0.03, 0.2],
    }
    found = GridSearchCV(make_pipeline(StandardScaler(), SVR()), grid, cv=folds(4, groups))
    found.fit(X, (y - y.mean()) / spread, groups=groups)
    return found.predict(X_test) * spread + y.mean()


def perceptron(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, groups: np.ndarray | None, seed: int
) -> np.ndarray:
    """Return what a perceptron with int8 weights predicts: one byte a weight, four a bias."""
    spread, hidden = y.std(), (BUDGET - 4) // (X.shape[1] + 5)
    model = MLPRegressor(hidden_layer_sizes=(hidden,), max_iter=400, random_state=seed)
    found = GridSearchCV(
        make_pipeline(StandardScaler(), model),
        {"mlpregressor__alpha": [0.01, 0.3, 3.0]},
        cv=folds(3, groups),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        best = found.fit(X, (y - y.mean()) / spread, groups=groups).best_estimator_
    layers = best[-1].coefs_
    for i, weights in enumerate(layers):
        unit = np.abs(weights).max(axis=0, keepdims=True) / 127
        layers[i] = np.rint(weights / unit) * unit
    return best.predict(X_test) * spread + y.mean()


def run(name: str, seed: int, **given: Any) -> dict[str, float]:
    """Return RMSE of every model, and bytes and seconds of ours."""
    X, X_test, y, y_test, groups = split(name, seed)
    start = time.perf_counter()
    found = train(X, y, task="numbers", budget=BUDGET, random_state=seed, groups=groups, **given)
    seconds = time.perf_counter() - start
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 4, 15))).fit(X, y)
    return {
        "ours": rmse(found.model.predict(X_test), y_test),
        "bytes": found.memory.flash,
        "seconds": seconds,
        "svr": rmse(svr(X, y, X_test, groups), y_test),
        "perceptron": rmse(perceptron(X, y, X_test, groups, seed), y_test),
        "ridge": rmse(ridge.predict(X_test), y_test),
        "mean": rmse(np.full(len(y_test), y.mean()), y_test),
    }


def lines_of(sets: str, seeds: int, **told: Any) -> Iterator[str]:
    """Yield a line of the table a set: means over the seeds."""
    for name in sets.split(","):
        found = [run(name, seed, **told) for seed in range(seeds)]
        mean = {key: float(np.mean([each[key] for each in found])) for key in found[0]}
        ratio = mean["ours"] / mean["svr"]
        yield (
            f"| {name} | {mean['ours']:.4g} | {mean['bytes']:.0f} | {mean['seconds']:.0f} "
            f"| {mean['svr']:.4g} | {mean['perceptron']:.4g} | {mean['ridge']:.4g} "
            f"| {mean['mean']:.4g} | {ratio:.3f} | {mean['ours'] / mean['perceptron']:.3f} |"
        )


def main() -> None:
    """Run the sets and print or write the page."""
    parser = page_arguments(__doc__, ",".join(SETS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--effort", default="normal")
    parser.add_argument("--epochs", type=int)
    given = parser.parse_args()
    lines = lines_of(given.sets, given.seeds, effort=given.effort, epochs=given.epochs)
    page = rendered("regression", given=given, machine=describe_machine(), lines=lines)
    print_page(page, given.write)


if __name__ == "__main__":
    main()
