"""The layouts: how many bits each learned number of a component takes."""

from dataclasses import dataclass
from functools import cache

from tinykernel.model.diagonals import BITS, LARGEST, SHIFTS
from tinykernel.training.options.ranges import PRESETS

#: Components of a word of the firmware; there are whole ones.
WORD = 32
_KINDS = {bits: kind for kind, bits in BITS.items()}


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How many bits each learned number of a component takes.

    >>> layout_of("compact").table_bytes(n_components=1024, dimension=1024, n_outputs=10)
    1793
    """

    diagonal_kind: str  # {"int8", "int4", "sign"}: how G is held.
    # Of the phase start of each row, 8 or 4; 0: it alternates between two constants along the rows
    # of a block and costs nothing.
    start_bits: int = 0
    width_bits: int = 0  # of the window of each row, 8 or 4; 0: it is half a turn, t = 0.
    scale_per_row: bool = False  # S in 8 bits per row; otherwise one per block.
    ternary: bool = False  # weights in {-1, 0, 1}, five in a byte, or {-1, 1} with one bit.

    @property
    def largest(self) -> int:
        """Largest level of G."""
        return LARGEST[self.diagonal_kind]

    @property
    def product_shift(self) -> int:
        """Right shift of a product with G."""
        return SHIFTS[self.diagonal_kind]

    def _window_bits(self) -> int:
        """Return the bits that phase windows take for each row."""
        scale, start, width = 8 * self.scale_per_row, self.start_bits, self.width_bits
        # Four bits share a byte: start and width of a row, or the starts of two rows.
        if start == 4 and (width == 4 or not (width or scale)):
            return scale + start + width
        return scale + 8 * (start > 0) + 8 * (width > 0)

    def table_bytes(self, n_components: int, dimension: int, n_outputs: int) -> int:
        """Return the bytes of G, the windows and the weights; d and outputs as in the model.

        What the tables of a trained model take is measured on the packed model, which may find
        more in common than the layout promises.
        """
        n_blocks = -(-n_components // dimension)
        n_words = -(-n_components // WORD)
        bits = n_blocks * dimension * BITS[self.diagonal_kind]
        bits += WORD * n_words * self._window_bits()
        bits += 0 if self.scale_per_row else 8 * n_blocks
        # Eight words hold the ternary weights of five words of components.
        weights = 8 * (n_words // 5) + 2 * (n_words % 5) if self.ternary else n_words
        return (bits + n_outputs * WORD * weights) // 8


@cache
def layout_of(name: str) -> Layout:
    """Return the layout of a name, see `tinykernel.training.options.ranges.is_layout`."""
    parts = PRESETS.get(name, name).split("-")
    bits = {part[0]: int(part[1:]) for part in parts if part[1:].isdigit()}
    return Layout(
        diagonal_kind=_KINDS[bits["g"]],
        start_bits=bits.get("b", 0),
        width_bits=bits.get("t", 0),
        scale_per_row="rows" in parts,
        ternary="ternary" in parts,
    )


def components_within(table_bytes: int, layout: Layout, dimension: int, n_outputs: int) -> int:
    """Return how many components, a multiple of 32, fit into tables of a size; 0 if none.

    >>> components_within(6000, layout_of("compact"), 1024, 10)
    3136
    """
    low, high = 0, 1 << 15
    while low < high:
        middle = (low + high + 1) // 2
        if layout.table_bytes(middle * WORD, dimension, n_outputs) <= table_bytes:
            low = middle
        else:
            high = middle - 1
    return low * WORD
