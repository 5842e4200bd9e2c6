"""Labels and groups in the names of files and folders."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from tinykernel.errors import TinykernelError

_LABELS = ("label", "class", "target", "word", "y")
_GROUPS = ("group", "person", "speaker", "subject", "patient", "machine", "device")
_BACKGROUND = {"background", "noise", "silence", "none", "nothing", "off"}
_PARTS = re.compile(r"\{(\w+)\}|\*")


def is_background(label: object) -> bool:
    """Whether all words of a label mean background.

    >>> [is_background(label) for label in ("_silence_", "Background noise", "light off", 0)]
    [True, True, False, False]
    """
    parts = re.findall(r"[^\W_]+", str(label).lower())
    return bool(parts) and _BACKGROUND.issuperset(parts)


@dataclass(frozen=True)
class NamePattern:
    """Where label and group are in the path of a file.

    The text describes the last parts of the path, without a suffix: ``"{label}_{person}_{n}"`` or
    ``"{person}/{label}/*"``. ``{field}`` is at least one character and as few as possible, ``*``
    anything; neither contains a ``/``. `label` and `group` name fields, by default label, class,
    target, word or y, and group, person, speaker, subject, patient, machine or device.
    """

    text: str
    label: str | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        """Check the text, and find the fields of label and group."""
        fields = [name for name in _PARTS.findall(self.text) if name]
        if len(set(fields)) < len(fields):
            raise TinykernelError(f"--name {self.text!r}: a field occurs twice; use it once")
        if set(_PARTS.sub("", self.text)) & set("{}"):
            raise TinykernelError(
                f"--name {self.text!r}: a field has a brace on each side, as in {{label}}"
            )
        if "}{" in self.text:
            raise TinykernelError(f"--name {self.text!r}: nothing stands between two fields")
        for role, known in (("label", _LABELS), ("group", _GROUPS)):
            asked = getattr(self, role)
            if asked is not None and asked not in fields:
                object.__setattr__(self, role, None)  # it may be a column
            elif asked is None:
                object.__setattr__(
                    self, role, next((name for name in known if name in fields), None)
                )
        if self.label is None and self.group is None:
            raise TinykernelError(
                f"--name {self.text!r}: no field is the label or a group; call them {{label}} and "
                "{group}, or name them with --label and --groups"
            )

    def find(self, path: Path) -> tuple[str | None, str | None] | None:
        """Return label and group of a file, or None if its path does not match."""
        whole = Path(os.path.abspath(path))  # links may lead in a circle
        parts = whole.with_suffix("").parts[-1 - self.text.count("/") :]
        match = re.fullmatch(self._expression(), "/".join(parts))
        if match is None:
            return None
        fields = [name for name in _PARTS.findall(self.text) if name]
        values = dict(zip(fields, match.groups(), strict=True))
        return values.get(self.label or ""), values.get(self.group or "")

    def _expression(self) -> str:
        """Return the pattern as a regular expression."""
        out, end = "", 0
        for part in _PARTS.finditer(self.text):
            out += re.escape(self.text[end : part.start()])
            out += "([^/]+?)" if part[1] else "[^/]*"
            end = part.end()
        return out + re.escape(self.text[end:])
