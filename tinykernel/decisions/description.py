"""The decision part of a model, and how it was calibrated, for people and as JSON types."""

from typing import Any

from tinykernel.decisions.calibrate import Calibration
from tinykernel.model import IntegerModel
from tinykernel.model.answers.decision import Decision
from tinykernel.text import count, listed, percent

_UNLIMITED = "none: every row is answered"
_CLASSES_SHOWN = 12
_EVERY = f"{_UNLIMITED}; --max-error SHARE or --coverage SHARE refuses unsure ones"


def calibration_in_words(result: Calibration) -> list[tuple[str, str]]:
    """Return the figures as names and values for `print_pairs`."""
    assert result.model.decision is not None
    thresholds = result.model.decision.thresholds.tolist()
    rows, over, novel = count(result.rows, "row"), "", ""
    if result.groups is not None:
        rows += f" of {count(result.groups, 'group')}, which count as "
        rows += f"{result.independent:.0f} independent rows"
    if result.coverage_of_groups is not None:  # the guarantee for new groups
        over = f"; on average over groups {percent(result.coverage_of_groups)}"
    if result.alarms is not None:
        novel = f"above {result.alarms.threshold}: {result.alarms.alarms} of these rows"
    share = percent(result.wrong / max(1, result.answered))
    return [
        ("rows", rows),
        ("promise", result.statement),
        (
            "answered",
            f"{percent(result.coverage)}, of which {result.wrong} are wrong ({share}){over}",
        ),
        ("least margin", listed(thresholds, _CLASSES_SHOWN) if any(thresholds) else _EVERY),
        ("novel", novel),
        ("calibration", _probabilities_in_words(result)),
    ]


def _probabilities_in_words(result: Calibration) -> str:
    """Describe the temperature, and the error of probabilities with and without it."""
    before, after = f"{result.error_before:.4f}", f"{result.error_after:.4f}"
    error = f"expected calibration error {before}"
    assert result.model.decision is not None
    temperature = result.model.decision.temperature
    if temperature != 1:
        return f"{error}; {after} with the chosen temperature of {temperature:.3g}"
    return f"{error}; {after} with a temperature, which is not used"


def decision_facts(integer: IntegerModel) -> dict[str, Any]:
    """Return the decision part, where there is one."""
    decision = integer.decision
    if decision is None:
        return {}
    return {
        "decision": {
            "thresholds": decision.thresholds.tolist(),
            "confidences": decision.table.tolist(),
            "confidence_shift": decision.shift,
            "temperature": decision.temperature,
            "statement": decision.statement,
            "novelty_threshold": decision.novelty_threshold,
            "prototypes": decision.n_prototypes,
        }
    }


def decision_in_words(decision: Decision | None) -> list[tuple[str, str]]:
    """Return thresholds, confidence and novelty of a decision part, as names and values."""
    if decision is None:
        return []
    novel = "" if decision.novelty_threshold is None else str(decision.novelty_threshold)
    if novel and decision.n_prototypes:
        novel += f", by the distance to {count(decision.n_prototypes, 'prototype')} and the margin"
    least = listed(decision.thresholds.tolist(), _CLASSES_SHOWN)
    confidence = f"{decision.table[0]} to {decision.table[-1]}"
    return [
        ("least margin", least if decision.rejects else _UNLIMITED),
        ("confidence", f"{confidence}, a step every {1 << decision.shift} of the margin"),
        ("novel above", novel),
        ("promise", decision.statement),
    ]
