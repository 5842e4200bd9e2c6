"""The decision part as macros and tables; see ``tk_decide.h``."""

from __future__ import annotations

import numpy as np

from tinykernel.codegen.literals import integer_literal
from tinykernel.codegen.tables import Definition, Parts, Table
from tinykernel.model.integer import IntegerModel

__all__ = ["pack_decision"]


def pack_decision(model: IntegerModel) -> Parts:
    """Store thresholds, one literal where all are equal, and the table of confidences."""
    decision = model.decision
    if decision is None:
        return []
    parts: Parts = [
        Definition("TK_CONFIDENCE_SHIFT", str(decision.shift)),
        Table("tk_confidence", "uint8_t", decision.table, "decision",
              "By the margin, how many of 256 labels are right."),
    ]  # fmt: skip
    if decision.novelty_threshold is not None:
        value = integer_literal(decision.novelty_threshold)
        parts.append(Definition("TK_NOVELTY_THRESHOLD", value, "largest novelty of a class"))
    thresholds = decision.thresholds
    if decision.rejects and np.ptp(thresholds) == 0:
        value = f"{int(thresholds[0])}u"
        parts.append(Definition("TK_THRESHOLD(i)", value, "least margin of an answer"))
    elif decision.rejects:
        parts.append(Definition("TK_THRESHOLD(i)", "tk_thresholds[i]"))
        parts.append(Table("tk_thresholds", "uint32_t", thresholds, "decision",
                           "Least margin of an answer, by label."))  # fmt: skip
    return parts
