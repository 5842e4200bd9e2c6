"""The page of accuracy per byte: rows, their table and picture."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _data import ARGUMENTS, SPLITS
from _page import rendered
from peers import PEERS, Peer

TARGET = "cortex-m4"
BUDGETS = (2, 4.4, 8, 16, 30)
#: Budgets of the table, where a set of data has a row; the picture has all.
_IN_TABLE = (8, 30)
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


def table(rows: list[Row], peers: list[Peer], machines: dict[str, dict[str, float]]) -> str:
    """Write rows as a Markdown table, the best peer and the SVMs beside them."""
    lines = [
        "| data, split | budget | model | flash | accuracy of the C | 95 % interval | best peer "
        "| linear, RBF SVM of any size | instructions | RAM |",
        "|---|---:|---|---:|---:|---:|---|---:|---:|---:|",
    ]
    for row in rows:
        start = f"| {row.data}, {SPLITS.get(row.data, 'official')} | {row.kilobytes:g} KB |"
        beside = f"{best_peer(row, peers)} | {svms(machines.get(row.data, {}))}"
        if not row.model:
            lines.append(f"{start} nothing fits | | | | {beside} | | |")
            continue
        between = "" if row.low is None else f"{row.low:.1f} to {row.high:.1f}"
        lines.append(
            f"{start} {row.model} | {row.flash} | {row.accuracy:.2f} % | {between} "
            f"| {beside} | {row.instructions:,} | {row.ram:,} |"
        )
    return "\n".join(lines)


def svms(accuracies: dict[str, float]) -> str:
    """Return the accuracies of a linear and an RBF SVM."""
    return ", ".join(f"{value:.1f}" for value in accuracies.values())


def best_peer(row: Row, peers: list[Peer]) -> str:
    """Describe the most accurate peer of a budget, in bold if it is ahead; empty without peers."""
    same = [p for p in peers if (p.data, p.kilobytes) == (row.data, row.kilobytes) and p.what]
    if not same:
        return ""
    best = max(same, key=lambda peer: peer.accuracy)
    name = f"**{best.name}**" if best.accuracy > row.accuracy or not row.model else best.name
    return f"{name}, {peer_cell(best)}"


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
    machines = kept.get("machines", {})
    has_8 = [row for row in rows if row.kilobytes == 8 and row.model]
    best = max(has_8, key=lambda row: row.accuracy) if has_8 else rows[0]
    chosen = [row for row in rows if row.kilobytes in _IN_TABLE]
    lines = rendered(
        "accuracy",
        best=best,
        lead=_lead(rows, peers),
        table=table(chosen, peers, machines),
        target=TARGET,
        svm_rows=f"{SVM_ROWS:,}",
        differ=any(row.differences for row in rows),
    )
    return "\n".join(lines) + "\n"


def _lead(rows: list[Row], peers: list[Peer]) -> str:
    """Say how far rows are ahead of the best peer in the same bytes, and on what data."""
    leads, names, places = [], set(), set()
    for row in rows:
        same = [p for p in peers if (p.data, p.kilobytes) == (row.data, row.kilobytes) and p.what]
        if same and row.model:
            best = max(same, key=lambda peer: peer.accuracy)
            leads.append(row.accuracy - best.accuracy)
            names.add(best.name)
            places.add(row.data)
    if not leads:
        return ""
    where, who = " and ".join(sorted(places)), " or ".join(sorted(names))
    return (
        f". Peers were trained on {where} alone, in {len(leads)} rows: "
        f"the best, {who}, is {min(leads):.1f} to {max(leads):.1f} points behind"
    )


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
        where = f"{row.data}, {row.kilobytes:g} KB"
        if row.differences:
            lines.append(f"{where}: {row.differences} scores differ")
        if row.rows != row.test_rows:
            lines.append(f"{where}: {row.rows} rows were verified, {row.test_rows} are for testing")
        if row.flash > bytes_of(row.kilobytes):
            lines.append(f"{where}: {row.flash} bytes are too many")
    return lines
