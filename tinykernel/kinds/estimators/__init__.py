"""Estimators as scikit-learn has them."""
