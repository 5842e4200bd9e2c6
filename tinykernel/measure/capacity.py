"""How many components fit into a budget of flash, found before the long training.

The size of the firmware depends on the method, the layout and the number of components, and
hardly on what was learned. So an untrained model stands for the trained one: it is cut to a number
of components, measured, and the number corrected until the budget is used up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.build.toolchains import find_toolchain
from tinykernel.checks import check_choice
from tinykernel.codegen.targets import find_target
from tinykernel.errors import TinykernelError
from tinykernel.estimator import TernaryKernelClassifier
from tinykernel.hadamard import padded_dimension
from tinykernel.measure.report import report
from tinykernel.model import quantize
from tinykernel.model.machine import KernelMachine
from tinykernel.training.layouts import LAYOUTS, Layout
from tinykernel.training.layouts import components_within as components_by_tables
from tinykernel.training.options import TrainerOptions
from tinykernel.training.trainer import fit
from tinykernel.training.trainset import prepare

__all__ = ["MOST_CHOSEN", "SEARCHED_LAYOUTS", "capacity", "least_size", "paper_components_within"]

#: More components than this are not chosen, however large the budget: training time grows in
#: proportion and the accuracy hardly.
MOST_CHOSEN = 32768
#: Formats that are weighed against each other unless one is asked for. At equal bytes one of these
#: was ahead of "windows" on MNIST, USPS, HAR and covtype.
SEARCHED_LAYOUTS = ("compact", "phases", "pruned")
_WORD = 32  # components are stored in words of 32
_ROWS_A_CLASS = 4
_MARGIN = 0.97  # without a compiler: the estimate is within 3 % of the linked size
# With one: which stages of the transforms halve depends on what was learned, and so does the code.
_SLACK = 64
_USUAL_CODE = 2500
_MOST_MEASUREMENTS = 6


def capacity(
    X: ArrayLike, y: ArrayLike, parameters: Mapping[str, Any], *, budget: int, target: str
) -> dict[str, int]:
    """Find for each layout how many components keep to a budget.

    The result can be given to `TernaryKernelClassifier` as ``n_components``.

    Parameters
    ----------
    X : array-like, shape (n_rows, n_features)
        Raw training rows, at least those with the extremes of each feature.
    y : array-like, shape (n_rows,)
        Labels.
    parameters : mapping
        Parameters of the classifier. Of these ``layout`` (a format; without it all of
        `SEARCHED_LAYOUTS` are taken, "pruned" for more than 32 features only), ``scaler_scope``
        and ``input_bits`` matter for the size.
    budget : int
        Bytes of flash, model and runtime together.
    target : str
        A microcontroller. Where this machine has a compiler for it the program is linked,
        otherwise its size is estimated and 3 % are left free.

    Returns
    -------
    dict of str to int
        Multiples of 32, at most `MOST_CHOSEN`. Formats of which nothing fits are left out.

    Raises
    ------
    TinykernelError
        If not even 32 components fit in any format, or the target is unknown.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> found = capacity(X, y, {"layout": "compact"}, budget=8192, target="cortex-m4")
    >>> found["compact"] > 4096
    True
    """
    rows, labels = _some_rows(np.asarray(X), np.asarray(y))
    asked = parameters.get("layout")
    found, smallest = {}, []
    for layout in _searched(rows.shape[1]) if asked is None else (asked,):
        machine = _untrained(rows, labels, parameters, layout, budget=budget)
        p, least = _fill(machine, LAYOUTS[layout], budget, target)
        smallest.append(least)
        if p > 0:
            found[layout] = p
    if not found:
        raise _too_small(budget, target, min(smallest))
    return found


def paper_components_within(
    X: ArrayLike, y: ArrayLike, parameters: Mapping[str, Any], *, budget: int, target: str
) -> int:
    """Find how many components of the method "paper" keep to a budget.

    Parameters
    ----------
    X, y, parameters, budget, target
        As for `capacity`; parameters of the classifier that belong to this method.

    Returns
    -------
    int
        A multiple of 32, at most `MOST_CHOSEN`.

    Raises
    ------
    TinykernelError
        If not even 32 components fit, or the target is unknown.
    """
    rows, labels = _some_rows(np.asarray(X), np.asarray(y))
    machine = _untrained_paper(rows, labels, parameters)
    layout = Layout(
        name="paper",
        diagonal_kind="sign" if machine.diagonal_kind == "sign" else "int8",
        learns_start=True,
        learns_width=True,
        scale_per_row=np.unique(machine.row_scale).size > 1,
        ternary=not np.all(machine.weights),
    )
    most = components_by_tables(budget, layout, machine.dimension, len(machine.weights))
    machine = _enlarged(machine, int(np.clip(most, _WORD, MOST_CHOSEN)))
    p, least = _fill(machine, layout, budget, target)
    if p == 0:
        raise _too_small(budget, target, least)
    return p


def least_size(X: ArrayLike, y: ArrayLike, parameters: Mapping[str, Any], *, target: str) -> int:
    """Return how many bytes of flash a model of given components takes at least.

    Parameters
    ----------
    X, y, target
        As for `capacity`.
    parameters : mapping
        Parameters of the classifier, ``n_components`` a number among them.

    Returns
    -------
    int
        The size of an untrained model, less what training may change. Ternary weights may leave
        components without any weight, which are not stored: a quarter is taken to remain, and of
        the penalty "l1" as good as nothing.

    Raises
    ------
    TinykernelError
        If a parameter is not allowed or the target is unknown.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> least_size(X, y, {"n_components": 8192}, target="cortex-m4") > 4096
    True
    """
    row = find_target(target)
    given = dict(parameters)
    components, asked = given.pop("n_components"), given.pop("layout", None)
    options = TrainerOptions(n_components=components, layout=asked)
    options.check()
    layout, p = next(iter(options.capacity().items()))
    rows, labels = _some_rows(np.asarray(X), np.asarray(y))
    if given.get("method") == "paper":
        machine, prunes = _enlarged(_untrained_paper(rows, labels, given), p), False
        if given.get("penalty") == "l1":
            p = min(p, _WORD)
        ternary = not np.all(machine.weights)
    else:
        machine = _untrained(rows, labels, given, layout, n_components=p)
        ternary, prunes = LAYOUTS[layout].ternary, LAYOUTS[layout].prunes
    components = _component_rows(machine, prunes=prunes)[: max(1, p // 4 if ternary else p)]
    size = report(quantize(_cut(machine, components)), target).flash
    return int(size * _MARGIN) if find_toolchain(row) is None else size - _SLACK


def _too_small(budget: int, target: str, needed: int) -> TinykernelError:
    return TinykernelError(
        f"no model for this data fits into {budget} bytes on {target}: with {_WORD} components it "
        f"needs about {needed}; give a larger --budget"
    )


def _searched(n_features: int) -> list[str]:
    """Return the formats to weigh against each other: with 32 rows a block nothing is left out."""
    d = padded_dimension(n_features)
    return [name for name in SEARCHED_LAYOUTS
            if not LAYOUTS[name].prunes or LAYOUTS[name].leaves_out(d)]  # fmt: skip


# -- models to measure ----------------------------------------------------------------------------


def _some_rows(X: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Take rows of every class and all extremes, on which the form of the scaler depends."""
    codes = np.unique(y, return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    first = np.searchsorted(codes[order], np.arange(codes.max() + 1))
    last = np.append(first[1:], codes.size)
    few = [order[a : min(a + _ROWS_A_CLASS, b)] for a, b in zip(first, last, strict=True)]
    rows = np.unique(np.concatenate([*few, X.argmin(axis=0), X.argmax(axis=0)]))
    return X[rows], y[rows]


def _untrained(
    X: NDArray[Any], y: NDArray[Any], parameters: Mapping[str, Any], layout: str, *,
    budget: int = 0, n_components: int | None = None,
) -> KernelMachine:  # fmt: skip
    """Make a machine of random values with as many components as its tables alone allow."""
    if layout not in LAYOUTS:
        raise TinykernelError(f"layout: {layout!r}; choose from {', '.join(LAYOUTS)}")
    n_classes = np.unique(y).size
    n_outputs = 1 if n_classes == 2 else n_classes
    dimension = padded_dimension(X.shape[1])
    if n_components is None:
        most = components_by_tables(budget, LAYOUTS[layout], dimension, n_outputs)
        n_components = int(np.clip(most, _WORD, MOST_CHOSEN))
    bits = parameters.get("input_bits", "auto")
    check_choice("input_bits", bits, (8, 16, "auto", None))
    options = TrainerOptions(
        n_components=n_components, layout=layout, epochs=1, search=False, random_state=0, n_jobs=1,
        scaler_scope=parameters.get("scaler_scope", "auto"),
        input_bits="auto" if bits is None else bits,
    )  # fmt: skip
    machine = fit(prepare(X, y)[1], options, quantize_from=0.0).machine
    # Training gives each block a scale of its own, which takes a table.
    factor = np.random.default_rng(0).uniform(0.7, 1.0, (machine.n_blocks, 1))
    return replace(machine, row_scale=machine.row_scale * factor)


def _untrained_paper(
    X: NDArray[Any], y: NDArray[Any], parameters: Mapping[str, Any]
) -> KernelMachine:
    """Make one block of the method "paper"."""
    given = {name: value for name, value in parameters.items() if name != "layout"}
    given |= {"method": "paper", "n_components": padded_dimension(X.shape[1]), "max_iter": 1}
    given |= {"init": "random", "sigma": given.get("sigma") or 1.0, "regularization": 0.1}
    return TernaryKernelClassifier(**given).fit(X, y).machine_


def _enlarged(machine: KernelMachine, n_components: int) -> KernelMachine:
    """Repeat the blocks of a machine; its weights use every component and both bit planes."""
    d = machine.dimension
    shape = (-(-n_components // d), d)
    levels = [-1, 1] if np.all(machine.weights) else [-1, 0, 1]
    weights = np.random.default_rng(0).choice(levels, (len(machine.weights), shape[0] * d))
    weights[0, weights[0] == 0] = 1  # no component is dropped
    weights[:, n_components:] = 0
    return replace(
        machine,
        diagonal=np.resize(machine.diagonal, shape),
        row_scale=np.resize(machine.row_scale, shape),
        start=np.resize(machine.start, shape),
        width=np.resize(machine.width, shape),
        weights=weights.astype(np.int8),
    )


def _component_rows(machine: KernelMachine, *, prunes: bool) -> NDArray[np.int64]:
    """Return the rows that are components: with pruning those that have a weight, else all."""
    has_weight = machine.weights.any(axis=0)
    return np.flatnonzero(has_weight) if prunes else np.arange(has_weight.size)


def _cut(machine: KernelMachine, rows: NDArray[np.int64]) -> KernelMachine:
    """Keep the first components of a machine: those of `rows`, ascending."""
    end = int(rows[-1]) + 1
    blocks = -(-end // machine.dimension)
    weights = machine.weights[:, : blocks * machine.dimension].copy()
    weights[:, end:] = 0
    return replace(
        machine,
        diagonal=machine.diagonal[:blocks],
        row_scale=machine.row_scale[:blocks],
        start=machine.start[:blocks],
        width=machine.width[:blocks],
        weights=weights,
    )


# -- the search -----------------------------------------------------------------------------------


def _fill(machine: KernelMachine, layout: Layout, budget: int, target: str) -> tuple[int, int]:
    """Return how many components of a machine fit, and the least size that was measured.

    What is not a table of the format grows slowly with the number of components. It is taken from
    one measurement to guess the number for the next, until a guess repeats.
    """
    row = find_target(target)
    if row.family != "host" and find_toolchain(row) is None:
        allowed = int(budget * _MARGIN)
    else:
        allowed = budget - min(_SLACK, budget // 32)
    rows = _component_rows(machine, prunes=layout.prunes)
    n_outputs = len(machine.weights)
    sizes: dict[int, int] = {}
    rest = _USUAL_CODE
    for _ in range(_MOST_MEASUREMENTS):
        fitting = components_by_tables(allowed - rest, layout, machine.dimension, n_outputs)
        p = int(np.clip(fitting, _WORD, rows.size))
        if p in sizes:
            break
        sizes[p] = report(quantize(_cut(machine, rows[:p])), target).flash
        rest = sizes[p] - layout.table_bytes(p, machine.dimension, n_outputs)
    return max((p for p, size in sizes.items() if size <= allowed), default=0), min(sizes.values())
