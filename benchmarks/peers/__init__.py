"""Other classifiers of the same bytes: trained in the same run, built and counted in the same way.

- **int8 perceptron**: one hidden layer, `int8_mlp.c`; trained with Adam, a decaying step and
  a penalty, all rows. Penalty, number of hidden units and, for images, averaging of 2 x 2 pixels
  are the best on rows held out of the training rows.
- **emlearn MLP**, **emlearn trees**: a scikit-learn `MLPClassifier` or `RandomForestClassifier`
  converted to C by emlearn (https://github.com/emlearn/emlearn), where it is installed.
- **boosted trees**: scikit-learn's histogram gradient boosting; bytes by estimate of a compact
  layout, not built.

What is built is linked for Cortex-M4 as a model of tinykernel is, runs over the test rows on this
computer, and its instructions are counted in the emulator.
"""

import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from _data import Data, accuracy
from _environment import describe_machine

from peers.boosted import boosted_trees
from peers.building import Outcome
from peers.converted import emlearn_mlp, emlearn_trees
from peers.perceptron import int8_perceptron
from peers.rows import TABLES

__all__ = ["PEERS", "Peer", "available", "measure_peer"]


@dataclass(frozen=True)
class Peer:
    """What one of the others gave on a data set in a budget; accuracy in percent."""

    data: str
    kilobytes: float
    name: str
    what: str
    flash: int
    source: str
    accuracy: float
    instructions: int | None
    ram: int | None
    seconds: float
    measured: str


PEERS: dict[str, Callable[[str, Data, int], Outcome | None]] = {
    "int8 perceptron": int8_perceptron,
    "emlearn MLP": emlearn_mlp,
    "emlearn trees": emlearn_trees,
    "boosted trees": boosted_trees,
}


def measure_peer(peer: str, name: str, kilobytes: float, parts: list[Data]) -> Peer:
    """Train, build and measure a peer on all parts; `what` is empty where nothing fits."""
    started, found = time.perf_counter(), list[Outcome]()
    facts: tuple[Any, ...] = ("", 0, "", 0.0, None, None)
    for part in parts:
        outcome = PEERS[peer](name, part, int(kilobytes * 1024))
        if outcome is None:
            break
        found.append(outcome)
    else:
        y = np.concatenate([part.y_test for part in parts])
        labels = np.concatenate([outcome.labels for outcome in found])
        counts = [outcome.instructions for outcome in found if outcome.instructions is not None]
        most = max(found, key=lambda outcome: outcome.flash)
        share = accuracy(name, y, labels)
        facts = (most.what, most.flash, most.source, share, max(counts, default=None), most.ram)
    seconds = time.perf_counter() - started
    return Peer(name, kilobytes, peer, *facts, seconds, describe_machine())


def available(peer: str, name: str) -> bool:
    """Say whether a peer is installed and made for such data."""
    if peer == "boosted trees":
        return name in TABLES
    return not peer.startswith("emlearn") or importlib.util.find_spec("emlearn") is not None
