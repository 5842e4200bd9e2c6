"""The page of accuracy per byte: rows, what they must reach, tables and picture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _data import ARGUMENTS, SPLITS
from peers import PEERS, Peer

TARGET = "cortex-m4"
BUDGETS = (2, 4.4, 8, 16, 30)
#: Least accuracy of the C in percent, and the goal; None where there is none.
LIMITS: dict[tuple[str, float], tuple[float | None, float]] = {
    ("mnist", 4.4): (99.05, 99.2),
    ("mnist", 8): (99.3, 99.45),
    ("mnist", 16): (99.45, 99.6),
    ("mnist", 30): (None, 99.65),
    ("fashion_mnist", 4.4): (87.5, 88.5),
    ("fashion_mnist", 8): (90.3, 91.0),
    ("fashion_mnist", 16): (91.2, 92.0),
    ("fashion_mnist", 30): (91.8, 92.8),
    ("cifar10_photos", 16): (66.0, 74.0),
    ("cifar10_photos", 30): (72.0, 80.0),
    ("cifar10_coarse", 16): (66.0, 74.0),
    ("cifar10_coarse", 30): (72.0, 80.0),
    ("usps", 4.4): (96.8, 97.2),
    ("usps", 8): (97.0, 97.6),
    ("usps", 16): (96.0, 97.0),
    ("har_raw", 4.4): (96.3, 97.5),
    ("har_raw", 8): (96.5, 98.0),
    ("har_raw", 16): (96.0, 97.5),
    ("har", 4.4): (94.3, 95.3),
    ("har", 8): (94.8, 96.0),
    ("har", 30): (95.3, 96.0),
    ("covtype", 4.4): (85.5, 87.0),
    ("covtype", 8): (88.4, 90.0),
    ("covtype", 30): (93.0, 94.5),
    ("digits", 2): (97.5, 98.2),
    ("digits", 4.4): (99.1, 99.1),
    ("digits", 8): (99.3, 99.3),
    ("dna", 4.4): (94.0, 95.0),
    ("dna", 8): (95.0, 95.5),
}
#: Most instructions of a decision, and the goal.
INSTRUCTIONS = (
    {("mnist", 4.4): (310_000, 250_000), ("mnist", 8): (700_000, 350_000)}
    | {(f"cifar10_{form}", 30): (8_000_000, 5_000_000) for form in ("photos", "coarse")}
    | {("har_raw", kilobytes): (600_000, 300_000) for kilobytes in BUDGETS}
)
#: Most RAM in bytes beside the input.
RAM = {("mnist", 8): 5120}
#: Rows that the SVMs beside learn from and are scored on, at most.
SVM_ROWS, SVM_TEST_ROWS = 20000, 20000


@dataclass(frozen=True)
class Row:
    """What one data set and budget gave; accuracies in percent, `model` empty if nothing fits."""

    data: str
    kilobytes: float
    model: str = ""
    flash: int = 0
    source: str = ""
    accuracy: float = 0.0
    low: float | None = None  # of the interval
    high: float | None = None
    differences: int = 0
    instructions: int = 0
    ram: int = 0
    seconds: float = 0.0
    rows: int = 0  # rows that were verified
    test_rows: int = 0
    measured: str = ""  # date and machine


def bytes_of(kilobytes: float) -> int:
    """Return a budget in bytes, rounded down."""
    return int(kilobytes * 1024)


def table(rows: list[Row]) -> str:
    """Write all rows as a Markdown table."""
    lines = [
        "| data | budget | model | flash | accuracy of the C | 95 % interval | must | goal "
        "| differing scores | instructions | RAM | training |",
        "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        start = f"| {row.data} | {row.kilobytes:g} KB |"
        limits = LIMITS.get((row.data, row.kilobytes), (None, None))
        must, goal = ("" if limit is None else f"{limit:g}" for limit in limits)
        if not row.model:
            lines.append(f"{start} nothing fits | | | | {must} | {goal} | | | | |")
            continue
        between = "" if row.low is None else f"{row.low:.1f} to {row.high:.1f}"
        reached = limits[0] is None or round(row.accuracy, 2) >= limits[0]
        lines.append(
            f"{start} {row.model} | {row.flash} ({row.source}) | {row.accuracy:.2f} % | {between} "
            f"| {must}{'' if reached else ' (missed)'} | {goal} | {row.differences} "
            f"| {row.instructions} | {row.ram} | {row.seconds:.0f} s |"
        )
    return "\n".join(lines)


def peer_table(rows: list[Row], others: list[Peer]) -> str:
    """Write tinykernel and its peers side by side, and who wins."""
    lines = [
        "| data | budget | tinykernel | " + " | ".join(PEERS) + " | ahead |",
        "|---|---:|---:|" + "---:|" * len(PEERS) + "---|",
    ]
    known = {(peer.data, peer.kilobytes, peer.name): peer for peer in others}
    for row in rows:
        where = (row.data, row.kilobytes)
        mine = [known.get((*where, name)) for name in PEERS]
        if not any(mine):
            continue
        cells = [peer_cell(peer) for peer in mine]
        own = f"{row.accuracy:.2f} %, {row.instructions} instr." if row.model else "nothing fits"
        lines.append(
            f"| {row.data} | {row.kilobytes:g} KB | {own} | {' | '.join(cells)} "
            f"| {ahead(row, [peer for peer in mine if peer])} |"
        )
    return "\n".join(lines)


def ahead(row: Row, others: list[Peer]) -> str:
    """Name who is most accurate, and by how much before tinykernel or the best of the others."""
    best = max(others, key=lambda peer: peer.accuracy)
    if not best.what and not row.model:
        return ""
    if round(best.accuracy, 2) > round(row.accuracy, 2):
        by = f" by {best.accuracy - row.accuracy:.2f}" if row.model else ""
        return f"**{best.name}**{by}"
    by = f" by {row.accuracy - best.accuracy:.2f}" if best.what else ""
    return f"tinykernel{by}"


def peer_cell(peer: Peer | None) -> str:
    if peer is None:
        return ""
    if not peer.what:
        return "nothing fits"
    size = f"{peer.flash} B" + (" by estimate" if peer.source == "estimate" else "")
    count = "" if peer.instructions is None else f", {peer.instructions} instr."
    return f"{peer.accuracy:.2f} %, {size}{count} ({peer.what})"


def page(rows: list[Row], kept: dict[str, Any], peers: list[Peer]) -> str:
    """Write the page of the results."""
    names = list(dict.fromkeys(row.data for row in rows))
    lines = [
        "# Accuracy per byte",
        "",
        "Written by `python benchmarks/accuracy_per_byte.py`.",
        f"Budgets are linked flash on {TARGET} at -Os, model and runtime together, 1 KB = 1024 "
        "bytes. Each row is one run of `tinykernel train DATA --budget KB`, `tinykernel verify` "
        "and `tinykernel bench`; accuracies are those of the C on the test part, instructions "
        "those of a decision from raw inputs, RAM is without the input. The intervals are those of "
        "`tinykernel.evaluation.accuracy_interval`, by persons where the test rows have persons. "
        '"must" and "goal" were set before; rows below are marked.',
        "",
        table(rows),
        "",
        *measured_on(rows),
        "",
        "Rows of covtype below 30 KB were measured before trees competed. With trees covtype has "
        "90.7 % in 8 KB: [tables](tables.md). Those of har, dna, digits and usps in up to 8 KB, "
        "cifar10_photos, cifar10_coarse, mnist and "
        "fashion_mnist in 4.4 KB and more, and covtype in 30 KB were measured on a busy machine, "
        "which takes two to four times as long; those of digits and usps in up to 8 KB, "
        "cifar10_coarse, mnist, and fashion_mnist in 8 KB and more, by one thread. Models of "
        "har_raw in 2 and 16 KB are older: then they had at most 512 kernels. Models of "
        "fashion_mnist in 4.4 KB learned from images as they are. Pictures of cifar10_photos "
        "have instructions (at most 8 million in 30 KB) and RAM (at most 8 KB in 16) above what "
        "was required; coarse convolutions are the answer to that. Instructions of separable "
        "convolutions, but for usps in 8 KB and cifar10_coarse, were counted before they took a "
        "third fewer: 7.4 million for cifar10_photos in 16 KB.",
        "",
        "![Accuracy against linked bytes](accuracy.png)",
        "",
        "| data | split | options of `train` | linear SVM | RBF SVM |",
        "|---|---|---|---:|---:|",
    ]
    for name in names:
        found = kept.get("machines", {}).get(name, {})
        cells = "".join(f"| {value:.2f} % " for value in found.values()) or "| | "
        told = f"`{' '.join(ARGUMENTS[name])}`" if ARGUMENTS[name] else ""
        lines.append(f"| {name} | {SPLITS.get(name, 'official')} | {told} {cells}|")
    lines += [
        "",
        f"The SVMs learn from at most {SVM_ROWS} rows and are scored on at most "
        f"{SVM_TEST_ROWS}; their size is not limited. `--augment` varies training rows: images by "
        "small rotations, scales, shifts and shears; windows of har_raw by random rotations of "
        "the three axes of a sensor, with 0.15 radians as deviation. A row of har_raw is five "
        "trainings, and one of digits or usps in up to 8 KB three, by seeds 0 to 2: its accuracy "
        "is that of all together, its time their sum, its flash, RAM and instructions the largest.",
    ]
    if peers:
        lines += ["", "## Other classifiers in the same budgets", "", _ABOUT_PEERS, ""]
        lines += [peer_table(rows, peers), ""]
        missing = [name for name in PEERS if not any(peer.name == name for peer in peers)]
        lines += [f"Not measured: {', '.join(missing)}."] if missing else []
    return "\n".join(lines).rstrip() + "\n"


_ABOUT_PEERS = (
    "Run with `--peers`. Sizes are linked on the same core by the same compiler, code included, "
    "but for the boosted trees, which were not built. The int8 perceptron is "
    "`benchmarks/peers/int8_mlp.c`, trained on all rows (at most 100000) with a decaying step; "
    "penalty, hidden units and the averaging of pixels were chosen on training rows. emlearn's "
    "MLP computes in floats, in software on this core, and the exponential function takes much of "
    "the smaller budgets; its forests compare int16 values that the application must scale. No "
    "peer was given varied rows. **Bold** is a peer that is more accurate than tinykernel."
)


def measured_on(rows: list[Row]) -> list[str]:
    """Say when and where each row was measured, one line for each machine and day."""
    groups: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        where = row.measured or "a machine that was not recorded"
        groups.setdefault(where, {}).setdefault(row.data, []).append(row.kilobytes)
    lines = []
    for where, found in groups.items():
        which = "; ".join(
            f"{name} {', '.join(f'{size:g}' for size in sizes)} KB" for name, sizes in found.items()
        )
        lines.append(f"- Rows measured on: {where} ({which})")
    return lines


def plot(rows: list[Row], kept: dict[str, Any], peers: list[Peer], path: Path) -> None:
    """Draw accuracy against linked bytes, one panel a data set."""
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(row.data for row in rows if row.model))
    across = min(4, max(1, len(names)))
    height = max(1, -(-len(names) // across))
    figure, axes = plt.subplots(height, across, figsize=(3.5 * across, 3.2 * height), squeeze=False)
    for axis in axes.flat[len(names) :]:
        axis.set_visible(False)
    for axis, name in zip(axes.flat, names, strict=False):
        mine = [row for row in rows if row.data == name and row.model]
        axis.semilogx(
            [r.flash / 1024 for r in mine],
            [r.accuracy for r in mine],
            "o-",
            label="tinykernel",
            zorder=3,
        )
        for title, mark in zip(PEERS, ("s--", "v:", "^:", "d:"), strict=True):
            found = [p for p in peers if p.data == name and p.name == title and p.what]
            found.sort(key=lambda peer: peer.kilobytes)
            if found:
                axis.semilogx(
                    [p.flash / 1024 for p in found], [p.accuracy for p in found], mark, label=title
                )
        machines_of = kept.get("machines", {}).get(name, {})
        for (title, value), style in zip(machines_of.items(), (":", "-."), strict=False):
            axis.axhline(value, color="grey", linestyle=style, label=title)
        axis.set(title=name, xlabel="flash (KB)", ylabel="test accuracy (%)")
        ticks = sorted({*BUDGETS, *(row.kilobytes for row in mine)})
        axis.set_xticks(ticks, [f"{b:g}" for b in ticks])
        axis.minorticks_off()
        axis.legend(fontsize="x-small")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def in_order(rows: Iterable[Any]) -> list[Any]:
    """Sort rows as the data sets stand in `ARGUMENTS`, then by budget."""
    names = list(ARGUMENTS)
    return sorted(rows, key=lambda row: (names.index(row.data), row.kilobytes))


def missed(rows: list[Row]) -> list[str]:
    """Return what did not hold, one line each."""
    lines = []
    for row in rows:
        key = (row.data, row.kilobytes)
        where = f"{row.data}, {row.kilobytes:g} KB"
        must = LIMITS.get(key, (None, 0.0))[0]
        if not row.model:
            if must is not None:
                lines.append(f"{where}: nothing fits")
            continue
        if must is not None and round(row.accuracy, 2) < must:  # as printed
            lines.append(f"{where}: {row.accuracy:.2f} % is below {must} %")
        if row.differences:
            lines.append(f"{where}: {row.differences} scores differ")
        if row.rows != row.test_rows:
            lines.append(f"{where}: {row.rows} rows were verified, {row.test_rows} are for testing")
        if row.flash > bytes_of(row.kilobytes):
            lines.append(f"{where}: {row.flash} bytes are too many")
        if key in INSTRUCTIONS and row.instructions > INSTRUCTIONS[key][0]:
            lines.append(f"{where}: {row.instructions} instructions are too many")
        if key in RAM and row.ram > RAM[key]:
            lines.append(f"{where}: {row.ram} bytes of RAM are too many")
    return lines
