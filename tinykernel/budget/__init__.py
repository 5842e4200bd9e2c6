"""Train the best model that fits a budget."""

from tinykernel.budget.contenders import SEARCHED_LAYOUTS
from tinykernel.budget.fitting import DEFAULT_BUDGET, TrainResult, train

__all__ = ["DEFAULT_BUDGET", "SEARCHED_LAYOUTS", "TrainResult", "train"]
