"""How large a model fits a budget: which forms compete, each with its components or kernels."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tinykernel.budget.beside import share_used, within
from tinykernel.budget.untrained import (
    FOUND_ONLY,
    LEARNED,
    untrained,
    untrained_integers,
    untrained_trees,
)
from tinykernel.checks import check_choice
from tinykernel.codegen.pack.trees import tree_bytes
from tinykernel.codegen.targets import find_target
from tinykernel.errors import TinykernelError
from tinykernel.hadamard import padded_dimension
from tinykernel.measure.capacity import (
    MOST_CHOSEN,
    MOST_KERNELS,
    allowed_bytes,
    decisive_report,
    enlarged,
    least_size,
    most_components,
    most_kernels,
    needed_bytes,
    random_layout,
    some_rows,
)
from tinykernel.measure.instructions import steps_within
from tinykernel.measure.limits import Limits
from tinykernel.model import IntegerModel, quantize
from tinykernel.model.readouts.trees import Trees
from tinykernel.training.layouts import LAYOUTS, components_within
from tinykernel.training.options import (
    LINEAR_BITS,
    MOST_COMPONENTS,
    TrainerOptions,
    form_of,
    parts_of,
)
from tinykernel.training.options.values import RegressorOptions
from tinykernel.training.trainer import check_width
from tinykernel.training.values.valueset import strata

#: Layouts that are weighed against each other unless one is asked for. At equal bytes one of these
#: was ahead of "windows" on MNIST, USPS, HAR and covtype.
SEARCHED_LAYOUTS = ("compact", "phases", "pruned")
#: The same for values.
_LAYOUTS_OF_VALUES = ("windows", "compact")
_WORD = 32
# Tables and steps of the fewest trees that are chosen.
_LEAST_TREE_BYTES, _LEAST_TREE_STEPS = 64, 4
# A linear part beside components, and what it adds to the code, about.
_BESIDE, _LINEAR_CODE = 4, 260
# With fewer components a linear part is better, where nothing is compared.
_FEW_COMPONENTS = 128
# Widths of weights on counts: with two bits there are more kernels, which pays where they are few.
_COUNT_BITS, _FEW_KERNELS = (4, 2), 16
# Instructions on Cortex-M4: most of them a byte of the budget, and those of a kernel a position.
_A_BYTE, _A_POSITION = 84.0, 11.5
# Options that only components have.
_OF_COMPONENTS = ("layout", "sigma", "noise")
# Code of models with components is small where fast code would fill more than this of the flash.
_CODE_SHARE = 0.3


def input_shape(X: ArrayLike, method: Any, given: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Return the shape of an input that goes through a local stage."""
    if method != LEARNED:
        return None
    kind = RegressorOptions if "loss" in given else TrainerOptions
    options = kind(**{k: v for k, v in given.items() if k not in FOUND_ONLY})
    options.check()
    n_dimensions = getattr(X, "ndim", 2)
    shape = options.input_shape(np.shape(X)[1:] if n_dimensions in (3, 4) else None)
    options.check_for(shape)
    if n_dimensions == 2 and (options.image_shape or options.window_shape):
        check_width(options, np.shape(X)[1])
    return shape


def sizes_that_fit(
    X: ArrayLike,
    y: ArrayLike,
    method: Any,
    given: Mapping[str, Any],
    limits: Limits,
    target: str,
    shape: tuple[int, ...] | None,
) -> dict[str, Any]:
    """Return the parameters of models that use up the budget; the trainer chooses among these."""
    assert limits.flash is not None
    if limits.beside_flash and given.get("code", "auto") == "auto":
        given = {**given, "code": "fast"}  # who limits the time does not want it doubled
    found = _sizes_in_flash(X, y, method, given, limits.flash, target, shape)
    if not limits.beside_flash:
        return found
    inputs = np.asarray(X)
    rows, labels = some_rows(inputs.reshape(len(inputs), -1), np.asarray(y))
    told = {**given, **found, **({} if shape is None else _as_options(shape))}

    def make(form: str, n: int) -> IntegerModel:
        if method != LEARNED:
            return quantize(enlarged(method.untrained(rows, labels, told), n))
        if shape is not None:
            return untrained_integers(rows, labels, told, {"n_kernels": n})
        if n == 0:
            size: dict[str, Any] = {"n_components": 0, "linear": parts_of(form)[1]}
            return untrained_integers(rows, labels, told, size)
        free = {name: value for name, value in told.items() if name != "linear"}
        size = {"n_components": {form: n}, "code": told.get("code", "auto")}
        return untrained_integers(rows, labels, free, size)

    name = "n_components" if shape is None else "n_kernels"
    if not isinstance(found[name], Mapping):
        step = 1 if shape is not None else _WORD
        n, words = within(lambda n: make("", n), found[name], step, limits, target)
        if n == 0:
            raise _no_room(limits, target, words)
        return {**found, name: n}
    kept, words = dict[str, int](), ""
    for form, most in found[name].items():
        if most == 0:
            share, words = share_used(make(form, 0), limits, target)
            if share <= 1:
                kept[form] = 0
            continue
        n, words = within(lambda n, form=form: make(form, n), most, _WORD, limits, target)  # type: ignore[misc]
        if n:
            kept[form] = n
    if not kept:
        raise _no_room(limits, target, words)
    return {**found, name: kept}


