"""Short trainings of components on held-out rows, by which hyper-parameters are compared."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tinykernel.training.components.learner import Learner, MixedRows
from tinykernel.training.folds import Fold
from tinykernel.training.layouts import WORD
from tinykernel.training.loss import Truth
from tinykernel.training.options.recipe import Recipe

_MOST_COMPONENTS, _MOST_IN_FOLDS, _MOST_AT_FULL_SIZE = 4096, 2048, 8192
_MOST_STEPS = 1000
_FEWEST_EPOCHS, _MOST_EPOCHS = 4, 40
# The work of a heat and of a final, as shares of the training that follows.
_HEAT, _FINAL = 1 / 28, 1 / 10
#: Folds that a final is judged on; a heat is judged on one.
FOLDS_OF_A_FINAL = 2


@dataclass(frozen=True, eq=False)
class TrialData:
    """Rows of short trainings, and which of them each training learns from."""

    whole: MixedRows
    folds: Sequence[Fold]
    n_rows: int  # of the training that follows.
    share: float = 1.0  # of the usual epochs.

    def of(self, fold: Fold) -> "TrialData":
        """Return the rows of a fold, which is the only one then."""
        used, n = np.concatenate([fold.inside, fold.outside]), fold.inside.size
        place = np.arange(used.size)
        folds = [Fold(place[:n], place[n:])]
        return replace(self, whole=self.whole.of(used), folds=folds, share=1.0)

    def planned(self, recipe: Recipe, *, final: bool = False) -> Recipe:
        """Return how a heat of a recipe is trained, or a final, which has all components.

        Its work is a fixed share of that of the training that follows, so that a whole search takes
        about as long as that training.
        """
        p, n_folds = recipe.n_components, len(self.folds)
        n, d = self.folds[0].inside.size, self.whole.mixed.shape[1]
        most = _MOST_COMPONENTS if n_folds == 1 else _MOST_IN_FOLDS
        most = _MOST_AT_FULL_SIZE if final else min(most, p // 2 // WORD * WORD)
        size = min(p, max(most, d))
        share = _FINAL / min(FOLDS_OF_A_FINAL, n_folds) if final else _HEAT
        epochs = round(share * self.share * recipe.epochs * self.n_rows / n * p / size)
        epochs = min(epochs, _MOST_STEPS * recipe.batch_rows // n)
        epochs = int(np.clip(epochs, _FEWEST_EPOCHS, _MOST_EPOCHS))
        return replace(recipe, n_components=size, epochs=epochs, peak_step=2 * recipe.peak_step)

    def decisions(
        self, fold: Fold, recipe: Recipe, cancelled: threading.Event | None = None
    ) -> NDArray[np.float32]:
        """Train on the rows inside a fold, and decide the others."""
        whole, out = self.whole, fold.outside
        learner = Learner(whole.of(fold.inside), recipe, cancelled=cancelled)
        learner.run()
        return learner.decide(whole.mixed[out], whole.inputs[out])

    def judged(
        self, fold: Fold, recipe: Recipe, cancelled: threading.Event | None = None
    ) -> tuple[float, float]:
        """Train on the rows inside a fold; return loss and score of the others."""
        whole, out = self.whole, fold.outside
        decisions = self.decisions(fold, recipe, cancelled)
        return Truth(whole.truth[out], whole.weight[out], recipe.losses).judge(decisions)
