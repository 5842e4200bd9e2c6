"""Trees of any library as the part `Trees`: the same thresholds, and leaves in fixed point."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import ConvertError
from tinykernel.conversion.columns import ModelColumns, kind_of
from tinykernel.conversion.curves import PER_LOG, curved
from tinykernel.conversion.ensemble import Ensemble
from tinykernel.conversion.splits import RawSplits
from tinykernel.model.answers import LARGEST_SHIFT, Labels, Values, numbered_values
from tinykernel.model.integer import IntegerModel
from tinykernel.pieces.grid import Grid
from tinykernel.pieces.piece import Readout
from tinykernel.pieces.trees.spec import LARGEST_THRESHOLDS, Trees

_MOST = 2**31 - 1
_VECTORS = 1 << 15  # most different vectors of leaves
_VECTOR_BITS = 16  # of an entry of a vector that is no whole number
_LARGEST_SHIFT = 15  # of the leaves of a tree


def integer_model(ensemble: Ensemble, columns: ModelColumns, leaf_bits: int = 0) -> IntegerModel:
    """Return the model of an ensemble, with leaves of 4, 8 or 16 bits, or 0: as they are."""
    if columns.mixers:
        raise ConvertError(
            f"convert: trees behind a {kind_of(columns.mixers[0])} compare sums of inputs, "
            "which the firmware does not; train trees of the inputs, or a linear model behind it"
        )
    ensemble = ensemble.with_one_sum()
    if ensemble.curve == "power":
        ensemble = ensemble.times(PER_LOG)
    for tree in ensemble.trees:
        tree.check(len(columns.columns))
    splits = RawSplits(ensemble, columns)
    tests, (sizes, test, left), leaves = _flattened(splits)
    n_outputs = ensemble.base.size
    is_vector = n_outputs > 1 and leaves[0].shape[1] > 1
    shift = _shift(ensemble, leaves, is_vector, leaf_bits)
    whole = np.rint(np.ldexp(np.concatenate(leaves), shift)).astype(np.int64)
    tree_shifts = np.zeros(sizes.size, dtype=np.uint8)
    if leaf_bits and not is_vector:
        whole, tree_shifts = _rounded(whole, sizes, leaf_bits)
    output = np.array([tree.output for tree in ensemble.trees])
    vectors = None
    if is_vector:
        vectors, whole = np.unique(whole, axis=0, return_inverse=True)
        if len(vectors) > _VECTORS:
            raise ConvertError(
                f"convert: the leaves have {len(vectors)} different vectors of probabilities; at "
                f"most {_VECTORS} are supported; train fewer or smaller trees"
            )
    used = np.zeros(columns.n_inputs, dtype=bool)
    feature = tests[:, 0]
    used[feature] = True
    low, high = _ends(feature, tests[:, 1], used)
    scale = columns.scale(low, high, used)
    half = 0 if scale.bits == 32 else (1 << (scale.bits - 1)) + columns.ends[0]
    part = Trees(
        feature.astype(np.uint16),
        tests[:, 1] - half,
        sizes,
        output,
        tree_shifts,
        test,
        left,
        whole.ravel(),
        np.ones(n_outputs, dtype=np.int32),
        vectors,
        tests[:, 2].astype(np.uint8) if splits.takes_gaps else None,
    )
    offset = np.rint(np.ldexp(ensemble.base, shift)).astype(np.int64) + int(ensemble.ties_up)
    model = IntegerModel(
        input=Grid.table(columns.raw_dtype, columns.n_inputs),
        stages=(scale,),
        readout=Readout((part,), offset.astype(np.int32)),
        answers=Values(numbered_values(n_outputs), shift)
        if ensemble.classes is None
        else Labels(ensemble.classes),
        decision_scale=2.0**-shift,
    )
    return curved(model, ensemble.curve, columns)


def _flattened(splits: RawSplits) -> tuple[NDArray[np.int64], list[Any], list[NDArray[Any]]]:
    """Return the tests of all trees, their sizes and nodes in preorder, and their leaves."""
    tests, sizes, lefts, leaves = [], [], [], []
    for at, tree in enumerate(splits.ensemble.trees):
        inner, leaf, left = splits.flattened(at)
        tests.append(np.array(inner, dtype=np.int64).reshape(-1, 3))
        sizes.append(len(inner))
        lefts.append(np.array(left, dtype=np.int64))
        leaves.append(tree.value[leaf])
    every = np.concatenate(tests)
    if not len(every):
        raise ConvertError("convert: no tree has a threshold, so all answers are the same")
    unique, place = np.unique(every, axis=0, return_inverse=True)
    if len(unique) > LARGEST_THRESHOLDS:
        raise ConvertError(
            f"convert: the trees have {len(unique)} thresholds; at most {LARGEST_THRESHOLDS} are "
            "supported; train fewer or smaller trees"
        )
    return unique, [np.array(sizes), place.ravel(), np.concatenate(lefts)], leaves


def _rounded(
    whole: NDArray[np.int64], sizes: NDArray[np.int64], bits: int
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Round the leaves of each tree to so many bits, and return its shift."""
    most, shifts, parts = 2 ** (bits - 1) - 1, list[int](), list[NDArray[np.int64]]()
    for part in np.split(whole, np.cumsum(sizes + 1)[:-1]):
        top = int(np.abs(part).max())
        shift = max(0, top.bit_length() - (bits - 1))
        shift = min(shift, _LARGEST_SHIFT)
        shifts.append(shift)
        parts.append(np.clip(np.rint(part / 2.0**shift), -most, most).astype(np.int64))
    return np.concatenate(parts), np.array(shifts, dtype=np.uint8)


