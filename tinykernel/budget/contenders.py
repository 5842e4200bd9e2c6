"""How large a model fits a budget: which forms compete, each with its components or kernels."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from tinykernel.budget.ceilings import share_used, within
from tinykernel.budget.standins import LEARNED, Asked
from tinykernel.codegen.pack.machine import tree_bytes
from tinykernel.codegen.targets import find_target
from tinykernel.errors import TinykernelError
from tinykernel.hadamard import padded_dimension
from tinykernel.measure import capacity
from tinykernel.measure.instructions import steps_within
from tinykernel.model import IntegerModel
from tinykernel.model.grid import Grid
from tinykernel.model.readouts.trees import Trees
from tinykernel.text import count
from tinykernel.training.images.convolutions import no_convolutions, responses_of
from tinykernel.training.images.separable import no_separable
from tinykernel.training.layouts import Layout, components_within, layout_of
from tinykernel.training.options import (
    LINEAR_BITS,
    MOST_COMPONENTS,
    OF_TREES,
    TrainerOptions,
    form_of,
    parts_of,
)
from tinykernel.training.options.ranges import FORMS
from tinykernel.training.options.regression import RegressorOptions
from tinykernel.training.readouts.contest import MOST_INPUTS
from tinykernel.training.readouts.normal_equations import MOST_INPUTS as MOST_COUNTS
from tinykernel.training.signals.planes import no_planes
from tinykernel.training.signals.training import FEW_WINDOWS

#: Layouts that are weighed against each other unless one is asked for, of classes and of values.
SEARCHED_LAYOUTS, _LAYOUTS_OF_VALUES = ("compact", "phases"), ("windows", "compact")
_WORD = 32
# Tables and steps of the fewest trees that are chosen.
_LEAST_TREE_BYTES, _LEAST_TREE_STEPS = 64, 4
# Components hardly ever take less code.
_LEAST_CODE = 1536
# A linear part beside components, and what it adds to the code, about.
_BESIDE, _LINEAR_CODE = 4, 260
# With fewer components a linear part is better, where nothing is compared.
_FEW_COMPONENTS = 128
# Widths of weights on counts: with two bits there are more kernels, which pays where they are few.
_COUNT_BITS, _FEW_KERNELS, _FEW_CHANNELS = (4, 2), 16, 4
# Convolutions on spectra: few windows, or channels, teach or tell too little; more take long.
_FEWEST_OF_PLANES, _FEWEST_CHANNELS, _MOST_OF_PLANES = 600, 16, 128
# From so many deep channels on, they are more accurate than others in as many bytes.
_MANY_CHANNELS = 40
# With eight bits, few windows are classified better only where as many kernels fit.
_MOST_BITS = 8
# Instructions on Cortex-M4: most of them a byte of the budget, and those of a response of
# a channel.
_A_BYTE, _A_RESPONSE = 84.0, 30.0
# Code of models with components is small where fast code would fill more than this of the flash.
_CODE_SHARE = 0.3


def sizes_that_fit(asked: Asked) -> dict[str, Any]:
    """Return the parameters of models that fill the budget; the trainer chooses among them."""
    limits = asked.limits
    if asked.method != LEARNED:  # a model that is over a limit is trained again with fewer
        tables = replace(limits, flash=max(1, asked.flash - _LEAST_CODE))
        return {"n_components": _by_tables(replace(asked, limits=tables), capacity.DRAWN)}
    if limits.beside_flash and asked.get("code") == "auto":
        asked = asked.but(code="fast")  # who limits the time does not want it doubled
    parameters = _sizes_in_flash(asked)
    if not limits.beside_flash:
        return parameters
    name, step = ("n_components", _WORD) if asked.shape is None else ("n_kernels", 1)
    is_choice = isinstance(parameters[name], Mapping)
    most = parameters[name] if is_choice else {"": parameters[name]}
    fitting, needed = dict[str, int](), ""
    for form, number in most.items():
        n, needed = _within(asked.but(**parameters), form, number, step)
        if n is not None:
            fitting[form] = n
    if not fitting:
        raise _no_room(asked, needed)
    if not any(fitting.values()):
        parameters.pop("code", None)  # a linear part alone has no use for it
    return {**parameters, name: fitting if is_choice else fitting[""]}


def _within(asked: Asked, form: str, most: int, step: int) -> tuple[int | None, str]:
    """Return how many components or kernels of a form keep to the limits beside flash."""
    return within(lambda n: _of_size(asked, form, n), most, step, asked.limits, asked.target)


def _of_size(asked: Asked, form: str, n: int) -> IntegerModel:
    if asked.shape is not None:
        asked = asked.but(convolutions=FORMS[form]) if form else asked
        return asked.integers(n_kernels=n)
    if n == 0:
        return asked.integers(n_components=0, linear=parts_of(form)[1])
    code = asked.get("code")
    return asked.but(linear="auto").integers(n_components={form: n}, code=code)


def tree_size(asked: Asked) -> dict[str, Any]:
    """Return the bytes of tables, and the steps, that a budget leaves for trees.

    The rest is that of an untrained model of few trees. Without enough room there are none, within
    whatever limits, which is an error where they are asked for.
    """
    alone, target = asked.get("model") in OF_TREES, asked.target
    none = {name: None for name in ("tree_bytes", "tree_steps") if name in asked.options}
    try:
        model = asked.trees()
        trees = model.find(Trees)
        assert trees is not None
        needed = asked.size(model)
        share, usage = share_used(model, asked.limits, target)
        most = asked.limits.most_instructions(find_target(target).cycles[1])
        steps = None if most is None else steps_within(model, target, most)
    except TinykernelError:
        if alone:
            raise
        return none
    room = capacity.allowed_bytes(asked.flash) - needed + tree_bytes(trees)
    enough = share <= 1 and (steps is None or steps >= _LEAST_TREE_STEPS)
    if enough and room >= _LEAST_TREE_BYTES:
        sizes = {"tree_bytes": room} | ({} if steps is None else {"tree_steps": steps})
        return {name: min(most, asked.get(name, None) or most) for name, most in sizes.items()}
    if alone and room < _LEAST_TREE_BYTES:
        raise _too_small(asked, needed + _LEAST_TREE_BYTES, "one of few trees")
    if alone:
        raise _no_room(asked, usage)
    return none


def _no_room(asked: Asked, usage: str) -> TinykernelError:
    return TinykernelError(
        f"no model for this data is within {asked.limits} on {asked.target}: the last one tried "
        f"needs {usage}; give a larger budget"
    )


def _sizes_in_flash(asked: Asked) -> dict[str, Any]:
    """Return sizes that fit flash, ignoring other limits."""
    if asked.shape is not None:
        return _kernels(asked, asked.shape)
    asked = asked.but(code=_code(asked))
    forms, least = _forms(asked)
    scope = {}
    if not forms and asked.get("scaler_scope") == "auto" and linear_may_compete(asked.options):
        # The tables of a scaler for each input may be what is too much.
        scope = {"scaler_scope": "global"}
        forms, smaller = _forms(asked.but(**scope, effort="quick"))
        least = min(least, smaller)
    if not forms:
        raise _too_small(asked, least)
    code = {"code": asked.get("code")} if any(forms.values()) else {}
    return {"n_components": forms, **code, **scope}


def _code(asked: Asked) -> str:
    """Return "small" if flash is so scarce that more components are worth a slower model."""
    code = str(asked.get("code"))
    if code != "auto":
        return code
    # Blocks, as trained models have, but for very many inputs.
    several = min(2 * padded_dimension(asked.rows.shape[1]), MOST_COMPONENTS)
    fast = asked.but(code="fast").components(_layouts(asked)[0], several)
    with suppress(TinykernelError):
        taken = capacity.decisive_report(fast, asked.target).flash_parts["code"]
        return "small" if taken > asked.flash * _CODE_SHARE else "fast"
    return "fast"  # its size is unknown without a compiler


def _kernels(asked: Asked, shape: tuple[int, ...]) -> dict[str, Any]:
    """Return the number of kernels and the bits of the linear part; without a spectrum for few.

    The code of a spectrum takes about 900 bytes, which kernels on samples make better use of.
    """
    if len(shape) == 3:
        return _of_images(asked, shape)
    spectrum, why = asked.spectrum()
    if asked.get("convolutions") == "mixed":
        return {"n_kernels": _most_channels(asked, shape)}
    if asked.get("spectrum") != "auto" or (spectrum is None and not why):
        return _or_planes(asked, shape, _kernels_as_asked(asked))
    if spectrum is not None:
        with suppress(TinykernelError):  # it may be too large
            sizes = _kernels_as_asked(asked)
            if sizes["n_kernels"] >= _FEW_KERNELS:
                return _or_planes(asked, shape, sizes)
        why = f"no spectrum: the budget leaves room for fewer than {_FEW_KERNELS} kernels"
    warnings.warn(why, stacklevel=2)
    return _kernels_as_asked(asked.but(spectrum="off")) | {"spectrum": "off"}


def _or_planes(asked: Asked, shape: tuple[int, ...], sizes: dict[str, Any]) -> dict[str, Any]:
    """Return kernels, or these and convolutions on spectra to choose from."""
    free = asked.get("convolutions") == "auto" and asked.get("effort") != "quick"
    if not free or asked.n_rows < _FEWEST_OF_PLANES or "loss" in asked.options:
        return sizes
    if asked.get("beside", 0):
        return sizes
    asked = asked.but(convolutions="mixed", linear=sizes["linear"])
    grid = Grid.raw(asked.rows.dtype.name, shape[0], 1, shape[1])
    if no_planes(grid, asked.spectrum()[0], asked.get("augment", None)):
        return sizes
    n = _channels(asked, shape)[0]
    if n >= _FEWEST_CHANNELS and asked.limits.beside_flash:
        try:
            n = _within(asked, "mixed", n, 1)[0] or 0
        except TinykernelError:
            n = 0  # the target has no counts of these
    if n < _FEWEST_CHANNELS:
        return sizes
    return sizes | {"n_kernels": {"kernels": sizes["n_kernels"], "mixed": n}}


def _most_channels(asked: Asked, shape: tuple[int, ...]) -> int:
    """Return how many channels of the convolutions asked for fit."""
    n, least = _channels(asked, shape)
    if not n:
        raise _too_small(asked, least, "one with the fewest channels")
    return n


def _of_images(asked: Asked, shape: tuple[int, ...]) -> dict[str, Any]:
    """Return the number of channels of convolutions, or of both kinds to choose from."""
    if asked.get("convolutions") != "auto":
        return {"n_kernels": _most_channels(asked, shape)}
    numbers, smallest, needed = dict[str, int](), list[int](), ""
    forms = {"deep": _MANY_CHANNELS, "convolutions": 1, "mixed": 1}
    if asked.limits.beside_flash:
        forms["coarse"] = 1
    for form, fewest in forms.items():
        refused = no_separable if form in ("mixed", "coarse") else no_convolutions
        if refused(shape, FORMS[form]) or (form == "convolutions" and numbers):
            continue
        asked = asked.but(convolutions=FORMS[form])
        n, least = _channels(asked, shape)
        smallest.append(least)
        if form == "coarse" and numbers.get("mixed", 0) >= n:
            continue  # the limits cost "mixed" no channels
        if n >= fewest and asked.limits.beside_flash:
            try:
                within_all, needed = _within(asked, form, n, 1)
                n = within_all or 0
            except TinykernelError:
                if form in ("deep", "convolutions") or not numbers:
                    raise
                continue  # the target has no counts of these
        if n >= fewest:
            numbers[form] = n
    if not numbers and needed:
        raise _no_room(asked, needed)
    if not numbers:
        raise _too_small(asked, min(smallest, default=0), "one with the fewest channels")
    quick = asked.get("effort") == "quick"
    return {"n_kernels": dict(list(numbers.items())[:1]) if quick else numbers}


def most_of_images(flash: int, shape: tuple[int, ...], convolutions: str) -> int:
    """Return the most channels of convolutions that are chosen for images.

    Or a small model of large images would take long: 700,000 instructions at 8 KB.
    """
    if convolutions in ("mixed", "coarse"):
        return capacity.MOST_CHANNELS if len(shape) == 3 else _MOST_OF_PLANES
    most = flash * _A_BYTE / (responses_of(shape, convolutions) * _A_RESPONSE)
    return int(np.clip(most, _FEW_CHANNELS, capacity.MOST_CHANNELS))


def _channels(asked: Asked, shape: tuple[int, ...]) -> tuple[int, int]:
    """Return how many channels of convolutions fit, 0 for none, and the size of the fewest."""
    most = most_of_images(asked.flash, shape, str(asked.get("convolutions")))
    low, high = _FEW_CHANNELS - 1, most
    n, least = _FEW_CHANNELS, 0
    while low < high:
        size = asked.size(asked.integers(n_kernels=n))
        least = least or size
        low, high = (n, high) if size <= capacity.allowed_bytes(asked.flash) else (low, n - 1)
        n = (low + high + 1) // 2
    return (low if low >= _FEW_CHANNELS else 0), least


def _kernels_as_asked(asked: Asked) -> dict[str, Any]:
    """Return the most kernels that fit, and the bits of their weights: fewer where few fit."""
    most, linear = _most_kernels(asked), asked.get("linear")
    tried, unknown = list[tuple[int, int, int]](), None
    for bits in _widths(asked):
        make = partial(_of_size, asked.but(linear=bits), "")
        try:
            n, size = capacity.most_kernels(make, most, asked.flash, asked.target)
        except TinykernelError as error:
            unknown = error
            continue
        if bits == _MOST_BITS and bits != linear and n < most:
            continue
        tried.append((n, bits, size))
        if n >= _FEW_KERNELS:
            break
    if not tried and unknown is not None:
        raise unknown
    n, bits, _ = max(tried, key=lambda each: each[0])
    if not n:
        raise _too_small(asked, min(size for *_, size in tried), "one with the fewest kernels")
    return {"n_kernels": n, "linear": bits}


def _most_kernels(asked: Asked) -> int:
    """Return the most kernels that are chosen for windows."""
    kind = "stream" if asked.get("hop", None) else "signal"
    most = capacity.MOST_KERNELS["spectrum" if asked.spectrum()[0] is not None else kind]
    if asked.get("cells") != "auto" and "loss" not in asked.options:
        # Fits of classes take no more counts.
        most = min(most, (MOST_COUNTS - int(asked.get("beside", 0))) // int(asked.get("cells")))
    return most


def _widths(asked: Asked) -> tuple[int, ...]:
    """Return the bits of weights on counts that are tried, the first ones first."""
    linear = asked.get("linear")
    if linear != "auto":
        return (linear,)
    few = asked.n_rows <= FEW_WINDOWS and "loss" not in asked.options
    return (_MOST_BITS, *_COUNT_BITS) if few else _COUNT_BITS


def _forms(asked: Asked) -> tuple[dict[str, int], int]:
    """Return the forms that keep to the budget with their components, and the least size measured.

    A form is a layout, a linear part, or both.
    """
    linear, quick = _linear_sizes(asked), asked.get("effort") == "quick"
    sizes, smallest = dict[str, int](), list(linear.values())
    unknown: TinykernelError | None = None
    for name in _layouts(asked):
        layout = layout_of(name)
        try:
            model = asked.components(name, _by_tables(asked, layout))
            p, least = capacity.most_components(model, layout, asked.flash, asked.target)
        except TinykernelError as error:
            # The size of one form may be unknown without a compiler; others may go on.
            unknown = error
            continue
        smallest.append(least)
        if p == 0:
            continue
        sizes[name] = p
        for bits in linear.keys() & {_BESIDE, asked.get("linear")}:
            # The linear part takes the place of components.
            n_outputs, d = model.n_outputs, padded_dimension(asked.rows.shape[1])
            beside = -(-asked.rows.shape[1] * n_outputs * bits // 8) + _LINEAR_CODE
            tables = layout.table_bytes(p, d, n_outputs) - beside
            fewer = components_within(tables, layout, d, n_outputs)
            if fewer >= _WORD:
                sizes[form_of(name, bits)] = fewer
    if asked.get("linear") not in ("auto", "off"):
        sizes = {form: p for form, p in sizes.items() if parts_of(form)[1] == asked.get("linear")}
    if not smallest and unknown is not None:
        raise unknown
    alone = [bits for bits, size in linear.items() if size <= capacity.allowed_bytes(asked.flash)]
    if "sigma" in asked.options:
        alone = []
    if quick and max(sizes.values(), default=0) < _FEW_COMPONENTS:
        sizes = {form_of(None, alone[0]): 0} if alone else sizes
    if sizes and quick:
        return dict([next(iter(sizes.items()))]), 0  # to choose takes short trainings
    sizes |= {form_of(None, bits): 0 for bits in alone[:2]}
    return sizes, min(smallest)


def linear_may_compete(options: Mapping[str, Any]) -> bool:
    """Whether a linear part may compete under these options of training."""
    asked = options.get("linear", "auto")
    if asked == "auto":
        return "sigma" not in options
    return bool(asked != "off")


def may_have_trees(asked: Asked) -> bool:
    """Whether trees may be chosen; where nothing is compared only an option selects them."""
    options = asked.options
    if asked.get("model") in OF_TREES:
        return True
    allowed = asked.get("model") == "auto" and options.get("loss", "squared") == "squared"
    compared = asked.get("effort") != "quick" and asked.shape is None and asked.method == LEARNED
    few = asked.rows.shape[1] <= MOST_INPUTS
    return allowed and compared and few and linear_may_compete(options)


def _linear_sizes(asked: Asked) -> dict[int, int]:
    """Return the widths that a linear part may have, widest first, and its size alone."""
    if not linear_may_compete(asked.options):
        return {}
    bits, sizes = asked.get("linear"), dict[int, int]()
    for width in LINEAR_BITS[::-1] if bits == "auto" else (bits,):
        try:
            sizes[width] = asked.size(asked.integers(n_components=0, linear=width))
        except TinykernelError:
            # A width whose sums may pass 32 bits, or whose size is not known, does not compete.
            if bits != "auto":
                raise
    return sizes


def _layouts(asked: Asked) -> list[str]:
    layouts = _LAYOUTS_OF_VALUES if "loss" in asked.options else SEARCHED_LAYOUTS
    # To choose takes short trainings, too.
    return list(layouts[:1] if asked.get("effort") == "quick" else layouts)


def _sides(asked: Asked) -> tuple[int, int]:
    """Return the length of the transforms, and the number of outputs."""
    n_classes = np.unique(asked.labels).size
    n_outputs = 1 if n_classes == 2 else n_classes
    if "loss" in asked.options:
        options = RegressorOptions(loss=asked.get("loss"))
        n_outputs = len(options.losses(1 if asked.labels.ndim == 1 else asked.labels.shape[1]))
    return padded_dimension(asked.rows.shape[1]), n_outputs


def _by_tables(asked: Asked, layout: Layout) -> int:
    """Return how many components the tables alone would allow."""
    most = components_within(asked.flash, layout, *_sides(asked))
    return int(np.clip(most, _WORD, capacity.MOST_CHOSEN))


def check_size(asked: Asked) -> None:
    """Refuse a number of components or kernels that cannot fit, before the long training."""
    is_table, number = asked.shape is None, asked.get("n_kernels")
    if is_table:
        number = asked.options["n_components"]
        if asked.method == LEARNED:
            kind = RegressorOptions if "loss" in asked.options else TrainerOptions
            number = kind(**asked.options).capacity()
    for form, n in number.items() if isinstance(number, Mapping) else [("", number)]:
        try:
            needed = _least(asked, form, n)
        except TinykernelError:
            continue  # not known without a compiler; the trained model is measured again
        if needed > asked.flash:
            unit = "components" if is_table else f"channels, {form}," if form else "kernels"
            raise TinykernelError(
                f"a model of {n} {unit} needs at least {needed} bytes of flash on {asked.target}, "
                f"{needed - asked.flash} over the budget of {asked.flash}; use fewer "
                f"{'n_components' if is_table else 'n_kernels'} or a larger budget"
            )


def _least(asked: Asked, form: str, n: int) -> int:
    """Return how many bytes a model of a form takes at least."""
    if asked.shape is not None:
        slack = asked.flash - capacity.allowed_bytes(asked.flash)
        return asked.size(_of_size(asked, form, n)) - slack
    if asked.method != LEARNED:
        return capacity.DRAWN.table_bytes(n, *_sides(asked))
    layout = parts_of(form)[0]
    if layout is None or not n:
        return 0
    return capacity.least_size(asked.components(layout, n), layout_of(layout), n, asked.target)


def _too_small(asked: Asked, needed: int, least: str = "the smallest one") -> TinykernelError:
    shape = "" if asked.shape else ", or the shape if rows are signals or images"
    return TinykernelError(
        f"no model for this data fits into {count(asked.flash, 'byte')} on {asked.target}: {least} "
        f"needs about {needed} bytes; give a larger budget{shape}"
    )
