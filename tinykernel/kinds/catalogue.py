"""All kinds of models, and which of them the options allow.

`KINDS` has all of them; `select` chooses one, of a size and with settings, for a `Problem`.
"""

from tinykernel.base.checks import KIND_OF_MODEL
from tinykernel.kinds.components import ComponentsKind
from tinykernel.kinds.images import ChainsKind, SeparableKind
from tinykernel.kinds.kernels import KernelsKind
from tinykernel.kinds.kind import AnyKind, Kind, RaceTrial, Spec
from tinykernel.kinds.linear import LinearKind
from tinykernel.kinds.perceptron import PerceptronKind
from tinykernel.kinds.problem import Problem
from tinykernel.kinds.trees import TreesKind
from tinykernel.learn.options import TrainerOptions

#: All kinds of models of labels and values. The first that applies is taken where nothing is
#: compared.
KINDS: tuple[AnyKind, ...] = (
    ComponentsKind(),
    LinearKind(),
    TreesKind(),
    PerceptronKind(),
    KernelsKind(),
    ChainsKind(),
    SeparableKind(),
)


def kinds_for(options: TrainerOptions) -> list[AnyKind]:
    """Return the kinds that the options allow: by `model`, and by a number that is fixed."""
    name = KIND_OF_MODEL.get(options.model, options.model)
    sized = {
        "n_components": ("components",),
        "n_kernels": ("kernels",),
        "n_units": ("perceptron",),
        "n_channels": ("chains", "separable"),
    }
    allowed = {kind.name for kind in KINDS}
    for option, names in sized.items():
        if getattr(options, option) is not None:
            allowed &= set(names)
    return [kind for kind in KINDS if kind.name in allowed and name in ("auto", kind.name)]


__all__ = ["KINDS", "AnyKind", "Kind", "Problem", "RaceTrial", "Spec", "kinds_for"]
