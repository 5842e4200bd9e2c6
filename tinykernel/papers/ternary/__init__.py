"""Algorithm 1 of Lei & Lan (AAAI 2021): random features, ternary weights by coordinate descent."""
