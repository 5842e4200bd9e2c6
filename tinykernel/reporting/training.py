"""What a model file says of its training, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tinykernel.text import listed

# Keys that have words of their own, that a page shows elsewhere, or that only programs read.
_SAID = {
    "data",
    "split",
    "label",
    "groups",
    "training_rows",
    "target",
    "budget",
    "limits",
    "sizes",
    "tune",
    "recordings",
    "medians",
    "inputs",
    "search",
    "accuracy",
    "evaluation",
    "calibration",
    "calibration_rows",
    "calibration_kept",
    "held_out",
    "test_size",
    "one_class",
}
_MOST_MEDIANS = 32


def training_in_words(about: Mapping[str, Any], *, whole: bool = True) -> list[tuple[str, str]]:
    """Return names and values; without `whole` what a page shows elsewhere is left out."""
    pairs = [("data", _plain(about.get("data", ""))), ("split", _plain(about.get("split", "")))]
    pairs += [(name, _plain(about.get(name, ""))) for name in ("label", "groups")]
    if about.get("one_class") is True:
        pairs.append(("trained on", "normal rows only"))
    recordings, inputs = about.get("recordings"), about.get("inputs")
    if isinstance(recordings, dict):
        words = [f"{recordings.get('window')} samples, hop {recordings.get('hop')}"]
        if isinstance(recordings.get("rate"), int | float) and recordings["rate"]:
            words.append(f"{recordings['rate']:g} samples a second")
        pairs.append(("windows", ", ".join(words)))
    if isinstance(inputs, list):
        pairs.append(("columns taken", ", ".join(map(_plain, inputs))))
    if whole:
        pairs += _sizes(about) + [("medians", _medians(about))]
    others = ((name, value) for name, value in sorted(about.items()) if name not in _SAID)
    pairs += [(name.replace("_", " "), _plain(value)) for name, value in others]
    pairs += [
        ("accuracy" if "r2" not in str(about.get("accuracy")) else "R2", _shares(about)),
        ("search", search_in_words(about.get("search"))),
        ("calibration", _calibration(about.get("calibration"))),
    ]
    return [(name, value) for name, value in pairs if value]


def search_in_words(found: object) -> str:
    """Say what a search chose and gained; nothing where it is not known."""
    if not isinstance(found, Mapping) or not found.get("trials"):
        return ""
    text = f"{_plain(found['trials'])} short trainings chose {_plain(found.get('chosen', '?'))}"
    before, after = found.get("log_loss_usual"), found.get("log_loss")
    if isinstance(before, int | float) and isinstance(after, int | float):
        text += f"; log loss {before:.3f} with usual values, {after:.3f} with these"
        text += "" if after < before else ": no gain"
    return text + ("; Ctrl-C ended the search" if found.get("interrupted") else "")


def _sizes(about: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Say for what the model was made, and what it takes there."""
    rows, sizes, budget = (about.get(name) for name in ("training_rows", "sizes", "budget"))
    limits = about.get("limits") or (f"{budget} bytes of flash" if budget else "")
    text = ""
    if isinstance(sizes, Mapping):
        text = f"{_plain(sizes.get('flash'))} bytes of flash, {_plain(sizes.get('ram'))} of RAM "
        text += f"({_plain(sizes.get('measured'))})"
    return [
        ("training rows", _plain(rows.get("rows", "")) if isinstance(rows, Mapping) else ""),
        ("target", _plain(about.get("target", ""))),
        ("budget", _plain(limits)),
        ("takes", text),
    ]


def _medians(about: Mapping[str, Any]) -> str:
    """List the medians, by the names of the columns where they are known."""
    medians, inputs = about.get("medians"), about.get("inputs")
    if not isinstance(medians, list):
        return ""
    named = isinstance(inputs, list) and len(inputs) == len(medians)
    names = inputs if named and isinstance(inputs, list) else range(len(medians))
    shown = [f"{_plain(name)} {_plain(value)}" for name, value in zip(names, medians, strict=True)]
    return listed(shown, _MOST_MEDIANS)


def _shares(about: Mapping[str, Any]) -> str:
    """Write what the integers got right of the rows of training and test."""
    found = about.get("accuracy")
    if not isinstance(found, Mapping):
        return ""
    words = []
    for name, value in sorted(found.items(), reverse=True):
        part, _, measure = str(name).partition("_")
        if isinstance(value, int | float):
            shown = f"{100 * value:.2f} % of" if measure == "accuracy" else f"{value:.4f} on"
            words.append(f"{shown} the {part} rows")
    return ", ".join(words)


def _calibration(found: object) -> str:
    """Say what a calibration promises, and by which rows."""
    if not isinstance(found, Mapping):
        return ""
    rows = f" ({_plain(found['rows'])} rows)" if "rows" in found else ""
    return f"{_plain(found.get('statement', ''))}{rows}"


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(item)}" for key, item in value.items())
    return ", ".join(map(_plain, value)) if isinstance(value, list) else str(value)
