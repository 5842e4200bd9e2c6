"""How long trainings take, beside libraries for computers on the same rows.

Run with ``python benchmarks/training_speed.py [--data DIR] [--sets all] [--into docs/results]
[--write FILE]``. Tables come from scikit-learn, with several seeds; *photos* are passes of
separable convolutions over random images, beside the same network in PyTorch if that is installed;
*mnist* and *covtype* are ``mnist.npz`` and ``covtype.npz`` of DIR, for components alone. Seconds
are those of a processor, with one thread, after a short training that compiles; *limited* are
trainings with a time limit, by the clock, whatever else the computer does. *beside* are tables of
the marks, trained in turns by this checkout and by that of ``TINYKERNEL_BESIDE``, the folder of
another version; ``covtype7.npz`` is of DIR. A row that is
finished is kept in ``numbers/training_speed.json`` of the folder. Ends with status 1 if a figure
misses its limit.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _data import digits
from _environment import describe_machine
from _page import rendered
from _rows import FinishedRows, measure_sets
from marks import data_of
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from tinykernel import TernaryKernelClassifier, train
from tinykernel.learn.augment import Augmentation
from tinykernel.learn.convolutions.separable import SeparableLearner, separable_plan
from tinykernel.learn.linear.training import LinearRecipe, TrainingRows

#: Rows, inputs, informative inputs and classes of `make_classification`.
MADE = {f"made {n}": (4000, 30, 12, n) for n in (2, 3, 4, 10)} | {"made 26": (20000, 16, 12, 26)}
#: Most seconds of a processor: two cores have twice that of the time which is wanted of them.
LIMITS = {**dict.fromkeys(MADE, 16.0), "made 26": 60.0, "digits": 20.0}
SETS = (*LIMITS, "limited", "photos", "mnist", "covtype", "beside")
# Seconds of trainings with a time limit, their tables, and the most of the limit that they take.
_SECONDS, _LIMITED, _MOST = (20, 60, 300), ("digits", "made 3", "made 26"), 1.15
OURS, PEERS = ("normal", "quick"), ("HistGradientBoosting", "MLP", "LightGBM")
# Of photos: sides and channels of the images, channels of the last block, and images of a pass.
_PHOTOS = (((32, 32, 3), 64, 1024), ((96, 96, 3), 32, 256))
_BATCH, _CLASSES = 128, 10
# Most of a fit of components to MNIST over that of SVC, and seconds of covtype.
_SVC, _COVTYPE = 0.4, 400.0

# Tables of the marks, and most of the processor seconds of another version and of LightGBM.
_BESIDE, _OF_BEFORE, _OF_LIGHTGBM = ("digits", "classes10", "classes26", "covtype7"), 0.5, 6.0
_OTHER = "TINYKERNEL_BESIDE"
# Trains a table twice, and prints the seconds of the second training, which compiles nothing.
_TRAIN = """
import sys, time
import numpy as np
from tinykernel import train
rows = np.load(sys.argv[1])
for _ in range(2):
    begun = time.process_time()
    train(rows["X"], rows["y"], budget="8KB", random_state=0, n_jobs=1, link=False, max_time=None)
    seconds = time.process_time() - begun
print(seconds)
"""

Row = tuple[str, str, str, bool]  # what was measured, the figure, its limit, and whether it holds.


def seconds_of(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return seconds of a processor, and the result."""
    begun = time.process_time()
    result = function()
    return time.process_time() - begun, result


def split(name: str, seed: int) -> list[Any]:
    """Return rows of a table to train on and to test, then their labels."""
    if name == "digits":
        X, y = digits()
    else:
        n, inputs, informative, classes = MADE[name]
        options = {"n_informative": informative, "n_classes": classes, "random_state": seed}
        X, y = make_classification(n, inputs, **options)
        X = X.astype(np.float32)
    parts: list[Any] = train_test_split(X, y, test_size=0.2, stratify=y, random_state=seed)
    return parts


def table(name: str, seed: int) -> dict[str, Any]:
    """Train and time models of one table, the same rows for all."""
    X, X_test, y, y_test = split(name, seed)
    ours = {"budget": "8KB", "random_state": 0, "n_jobs": 1, "link": False}
    train(X[:300], y[:300], **ours | {"budget": "3KB", "effort": "quick"})  # compiles
    fits: dict[str, Callable[[], Any]] = {
        effort: lambda effort=effort: train(X, y, effort=effort, **ours) for effort in OURS
    }
    mlp = make_pipeline(StandardScaler(), MLPClassifier(early_stopping=True, random_state=0))
    boosting = HistGradientBoostingClassifier(random_state=0)
    fits |= {"HistGradientBoosting": lambda: boosting.fit(X, y), "MLP": lambda: mlp.fit(X, y)}
    try:
        from lightgbm import LGBMClassifier

        light = LGBMClassifier(n_jobs=1, verbose=-1, random_state=0)
        fits["LightGBM"] = lambda: light.fit(X, y)
    except ImportError:
        print("LightGBM is not installed, and left out")
    result: dict[str, Any] = {"rows": f"{len(y):,} x {X.shape[1]}"}
    for fit, function in fits.items():
        seconds, model = seconds_of(function)
        result[fit] = seconds, 100 * float(model.score(X_test, y_test))
    return result


