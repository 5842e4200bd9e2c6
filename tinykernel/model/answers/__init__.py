"""What scores mean: labels or values, and how sure they are."""

from tinykernel.model.answers.decision import Decision
from tinykernel.model.answers.events import Events
from tinykernel.model.answers.labels import Labels
from tinykernel.model.answers.values import Values

__all__ = ["Decision", "Events", "Labels", "Values"]
