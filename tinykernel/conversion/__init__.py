"""Models that were trained elsewhere, as integer models.

Nothing is imported but what the models themselves come from.
"""

from tinykernel.conversion.models import Change, change_of, convert, is_foreign

__all__ = ["Change", "change_of", "convert", "is_foreign"]
