"""A linear classifier with ternary weights on binary codes (001, section 2.2, Algorithm 1)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.svm import LinearSVC
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from tinykernel.checks import check_choice, check_count, check_positive
from tinykernel.papers.descent import TernaryProblem, learn_output
from tinykernel.papers.labels import FLOATS, OneVersusRest, label_matrix

_MOST_ROWS = 2000  # of the linear SVM, which (12) trains on a small part


@dataclass(kw_only=True, eq=False, repr=False)
class TernaryLinearClassifier(OneVersusRest):
    """Linear classifier ``f = alpha w . z + beta`` with every w_j in {-1, 0, 1} (001 (6)-(12)).

    Algorithm 1 minimises, for one class against the rest, (7)::

        1/n sum_i loss(y_i, f_i) + lambda alpha^2 sum_j w_j^2

    by turns over alpha and beta (8), and over one weight after the other, each of which takes the
    best of its values (10)-(11). No step raises the objective, so that it converges (Lemma 2). z is
    a binary code: of each value the sign counts, where 0 counts as 1.

    001 has no beta. Its (15) subtracts ``len(z)``, where only weights other than 0 count.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge", "logistic", "squared"}
    penalty : {"l2", "l1"}
        That of (7), or ``lambda alpha sum_j |w_j|``.
    regularization : float
        lambda, not negative.
    binary : bool
        Whether weights are -1 or 1 only.
    start : {"svm", "random"}
        The signs and the mean magnitude of the weights of a linear SVM on up to 2000 rows (12), or
        random weights.
    max_iter : int
        Most sweeps over the weights.
    random_state : int, RandomState or None

    Attributes
    ----------
    coef_, scale_, intercept_ : ndarray, shape (n_outputs, n_features), and twice (n_outputs,)
        w, alpha and beta, of one output for two classes.
    objectives_ : list of tuple of float
        The objective of each output after each sweep.

    Examples
    --------
    >>> Z = np.random.default_rng(0).choice([-1, 1], (200, 9))
    >>> TernaryLinearClassifier(random_state=0).fit(Z, Z[:, :3].sum(axis=1) > 0).coef_[0, :3]
    array([1, 1, 1], dtype=int8)
    """

    loss: str = "hinge"
    penalty: str = "l2"
    regularization: float = 0.1
    binary: bool = False
    start: str = "svm"
    max_iter: int = 20
    random_state: int | np.random.RandomState | None = None

    def fit(self, X: ArrayLike, y: ArrayLike) -> "TernaryLinearClassifier":
        """Learn from codes (n, n_features) and labels of at least two classes."""
        rows, labels = validate_data(self, X, y, dtype=FLOATS)
        check_choice("start", self.start, ("svm", "random"))
        check_count("max_iter", self.max_iter)
        if self.regularization != 0:
            check_positive("regularization", self.regularization)
        self.classes_, Y = label_matrix(labels)
        rng = check_random_state(self.random_state)
        signs = np.ascontiguousarray(_signs(rows).T)
        share, kind = np.full(len(rows), 1 / len(rows)), (self.loss, self.penalty, self.binary)
        settings, outputs = (float(self.regularization), self.max_iter), []
        for targets in np.ascontiguousarray(Y.T):
            problem = TernaryProblem(signs, targets, share, *kind)
            start = self._start(problem, rng)
            outputs.append(learn_output(problem, *settings, rng.randint(2**31 - 1), start))
        self.coef_ = np.stack([output.weights for output in outputs])
        self.scale_ = np.array([output.alpha for output in outputs])
        self.intercept_ = np.array([output.beta for output in outputs])
        self.objectives_ = [output.objectives for output in outputs]
        self.n_iter_ = max(map(len, self.objectives_))
        return self

    def _start(
        self, problem: TernaryProblem, rng: np.random.RandomState
    ) -> tuple[NDArray[np.int8], float]:
        """Return the first weights and alpha, (12)."""
        p, n = problem.signs.shape
        if self.start == "random":
            values = [-1, 1] if self.binary else [-1, 0, 1]
            return rng.choice(np.array(values, dtype=np.int8), p), 1 / np.sqrt(p)
        order = rng.permutation(n)
        # Both classes are there, however rare one of them is.
        first = [order[problem.y[order] == sign][:1] for sign in (-1, 1)]
        part = np.unique(np.concatenate([order[:_MOST_ROWS], *first]))
        svm = LinearSVC(C=1 / p, random_state=rng.randint(2**31 - 1))
        w = svm.fit(problem.signs[:, part].T, problem.y[part]).coef_[0]
        return np.where(w < 0, -1, 1).astype(np.int8), float(np.abs(w).mean())

    def _outputs(self, X: NDArray[Any]) -> NDArray[Any]:
        # Whole numbers in float32 are exact.
        sums = _signs(X).astype(np.float32) @ self.coef_.T.astype(np.float32)
        return np.asarray(sums * self.scale_ + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # signs of two columns do not tell blobs apart
        return tags


def _signs(X: NDArray[Any]) -> NDArray[np.int8]:
    return np.where(X >= 0, 1, -1).astype(np.int8)
