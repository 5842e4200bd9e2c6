"""What the joint trainer can be told: layouts and options."""

from __future__ import annotations

from dataclasses import dataclass

from tinykernel.errors import TinykernelError

__all__ = ["LAYOUTS", "JointOptions", "Layout", "components_within"]

_WORD = 32


@dataclass(frozen=True)
class Layout:
    """Which numbers of a feature are learned and stored, and with how many bits.

    Parameters
    ----------
    name : str
    diagonal_top : int
        Largest level of G: 127 for 8 bits, 7 for 4 bits.
    learns_start : bool
        The phase start of each row in 8 bits; otherwise it alternates between two constants along
        the rows of a block and costs nothing.
    learns_width : bool
        The window width of each row in 8 bits; otherwise it is half a turn, t = 0.
    scale_per_row : bool
        S in 8 bits a row; otherwise one a block.
    ternary : bool
        Weights in {-1, 0, 1} with two bits each, or {-1, 1} with one.
    prunes : bool
        Half of the rows of each block, those with the smallest weights, are no components: for them
        only G is stored, and a bit that says so. Blocks of 32 rows remain whole.

    Examples
    --------
    >>> LAYOUTS["compact"].table_bytes(n_components=1024, dimension=1024, n_outputs=10)
    1793
    """

    name: str
    diagonal_top: int
    learns_start: bool
    learns_width: bool
    scale_per_row: bool
    ternary: bool
    prunes: bool = False

    @property
    def product_shift(self) -> int:
        """Right shift of a product with G: no product is larger than what it came from."""
        return self.diagonal_top.bit_length()

    def rows_kept(self, dimension: int) -> int:
        """Return how many rows of a block of `dimension` are components; whole words of 32."""
        return max(_WORD, dimension // 2) if self.prunes else dimension

    def leaves_out(self, dimension: int) -> bool:
        """Return whether some rows of a block of `dimension` are no components."""
        return self.rows_kept(dimension) < dimension

    def blocks(self, n_components: int, dimension: int) -> int:
        """Return how many blocks so many components take."""
        return -(-n_components // self.rows_kept(dimension))

    def table_bytes(self, n_components: int, dimension: int, n_outputs: int) -> int:
        """Return the size of the tables of G, the windows and the weights.

        Parameters
        ----------
        n_components : int
            p; words of 32 are stored.
        dimension : int
            d, the length of a block.
        n_outputs : int
            1 for two classes, else the number of classes.

        Returns
        -------
        int
            Bytes.
        """
        n_blocks = self.blocks(n_components, dimension)
        stored = -(-n_components // _WORD) * _WORD
        diagonal = n_blocks * dimension // (1 if self.diagonal_top > 7 else 2)
        windows = stored * (self.learns_start + self.learns_width + self.scale_per_row)
        windows += 0 if self.scale_per_row else n_blocks
        if self.leaves_out(dimension):
            windows += n_blocks * dimension // 8
        return diagonal + windows + n_outputs * stored // 8 * (2 if self.ternary else 1)


#: The formats worth having. Equal bytes of tables, 10000 MNIST rows held out, one seed, 10 to 12
#: epochs (standard error 0.2 points): for 8 KB "windows" 95.4 %, "phases" 95.8 %, "compact" 96.6 %;
#: for 30 KB 97.0, 97.5 and 97.5 %. Covtype, one seed: "phases" 85.8 %, "pruned" 86.9 %
#: (docs/results/ablation.md).
LAYOUTS = {
    "compact": Layout("compact", 7, False, False, False, False),
    "phases": Layout("phases", 127, True, False, False, False),
    "windows": Layout("windows", 127, True, True, True, True),
    "pruned": Layout("pruned", 127, True, False, False, False, prunes=True),
}


def components_within(table_bytes: int, layout: Layout, dimension: int, n_outputs: int) -> int:
    """Return how many components fit into tables of a size.

    Parameters
    ----------
    table_bytes : int
    layout : Layout
    dimension, n_outputs : int
        As for `Layout.table_bytes`.

    Returns
    -------
    int
        A multiple of 32; 0 if nothing fits.

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


@dataclass(frozen=True)
class JointOptions:
    """How to train; the defaults are the recipe.

    Parameters
    ----------
    layout : str
        A key of `LAYOUTS`.
    n_components : int
        p.
    epochs : int
    batch_rows : int
        Rows of a mini-batch, a multiple of 32.
    peak_step : float
        Largest step of Adam, for the weights; one cycle: a linear rise over `warm_up` of the
        training, then half a cosine down to 0.
    window_factor, diagonal_factor, frequency_factor, offset_factor : float
        Steps of start and width (radians), G (unit variance), S (times 1 / sigma), and the class
        offsets, as multiples of that.
    warm_up : float
        Share of the steps.
    slope : float
        k of the surrogate derivative.
    dropout : float
        Share of features left out, at random for each row.
    noise : float
        Gaussian noise is added to P H B x so that the phases of the first features vary by this
        deviation, in radians: the length of the noise vector is `noise` times sigma.
    sigma : float or None
        Kernel width at the start, in scaled inputs; None takes it from `sigma_multiple`.
    sigma_multiple : float
        sigma over the mean distance to the 50th neighbour.
    candidates : int
        How many permutations P, and how many blocks for each block that is kept, are drawn to
        choose from by kernel alignment.
    gain : float
        First value of a in ``logits = a / sqrt(p) (W z) + offset``.
    threshold : float
        Ternary weights are 0 below this multiple of the mean magnitude of their output.
    weight_spread : float
        Deviation of the first shadow weights.
    smoothing : float
        Share of the label given to all classes alike.
    loss : {"cross_entropy", "squared_hinge"}
    quantise_from : float
        Share of the training after which the forward pass uses the integers that are exported.
    input_bits : {8, 16}
    seed : int
    n_threads : int
        Changes nothing but the time.
    """

    layout: str = "compact"
    n_components: int = 4096
    epochs: int = 30
    batch_rows: int = 128
    peak_step: float = 1.5e-3
    window_factor: float = 10.0
    diagonal_factor: float = 15.0
    frequency_factor: float = 0.5
    offset_factor: float = 1.0
    warm_up: float = 0.1
    slope: float = 2.0
    dropout: float = 0.0
    noise: float = 0.3
    sigma: float | None = None
    sigma_multiple: float = 1.0
    candidates: int = 1
    gain: float = 2.0
    threshold: float = 0.7
    weight_spread: float = 0.01
    smoothing: float = 0.0
    loss: str = "cross_entropy"
    quantise_from: float = 0.7
    input_bits: int = 8
    seed: int = 0
    n_threads: int = 2

    def __post_init__(self) -> None:
        """Refuse what cannot be trained."""
        if self.layout not in LAYOUTS:
            raise TinykernelError(f"layout: {self.layout!r}; choose from {', '.join(LAYOUTS)}")
        if self.loss not in ("cross_entropy", "squared_hinge"):
            raise TinykernelError(f"loss: {self.loss!r}; choose cross_entropy or squared_hinge")
        for name in ("n_components", "epochs", "n_threads", "candidates"):
            if getattr(self, name) < 1:
                raise TinykernelError(f"{name}: {getattr(self, name)}; at least 1 is needed")
        if not 0 <= self.dropout < 1:
            raise TinykernelError(f"dropout: {self.dropout}; give a share from 0 to below 1")
        if self.batch_rows % _WORD or self.batch_rows < _WORD:
            raise TinykernelError(f"batch_rows: {self.batch_rows}; give a multiple of {_WORD}")

    @property
    def format(self) -> Layout:
        """The layout."""
        return LAYOUTS[self.layout]