def tree_size(
    X: ArrayLike, y: ArrayLike, given: Mapping[str, Any], limits: Limits, target: str
) -> dict[str, Any]:
    """Return what a budget leaves for trees: bytes of their tables, and steps.

    The rest is that of an untrained model of few trees. Without enough room there are none, which
    is an error where they are asked for.
    """
    asked = given.get("model") == "trees"
    assert limits.flash is not None
    inputs = np.asarray(X)
    rows, labels = _some_rows(inputs.reshape(len(inputs), -1), np.asarray(y), given)
    try:
        model = untrained_trees(rows, labels, given)
        trees = model.find(Trees)
        assert trees is not None
        needed = needed_bytes(decisive_report(model, target))
        share, words = share_used(model, limits, target)
        most = limits.most_instructions(find_target(target).cycles[1])
        steps = None if most is None else steps_within(model, target, most)
    except TinykernelError:
        if asked:
            raise
        return {}
    room = allowed_bytes(limits.flash) - needed + tree_bytes(trees)
    enough = share <= 1 and (steps is None or steps >= _LEAST_TREE_STEPS)
    if enough and room >= _LEAST_TREE_BYTES:
        return {"tree_bytes": room} | ({} if steps is None else {"tree_steps": steps})
    if asked and room < _LEAST_TREE_BYTES:
        raise _too_small(limits.flash, target, needed + _LEAST_TREE_BYTES, "of few trees")
    if asked:
        raise _no_room(limits, target, words)
    return {}


def _no_room(limits: Limits, target: str, words: str) -> TinykernelError:
    return TinykernelError(
        f"no model for this data keeps to {limits} on {target}: the last one tried needs {words}; "
        "give more"
    )


def _sizes_in_flash(
    X: ArrayLike,
    y: ArrayLike,
    method: Any,
    given: Mapping[str, Any],
    limit: int,
    target: str,
    shape: tuple[int, ...] | None,
) -> dict[str, Any]:
    """Do that for flash alone."""
    inputs = np.asarray(X)
    rows, labels = _some_rows(inputs.reshape(len(inputs), -1), np.asarray(y), given)
    if method != LEARNED:
        return {"n_components": _drawn_components(rows, labels, method, given, limit, target)}
    if shape is not None:
        return _kernels(rows, labels, given, limit, target, shape)
    given = {**given, "code": _code(rows, labels, given, limit, target)}
    found, least = _forms(rows, labels, given, limit, target)
    if found:
        return _with_code(found, given)
    if given.get("scaler_scope", "auto") == "auto" and linear_may_compete(given):
        # The tables of a scaler for each input may be what is too much.
        one = {"scaler_scope": "global"}
        found, smaller = _forms(rows, labels, {**given, **one, "effort": "quick"}, limit, target)
        if found:
            return {**_with_code(found, given), **one}
        least = min(least, smaller)
    raise _too_small(limit, target, least, "the smallest one")


def _with_code(found: dict[str, int], given: Mapping[str, Any]) -> dict[str, Any]:
    """Say which code was counted with, where there are components."""
    return {"n_components": found} | ({"code": given["code"]} if any(found.values()) else {})


def _code(
    rows: NDArray[Any], labels: NDArray[Any], given: Mapping[str, Any], limit: int, target: str
) -> str:
    """Return "small" where flash is so short that components are worth more than time."""
    asked = str(given.get("code", "auto"))
    if asked != "auto":
        return asked
    first = _layouts(given, rows.shape[1])[0]
    # Blocks, as trained models have, but for very many inputs.
    several = min(2 * padded_dimension(rows.shape[1]), MOST_COMPONENTS)
    fast = quantize(untrained(rows, labels, {**given, "code": "fast"}, first, several))
    with suppress(TinykernelError):
        code = decisive_report(fast, target).flash_parts["code"]
        return "small" if code > limit * _CODE_SHARE else "fast"
    return "fast"  # how large it is cannot be told without a compiler


