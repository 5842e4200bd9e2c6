"""The decision part as macros and tables; see ``tk_decide.h``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tinykernel.codegen.literals import integer_literal
from tinykernel.codegen.tables import Definition, Parts, Table
from tinykernel.model.integer import IntegerModel
from tinykernel.model.readouts.prototypes import most_steps


def pack_prototypes(prototypes: NDArray[np.int8], part: str) -> Parts:
    """Store levels of 4 bits, eight a word; a prototype begins with a word."""
    number, n = prototypes.shape
    padded = np.zeros((number, -(-n // 8) * 8), dtype=np.int64)
    padded[:, :n] = prototypes.astype(np.int64) & 15
    words = (padded.reshape(-1, 8) << (28 - 4 * np.arange(8))).sum(axis=1).astype(np.uint32)
    return [
        Definition("TK_PROTOTYPES", f"{number}u"),
        Table(
            "tk_prototypes",
            "uint32_t",
            words,
            part,
            "Known rows: 4 bits an input, the first one at the top.",
        ),
    ]


def pack_decision(model: IntegerModel) -> Parts:
    """Store thresholds, one literal where all are equal, and the table of confidences."""
    decision = model.decision
    if decision is None:
        return []
    parts: Parts = [
        Definition("TK_CONFIDENCE_SHIFT", str(decision.shift)),
        Table(
            "tk_confidence",
            "uint8_t",
            decision.table,
            "decision",
            "By the margin, how many of 256 labels are right.",
        ),
    ]
    if decision.novelty_threshold is not None:
        value = integer_literal(decision.novelty_threshold)
        parts.append(Definition("TK_NOVELTY_THRESHOLD", value, "largest novelty of a class"))
    if decision.prototypes is not None and decision.margin_line is not None:
        bias, gain, steps = decision.margin_line
        parts += [
            *pack_prototypes(decision.prototypes, "decision"),
            Definition("TK_NOVELTY_BIAS", str(bias), "what a margin of 0 is worth as a distance"),
            Definition("TK_NOVELTY_GAIN", f"{gain}u", "and what a step of it takes off"),
            Definition("TK_NOVELTY_STEPS", str(steps)),
            Definition("TK_NOVELTY_TOP", f"{most_steps(gain)}u", "steps that count at most"),
        ]
    thresholds = decision.thresholds
    if decision.rejects and np.ptp(thresholds) == 0:
        value = f"{int(thresholds[0])}u"
        parts.append(Definition("TK_THRESHOLD(i)", value, "least margin of an answer"))
    elif decision.rejects:
        parts.append(Definition("TK_THRESHOLD(i)", "tk_thresholds[i]"))
        parts.append(
            Table(
                "tk_thresholds",
                "uint32_t",
                thresholds,
                "decision",
                "Least margin of an answer, by label.",
            )
        )
    return parts
