"""Objects with the names and members of PyTorch's modules, without PyTorch."""

from typing import Any

import numpy as np


def module(name: str, **attributes: Any) -> Any:
    """Return an object of a class of that name."""
    return type(name, (), {"__module__": "torch.nn.modules", "bias": None} | attributes)()


def sequential(*modules: Any) -> Any:
    """Return a Sequential."""
    kind = type("Sequential", (list,), {"__module__": "torch.nn.modules.container"})
    return kind(modules)


def conv(weight: Any, bias: Any = None, *, sides: int = 2, **options: Any) -> Any:
    """Return a Conv1d or Conv2d."""
    usual = {"stride": (1,) * sides, "padding": (0,) * sides, "dilation": (1,) * sides}
    return module(f"Conv{sides}d", weight=weight, bias=bias, **(usual | {"groups": 1} | options))


def normalized(scale: Any, bias: Any, mean: Any, variance: Any, sides: int = 1) -> Any:
    """Return a BatchNorm of so many sides."""
    statistics = {"running_mean": mean, "running_var": variance, "eps": 0.0}
    return module(f"BatchNorm{sides}d", weight=scale, bias=bias, **statistics)


def pool(name: str, size: Any, sides: int = 2) -> Any:
    """Return a MaxPool or AvgPool whose patches lie side by side."""
    return module(f"{name}{sides}d", kernel_size=size, stride=size, padding=0)


def linear(weight: Any, bias: Any = None) -> Any:
    """Return a Linear."""
    return module("Linear", weight=np.asarray(weight), bias=bias)
