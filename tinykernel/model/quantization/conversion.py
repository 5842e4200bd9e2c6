"""What counts as a model: `as_integer_model` and `quantize`."""

from __future__ import annotations

from dataclasses import replace

from tinykernel.errors import TinykernelError
from tinykernel.model.integer import IntegerModel
from tinykernel.model.quantization.pipelines import fold, is_pipeline


def quantize(obj: object, feature_names: tuple[str, ...] | None = None) -> IntegerModel:
    """Return the integer model that the firmware computes.

    Parameters
    ----------
    obj : fitted classifier or regressor, Pipeline that ends in one, or IntegerModel
        Scaling and column selection in a Pipeline become part of the model.
    feature_names : tuple of str, optional
        Names of the inputs; the model remembers them. Classifiers know them by themselves.

    Returns
    -------
    IntegerModel
        Proved not to overflow for any input.

    Raises
    ------
    TinykernelError
        If it is another object, or a step of the Pipeline cannot become part of the model.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tinykernel import TernaryKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = TernaryKernelClassifier(n_components=32, epochs=2, effort="quick").fit(X, y)
    >>> quantize(classifier, ("a", "b", "c", "d")).feature_names
    ('a', 'b', 'c', 'd')
    """
    model = as_integer_model(obj)
    return model if feature_names is None else replace(model, feature_names=feature_names)


def as_integer_model(obj: object) -> IntegerModel:
    """Return the integer model of a fitted classifier, or of a Pipeline that ends in one.

    Scaling and column selection before the classifier become part of the model, see
    `pipelines.fold`. A TinykernelError names another object, or a step that cannot be folded.
    """
    if is_pipeline(obj):
        return fold(obj, as_integer_model(obj.steps[-1][1]))  # type: ignore[attr-defined]
    # By method, because the estimator lies above this package.
    model = obj.quantize() if hasattr(obj, "quantize") else obj
    if isinstance(model, IntegerModel):
        return model
    raise TinykernelError(
        f"a {type(obj).__name__} is no model; give an IntegerModel or a fitted "
        "TernaryKernelClassifier"
    )
