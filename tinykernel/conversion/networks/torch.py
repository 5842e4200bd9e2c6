"""Networks of PyTorch's `Sequential`, by the names and members of its modules."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from tinykernel.base.errors import ConvertError
from tinykernel.conversion.networks.sequence import FloatNetwork, numbers_of

_NAMES = {"ReLU": "Relu", "Softmax": "Softmax", "LogSoftmax": "Softmax", "Sigmoid": "Sigmoid"}


def of_torch(model: Iterable[Any]) -> FloatNetwork:
    """Return a Sequential, and those within it, as a network."""
    return FloatNetwork(partial(_read, model))


def _read(model: Iterable[Any], network: FloatNetwork, within: str = "") -> None:
    for number, module in enumerate(model):
        name = type(module).__name__
        place = f"module {within}{number} ({name})"
        kind, sides = name[:-2], {"1d": 1, "2d": 2}.get(name[-2:], 0)
        if name == "Sequential":
            _read(module, network, f"{within}{number}.")
        elif name == "Linear":
            network.add_dense(place, numbers_of(module.weight), numbers_of(module.bias))
        elif kind == "BatchNorm":
            parts = module.weight, module.bias, module.running_mean, module.running_var
            if any(part is None for part in parts):
                raise ConvertError(
                    f"convert: {place} has no scale, or statistics of its batch only"
                )
            network.add_normalization(place, list(map(numbers_of, parts)), module.eps)
        elif name in ("ReLU6", "Hardtanh"):
            network.add_clip(place, module.min_val, module.max_val)
        elif kind in ("Conv", "MaxPool", "AvgPool", "AdaptiveAvgPool") and sides:
            _add_map(network, place, kind, module, sides)
        else:
            network.add(place, _NAMES.get(name, name))


def _add_map(network: FloatNetwork, place: str, kind: str, module: Any, sides: int) -> None:
    """Add a convolution or a pooling."""

    def by_side(name: str) -> list[int]:
        value = getattr(module, name)
        return list(value) if isinstance(value, tuple | list) else [value] * sides

    options = {"dilation": 1, "padding_mode": "zeros", "ceil_mode": False, "divisor_override": None}
    is_usual = all(
        getattr(module, name, usual) in (usual, (usual,) * sides) for name, usual in options.items()
    )
    if kind == "Conv":
        is_usual &= not isinstance(module.padding, str)
    elif kind == "AdaptiveAvgPool":
        is_usual &= by_side("output_size") == [1] * sides
    else:
        is_usual &= by_side("stride") == by_side("kernel_size") and not any(by_side("padding"))
    if not is_usual:
        raise ConvertError(f"convert: {place} is not supported with these options")
    if kind == "Conv":
        parts = numbers_of(module.weight), numbers_of(module.bias), by_side("stride")
        network.add_convolution(place, *parts, by_side("padding") * 2, module.groups)
    else:
        size = None if kind == "AdaptiveAvgPool" else by_side("kernel_size")
        network.add_pool(place, size, kind != "MaxPool")
