"""Kinds of models, the choice among them, and what trains the best that fits."""
