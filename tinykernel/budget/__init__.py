"""Train the best model that fits a budget."""

from tinykernel.budget.fitting import DEFAULT_BUDGET, TrainResult, train
from tinykernel.budget.forms import SEARCHED_LAYOUTS

__all__ = ["DEFAULT_BUDGET", "SEARCHED_LAYOUTS", "TrainResult", "train"]
