"""What scores mean: labels or values, and how sure they are."""
