"""What is found that was never shown, by models of one class beside detectors of scikit-learn.

Run with ``python benchmarks/one_class.py [--data DIR] [--sets digits,wine] [--write FILE]``. Sets
and splits are those of ``novelty.py``, without the labels: all classes but one are what is normal.
``tumours`` are scikit-learn's breast cancer data, where benign is normal and malignant is not.
``machines`` are simulated; a detector that was made for them is beside ours. DIR holds
``gas_drift.npz`` and ``har_raw.npz``, whose test rows are of other batches or persons.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from _page import page_arguments, print_page, rendered
from novelty import FALSE_ALARMS, TARGETS, Rows, Split, area_table, detectors, promise, rows_of
from sklearn.covariance import LedoitWolf
from sklearn.metrics import roc_auc_score

import tinykernel
from tinykernel.base.errors import TinykernelError
from tinykernel.compile.targets import find_target
from tinykernel.kinds.estimators.oneclass import NoveltyDetector, calibrate_one_class
from tinykernel.pieces.prototypes.spec import Prototypes
from tinykernel.run.footprint import measure_footprint
from tinykernel.run.program import find_toolchain

_DETECTORS = ("IsolationForest", "OneClassSVM", "Mahalanobis")


def section(name: str, folder: Path) -> Iterator[str]:
    """Yield the tables of one set."""
    X, y, groups = rows_of(name, folder)
    every = [0] if name == "tumours" else np.unique(y).tolist()
    found: dict[str, list[float]] = {}
    rates, refusal = [], ""
    for out in every:
        split = Split(X, y, groups, out)
        watch = NoveltyDetector(
            window_shape=(128, 6) if name == "har_raw" else None, random_state=0
        ).fit(split.X)
        scores = {"ours": -watch.score_samples(split.rows)}
        scores |= {kind: values for kind, values in detectors(split).items() if kind in _DETECTORS}
        for kind, values in scores.items():
            found.setdefault(kind, []).append(roc_auc_score(split.is_new, values))
        try:
            model, _ = calibrate_one_class(watch.quantize(), split.X_keep, FALSE_ALARMS)
        except TinykernelError as error:
            refusal = str(error).removeprefix("calibrate: ")
            model = watch.quantize()
        else:
            novel = model.predict(split.rows) == "novel"
            rates.append((novel[~split.is_new].mean(), novel[split.is_new].mean()))
    yield from area_table(name, X, every, found)
    yield promise(rates, refusal, "what is normal")
    yield from costs(model, split.rows[-100:])


def costs(model: tinykernel.IntegerModel, rows: Rows) -> Iterator[str]:
    """Yield what the last model takes on each core, and whether C and Python agree."""
    prototypes = model.find(Prototypes)
    yield ""
    yield f"{len(prototypes.levels)} prototypes of {model.n_features} inputs or counts."
    yield ""
    yield "| core | flash | RAM without stack | instructions | C and Python |"
    yield "|---|---|---|---|---|"
    for target in TARGETS:
        chain = find_toolchain(find_target(target))
        if chain is None:
            continue
        size = measure_footprint(model, target, chain)
        result = tinykernel.verify(model, rows, target=target)
        count = tinykernel.bench(model, target, X=rows[:3]).instructions
        yield (
            f"| {target} | {size.flash} | {size.static + size.scratch} | {count} "
            f"| {result.differences} differences in {result.rows} rows |"
        )


def machine(rng: np.random.Generator, rate: int, axes: int, impact: float, samples: int) -> Rows:
    """Return the vibration of a machine: harmonics of its speed, noise, impacts at 61 Hz."""
    t, ringing = np.arange(samples) / rate, np.arange(150) / rate
    # The housing rings at 0.33 of the rate.
    decay = np.exp(-ringing / 0.006) * np.sin(2 * np.pi * 0.33 * rate * ringing)
    speed, load = 25 * rng.normal(1, 0.02), np.exp(0.3 * rng.normal())
    hits = np.zeros(samples)
    times = np.arange(rng.uniform(0, 0.016), samples / rate - 0.02, 1 / 61)
    hits[(times * rate).astype(int)] = impact
    x = np.empty((samples, axes))
    for axis in range(axes):
        noise = rng.normal(size=samples)
        swing = sum(
            rng.uniform(0.7, 1.3) / h * np.sin(2 * np.pi * h * speed * t) for h in (1, 2, 3)
        )
        x[:, axis] = load * swing + 0.25 * noise + 0.12 * np.convolve(noise, decay)[:samples]
        x[:, axis] += np.convolve(hits, decay)[:samples]
    return np.rint(400 * x).astype(np.int16)


def _ringing(x: Rows, rate: int, rng: np.random.Generator) -> Rows:
    ringing, hits = np.arange(150) / rate, np.zeros(len(x))
    hits[(np.arange(rng.uniform(0, 1 / 107), len(x) / rate, 1 / 107) * rate).astype(int)] = 600
    decay = np.exp(-ringing / 0.006) * np.sin(2 * np.pi * 0.2 * rate * ringing)
    return x + np.convolve(hits, decay)[: len(x), np.newaxis]


def _imbalance(x: Rows, rate: int, rng: np.random.Generator) -> Rows:
    turns = 25 * rng.normal(1, 0.02) * np.arange(len(x)) / rate + rng.random()
    return x + 1000 * np.sin(2 * np.pi * turns)[:, np.newaxis]


#: Faults besides impacts at 61 Hz, as what they change in the recording of a healthy machine.
FAULTS: dict[str, Callable[[Rows, int, np.random.Generator], Rows]] = {
    "impacts at 107 Hz": _ringing,
    "imbalance": _imbalance,
    "clipped": lambda x, rate, rng: np.clip(x, -0.8 * x.std(axis=0), 0.8 * x.std(axis=0)),
    "an axis is 0": lambda x, rate, rng: x * (np.arange(x.shape[1]) != rng.integers(x.shape[1])),
}


def windows_of(
    rng: np.random.Generator,
    machines: int,
    rate: int,
    axes: int,
    samples: int,
    *,
    impact: float = 0,
    fault: str = "",
) -> tuple[Rows, Rows]:
    """Return windows (n, samples, axes) of recordings of 4096 samples, and their recordings."""
    many = [machine(rng, rate, axes, impact, 4096) for _ in range(machines)]
    if fault:
        many = [np.rint(FAULTS[fault](x, rate, rng)).astype(np.int16) for x in many]
    X = np.concatenate([recording.reshape(-1, samples, axes) for recording in many])
    return X, np.repeat(np.arange(machines), len(X) // machines)


def _moments(windows: Rows) -> Rows:
    """Return what people compute of vibration: deviation, range, kurtosis, and 8 bands."""
    # A little noise, as an axis may be constant.
    noisy = windows + np.random.default_rng(1).normal(0, 0.3, windows.shape)
    moving = noisy - noisy.mean(axis=1, keepdims=True)
    deviation = moving.std(axis=1)
    power = np.abs(np.fft.rfft(moving, axis=1)[:, 1:]) ** 2
    bands = [np.log(band.sum(axis=1)) for band in np.array_split(power, 8, axis=1)]
    kurtosis = (moving**4).mean(axis=1) / deviation**4
    return np.hstack([np.log(deviation), np.log(np.ptp(moving, axis=1)), kurtosis, *bands])


def areas(rate: int, axes: int, samples: int, seed: int) -> list[tuple[float, ...]]:
    """Return areas of int16, float32 and the detector beside ours, of each fault."""
    rng, shape = np.random.default_rng(seed), (rate, axes, samples)
    X, groups = windows_of(rng, 40, *shape)
    usual, _ = windows_of(rng, 15, *shape)
    faults = [windows_of(rng, 15, *shape, impact=1.2)[0]]
    faults += [windows_of(rng, 15, *shape, fault=fault)[0] for fault in FAULTS]
    watches = [
        NoveltyDetector(random_state=seed).fit((X / unit).astype(dtype), groups=groups)
        for dtype, unit in (("int16", 1), ("float32", 400))
    ]
    distance = LedoitWolf().fit(_moments(X)).mahalanobis
    found = []
    for fault in faults:
        rows, is_new = np.concatenate([usual, fault]), np.repeat([0, 1], [len(usual), len(fault)])
        scores = [-watches[0].score_samples(rows), -watches[1].score_samples(rows / 400)]
        scores.append(distance(_moments(rows)))
        found.append(tuple(float(roc_auc_score(is_new, score)) for score in scores))
    return found


def machines() -> Iterator[str]:
    """Yield how well faults of machines are found, of which 40 healthy ones were recorded."""
    for rate, axes in ((3200, 3), (6400, 1), (25600, 3)):
        for samples in (256, 1024):
            found = np.min([areas(rate, axes, samples, seed) for seed in range(3)], axis=0)
            cells = [" ".join(f"{area:.3f}" for area in row) for row in found]
            held = f"{rate} Hz | {axes} | {samples} | {61 * samples / rate:.1f}"
            yield f"| {held} | {' | '.join(cells)} |"


def page(folder: Path, sets: list[str]) -> Iterator[str]:
    """Yield the lines of the page."""
    sections = (
        (name, machines() if name == "machines" else section(name, folder)) for name in sets
    )
    return rendered("one_class", sections=sections, faults=FAULTS)


if __name__ == "__main__":
    given = page_arguments(
        __doc__, sets="digits,wine,tumours,gas_drift,har_raw,machines"
    ).parse_args()
    print_page(page(given.data, given.sets.split(",")), given.write)