def _shift(ensemble: Ensemble, leaves: list[NDArray[Any]], is_vector: bool, leaf_bits: int) -> int:
    """Return the fractional bits of leaves: all that fit, or none of whole numbers."""
    everything = np.concatenate([*[leaf.ravel() for leaf in leaves], ensemble.base])
    if not np.all(np.isfinite(everything)):
        raise ConvertError("convert: a leaf is not a finite number")
    if ensemble.classes is not None and np.all(everything == np.rint(everything)):
        return 0
    largest = sum(float(np.abs(leaf).max()) for leaf in leaves) + float(np.abs(ensemble.base).max())
    if not largest < 2.0 ** (LARGEST_SHIFT + 30):
        raise ConvertError(f"convert: sums of leaves of up to {largest:.3g} are too large")
    largest = max(largest, 1e-30)
    shift = int(np.floor(np.log2((_MOST - len(leaves) - 2) / largest)))
    if is_vector:
        top = max(float(np.abs(leaf).max()) for leaf in leaves)
        bits = leaf_bits or _VECTOR_BITS
        shift = min(shift, int(np.floor(np.log2((2**bits - 1) / max(top, 1e-30)))))
    elif leaf_bits:
        top = max(float(np.abs(leaf).max()) for leaf in leaves)
        most = 2.0 ** (leaf_bits - 1 + _LARGEST_SHIFT) - 1
        shift = min(shift, int(np.floor(np.log2(most / max(top, 1e-30)))))
    most_bits = 31 if ensemble.curve == "power" else LARGEST_SHIFT
    return int(np.clip(shift, -LARGEST_SHIFT, most_bits))


def _ends(
    feature: NDArray[np.intp], limit: NDArray[np.int64], used: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where values of inputs lie, in order: a little beyond their thresholds."""
    low, high = np.full(used.size, _MOST), np.full(used.size, -_MOST)
    np.minimum.at(low, feature, limit)
    np.maximum.at(high, feature, limit)
    margin = np.maximum((high - low) // 8, 1)
    return np.where(used, low - margin, 0), np.where(used, high + 1 + margin, 0)
