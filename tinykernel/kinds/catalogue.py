"""All kinds of models, found in the folders of `learn`; `select` chooses one for a `Problem`."""

from importlib import import_module

from tinykernel.kinds.kind import AnyKind
from tinykernel.learn.options import ROOMS, TrainerOptions

#: Those of each ``kind.py``, in the order of their announcements.
KINDS: tuple[AnyKind, ...] = tuple(
    sorted(
        (kind for room in ROOMS for kind in import_module(f"tinykernel.learn.{room}.kind").KINDS),
        key=lambda kind: kind.about.rank,
    )
)


def kinds_for(options: TrainerOptions) -> list[AnyKind]:
    """Return the kinds that the options allow: by `model`, and by a size."""
    names = options.kinds()
    return [kind for kind in KINDS if kind.name in names]
