"""The data sets of the benchmarks: their splits, and the options of `train` for each."""

from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits, make_classification
from sklearn.model_selection import GroupKFold, train_test_split

__all__ = [
    *("ARGUMENTS", "BALANCED", "PARTS", "SPLITS", "Data", "accuracy", "digits", "label_of"),
    *("letters", "load", "seeds_of", "split"),
]

#: What the trainer is told about a data set, besides the budget.
ARGUMENTS = {
    "mnist": ("--image-shape", "28x28", "--augment", "affine"),
    "fashion_mnist": ("--image-shape", "28x28", "--augment", "affine:0.3,flip"),
    "usps": ("--image-shape", "16x16", "--augment", "affine"),
    "cifar10_photos": ("--image-shape", "32x32x3", "--augment", "affine:0.3,flip"),
    "cifar10_coarse": ("--image-shape", "32x32x3", "--augment", "affine:0.3,flip"),
    "har_raw": ("--groups", "group_train", "--window-shape", "128x6", "--augment", "rotate:0.15"),
    "har": ("--groups", "group_train"),
    "covtype": (),
    "digits": ("--image-shape", "8x8", "--augment", "affine"),
    "dna": (),
    "ecg": ("--groups", "group_train", "--class-weight", "balanced"),
    "gas_drift": ("--groups", "group_train"),
}
#: Height and width of images.
IMAGES = {"mnist": (28, 28), "fashion_mnist": (28, 28), "usps": (16, 16), "digits": (8, 8)}
SPLITS = {
    "har_raw": "five folds of whole persons (GroupKFold): five models, scored together",
    "har": "official, by person",
    "covtype": "80/20, stratified, seed 0",
    "digits": "75/25, stratified, seed 0",
    "cifar10_photos": "80/20 of half of the official training part, stratified, seed 0",
    "cifar10_coarse": "as cifar10_photos",
    "ecg": "by record, inter-patient; balanced accuracy",
    "gas_drift": "batches 1-6 against 8-9",
}
#: Data sets whose accuracy is the mean of the recalls.
BALANCED = frozenset(("ecg", "hypothyroid", "credit_g"))
#: How many trainings a row takes, where it is more than one.
PARTS = {"har_raw": 5}
#: Trainings of small sets with other seeds, in budgets up to so many KB.
SEEDS, SEEDS_UP_TO = {"digits": 3, "usps": 3}, 8


def seeds_of(name: str, kilobytes: float) -> range:
    """Return the seeds of the trainings of a row."""
    return range(SEEDS.get(name, 1) if kilobytes <= SEEDS_UP_TO else 1)


@dataclass(frozen=True)
class Data:
    """Rows of one data set; groups may be None."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    groups: np.ndarray | None = None
    groups_test: np.ndarray | None = None

    def write(self, path: Path) -> None:
        """Write what `tinykernel train` reads."""
        arrays = {"X_train": self.X, "y_train": self.y, "X_test": self.X_test}
        arrays["y_test"] = self.y_test
        if self.groups is not None:
            arrays["group_train"] = self.groups
        np.savez(path, **arrays)


def load(folder: Path, name: str) -> list[Data]:
    """Load a data set with the split that `SPLITS` names, else the official one."""
    if name == "digits":
        return [split(*digits(), 0.25)]
    if name.startswith("cifar10"):
        return [split(*_photos(folder / "cifar10_photos.zip"), 0.2)]
    with np.load(folder / f"{name}.npz", allow_pickle=False) as data:
        arrays = {key: data[key] for key in data.files}
    if "X_train" in arrays:
        parts = [arrays[key] for key in ("X_train", "y_train", "X_test", "y_test")]
        return [Data(*parts, arrays.get("group_train"), arrays.get("group_test"))]
    X, y, group = arrays["X"].reshape(len(arrays["X"]), -1), arrays["y"], arrays.get("group")
    if name == "gas_drift":
        train, test = group <= 6, group >= 8
        return [Data(X[train], y[train], X[test], y[test], group[train], group[test])]
    if name in PARTS:
        folds = GroupKFold(PARTS[name]).split(X, y, group)
        return [Data(X[a], y[a], X[b], y[b], group[a], group[b]) for a, b in folds]
    return [split(X, y, 0.2)]


def _photos(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the pixels of the pictures of a .zip of a folder for each class, and the classes."""
    with ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".jpg"))
        pixels = [np.asarray(Image.open(archive.open(name))).ravel() for name in names]
    return np.stack(pixels), np.array([name.split("/")[0] for name in names])


def split(X: np.ndarray, y: np.ndarray, share: float, seed: int = 0) -> Data:
    """Hold out a share of the rows, as many of each class."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=share, stratify=y, random_state=seed)
    return Data(X, y, X_test, y_test)


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return the digits of scikit-learn, as bytes."""
    X, y = load_digits(return_X_y=True)
    return X.astype(np.uint8), y


def letters() -> tuple[np.ndarray, np.ndarray]:
    """Make rows of 26 classes."""
    shape = {"n_features": 16, "n_informative": 12, "n_redundant": 0, "n_classes": 26}
    return make_classification(4000, **shape, n_clusters_per_class=2, class_sep=1.5, random_state=0)


def label_of(file: Path) -> str:
    """Return the name of the last column of a table."""
    with file.open(encoding="utf-8") as stream:
        return stream.readline().strip().split(",")[-1]


def accuracy(name: str, y: np.ndarray, labels: np.ndarray) -> float:
    """Return the accuracy in percent, balanced where the data set asks for it."""
    right = y == labels
    if name in BALANCED:
        return 100 * float(np.mean([right[y == label].mean() for label in np.unique(y)]))
    return 100 * float(right.mean())
