"""The linear part, trained with the rounding of its weights."""
