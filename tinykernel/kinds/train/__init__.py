"""`train`: from rows and a budget to a model that fits it."""
