"""IntegerModel: a classifier or regressor in integers only, exactly what the firmware computes."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tinykernel.model.answers import Labels, Values
from tinykernel.model.chain import Predictions
from tinykernel.pieces.piece import prove
from tinykernel.pieces.proof import Range
from tinykernel.pieces.record import contents

_MOST_INPUTS = 65536


@dataclass(frozen=True, eq=False, repr=False)
class IntegerModel(Predictions):
    """A chain of stages and a read-out in integer arithmetic: the firmware, as data.

    Python and the generated C both follow the docstrings of the stages and parts, so all their
    scores are equal. Integers are two's complement; ``>>`` of a signed value is arithmetic, that is
    division by a power of two rounded **down** (floor), the one rounding rule of a model.

    `input` says what the firmware takes. Each of `stages` takes the `Grid` of values that the one
    before it gives, checks it, and proves from its range alone that nothing overflows. The chains
    are as follows, with the class that specifies each step:

    * a table: ``Scale``, and ``Components`` where there are any; or ``Levels``, one or more
      ``Dense``, then ``Scale``;
    * a signal: ``Levels``, ``Kernels``, then the same as for a table;
    * an image: ``Levels``, ``Separable`` or ``Convolutions``, ``Dense`` if any, then ``Scale``;
    * windows of a signal, their means subtracted: ``Offset``, then the same as for a signal;
    * a sound or a vibration: ``Spectrum``, then the same as for a signal;
    * a signal with numbers beside it: ``Beside`` after its ``Kernels``.

    There is exactly one stage ``Scale``. It gives *the quantized inputs*: a second entry of the
    firmware takes them directly, with any value of their type, constant ones as 0. The parts of
    `readout` read the output of a stage of the kind `READS`; their sum and an offset are the
    totals, which `answers` turns into scores and then into labels or values. All totals and scores
    are int32, proved not to overflow.

    How the firmware stores these numbers (bit planes, one scale a block where all are equal, ...)
    is chosen by the code generator and never changes a value.

    Parameters
    ----------
    input : Grid
        Raw values that the firmware takes. With ``Beside`` its numbers follow them in a row.
    stages : tuple of Stage
        In their order.
    readout : Readout
    answers : Labels or Values
    decision : Decision, optional
        When the model refuses to answer, and its confidence. It changes no scores or labels.
    events : Events, optional
        When a stream has an event; for models with a hop.
    hop : int
        Signals: samples between the windows of a stream, at most a window; both are multiples of
        the averaging. 0: no stream.
    decision_scale : float
        ``total * decision_scale`` are the outputs in the units of the training. Information only.
    feature_names : tuple of str, optional
        Names of the inputs, in their order. Information only, ignored in comparisons.
    coding : Coding, optional
        The numbers of text in frames, of a converted model, or of missing values, of a Pipeline.
        Ignored in comparisons.

    Raises
    ------
    TinykernelError
        If a field is wrong, the stages do not fit together, or a value could overflow.

    Examples
    --------
    >>> from tinykernel.pieces.grid import Grid
    >>> from tinykernel.pieces.linear.spec import Linear
    >>> from tinykernel.pieces.piece import Readout
    >>> from tinykernel.pieces.scale.spec import Scale
    >>> scale = Scale("uint8", 8, [0], [65536], [255])
    >>> readout = Readout((Linear([[1, -1]], [2]),), [10])
    >>> model = IntegerModel(Grid.table("uint8", 2), (scale,), readout, Labels(("off", "on")))
    >>> model.scores([[3, 5]]).tolist(), model.predict([[3, 5]]).tolist()
    ([[-6, 6]], ['on'])
    """

    def check(self) -> None:
        """Check how the fields fit together, and prove that nothing overflows."""
        if self.decision_scale <= 0:
            raise self.refuse("decision_scale must be a positive number")
        self.check_chain()
        grids = dict(zip((stage.KIND for stage in self.stages), self.grids()[1:], strict=True))
        if self.n_features > _MOST_INPUTS:
            raise self.refuse(f"n_features is {self.n_features}, allowed are 1..{_MOST_INPUTS}")
        self.readout.check_grids(grids, self.n_outputs)
        self._check_names()
        self._check_hop()
        self._check_decision()
        self._check_events()
        taken = zip(self.stages, self.grids(), strict=False)
        ranges = [bound for stage, grid in taken for bound in stage.ranges(grid)]
        ranges += prove(self.readout.ranges(grids), self.OWNER, "use smaller multipliers")
        ranges += self.answers.ranges() if isinstance(self.answers, Values) else ()
        object.__setattr__(self, "_ranges", tuple(ranges))

    def _check_names(self) -> None:
        """Strip the names and count them."""
        if self.feature_names is None:
            return
        names = tuple(name.strip() for name in self.feature_names)
        if len(names) != self.n_inputs:
            raise self.refuse(f"has {len(names)} feature_names for {self.n_inputs} inputs")
        object.__setattr__(self, "feature_names", names)

    def _check_hop(self) -> None:
        """Check that windows of a stream begin where rows of its stages do."""
        if not self.hop:
            return
        if not self.input.is_signal or not 0 < self.hop <= self.input.rows:
            raise self.refuse("hop is for signals, and at most a window")
        step = math.prod(stage.step for stage in self.stages)
        if self.hop % step:
            raise self.refuse(f"hop is not a multiple of the {step} samples of a row of levels")
        for stage, grid in zip(self.stages, self.grids(), strict=False):
            stage.check_stream(grid)

    def _check_decision(self) -> None:
        """Check that a classifier decides, with one threshold, or one per class."""
        if self.decision is None:
            return
        if isinstance(self.answers, Values):
            raise self.refuse("a regressor predicts values and decides nothing")
        if self.is_one_class:
            raise self.refuse("a model of one class has no decision part")
        if self.decision.thresholds.size not in (1, self.n_classes):
            raise self.refuse(
                f"decision has {self.decision.thresholds.size} thresholds for "
                f"{self.n_classes} classes"
            )
        prototypes = self.decision.prototypes
        if prototypes is not None and prototypes.shape[1] != self.n_features:
            raise self.refuse(f"prototypes of {prototypes.shape[1]} inputs for {self.n_features}")

    def _check_events(self) -> None:
        """Check that the model has a stream and one threshold per class."""
        if self.events is None:
            return
        if not self.hop or not isinstance(self.answers, Labels):
            raise self.refuse("events are for classifiers of a stream, which has a hop")
        if self.events.thresholds.size != self.n_classes:
            raise self.refuse(
                f"events has {self.events.thresholds.size} thresholds for {self.n_classes} classes"
            )

    @property
    def pieces(self) -> tuple[Any, ...]:
        """All stages, then the parts of the read-out."""
        return (*self.stages, *self.readout.parts)

    def ranges(self) -> tuple[Range, ...]:
        """Return the proved range of every value, in the order of the computation."""
        ranges: tuple[Range, ...] = vars(self)["_ranges"]
        return ranges

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes; none of a regressor."""
        return self.answers.classes if isinstance(self.answers, Labels) else ()

    @property
    def n_classes(self) -> int:
        """Number of classes, 0 of a regressor."""
        return len(self.classes)

    @property
    def n_scores(self) -> int:
        """Number of scores: one per class, or one per value."""
        return self.answers.n_scores

    @property
    def n_outputs(self) -> int:
        """Number of outputs: 1 for two classes, else one per class or value."""
        return self.answers.n_outputs

    @property
    def least_score(self) -> int:
        """The least score of any row, by the proof; of values the least output."""
        (score,) = (part for part in self.ranges() if part.stage == "score")
        is_binary = self.n_outputs < self.n_scores  # two scores, one output and its negative
        return min(score.low, -score.high) if is_binary else score.low

    @property
    def is_regressor(self) -> bool:
        """Whether it predicts values instead of classes."""
        return isinstance(self.answers, Values)

    @property
    def is_one_class(self) -> bool:
        """Whether it separates known from unknown rows."""
        return any(part.ONE_CLASS for part in self.readout.parts)

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.sha256()
        for name, value in contents(self, "model"):
            if isinstance(value, np.ndarray):
                digest.update(f"{name} {value.dtype.name} {value.shape}".encode())
                digest.update(value.astype(value.dtype.newbyteorder("<")).tobytes())
            else:
                digest.update(f"{name} {json.dumps(value)}".encode())
        return digest.hexdigest()

    def fingerprint(self) -> str:
        """Return the SHA-256 of all but names and statements, 64 hexadecimal digits."""
        return self._fingerprint

    def __eq__(self, other: object) -> bool:
        """Compare contents."""
        if not isinstance(other, IntegerModel):
            return NotImplemented
        return self.fingerprint() == other.fingerprint()

    def __hash__(self) -> int:
        """Hash the content."""
        return hash(self.fingerprint())

    def __repr__(self) -> str:
        """Describe the model in one line; its fields are hundreds of numbers."""
        kinds = ", ".join(piece.KIND for piece in self.pieces)
        answers = f"{self.n_scores} {'values' if self.is_regressor else 'classes'}"
        inputs, digest = f"{self.n_inputs} x {self.raw_dtype}", self.fingerprint()[:16]
        return f"IntegerModel({inputs}: {kinds}, {answers}, fingerprint {digest})"
