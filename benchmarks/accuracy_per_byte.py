"""Accuracy of the firmware against linked bytes, with other classifiers of the same sizes.

Run with ``python benchmarks/accuracy_per_byte.py --data DIR [--sets usps,har] [--budgets 4.4,8]
[--peers] [--write FOLDER]``. For each data set and budget it runs, with nothing set by hand but
what describes the data,

    tinykernel train DATA --budget KB --target cortex-m4 -o MODEL
    tinykernel verify MODEL --data DATA
    tinykernel bench MODEL --target cortex-m4

so that hyper-parameters come from the training part, the flash is that of the linked program, the
accuracy is that of the C, of which every score is compared with Python's, and instructions are
counted in an emulator. ``--peers`` trains the other classifiers of `peers` for the same budgets.
A linear SVM and the exact RBF SVM, of any size, stand beside.

``--write FOLDER`` leaves ``accuracy.md`` and ``accuracy.png`` there. Finished rows are kept in
``numbers/accuracy.json`` beside them and not computed again without ``--fresh``; ``--work FOLDER``
keeps the models, so that a row of several trainings goes on where it ended.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, fields
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from _accuracy_page import (
    BUDGETS,
    SVM_ROWS,
    SVM_TEST_ROWS,
    TARGET,
    Row,
    bytes_of,
    in_order,
    missed,
    page,
    peer_cell,
    plot,
    table,
)
from _data import ARGUMENTS, BALANCED, Data, accuracy, load, seeds_of
from _environment import describe_machine
from _page import page_arguments
from peers import PEERS, Peer, available, measure_peer
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import tinykernel
from tinykernel.base.files import write_bytes_atomically
from tinykernel.compile.enums import consists_of
from tinykernel.judge.figures import accuracy_interval

_AT_ONCE = 5000


class NothingFitsError(Exception):
    """A budget is too small for any model of a data set."""


def tinykernel_json(*arguments: str) -> dict[str, Any]:
    """Run the command line and return what it prints with ``--json``."""
    command = [sys.executable, "-m", "tinykernel", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        if "no model for this data fits" in done.stderr:
            raise NothingFitsError
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr.strip()}")
    return dict(json.loads(done.stdout))


def measure_part(
    name: str, kilobytes: float, data: Data, stem: Path, seed: int = 0
) -> dict[str, Any]:
    """Train, verify and count one model; what was found before is in `stem`.json."""
    # Not with_suffix: there is a dot in 4.4.
    found, given, model = (Path(f"{stem}{suffix}") for suffix in (".json", ".npz", ".tkm"))
    if found.exists():
        return dict(json.loads(found.read_text()))
    data.write(given)
    try:
        limits = ("--budget", str(bytes_of(kilobytes)), "--target", TARGET, "--seed", str(seed))
        options = (*limits, *ARGUMENTS[name], "-o", str(model))
        trained = tinykernel_json("train", str(given), *options)
        verified = tinykernel_json("verify", str(model), str(given))
        counted = tinykernel_json("bench", str(model), "--target", TARGET)
    finally:
        given.unlink()
    # Every score of the C is that of Python, so these are the labels of the C.
    integer = tinykernel.load(model)
    parts = range(0, len(data.y_test), _AT_ONCE)
    labels = [integer.predict(data.X_test[i : i + _AT_ONCE]).tolist() for i in parts]
    result = {
        "model": consists_of(integer),
        "flash": trained["flash"],
        "source": trained["flash_source"],
        "ram": trained["ram"],
        "seconds": trained["seconds"],
        "rows": verified["rows"],
        "differences": verified["differences"],
        "instructions": counted["instructions"],
        "labels": list(chain.from_iterable(labels)),
        "accuracy": verified["accuracy"],
    }
    write_bytes_atomically(found, json.dumps(result).encode())
    return result


def measure(name: str, kilobytes: float, parts: list[Data], folder: Path) -> Row:
    """Measure the models of all parts, or seeds, as one row: the largest of what they take."""
    seeds, stem = seeds_of(name, kilobytes), f"{name}-{kilobytes:g}"
    try:
        found = [
            measure_part(name, kilobytes, part, folder / f"{stem}-{seed or number}", seed)
            for seed in seeds
            for number, part in enumerate(parts)
        ]
    except NothingFitsError:
        return Row(name, kilobytes, measured=describe_machine())
    y = np.concatenate([part.y_test for part in parts * len(seeds)])
    labels = np.concatenate([part["labels"] for part in found])
    low, high = interval(name, parts, (y == labels).reshape(len(seeds), -1).mean(axis=0))
    largest = max(found, key=lambda part: part["flash"])
    return Row(
        data=name,
        kilobytes=kilobytes,
        model=largest["model"],
        source=largest["source"],
        accuracy=accuracy(name, y, labels),
        low=low,
        high=high,
        test_rows=len(y),
        flash=largest["flash"],
        ram=max(part["ram"] for part in found),
        instructions=max(part["instructions"] for part in found),
        seconds=sum(part["seconds"] for part in found),
        rows=sum(part["rows"] for part in found),
        differences=sum(part["differences"] for part in found),
        measured=describe_machine(),
    )


def interval(name: str, parts: list[Data], right: np.ndarray) -> tuple[float | None, float | None]:
    """Return the 95 % interval of the accuracy, by groups where the test rows have groups."""
    if name in BALANCED:
        return None, None
    groups = [part.groups_test for part in parts if part.groups_test is not None]
    found = accuracy_interval(right, np.concatenate(groups) if groups else None)
    return (None, None) if found is None else (100 * found[0], 100 * found[1])


# -- references -----------------------------------------------------------------------------------


def machines(name: str, parts: list[Data]) -> dict[str, float]:
    """Train the linear and the exact RBF SVM on at most 20000 rows; C of the latter is 10."""
    weight = "balanced" if name in BALANCED else None
    found: dict[str, list[np.ndarray]] = {"linear SVM": [], "RBF SVM": []}
    y = []
    for data in parts:
        rng = np.random.default_rng(0)
        chosen = rng.permutation(len(data.y))[:SVM_ROWS]
        tested = rng.permutation(len(data.y_test))[:SVM_TEST_ROWS]
        scaler = StandardScaler().fit(data.X[chosen])
        inputs, labels = scaler.transform(data.X[chosen]), data.y[chosen]
        y.append(data.y_test[tested])
        for title, model in (
            ("linear SVM", LinearSVC(C=0.01, class_weight=weight)),
            ("RBF SVM", SVC(C=10, class_weight=weight, cache_size=1000)),
        ):
            fitted = model.fit(inputs, labels)
            found[title].append(fitted.predict(scaler.transform(data.X_test[tested])))
    true = np.concatenate(y)
    return {title: accuracy(name, true, np.concatenate(part)) for title, part in found.items()}


class Store:
    """Finished rows and peers, in a file where there is one."""

    def __init__(self, path: Path | None, *, fresh: bool) -> None:
        self.path = path
        kept: dict[str, Any] = {}
        if path is not None and path.exists() and not fresh:
            kept = json.loads(path.read_text())
        known = {field.name for field in fields(Row)}
        if any(row.keys() != known for row in kept.get("rows", [])):
            raise SystemExit(f"{path}: rows of another version; measure again with --fresh")
        self.rows = {(r["data"], r["kilobytes"]): Row(**r) for r in kept.get("rows", [])}
        self.peers = {
            (p["data"], p["kilobytes"], p["name"]): Peer(**p) for p in kept.get("peers", [])
        }
        self.machines: dict[str, dict[str, float]] = kept.get("machines", {})

    def save(self) -> None:
        """Write what is there."""
        if self.path is None:
            return
        kept = {
            "rows": [asdict(row) for row in in_order(self.rows.values())],
            "peers": [asdict(peer) for peer in in_order(self.peers.values())],
            "machines": self.machines,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes_atomically(self.path, json.dumps(kept, indent=1).encode())


def main() -> None:
    """Train every model, print the table and, if wanted, write the page."""
    arguments = _arguments()
    numbers = arguments.write and arguments.write / "numbers" / "accuracy.json"
    store = Store(numbers, fresh=arguments.fresh)
    with tempfile.TemporaryDirectory() as scratch:
        work = arguments.work or Path(scratch)
        work.mkdir(parents=True, exist_ok=True)
        for name in filter(None, arguments.sets.split(",")):
            _measure_set(name, arguments, store, work)
    ordered, peers = in_order(store.rows.values()), in_order(store.peers.values())
    kept = {"machines": store.machines}
    text = page(ordered, kept, peers)
    if arguments.write is not None:
        write_bytes_atomically(arguments.write / "accuracy.md", text.encode())
        plot(ordered, kept, peers, arguments.write / "accuracy.png")
    print(f"\n{text}")
    problems = missed(ordered)
    if problems:
        raise SystemExit("\n".join(problems))


def _arguments() -> argparse.Namespace:
    parser = page_arguments(
        __doc__, ",".join(ARGUMENTS), "a folder for the page, its picture and numbers"
    )
    parser.add_argument("--budgets", default=",".join(map(str, BUDGETS)), help="in KB")
    every = f"all, or some of: {', '.join(PEERS)}"
    parser.add_argument("--peers", nargs="?", const=",".join(PEERS), default="", help=every)
    parser.add_argument("--no-references", action="store_true", help="no SVMs")
    parser.add_argument("--work", type=Path, help="a folder for models, to go on from")
    parser.add_argument("--fresh", action="store_true", help="forget finished rows")
    arguments = parser.parse_args()
    arguments.peers = [peer for peer in arguments.peers.split(",") if peer]
    for peer in arguments.peers:
        if peer not in PEERS:
            parser.error(f"--peers: {peer!r} is none of {', '.join(PEERS)}")
    return arguments


def _measure_set(name: str, arguments: argparse.Namespace, store: Store, work: Path) -> None:
    """Measure the rows of one data set that are missing."""
    parts = load(arguments.data, name)
    for kilobytes in map(float, arguments.budgets.split(",")):
        if (name, kilobytes) not in store.rows:
            store.rows[name, kilobytes] = measure(name, kilobytes, parts, work)
            store.save()
        print(table([store.rows[name, kilobytes]], [], {}).splitlines()[-1], flush=True)
        for peer in arguments.peers:
            if (name, kilobytes, peer) not in store.peers and available(peer, name):
                store.peers[name, kilobytes, peer] = measure_peer(peer, name, kilobytes, parts)
                store.save()
            if (name, kilobytes, peer) in store.peers:
                print(f"  {peer}: {peer_cell(store.peers[name, kilobytes, peer])}", flush=True)
    if not arguments.no_references and name not in store.machines:
        store.machines[name] = machines(name, parts)
        store.save()


if __name__ == "__main__":
    main()
