"""The pieces that there are: the folders beside this file, each found by its name."""

import functools
from importlib import import_module
from pathlib import Path

from tinykernel.pieces.packing import Code
from tinykernel.pieces.piece import PORTS, Part, Piece, Sample, Stage

_FOLDERS = sorted(path.parent for path in Path(__file__).parent.glob("*/spec.py"))
#: The folder of each piece, by its name; TEMPLATE is there to be copied.
FOLDERS = {path.name: path for path in _FOLDERS if path.name.islower()}


def _piece(name: str) -> type[Piece]:
    """Return the stage or part of a folder."""
    module = import_module(f"{__package__}.{name}.spec")
    classes = (cls for cls in vars(module).values() if isinstance(cls, type))
    return next(cls for cls in classes if vars(cls).get("KIND") == name)


_PIECES = [_piece(name) for name in FOLDERS]
#: All stages, in the order in which a chain comes to them.
STAGES: tuple[type[Stage], ...] = tuple(
    sorted(
        (piece for piece in _PIECES if issubclass(piece, Stage)),
        key=lambda stage: PORTS.index(stage.GIVES),
    )
)
#: All parts of read-outs.
PARTS: tuple[type[Part], ...] = tuple(piece for piece in _PIECES if issubclass(piece, Part))


@functools.cache
def code_of(kind: str) -> Code:
    """Return the C of a kind of stage or part."""
    code: Code = import_module(f"{__package__}.{kind}.pack").CODE
    return code


def samples_of(kind: str, seed: int) -> list[Sample]:
    """Return random samples of a kind of stage or part."""
    return list(import_module(f"{__package__}.{kind}.sample").samples(seed))
