"""What to do with a model that is not converted: let it teach, or what is right instead."""

from typing import Any

_OF_ROWS = ("SVC", "NuSVC", "SVR", "NuSVR", "KernelRidge", "KNeighborsClassifier")


def no_teacher(model: Any) -> str:
    """Say why a model without labels of its own does not teach, and what to do; "" if it does.

    >>> from sklearn.linear_model import Ridge
    >>> no_teacher(Ridge())
    ''
    """
    kind, name = _sort_of(model), type(model).__name__
    if kind == "outlier_detector":
        return (
            f"a {name} has no labels to teach; train on the normal rows: "
            "tinykernel.NoveltyDetector(...).fit(X), or --task novelty"
        )
    if kind in ("clusterer", "density_estimator"):
        labels = "labels_" if kind == "clusterer" else "predict(X)"
        return (
            f"each fit of a {name} numbers its clusters otherwise, so it cannot teach; train on "
            f"those of one fit: tinykernel.train(X, model.{labels})"
        )
    return ""


def instead_of(model: Any) -> str:
    """Say why a model that predicts is not converted, and what to do."""
    name, library = type(model).__name__, type(model).__module__.split(".")[0]
    fault, task = f"a {library} {name} is not known", ""
    if _sort_of(model) == "regressor":
        task = ', task="numbers"'
    teach = f"tinykernel.train(X, y, teacher={name}(...){task})"
    if problem := no_teacher(model):
        return f"{fault}; {problem}"
    if library == "sklearn" and name in _OF_ROWS:
        return (
            f"a {name} holds its training rows, too many for a chip; let it teach a smaller "
            f"model: {teach}"
        )
    return f"{fault}; let it teach a model that is: {teach}"


def _sort_of(model: Any) -> str:
    """Return what scikit-learn calls the sort of an estimator; "" of other objects."""
    try:
        return str(model.__sklearn_tags__().estimator_type)
    except (AttributeError, TypeError):
        return ""
