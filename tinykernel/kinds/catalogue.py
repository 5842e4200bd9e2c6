"""All kinds of models, by what they announce; `select` chooses one of them for a `Problem`."""

from importlib import import_module

from tinykernel.kinds.kind import AnyKind
from tinykernel.learn import options as announced
from tinykernel.learn.options import TrainerOptions

#: Each is the `KIND` of the module of its name.
KINDS: tuple[AnyKind, ...] = tuple(
    import_module(f"{__package__}.{about.name}").KIND for about in announced.KINDS
)


def kinds_for(options: TrainerOptions) -> list[AnyKind]:
    """Return the kinds that the options allow: by `model`, and by a size."""
    names = options.kinds()
    return [kind for kind in KINDS if kind.name in names]