def limited() -> Iterator[Row]:
    """Train in limited time, by the clock."""
    for name in _LIMITED:
        X, X_test, y, y_test = split(name, 0)
        for limit in _SECONDS:
            begun = time.perf_counter()
            model = train(X, y, budget="8KB", random_state=0, max_time=limit, link=False)
            seconds, most = time.perf_counter() - begun, _MOST * limit
            figure = f"{seconds:.1f} s, accuracy {100 * model.score(X_test, y_test):.1f} %"
            yield f"{name} in {limit} s", figure, f"{most:g} s", seconds <= most


def photos() -> Iterator[Row]:
    """Pass over images by separable convolutions, and by PyTorch: forward, back, and a step."""
    for shape, channels, n in _PHOTOS:
        plan = separable_plan(shape, channels, LinearRecipe(epochs=2, batch_rows=_BATCH))
        rng = np.random.default_rng(0)
        images = rng.integers(0, 256, (n, shape[2], *shape[:2])).astype(np.uint8)
        targets = np.eye(_CLASSES, dtype=np.float32)[rng.integers(0, _CLASSES, n)]
        rows = TrainingRows(images, targets, np.ones(n, np.float32))
        learner = SeparableLearner(rows, plan, Augmentation())
        learner.epoch(0)  # compiles
        what = f"{shape[0]} x {shape[1]} x {shape[2]}, {channels} channels"
        figures = {"tinykernel": 1000 * seconds_of(lambda: learner.epoch(1))[0] / n}  # noqa: B023
        try:
            figures["PyTorch"] = 1000 * torch_seconds(plan, images, targets) / n
        except ImportError:
            print("PyTorch is not installed, and left out")
        text = ", ".join(f"{name} {figure:.2f} ms" for name, figure in figures.items())
        yield f"photos {what}: an image forward and back", text, "", True


