"""What a shell proposes for targets and settings."""

from tinykernel.cli.settings.table import SETTINGS
from tinykernel.codegen.targets import TARGETS


def complete_targets(incomplete: str) -> list[str]:
    """Return the targets that begin like the text, or like its part after the last comma."""
    before, comma, begun = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in (*TARGETS, "all") if name.startswith(begun)]


def complete_settings(incomplete: str) -> list[str]:
    """Return the settings that begin like the text."""
    return [name for name in SETTINGS if name.startswith(incomplete)]


def complete_assignments(incomplete: str) -> list[str]:
    """Return NAME= of the settings that begin like the text; after it, the words to choose from."""
    name, equals, begun = incomplete.partition("=")
    if not equals:
        return [f"{name}=" for name in complete_settings(incomplete)]
    choices = SETTINGS[name].kind.split("|") if name in SETTINGS else []
    return [f"{name}={word}" for word in choices if len(choices) > 1 and word.startswith(begun)]
