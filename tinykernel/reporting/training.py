"""Text on the training of a model, from its file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tinykernel.text import listed

# Keys that are described separately, that a page shows elsewhere, or that only programs read.
# fmt: off
_SAID = {
    "data", "split", "label", "groups", "training_rows", "target", "budget", "limits", "sizes",
    "tune", "recordings", "medians", "inputs", "search", "accuracy", "evaluation", "calibration",
    "calibration_rows", "calibration_kept", "held_out", "test_size", "one_class",
}
# fmt: on
_MOST_MEDIANS = 32


def training_in_words(about: Mapping[str, Any], *, whole: bool = True) -> list[tuple[str, str]]:
    """Return names and values; without `whole` not those that a page shows elsewhere."""
    pairs = [(name, plain(about.get(name, ""))) for name in ("data", "split", "label", "groups")]
    if about.get("one_class") is True:
        pairs.append(("trained on", "normal rows only"))
    recordings, inputs = about.get("recordings"), about.get("inputs")
    if isinstance(recordings, dict):
        text = f"{recordings.get('window')} samples, hop {recordings.get('hop')}"
        if isinstance(recordings.get("rate"), int | float) and recordings["rate"]:
            text += f", {recordings['rate']:g} samples a second"
        pairs.append(("windows", text))
    if isinstance(inputs, list):
        pairs.append(("columns taken", ", ".join(map(plain, inputs))))
    if whole:
        pairs += _sizes(about) + [("medians", _medians(about))]
    calibration, promise = about.get("calibration"), ""
    if isinstance(calibration, Mapping):
        rows = f" ({plain(calibration['rows'])} rows)" if "rows" in calibration else ""
        promise = f"{plain(calibration.get('statement', ''))}{rows}"
    others = ((name, value) for name, value in sorted(about.items()) if name not in _SAID)
    pairs += [(name.replace("_", " "), plain(value)) for name, value in others]
    pairs += [
        ("accuracy" if "r2" not in str(about.get("accuracy")) else "R2", _shares(about)),
        ("search", search_in_words(about.get("search"))),
        ("calibration", promise),
    ]
    return [(name, value) for name, value in pairs if value]


def search_in_words(search: object) -> str:
    """Describe choice and gain of a search; empty where unknown."""
    if not isinstance(search, Mapping) or not search.get("trials"):
        return ""
    text = f"{plain(search['trials'])} short trainings chose {plain(search.get('chosen', '?'))}"
    before, after = search.get("log_loss_usual"), search.get("log_loss")
    if isinstance(before, int | float) and isinstance(after, int | float):
        text += f"; log loss {before:.3f} with usual values, {after:.3f} with these"
        text += "" if after < before else ": no gain"
    return text + ("; Ctrl-C ended the search" if search.get("interrupted") else "")


def _sizes(about: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Describe the target, its limits, and the sizes of the model."""
    rows, sizes, budget = (about.get(name) for name in ("training_rows", "sizes", "budget"))
    limits = about.get("limits") or (f"{budget} bytes of flash" if budget else "")
    text = ""
    if isinstance(sizes, Mapping):
        text = f"{plain(sizes.get('flash'))} bytes of flash, {plain(sizes.get('ram'))} of RAM "
        text += f"({plain(sizes.get('measured'))})"
    return [
        ("training rows", plain(rows.get("rows", "")) if isinstance(rows, Mapping) else ""),
        ("target", plain(about.get("target", ""))),
        ("budget", plain(limits)),
        ("takes", text),
    ]


def _medians(about: Mapping[str, Any]) -> str:
    """List the medians with the names of the columns, where known."""
    medians, inputs = about.get("medians"), about.get("inputs")
    if not isinstance(medians, list):
        return ""
    named = isinstance(inputs, list) and len(inputs) == len(medians)
    names: Any = inputs if named else range(len(medians))
    shown = [f"{plain(name)} {plain(value)}" for name, value in zip(names, medians, strict=True)]
    return listed(shown, _MOST_MEDIANS)


def _shares(about: Mapping[str, Any]) -> str:
    """Describe the accuracies on the training and test rows."""
    accuracy, shares = about.get("accuracy"), []
    if not isinstance(accuracy, Mapping):
        return ""
    for name, value in sorted(accuracy.items(), reverse=True):
        part, _, measure = str(name).partition("_")
        if isinstance(value, int | float):
            shown = f"{100 * value:.2f} % of" if measure == "accuracy" else f"{value:.4f} on"
            shares.append(f"{shown} the {part} rows")
    return ", ".join(shares)


def plain(value: Any) -> str:
    """Write a value of JSON without its marks."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {plain(item)}" for key, item in value.items())
    return ", ".join(map(plain, value)) if isinstance(value, list) else str(value)
