"""Modules of PyTorch: what changes their answers and is not read is refused, by its name."""

import inspect
import warnings

import numpy as np
import pytest

from tests.optional import import_tool
from tests.refusals import refused
from tests.torch_modules import conv, linear, module, normalized, pool, sequential
from tinykernel.base.errors import ConvertError, OptionError
from tinykernel.conversion.models import convert
from tinykernel.conversion.networks.torch import FIXED, of_torch

pytestmark = pytest.mark.usefixtures("page")

X = np.random.default_rng(0).normal(size=(20, 2, 8, 8)).astype(np.float32)
ONES = np.ones(3)
RELU, FLATTEN, MEAN = module("ReLU"), module("Flatten"), module("AdaptiveAvgPool2d", output_size=1)
FIRST, LAST = conv(np.ones((3, 2, 3, 3))), linear(np.ones((2, 3)))
#: Members that are read, or that change no answer of a trained module.
READ = {
    *("in_features", "out_features", "bias", "device", "dtype", "in_channels", "out_channels"),
    *("kernel_size", "stride", "padding", "groups", "num_features", "eps", "momentum", "affine"),
    *("track_running_stats", "inplace", "min_val", "max_val", "min_value", "max_value", "p"),
    *("count_include_pad", "negative_slope"),  # the first without zeros around
    *("args", "kwargs"),  # of Identity, which ignores them
}


def _with(found, **members):
    """Return a module with other members, as an instance has them."""
    changed = type(found)()
    vars(changed).update(members)
    return changed


@pytest.mark.parametrize(
    ("place", "changed"),
    [
        (3, _with(FLATTEN, _forward_hooks={0: print})),
        (0, _with(FIRST, _forward_pre_hooks={0: print})),
        (0, _with(FIRST, forward=print)),
        (0, type("Conv2d", (type(FIRST),), {"__module__": "mine"})()),
        (0, _with(FIRST, padding_mode="circular")),
        (0, _with(FIRST, dilation=(1, 2))),
        (0, _with(FIRST, weight=np.ones((3, 2, 3, 3), complex))),
        (3, module("Flatten", start_dim=2)),
        (3, module("Flatten", end_dim=2)),
        (1, module("Dropout", training=True)),
        (1, _with(normalized(ONES, ONES, ONES, ONES, 2), training=True)),
        (1, normalized(ONES, ONES, None, None, 2)),
        (1, normalized(None, None, ONES, ONES, 2)),
        (1, _with(pool("MaxPool", 2), ceil_mode=True)),
        (1, _with(pool("MaxPool", 2), padding=1)),
        (1, _with(pool("AvgPool", 2), stride=1)),
        (4, module("Softmax", dim=0)),
    ],
)
def test_what_changes_an_answer_is_refused(place, changed):
    """Hooks changed 411 to 844 of 1,200 labels, even with X: these were read, too."""
    modules = [FIRST, RELU, MEAN, FLATTEN, LAST]
    modules[place] = changed
    name = type(changed).__name__
    message = refused(ConvertError, convert, sequential(*modules), X, task="classes")
    assert f"module {place} ({name})" in message


def test_a_hook_of_a_sequential_is_one_of_the_network():
    """That of an inner one is named with its place."""
    inner = sequential(FIRST, RELU)
    inner._forward_hooks = {0: print}
    outer = sequential(inner, MEAN, FLATTEN, LAST)
    refused(ConvertError, convert, outer, X, task="classes")
    outer[0]._forward_hooks, outer._forward_pre_hooks = {}, {0: print}
    refused(ConvertError, convert, outer, X, task="classes")


def test_several_sigmoids_may_be_labels_of_their_own():
    """A task says whether only one class is meant."""
    network = sequential(FIRST, RELU, MEAN, FLATTEN, LAST, module("Sigmoid"))
    with pytest.raises(OptionError):
        of_torch(network).ready(X, None)
    of_torch(network).ready(X, "classes")


def test_every_option_of_pytorch_is_known():
    """Of each module that is read, as this version of PyTorch has it."""
    nn = import_tool("torch").nn
    names = "Linear Conv1d Conv2d MaxPool1d MaxPool2d AvgPool1d AvgPool2d AdaptiveAvgPool1d"
    names += " AdaptiveAvgPool2d BatchNorm1d BatchNorm2d ReLU ReLU6 Hardtanh Flatten Identity"
    names += " Dropout Dropout1d Dropout2d Softmax LogSoftmax Sigmoid LeakyReLU ELU Hardswish Tanh"
    for name in names.split():
        kind = name[:-2] if name[-2:] in ("1d", "2d") else name
        options = set(inspect.signature(getattr(nn, name).__init__).parameters) - {"self"}
        assert options <= READ | set(FIXED.get(kind, {})), name


@pytest.mark.parametrize("seed", range(3))
def test_what_is_read_is_what_pytorch_computes(seed):
    """Random networks agree; a class whose forward is exchanged is found by its values."""
    torch = import_tool("torch")
    nn, rng = torch.nn, np.random.default_rng(seed)
    torch.manual_seed(seed)
    modules = [nn.Conv2d(2, 4, 3, padding=1, groups=1 + seed % 2), nn.BatchNorm2d(4), nn.ReLU6()]
    modules += [nn.MaxPool2d(2)]
    modules += [nn.Conv2d(4, 6, (1, 3), stride=(1, 2), bias=False, padding="valid")]
    modules += [nn.ReLU()]
    modules += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3), nn.Softmax(dim=-1)]
    network = nn.Sequential(nn.Sequential(*modules[:3]), *modules[3:])
    rows = torch.tensor(rng.normal(size=(20, 2, 8, 8)), dtype=torch.float32)
    network(rows)
    network.eval()
    expected = network(rows).argmax(dim=1).numpy()
    assert np.array_equal(of_torch(network).ready(rows.numpy(), None).predict(rows), expected)
    for dtype in (torch.float64, torch.bfloat16, torch.float16):
        of_torch(network.to(dtype)).ready(rows.numpy(), None)
    network.float()
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setattr(nn.ReLU6, "forward", lambda self, x: x)
        with pytest.raises(ConvertError):
            of_torch(network).ready(rows.numpy(), None)