def _some_rows(
    X: NDArray[Any], y: NDArray[Any], given: Mapping[str, Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Take rows of every class, or of every stratum of values."""
    return some_rows(X, y, strata(np.asarray(y, dtype=np.float64)) if "loss" in given else None)


def _drawn_components(
    rows: NDArray[Any],
    labels: NDArray[Any],
    method: Any,
    given: Mapping[str, Any],
    limit: int,
    target: str,
) -> int:
    machine = method.untrained(rows, labels, given)
    layout = random_layout(machine)
    most = components_within(limit, layout, machine.dimension, len(machine.weights))
    machine = enlarged(machine, int(np.clip(most, _WORD, MOST_CHOSEN)))
    p, least = most_components(machine, layout, limit, target)
    if p == 0:
        raise _too_small(limit, target, least)
    return p


def _kernels(
    rows: NDArray[Any],
    labels: NDArray[Any],
    given: Mapping[str, Any],
    limit: int,
    target: str,
    shape: tuple[int, ...],
) -> dict[str, Any]:
    """Return the number of kernels, and the bits of the linear part on their counts."""
    signal = "stream" if given.get("hop") else "signal"
    most = MOST_KERNELS[signal if len(shape) == 2 else "image"]
    if len(shape) == 3:
        # Or a small model of large images would take long: 700,000 instructions at 8 KB.
        most = int(np.clip(limit * _A_BYTE / (shape[0] * shape[1] * _A_POSITION), 8, most))
    least, found = [], {"n_kernels": 0}
    asked = given.get("linear", "auto")
    unknown: TinykernelError | None = None
    for bits in _COUNT_BITS if asked == "auto" else (asked,):
        try:
            n, size = most_kernels(
                lambda n, bits=bits: untrained_integers(  # type: ignore[misc]
                    rows, labels, {**given, **_as_options(shape)}, {"n_kernels": n, "linear": bits}
                ),
                most,
                limit,
                target,
            )
        except TinykernelError as error:
            unknown = error
            continue
        least.append(size)
        if n > found["n_kernels"]:
            found = {"n_kernels": n, "linear": bits}
        if n >= _FEW_KERNELS:
            break
    if not least and unknown is not None:
        raise unknown
    if not found["n_kernels"]:
        raise _too_small(limit, target, min(least), "with the fewest kernels")
    return found


def _as_options(shape: tuple[int, ...]) -> dict[str, Any]:
    return {"window_shape": shape} if len(shape) == 2 else {"image_shape": shape}


def _forms(
    rows: NDArray[Any], labels: NDArray[Any], given: Mapping[str, Any], limit: int, target: str
) -> tuple[dict[str, int], int]:
    """Return the forms that keep to the budget with their components, and the least size measured.

    A form is a layout, a linear part, or both.
    """
    linear = _linear_sizes(rows, labels, given, target)
    allowed = allowed_bytes(limit)
    found, smallest = dict[str, int](), list(linear.values())
    unknown: TinykernelError | None = None
    for name in _layouts(given, rows.shape[1]):
        machine = untrained(rows, labels, given, name, _by_tables(rows, labels, name, limit, given))
        try:
            p, least = most_components(machine, LAYOUTS[name], limit, target)
        except TinykernelError as error:
            # The size of one form may be unknown without a compiler; others may go on.
            unknown = error
            continue
        smallest.append(least)
        if p == 0:
            continue
        found[name] = p
        for bits in linear.keys() & {_BESIDE, given.get("linear")}:
            # The linear part takes the place of components.
            n_outputs, d = len(machine.weights), machine.dimension
            tables = LAYOUTS[name].table_bytes(p, d, n_outputs)
            beside = -(-rows.shape[1] * n_outputs * bits // 8) + _LINEAR_CODE
            fewer = components_within(tables - beside, LAYOUTS[name], d, n_outputs)
            if fewer >= _WORD:
                found[form_of(name, bits)] = fewer
    asked = given.get("linear", "auto")
    if asked not in ("auto", "off"):
        found = {form: p for form, p in found.items() if parts_of(form)[1] == asked}
    if not smallest and unknown is not None:
        raise unknown
    alone = [bits for bits, size in linear.items() if size <= allowed]
    if given.keys() & set(_OF_COMPONENTS):
        alone = []
    if given.get("effort") == "quick" and max(found.values(), default=0) < _FEW_COMPONENTS:
        found = {form_of(None, alone[0]): 0} if alone else found
    if found and given.get("effort") == "quick":
        return dict([next(iter(found.items()))]), 0  # to choose takes short trainings
    found |= {form_of(None, bits): 0 for bits in alone[:2]}
    return found, min(smallest)


def linear_may_compete(given: Mapping[str, Any]) -> bool:
    """Whether a linear part may compete, by the options of training that were given."""
    asked = given.get("linear", "auto")
    if asked == "auto":
        # No linear part moves images.
        return not {*_OF_COMPONENTS, "augment"} & given.keys()
    return bool(asked != "off")


def _linear_sizes(
    rows: NDArray[Any], labels: NDArray[Any], given: Mapping[str, Any], target: str
) -> dict[int, int]:
    """Return the widths that a linear part may have, widest first, and its size alone."""
    if not linear_may_compete(given):
        return {}
    asked = given.get("linear", "auto")
    if asked != "auto":
        return {asked: _linear_size(rows, labels, given, asked, target)}
    sizes = {}
    for bits in LINEAR_BITS[::-1]:
        # A width whose sums may pass 32 bits, or whose size is not known, does not compete.
        with suppress(TinykernelError):
            sizes[bits] = _linear_size(rows, labels, given, bits, target)
    return sizes


def _linear_size(
    rows: NDArray[Any], labels: NDArray[Any], given: Mapping[str, Any], bits: int, target: str
) -> int:
    """Return the bytes of a linear part alone."""
    size = {"n_components": 0, "linear": bits}
    model = untrained_integers(rows, labels, given, size)
    return needed_bytes(decisive_report(model, target))


def _layouts(given: Mapping[str, Any], n_features: int) -> list[str]:
    """Return the layouts to choose from."""
    if "layout" in given:
        check_choice("layout", given["layout"], tuple(LAYOUTS))
        return [given["layout"]]
    layouts = _LAYOUTS_OF_VALUES if "loss" in given else SEARCHED_LAYOUTS
    if given.get("effort") == "quick":
        return [layouts[0]]  # to choose takes short trainings, too
    d = padded_dimension(n_features)
    # With blocks of 32 rows nothing is left out.
    return [name for name in layouts if not LAYOUTS[name].prunes or LAYOUTS[name].leaves_out(d)]


def _by_tables(
    rows: NDArray[Any], labels: NDArray[Any], layout: str, limit: int, given: Mapping[str, Any]
) -> int:
    """Return how many components the tables alone would allow."""
    n_classes = np.unique(labels).size
    n_outputs = 1 if n_classes == 2 else n_classes
    if "loss" in given:
        options = RegressorOptions(loss=given["loss"], quantiles=given.get("quantiles"))
        n_outputs = len(options.losses(1 if labels.ndim == 1 else labels.shape[1]))
    most = components_within(limit, LAYOUTS[layout], padded_dimension(rows.shape[1]), n_outputs)
    return int(np.clip(most, _WORD, MOST_CHOSEN))


def check_size(
    X: ArrayLike,
    y: ArrayLike,
    method: Any,
    given: Mapping[str, Any],
    limit: int,
    target: str,
    shape: tuple[int, ...] | None,
) -> None:
    """Refuse a number of components or kernels that cannot fit, before the long training."""
    inputs = np.asarray(X)
    rows, labels = _some_rows(inputs.reshape(len(inputs), -1), np.asarray(y), given)
    if shape is not None:
        model = untrained_integers(rows, labels, {**given, **_as_options(shape)}, {})
        try:
            size = needed_bytes(decisive_report(model, target))
        except TinykernelError:
            return  # not known without a compiler; the trained model is measured again
        if size - (limit - allowed_bytes(limit)) > limit:
            raise TinykernelError(
                f"a model of {given.get('n_kernels', 'so many')} kernels needs {size} bytes "
                f"of flash on {target}, {size - limit} over the budget of {limit}; use fewer "
                "n_kernels or a larger budget"
            )
        return
    asked = given["n_components"]
    if not isinstance(asked, Mapping):
        asked = {given.get("layout", "compact"): asked}
    for name, p in asked.items():
        layout_name = parts_of(name)[0]
        if p == 0 or layout_name is None:
            continue
        if method != LEARNED:
            machine = enlarged(method.untrained(rows, labels, given), p)
            layout = random_layout(machine)
            # The penalty "l1" may leave as good as nothing.
            needed = least_size(
                machine, layout, _WORD if given.get("penalty") == "l1" else p, target
            )
        else:
            machine = untrained(rows, labels, given, layout_name, p)
            try:
                needed = least_size(machine, LAYOUTS[layout_name], p, target)
            except TinykernelError:
                continue
        if needed > limit:
            raise TinykernelError(
                f"a model of {p} components needs at least {needed} bytes of flash on {target}, "
                f"{needed - limit} over the budget of {limit}; use fewer n_components or a larger "
                "budget"
            )


def _too_small(
    limit: int, target: str, needed: int, least: str = "the smallest one"
) -> TinykernelError:
    return TinykernelError(
        f"no model for this data fits into {limit} bytes on {target}: {least} needs about "
        f"{needed}; give a larger budget, or for signals and images their shape"
    )
