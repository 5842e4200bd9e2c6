"""Networks of PyTorch's `Sequential`, by the names and members of its modules."""

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tinykernel.base.errors import ConvertError
from tinykernel.conversion.networks.sequence import ENDS, FloatNetwork, numbers_of

_TOLD = {*ENDS, "LogSoftmax"}
_NAMES = {"ReLU": "Relu", "LogSoftmax": "Softmax", "ELU": "Elu", "Hardswish": "HardSwish"}
#: By module without its number of sides: members that change its answer, and what they must be.
#: All others are read, or change no answer of a trained module.
FIXED: dict[str, dict[str, Any]] = {
    "Flatten": {"start_dim": 1, "end_dim": -1},
    "Softmax": {"dim": (1, -1, None)},
    "LogSoftmax": {"dim": (1, -1, None)},
    "Conv": {"dilation": 1, "padding_mode": "zeros"},
    "MaxPool": {"padding": 0, "dilation": 1, "ceil_mode": False, "return_indices": False},
    "AvgPool": {"padding": 0, "ceil_mode": False, "divisor_override": None},
    "AdaptiveAvgPool": {"output_size": 1},
    "BatchNorm": {"training": False},
    "Dropout": {"training": False},
    "ELU": {"alpha": 1.0},
}
_HOOKS = {"_forward_hooks": "has a forward hook", "_forward_pre_hooks": "has a forward pre-hook"}


def of_torch(model: Any) -> FloatNetwork:
    """Return a Sequential, and those within it, as a network."""
    answers = partial(_answers, model) if callable(model) else None
    return FloatNetwork(partial(_read, model), answers=answers)


def _answers(model: Any, X: NDArray[Any]) -> tuple[NDArray[Any], float]:
    """Return what PyTorch computes of rows up to the end, and the precision of its numbers."""
    torch = import_module("torch")
    weight = next(model.parameters())
    values = torch.as_tensor(X).to(weight.device, weight.dtype)
    with torch.no_grad():
        modules = list(_flat(model))
        while type(modules[-1]).__name__ in _TOLD:
            modules.pop()
        for module in modules:
            values = module(values)
    return values.double().cpu().numpy(), float(torch.finfo(weight.dtype).eps)


def _flat(model: Any) -> Iterator[Any]:
    """Yield the modules of a Sequential, and of those within it."""
    for module in model:
        yield from _flat(module) if type(module).__name__ == "Sequential" else [module]


def _read(model: Any, network: FloatNetwork, within: str = "") -> None:
    _check_calls(model, f"module {within.rstrip('.')} (Sequential)" if within else "the Sequential")
    for number, module in enumerate(model):
        name = type(module).__name__
        place = f"module {within}{number} ({name})"
        kind, sides = (name[:-2], int(name[-2])) if name[-2:] in ("1d", "2d") else (name, 0)
        if name == "Sequential":
            _read(module, network, f"{within}{number}.")
            continue
        _check_calls(module, place)
        for member, usual in FIXED.get(kind, {}).items():
            _check_member(module, place, member, usual)
        if name == "Linear":
            network.add_dense(place, *_numbers(module, place, "weight", "bias"))
        elif kind == "BatchNorm":
            names = "weight", "bias", "running_mean", "running_var"
            if any(getattr(module, name) is None for name in names):
                raise ConvertError(
                    f"convert: {place} has no scale, or statistics of its batch only; train it "
                    "with affine=True and track_running_stats=True"
                )
            network.add_normalization(place, _numbers(module, place, *names), module.eps)
        elif name in ("ReLU6", "Hardtanh"):
            network.add_clip(place, module.min_val, module.max_val)
        elif name == "LeakyReLU":
            network.add_curve(place, "LeakyRelu", module.negative_slope)
        elif kind in ("Conv", "MaxPool", "AvgPool", "AdaptiveAvgPool") and sides:
            _add_map(network, place, kind, module, sides)
        else:
            network.add(place, _NAMES.get(name, name))


def _check_calls(module: Any, place: str) -> None:
    """Refuse a module that does more, or something else, than its class of PyTorch."""
    reasons = [name for hooks, name in _HOOKS.items() if getattr(module, hooks, None)]
    if "forward" in getattr(module, "__dict__", {}):
        reasons.append("has a forward of its own")
    if not type(module).__module__.startswith("torch.nn.modules"):
        reasons.append(f"is of {type(module).__module__}, not of torch.nn")
    if reasons:
        raise ConvertError(
            f"convert: {place} {reasons[0]}, which may change its values; remove it (a norm or "
            "parametrization of weights by its remove function), or write a file with "
            "torch.onnx.export"
        )


def _check_member(module: Any, place: str, member: str, usual: Any) -> None:
    """Refuse a member that has not its usual value; tuples list several such values."""
    allowed = usual if isinstance(usual, tuple) else (usual,)
    value = getattr(module, member, allowed[0])
    values = value if isinstance(value, tuple | list) else (value,)
    if any(item not in allowed for item in values):
        hint = "call eval() of the network" if member == "training" else f"only with {allowed[0]}"
        raise ConvertError(f"convert: {place} is not supported with {member}={value}; {hint}")


def _numbers(module: Any, place: str, *names: str) -> list[NDArray[np.float64]]:
    """Return weights of a module."""
    return [numbers_of(getattr(module, name), f"{place}, {name}") for name in names]


def _add_map(network: FloatNetwork, place: str, kind: str, module: Any, sides: int) -> None:
    """Add a convolution or a pooling."""

    def by_side(name: str) -> list[Any]:
        value = getattr(module, name)
        return list(value) if isinstance(value, tuple | list) else [value] * sides

    if kind == "Conv":
        kernel, bias = _numbers(module, place, "weight", "bias")
        around = [0] * sides if module.padding == "valid" else by_side("padding")
        before, after = around, around
        if "same" in around:
            before = [(n - 1) // 2 for n in kernel.shape[2:]]
            after = [n // 2 for n in kernel.shape[2:]]
        ends = [*before, *after]
        network.add_convolution(place, kernel, bias, by_side("stride"), ends, module.groups)
        return
    if kind != "AdaptiveAvgPool" and by_side("stride") != by_side("kernel_size"):
        raise ConvertError(
            f"convert: {place} is not supported with stride={module.stride}, only with that of "
            "its kernel_size"
        )
    size = None if kind == "AdaptiveAvgPool" else by_side("kernel_size")
    network.add_pool(place, size, kind != "MaxPool")
