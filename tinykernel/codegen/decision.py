"""The decision part as macros and tables; see ``tk_decide.h``."""

from __future__ import annotations

import numpy as np

from tinykernel.codegen.definitions import Definition, Parts, Table
from tinykernel.codegen.literals import integer_literal
from tinykernel.codegen.pack.prototypes import pack_prototypes
from tinykernel.model.answers.decision import Decision
from tinykernel.model.readouts.prototypes import most_steps


def pack_decision(decision: Decision) -> Parts:
    """Store thresholds, one literal where all are equal, and the table of confidences."""
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