def torch_seconds(plan: Any, images: np.ndarray, targets: np.ndarray) -> float:
    """Return the seconds of an epoch of the same network in floats, in the faster memory format."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    layers: list[nn.Module] = [nn.AvgPool2d(2)] if plan.average == 2 else []
    before, end = images.shape[1], (nn.AdaptiveAvgPool2d(1), nn.Flatten())
    for block, (after, stride) in enumerate(zip(plan.channels, plan.strides, strict=True)):
        wide, groups = (before, before) if block else (after, 1)
        first = nn.Conv2d(before, wide, 3, stride, 1, groups=groups)
        for layer in (first, nn.Conv2d(before, after, 1)) if block else (first,):
            layers += [layer, nn.BatchNorm2d(layer.out_channels), nn.Hardtanh(0.0, 255.0)]
        before = after
    net = nn.Sequential(*layers, *end, nn.Linear(before, targets.shape[1]))
    y, loss, seconds = torch.from_numpy(targets), nn.CrossEntropyLoss(), []
    for kind in (torch.contiguous_format, torch.channels_last):
        net, X = net.to(memory_format=kind), torch.from_numpy(images)
        step = torch.optim.AdamW(net.parameters())

        def epoch(X=X, step=step, net=net, kind=kind) -> None:
            for first in range(0, len(X), _BATCH):
                rows = slice(first, first + _BATCH)
                step.zero_grad()
                x = X[rows].float().contiguous(memory_format=kind)
                loss(net(x), y[rows]).backward()
                step.step()

        epoch()
        seconds.append(seconds_of(epoch)[0])
    return min(seconds)


def mnist(folder: Path) -> Iterator[Row]:
    """Fit components to MNIST, and SVC to the same rows."""
    with np.load(folder / "mnist.npz", allow_pickle=False) as data:
        X, y, X_test, y_test = (data[k] for k in ("X_train", "y_train", "X_test", "y_test"))
    model = TernaryKernelClassifier(n_components=8192, epochs=10, random_state=0, n_jobs=1)
    seconds, _ = seconds_of(lambda: model.fit(X, y))
    what = (
        f"mnist: fit with p = 8192, search included; test {100 * model.score(X_test, y_test):.2f} %"
    )
    yield what, f"{seconds:.0f} s", "", True
    svc = SVC(C=10, gamma=0.02, cache_size=1000)
    reference, _ = seconds_of(lambda: svc.fit(X / np.float32(255), y))
    score = 100 * svc.score(X_test[:2000] / np.float32(255), y_test[:2000])
    yield (
        f"mnist: SVC with an RBF kernel; test {score:.2f} % of 2000",
        f"{reference:.0f} s",
        "",
        True,
    )
    share = seconds / reference
    yield "mnist: fit over that of SVC", f"{share:.2f}", f"{_SVC:g}", share <= _SVC


def covtype(folder: Path) -> Iterator[Row]:
    """Fit components to very many rows."""
    with np.load(folder / "covtype.npz", allow_pickle=False) as data:
        X, X_test, y, y_test = train_test_split(
            data["X"], data["y"], test_size=0.2, stratify=data["y"], random_state=0
        )
    model = TernaryKernelClassifier(n_components=4096, layout="windows", random_state=0, n_jobs=1)
    seconds, _ = seconds_of(lambda: model.fit(X, y))
    what = (
        f"covtype, {len(y)} rows: fit with p = 4096; test {100 * model.score(X_test, y_test):.2f} %"
    )
    yield what, f"{seconds:.0f} s", f"{_COVTYPE:g} s", seconds <= _COVTYPE


def beside(folder: Path) -> Iterator[Row]:
    """Train tables by this version, by another one and by LightGBM, in turns."""
    from lightgbm import LGBMClassifier

    if _OTHER not in os.environ:
        raise SystemExit(f"{_OTHER}: name the checkout of another version to compare with")
    here, other = Path(__file__).parents[1], Path(os.environ[_OTHER]).resolve()
    name = subprocess.run(
        ["git", "-C", other, "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    shares = []
    for table in _BESIDE:
        rows = data_of(table, 0, folder)
        seconds = [_seconds_of_version(tree, rows.X_train, rows.y_train) for tree in (here, other)]
        light = LGBMClassifier(n_jobs=1, verbose=-1, random_state=0)
        peer = seconds_of(lambda: light.fit(rows.X_train, rows.y_train))[0]  # noqa: B023
        shares.append(seconds[0] / seconds[1])
        figure = f"{seconds[0]:.1f} s, {seconds[1]:.1f} s, {peer:.1f} s"
        holds = seconds[0] <= _OF_LIGHTGBM * peer
        yield f"{table}: here, {name}, LightGBM", figure, f"{_OF_LIGHTGBM * peer:.1f} s", holds
    share = float(np.mean(shares))
    yield f"mean over that of {name}", f"{share:.2f}", f"{_OF_BEFORE:g}", share <= _OF_BEFORE


def _seconds_of_version(tree: Path, X: np.ndarray, y: np.ndarray) -> float:
    """Return the processor seconds of a training by the version in a folder."""
    with tempfile.TemporaryDirectory() as work:
        file = Path(work, "rows.npz")
        np.savez(file, X=X, y=y)
        line = [sys.executable, "-c", _TRAIN, str(file)]
        environment = {**os.environ, "PYTHONPATH": str(tree)}
        result = subprocess.run(
            line, cwd=work, env=environment, check=True, stdout=subprocess.PIPE, text=True
        )
    return float(result.stdout)


def measure(name: str, seed: int, folder: Path) -> dict[str, Any]:
    """Measure one set, or one seed of a table."""
    with threadpool_limits(1):
        if name in LIMITS:
            result = table(name, seed)
        else:
            of_files: dict[str, Any] = {"mnist": mnist, "covtype": covtype, "beside": beside}
            alone = {"photos": photos, "limited": limited}
            figures = alone[name]() if name in alone else of_files[name](folder)
            result = {"figures": list(figures)}
    return result | {"measured": describe_machine()}


def page(finished: FinishedRows) -> Iterator[str]:
    """Yield the lines of the page."""
    tables, names = [], (*OURS, *PEERS)
    for name, limit in LIMITS.items():
        rows = [row for key, row in finished.items() if key.rpartition(" ")[0] == name]
        if rows:
            cells = [[row[fit] for row in rows if fit in row] for fit in names]
            means = [np.mean(cell, axis=0) if cell else None for cell in cells]
            texts = ["-" if mean is None else f"{mean[0]:.1f} s, {mean[1]:.1f}" for mean in means]
            most = max(seconds for seconds, _ in cells[0])
            tables.append(
                (name, rows[0]["rows"], len(rows), *texts, f"{most:.1f} s", f"{limit:g} s")
            )
    figures = [
        (*figure[:3], row["measured"].split(",")[0])
        for row in finished.values()
        for figure in row.get("figures", ())
    ]
    measured = {row["measured"] for row in finished.values() if "figures" not in row}
    there = {key.rpartition(" ")[0] for key in finished}
    missing = [name for name in SETS if name not in there]
    parts = {"tables": tables, "figures": figures, "measured": sorted(measured)}
    yield from rendered("training_speed", names=names, missing=missing, **parts)


def missed(finished: FinishedRows) -> list[str]:
    """Return what takes longer than its limit."""
    slow = [
        f"{key}: {row['normal'][0]:.1f} s"
        for key, row in finished.items()
        if "normal" in row and row["normal"][0] > LIMITS[key.rpartition(" ")[0]]
    ]
    figures = [figure for row in finished.values() for figure in row.get("figures", ())]
    return slow + [f"{what}: {figure}" for what, figure, _, holds in figures if not holds]


def main() -> int:
    """Measure, print the page, and say which limits were missed."""

    def seeds(name: str) -> int:
        return 3 if MADE.get(name, (0,))[0] == 4000 else 1

    sets = [name for name in SETS if name != "beside" or _OTHER in os.environ]
    if len(sets) < len(SETS):
        print(f"not measured: beside; {_OTHER} has to name another version", file=sys.stderr)
    finished, _ = measure_sets(__doc__, "training_speed", sets, measure, page, seeds)
    lines = missed(finished)
    print("\n".join(f"missed: {line}" for line in lines), file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
