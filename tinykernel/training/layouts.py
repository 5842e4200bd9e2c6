"""The layouts: which numbers of a component are learned and stored, and their bytes."""

from __future__ import annotations

from dataclasses import dataclass

from tinykernel.model.diagonals import BITS, LARGEST, SHIFTS

_WORD = 32


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Which numbers of a component are learned and stored, and with how many bits.

    >>> LAYOUTS["compact"].table_bytes(n_components=1024, dimension=1024, n_outputs=10)
    1793
    """

    name: str
    diagonal_kind: str  # {"int8", "int4", "sign"}: how G is held.
    # Phase start of each row in 8 bits; otherwise it alternates between two constants along the
    # rows of a block and costs nothing.
    learns_start: bool = False
    learns_width: bool = False  # window width of each row in 8 bits; otherwise half a turn, t = 0.
    scale_per_row: bool = False  # S in 8 bits per row; otherwise one per block.
    ternary: bool = False  # weights in {-1, 0, 1} with two bits each, or {-1, 1} with one.

    @property
    def largest(self) -> int:
        """Largest level of G."""
        return LARGEST[self.diagonal_kind]

    @property
    def product_shift(self) -> int:
        """Right shift of a product with G."""
        return SHIFTS[self.diagonal_kind]

    def table_bytes(self, n_components: int, dimension: int, n_outputs: int) -> int:
        """Return the bytes of G, the windows and the weights; d and outputs as in the model.

        What the tables of a trained model take is measured on the packed model, which may find
        more in common than the layout promises.
        """
        n_blocks = -(-n_components // dimension)
        stored = -(-n_components // _WORD) * _WORD
        bits = n_blocks * dimension * BITS[self.diagonal_kind]
        bits += 8 * stored * (self.learns_start + self.learns_width + self.scale_per_row)
        bits += 0 if self.scale_per_row else 8 * n_blocks
        bits += n_outputs * stored * (2 if self.ternary else 1)
        return bits // 8


#: The layouts worth having. Equal bytes of tables, 10000 MNIST rows held out, one seed, 10 to 12
#: epochs (standard error 0.2 points): for 8 KB "windows" 95.4 %, "phases" 95.8 %, "compact" 96.6 %;
#: for 30 KB 97.0, 97.5 and 97.5 %. Covtype, one seed, 6000 bytes: "windows" 84.9 %, "phases"
#: 85.8 %, "compact" 78.3 % (docs/results/ablation.md).
LAYOUTS = {
    layout.name: layout
    for layout in (
        Layout(name="compact", diagonal_kind="int4"),
        Layout(name="phases", diagonal_kind="int8", learns_start=True),
        Layout(
            name="windows",
            diagonal_kind="int8",
            learns_start=True,
            learns_width=True,
            scale_per_row=True,
            ternary=True,
        ),
    )
}


def components_within(table_bytes: int, layout: Layout, dimension: int, n_outputs: int) -> int:
    """Return how many components, a multiple of 32, fit into tables of a size; 0 if none.

    Examples
    --------
    >>> components_within(6000, LAYOUTS["compact"], 1024, 10)
    3136
    """
    low, high = 0, 1 << 15
    while low < high:
        middle = (low + high + 1) // 2
        if layout.table_bytes(middle * _WORD, dimension, n_outputs) <= table_bytes:
            low = middle
        else:
            high = middle - 1
    return low * _WORD
