"""Models that were trained elsewhere, as integer models.

Nothing is imported but what the models themselves come from.
"""
