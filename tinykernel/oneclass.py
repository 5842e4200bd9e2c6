"""The estimator of one class, by the name that scripts and pickles of earlier versions import."""

from tinykernel.estimator import TernaryKernelNovelty, calibrate_one_class

__all__ = ["TernaryKernelNovelty", "calibrate_one_class"]
