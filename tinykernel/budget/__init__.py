"""Train the best model that fits a budget."""

from tinykernel.budget.fitting import TrainResult, train

__all__ = ["TrainResult", "train"]
