"""The estimator of values, by the name that scripts of earlier versions import."""

from tinykernel.estimator import TernaryKernelRegressor

__all__ = ["TernaryKernelRegressor"]
